//! Members of a pod that an update omits, because its client does not know them, and that stay.

use serde_json::Value;

use super::pod_level;
use crate::fields::{Fields, read_path, text};

const GENERATION: &str = "observedGeneration";

/// Keeps members of the spec and the status that an update omits.
pub(super) fn inherit(pod: &mut Fields, old: &Fields) {
    const KEPT: [&str; 3] = ["qosClass", "resourceClaimStatuses", "extendedResourceClaimStatus"];
    keep_resources(pod, old);
    pod_level::complete(pod);
    let node = |pod| read_path(pod, "spec.nodeName");
    let is_binding = node(pod) != node(old);
    let (Some(Value::Object(status)), Some(old)) = (pod.get_mut("status"), old.get("status"))
    else {
        return;
    };
    for key in KEPT {
        keep(status, old, key);
    }
    // A binding replaces its condition.
    if !is_binding {
        keep_generations(status, old);
    }
}

fn keep(object: &mut Fields, old: &Value, key: &str) {
    if let Some(value) = old.get(key) {
        object.entry(key).or_insert_with(|| value.clone());
    }
}

/// Keeps the resources of the pod as a whole: clients that do not know them must not remove them.
fn keep_resources(pod: &mut Fields, old: &Fields) {
    let kept = old.get("spec").and_then(|spec| spec.get("resources"));
    if let (Some(kept), Some(Value::Object(spec))) = (kept, pod.get_mut("spec"))
        && spec.get("resources").is_none_or(Value::is_null)
    {
        spec.insert("resources".to_owned(), kept.clone());
    }
}

/// Keeps the generations that the status and its conditions are about. Of several conditions of
/// one type, each has that of the stored one in its place.
fn keep_generations(status: &mut Fields, old: &Value) {
    keep(status, old, GENERATION);
    let known = old.get("conditions").and_then(Value::as_array);
    let mut known = known.cloned().unwrap_or_default();
    if known.iter().all(|condition| condition.get(GENERATION).is_none()) {
        return;
    }
    let conditions = status.get_mut("conditions").and_then(Value::as_array_mut);
    for condition in conditions.into_iter().flatten() {
        let is_same = |known: &Value| text(known, "type") == text(condition, "type");
        let Some(place) = known.iter().position(is_same) else { continue };
        let stored = known.remove(place);
        if let Value::Object(condition) = condition {
            keep(condition, &stored, GENERATION);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn inherited(new: Value, old: Value) -> Value {
        let (Value::Object(mut new), Value::Object(old)) = (new, old) else { panic!("no objects") };
        inherit(&mut new, &old);
        Value::Object(new)
    }

    #[test]
    fn generation_of_a_status_and_its_conditions_is_kept() {
        let old = json!({"status": {"observedGeneration": 3, "conditions": [
            {"type": "A", "observedGeneration": 1}, {"type": "A", "observedGeneration": 2},
            {"type": "B"},
        ]}});
        let new = json!({"status": {"conditions": [
            {"type": "C"}, {"type": "A"}, {"type": "A", "observedGeneration": 5}, {"type": "B"},
        ]}});
        let expected = json!({"status": {"observedGeneration": 3, "conditions": [
            {"type": "C"}, {"type": "A", "observedGeneration": 1},
            {"type": "A", "observedGeneration": 5}, {"type": "B"},
        ]}});
        assert_eq!(inherited(new, old), expected);
    }

    #[test]
    fn binding_has_no_generation() {
        let old = json!({"status": {"conditions": [{"type": "A", "observedGeneration": 1}]}});
        let new = json!({"spec": {"nodeName": "n"}, "status": {"conditions": [{"type": "A"}]}});
        assert_eq!(inherited(new.clone(), old), new);
    }
}
