//! The `AppArmor` profiles of a new pod: annotations of older clients become members.

use serde_json::{Value, json};

use super::annotations::APP_ARMOR;
use crate::fields::{Fields, text};

/// Gives each container without a profile the one that an annotation names
/// (`applyAppArmorVersionSkew`).
pub(super) fn follow_annotations(pod: &mut Fields) {
    let annotations = pod.get("metadata").and_then(|metadata| metadata.get("annotations"));
    let Some(annotations) = annotations.cloned() else { return };
    let Some(spec) = pod.get_mut("spec") else { return };
    if spec.pointer("/os/name").is_some_and(|os| os == "windows") {
        return;
    }
    let of_pod = spec.pointer("/securityContext/appArmorProfile").cloned();
    for list in ["initContainers", "containers"] {
        let containers = spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten();
        for container in containers.filter_map(Value::as_object_mut) {
            let key = format!(
                "{APP_ARMOR}{}",
                container.get("name").and_then(Value::as_str).unwrap_or("")
            );
            let profile = profile_of(text(&annotations, &key));
            if let Some(profile) = profile.filter(|profile| of_pod.as_ref() != Some(profile)) {
                add(container, profile);
            }
        }
    }
}

/// Returns the profile that the value of an annotation names.
pub(super) fn profile_of(annotation: &str) -> Option<Value> {
    match annotation {
        "unconfined" => Some(json!({"type": "Unconfined"})),
        "runtime/default" => Some(json!({"type": "RuntimeDefault"})),
        other => {
            let name = other.strip_prefix("localhost/")?;
            let is_valid = !name.is_empty() && name.trim() == name;
            is_valid.then(|| json!({"type": "Localhost", "localhostProfile": name}))
        }
    }
}

fn add(container: &mut Fields, profile: Value) {
    let context = container.entry("securityContext").or_insert_with(|| json!({}));
    if context.is_null() {
        *context = json!({});
    }
    if let Some(context) = context.as_object_mut() {
        context.entry("appArmorProfile").or_insert(profile);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn container_without_a_profile_gets_that_of_its_annotation() {
        let Value::Object(mut pod) = json!({
            "metadata": {"annotations": {
                format!("{APP_ARMOR}a"): "localhost/x", format!("{APP_ARMOR}b"): "unconfined",
                format!("{APP_ARMOR}c"): "runtime/default", format!("{APP_ARMOR}d"): "banana",
            }},
            "spec": {
                "securityContext": {"appArmorProfile": {"type": "RuntimeDefault"}},
                "containers": [
                    {"name": "a"}, {"name": "c"}, {"name": "d"},
                    {"name": "b", "securityContext": {"appArmorProfile": {"type": "Localhost"}}},
                ],
            },
        }) else {
            unreachable!()
        };
        follow_annotations(&mut pod);
        let containers = &pod["spec"]["containers"];
        let profile = |at: usize| &containers[at]["securityContext"]["appArmorProfile"];
        assert_eq!(*profile(0), json!({"type": "Localhost", "localhostProfile": "x"}));
        assert_eq!(*profile(1), Value::Null, "the pod has it already");
        assert_eq!(*profile(2), Value::Null);
        assert_eq!(profile(3)["type"], "Localhost");
    }
}
