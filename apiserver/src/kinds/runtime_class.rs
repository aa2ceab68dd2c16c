//! Runtime classes: what they add to a pod (the plugin `RuntimeClass` of kube-apiserver).

use homeostat_core::go_quote;
use serde_json::{Value, json};

use super::checks::is_empty;
use super::columns::{AdmitError, Guard, GuardedWrite};
use crate::fields::{Fields, read_path};
use crate::plugin::AdmissionPlugin;

/// The check of a complete pod, which follows those of limit ranges and pod security.
pub(super) const OVERHEAD: Guard =
    Guard { plugin: AdmissionPlugin::RuntimeClass, subresource: "", check: check_overhead };

/// Gives a new pod the overhead and the scheduling of its class.
pub(super) fn admit(
    pod: &mut Fields,
    find: &dyn Fn(&str) -> Option<Fields>,
    _: &dyn Fn() -> Vec<Fields>,
) -> Result<(), AdmitError> {
    let Some(Value::Object(spec)) = pod.get_mut("spec") else { return Ok(()) };
    let class = match spec.get("runtimeClassName").and_then(Value::as_str) {
        Some(name) => {
            let missing = || format!("pod rejected: RuntimeClass {} not found", go_quote(name));
            find(name).ok_or_else(missing)?
        }
        None => Fields::new(),
    };
    set_overhead(spec, class.get("overhead").filter(|overhead| !overhead.is_null()))?;
    if let Some(scheduling) = class.get("scheduling") {
        set_selector(spec, scheduling.get("nodeSelector"))?;
        add_tolerations(spec, scheduling.get("tolerations"));
    }
    Ok(())
}

fn set_overhead(spec: &mut Fields, overhead: Option<&Value>) -> Result<(), String> {
    let given = spec.get("overhead").filter(|given| !given.is_null());
    let Some(overhead) = overhead else { return Ok(()) };
    let fixed = overhead.get("podFixed").cloned().unwrap_or_else(|| json!({}));
    if given.is_some_and(|given| !is_empty(given) && *given != fixed) {
        return Err(
            "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead".to_owned()
        );
    }
    spec.insert("overhead".to_owned(), fixed);
    Ok(())
}

/// Refuses the overhead of a new pod whose class has none.
fn check_overhead(write: &GuardedWrite<'_>) -> Result<(), String> {
    let read = |path: &str| read_path(write.new, path).filter(|value| !value.is_null());
    if write.old.is_some() || read("spec.overhead").is_none() {
        return Ok(());
    }
    let name = read("spec.runtimeClassName").and_then(Value::as_str);
    let class = name.and_then(|name| (write.find)("node.k8s.io", "runtimeclasses", name));
    let overhead = class.as_ref().and_then(|class| class.get("overhead"));
    if overhead.is_some_and(|overhead| !overhead.is_null()) {
        return Ok(());
    }
    Err("pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"
        .to_owned())
}

fn set_selector(spec: &mut Fields, wanted: Option<&Value>) -> Result<(), String> {
    let Some(wanted) = wanted.and_then(Value::as_object).filter(|wanted| !wanted.is_empty()) else {
        return Ok(());
    };
    let selector = spec.entry("nodeSelector").or_insert_with(|| json!({}));
    for (key, value) in wanted {
        let shown = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        if let Some(given) = selector.get(key).filter(|given| *given != value) {
            let (value, given) = (shown(value), shown(given));
            return Err(format!(
                "conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; \
                 pod.spec.nodeSelector[{key}] = {given}"
            ));
        }
        selector[key] = value.clone();
    }
    Ok(())
}

/// Adds the tolerations of a class. One that another includes is left out.
fn add_tolerations(spec: &mut Fields, wanted: Option<&Value>) {
    let wanted = wanted.and_then(Value::as_array).filter(|wanted| !wanted.is_empty());
    let Some(wanted) = wanted else { return };
    let given = spec.get("tolerations").and_then(Value::as_array).cloned().unwrap_or_default();
    let all: Vec<Value> = given.into_iter().chain(wanted.iter().cloned()).collect();
    let mut merged: Vec<Value> = Vec::new();
    for (at, one) in all.iter().enumerate() {
        let is_included = merged.iter().any(|other| includes(other, one))
            || all[at + 1..].iter().any(|other| other != one && includes(other, one));
        if !is_included {
            merged.push(one.clone());
        }
    }
    spec.insert("tolerations".to_owned(), json!(merged));
}

/// Returns true if the first toleration tolerates all that the second does.
fn includes(wide: &Value, narrow: &Value) -> bool {
    if wide == narrow {
        return true;
    }
    let text =
        |one: &Value, key: &str| one.get(key).and_then(Value::as_str).unwrap_or("").to_owned();
    let is_any = |key: &str| text(wide, key).is_empty();
    let same = |key: &str| text(wide, key) == text(narrow, key);
    let exists = text(wide, "operator") == "Exists";
    if !(same("key") || is_any("key") && exists) || !(same("effect") || is_any("effect")) {
        return false;
    }
    let seconds = |one: &Value| one.get("tolerationSeconds").and_then(Value::as_i64);
    let is_shorter =
        seconds(wide).is_some_and(|wide| seconds(narrow).is_none_or(|narrow| wide < narrow));
    if text(wide, "effect") == "NoExecute" && is_shorter {
        return false;
    }
    match text(wide, "operator").as_str() {
        "Exists" => true,
        // The real server writes no default operator, and compares with the written one.
        "" | "Equal" => text(narrow, "operator") == "Equal" && same("value"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admitted(spec: Value, class: &Value) -> Result<Value, String> {
        let mut pod = Fields::from_iter([("spec".to_owned(), spec)]);
        let find = |name: &str| (name == "known").then(|| class.as_object().cloned()).flatten();
        admit(&mut pod, &find, &Vec::new).map_err(|error| match error {
            AdmitError::Forbidden(detail) | AdmitError::Unreadable(detail) => detail,
        })?;
        Ok(pod.remove("spec").unwrap_or_default())
    }

    #[test]
    fn class_gives_its_overhead_selector_and_tolerations() {
        let class = json!({
            "overhead": {"podFixed": {"cpu": "1"}},
            "scheduling": {"nodeSelector": {"a": "b"}, "tolerations": [
                {"key": "k", "operator": "Exists"}, {"key": "l", "value": "m"},
            ]},
        });
        let spec =
            json!({"runtimeClassName": "known", "tolerations": [{"key": "k", "value": "v"}]});
        assert_eq!(
            admitted(spec, &class).unwrap(),
            json!({
                "runtimeClassName": "known", "overhead": {"cpu": "1"}, "nodeSelector": {"a": "b"},
                "tolerations": [{"key": "k", "operator": "Exists"}, {"key": "l", "value": "m"}],
            })
        );
        let other = json!({"runtimeClassName": "known", "nodeSelector": {"a": "c"}});
        assert!(admitted(other, &class).unwrap_err().contains("[a] = b; pod.spec"));
        let other = json!({"runtimeClassName": "known", "overhead": {"cpu": "2"}});
        assert!(admitted(other, &class).unwrap_err().contains("doesn't match"));
    }

    #[test]
    fn pod_without_a_class_is_left_alone() {
        assert_eq!(admitted(json!({"a": 1}), &json!({})).unwrap(), json!({"a": 1}));
        let with_overhead = json!({"overhead": {"cpu": "1"}});
        assert_eq!(admitted(with_overhead.clone(), &json!({})).unwrap(), with_overhead);
        let refusal = admitted(json!({"runtimeClassName": "x"}), &json!({})).unwrap_err();
        assert_eq!(refusal, "pod rejected: RuntimeClass \"x\" not found");
    }

    #[test]
    fn toleration_includes_those_that_it_covers() {
        let all = json!({"operator": "Exists"});
        let one = json!({
            "key": "a", "operator": "Equal", "value": "b", "effect": "NoExecute",
            "tolerationSeconds": 5,
        });
        assert!(includes(&all, &one));
        assert!(!includes(&one, &all));
        let longer = json!({"key": "a", "operator": "Equal", "value": "b", "effect": "NoExecute"});
        assert!(includes(&longer, &one));
        assert!(!includes(&one, &longer));
        assert!(!includes(&json!({"key": "a", "value": "c"}), &one));
    }
}
