//! Disruption budgets: the evictions that they permit.

use serde_json::{Value, json};

use super::label_selector;
use crate::fields::{Fields, read_path, string_map, text};
use crate::status::{Failure, ResourceName, Result};

/// The reason of the cause in a refusal.
const CAUSE: &str = "DisruptionBudget";
/// The largest number of evicted pods that the controller of budgets has not seen yet.
const MAX_DISRUPTED_PODS: usize = 2000;
/// The time after which a client may retry while the controller has not seen a budget, in seconds.
const RETRY_AFTER_SECONDS: u64 = 10;

const BUDGET: ResourceName<'static> = ResourceName {
    group: "policy",
    kind: "PodDisruptionBudget",
    plural: "poddisruptionbudget",
    custom: false,
};

fn name(budget: &Fields) -> &str {
    read_path(budget, "metadata.name").and_then(Value::as_str).unwrap_or("")
}

fn status(budget: &Fields) -> &Value {
    budget.get("status").unwrap_or(&Value::Null)
}

fn number(status: &Value, key: &str) -> i64 {
    status.get(key).and_then(Value::as_i64).unwrap_or_default()
}

/// Returns true if the pods of a budget include this one.
pub(crate) fn covers(budget: &Fields, pod: &Fields) -> bool {
    let labels = read_path(pod, "metadata.labels").and_then(Value::as_object).map(string_map);
    let selector = read_path(budget, "spec.selector").and_then(label_selector::read);
    selector.is_some_and(|selector| selector.matches(&labels.unwrap_or_default()))
}

/// Returns true if a pod is evicted regardless of budgets: it does not run yet, or not any more.
pub(crate) fn is_exempt(pod: &Fields) -> bool {
    let phase = read_path(pod, "status.phase").and_then(Value::as_str).unwrap_or("");
    let is_marked = read_path(pod, "metadata.deletionTimestamp").is_some();
    is_marked || matches!(phase, "Pending" | "Succeeded" | "Failed")
}

/// Returns true if a budget permits an eviction without counting it, since the pod is not ready.
pub(crate) fn ignores_unready(budget: &Fields, pod: &Fields) -> bool {
    let is_ready =
        |condition: &Value| condition["type"] == "Ready" && condition["status"] == "True";
    let conditions = read_path(pod, "status.conditions").and_then(Value::as_array);
    if conditions.is_some_and(|conditions| conditions.iter().any(is_ready)) {
        return false;
    }
    let policy = read_path(budget, "spec.unhealthyPodEvictionPolicy");
    let wanted = number(status(budget), "desiredHealthy");
    policy == Some(&json!("AlwaysAllow"))
        || (wanted > 0 && number(status(budget), "currentHealthy") >= wanted)
}

/// Counts the eviction of a pod; fails if the budget does not permit it.
pub(crate) fn count(budget: &mut Fields, pod: &str, now: &str) -> Result<()> {
    check(budget)?;
    let Some(Value::Object(status)) = budget.get_mut("status") else { return Ok(()) };
    let left = status.get("disruptionsAllowed").and_then(Value::as_i64).unwrap_or_default() - 1;
    status.insert("disruptionsAllowed".to_owned(), json!(left));
    if left == 0 {
        forbid_disruptions(status, now);
    }
    let pods = status.entry("disruptedPods").or_insert_with(|| json!({}));
    pods[pod] = json!(now);
    Ok(())
}

fn check(budget: &Fields) -> Result<()> {
    let (name, status) = (name(budget), status(budget));
    let generation = read_path(budget, "metadata.generation").and_then(Value::as_i64);
    if number(status, "observedGeneration") < generation.unwrap_or_default() {
        return Err(unprocessed(name));
    }
    let disrupted = status.get("disruptedPods").and_then(Value::as_object).map_or(0, Fields::len);
    if disrupted > MAX_DISRUPTED_PODS {
        let detail =
            "DisruptedPods map too big - too many evictions not confirmed by PDB controller";
        let mut failure = Failure::forbidden(BUDGET, name, detail);
        let message = format!(
            "The disruption budget {name} does not allow evicting pods currently: too many pending \
             evictions not confirmed by PDB controller"
        );
        if let Some(details) = &mut failure.details {
            details["causes"] = json!([{"reason": CAUSE, "message": message}]);
        }
        return Err(failure);
    }
    if number(status, "disruptionsAllowed") <= 0 {
        let message = exhausted(name, status);
        return Err(refusal(json!({"causes": [{"reason": CAUSE, "message": message}]})));
    }
    Ok(())
}

/// The refusal while the controller of budgets has not seen a change.
fn unprocessed(name: &str) -> Failure {
    let message = format!("The disruption budget {name} is still being processed by the server.");
    refusal(json!({
        "causes": [{"reason": CAUSE, "message": message}],
        "retryAfterSeconds": RETRY_AFTER_SECONDS,
    }))
}

fn refusal(details: Value) -> Failure {
    let message = "Cannot evict pod as it would violate the pod's disruption budget.";
    Failure::new(429, "TooManyRequests", message).with_details(details)
}

/// Returns the reason for which a budget permits no eviction.
fn exhausted(name: &str, status: &Value) -> String {
    let condition = find_condition(status).filter(|condition| {
        condition["status"] == "False" && !text(condition, "message").is_empty()
    });
    let parts = condition.map(|condition| (text(condition, "reason"), text(condition, "message")));
    let [wanted, found] = ["desiredHealthy", "currentHealthy"].map(|key| number(status, key));
    let refuses = "does not allow evicting pods currently";
    match parts {
        Some(("SyncFailed", why)) => {
            format!("The disruption budget {name} {refuses} because it failed sync: {why}")
        }
        _ if found <= wanted => format!(
            "The disruption budget {name} needs {wanted} healthy pods and has {found} currently"
        ),
        Some((reason, why)) => {
            format!("The disruption budget {name} {refuses} ({reason}): {why}")
        }
        None => format!("The disruption budget {name} {refuses}"),
    }
}

fn find_condition(status: &Value) -> Option<&Value> {
    let conditions = status.get("conditions")?.as_array()?;
    conditions.iter().find(|condition| condition["type"] == "DisruptionAllowed")
}

/// Sets the condition of a budget that permits no further eviction.
fn forbid_disruptions(status: &mut Fields, now: &str) {
    let observed = status.get("observedGeneration").cloned().unwrap_or_default();
    let conditions = status.entry("conditions").or_insert_with(|| json!([]));
    let Value::Array(conditions) = conditions else { return };
    let condition = json!({"type": "DisruptionAllowed", "status": "False", "message": "",
        "reason": "InsufficientPods", "observedGeneration": observed, "lastTransitionTime": now});
    set_condition(conditions, condition);
}

/// Sets the condition of a pod that is being evicted.
pub(crate) fn mark_evicted(pod: &mut Fields, now: &str) {
    let status = pod.entry("status").or_insert_with(|| json!({}));
    if status.get("conditions").is_none() {
        status["conditions"] = json!([]);
    }
    let Some(conditions) = status["conditions"].as_array_mut() else { return };
    let condition = json!({"type": "DisruptionTarget", "status": "True", "lastProbeTime": null,
        "lastTransitionTime": now, "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting"});
    set_condition(conditions, condition);
}

/// Adds a condition, or replaces that of its type. An unchanged status keeps its time.
fn set_condition(conditions: &mut Vec<Value>, mut condition: Value) {
    let Some(old) = conditions.iter_mut().find(|old| old["type"] == condition["type"]) else {
        conditions.push(condition);
        return;
    };
    if old["status"] == condition["status"] {
        condition["lastTransitionTime"] = old["lastTransitionTime"].clone();
    }
    *old = condition;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(value: &Value) -> Fields {
        value.as_object().cloned().unwrap_or_default()
    }

    #[test]
    fn budget_covers_the_pods_of_its_selector() {
        let pod = fields(&json!({"metadata": {"labels": {"app": "web"}}}));
        let covers =
            |selector: Value| covers(&fields(&json!({"spec": {"selector": selector}})), &pod);
        assert!(covers(json!({})));
        assert!(covers(json!({"matchLabels": {"app": "web"}})));
        assert!(!covers(json!({"matchLabels": {"app": "db"}})));
        assert!(!super::covers(&fields(&json!({"spec": {}})), &pod));
    }

    #[test]
    fn evicted_pod_keeps_the_time_of_its_first_mark() {
        let mut pod = fields(&json!({"metadata": {"name": "a"}}));
        mark_evicted(&mut pod, "now");
        let mark = json!({"type": "DisruptionTarget", "status": "True", "lastProbeTime": null,
            "lastTransitionTime": "now", "reason": "EvictionByEvictionAPI",
            "message": "Eviction API: evicting"});
        assert_eq!(pod["status"]["conditions"], json!([mark]));
        mark_evicted(&mut pod, "later");
        assert_eq!(pod["status"]["conditions"], json!([mark]));
        pod["status"]["conditions"][0]["status"] = json!("False");
        mark_evicted(&mut pod, "later");
        assert_eq!(pod["status"]["conditions"][0]["lastTransitionTime"], "later");
    }

    #[test]
    fn last_permitted_eviction_changes_the_condition() {
        let mut budget = fields(&json!({"metadata": {"name": "b", "generation": 1},
            "status": {"observedGeneration": 1, "disruptionsAllowed": 2}}));
        count(&mut budget, "a", "now").unwrap();
        assert_eq!(find_condition(&budget["status"]), None);
        count(&mut budget, "b", "later").unwrap();
        assert_eq!(find_condition(&budget["status"]).unwrap()["reason"], "InsufficientPods");
        assert_eq!(budget["status"]["disruptedPods"], json!({"a": "now", "b": "later"}));
        let failure = count(&mut budget, "c", "later").unwrap_err();
        assert_eq!((failure.code, failure.retry_after()), (429, None));
    }
}
