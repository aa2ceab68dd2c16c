//! The `AppArmor` profiles of a new pod: annotations of older clients become members.

use serde_json::{Value, json};

use super::annotations::APP_ARMOR;
use super::checks::{items, member};
use crate::fields::{Fields, read_path, text};

/// The warning about an annotation in place of the member.
pub(super) const DEPRECATED: &str =
    "deprecated since v1.30; use the \"appArmorProfile\" field instead";

/// The containers of a new pod.
const LISTS: [&str; 2] = ["initContainers", "containers"];

/// Gives each container without a profile the one that an annotation names
/// (`applyAppArmorVersionSkew`).
pub(super) fn follow_annotations(pod: &mut Fields) {
    let annotations = pod.get("metadata").and_then(|metadata| metadata.get("annotations"));
    let Some(annotations) = annotations.cloned() else { return };
    let Some(spec) = pod.get_mut("spec") else { return };
    if is_windows(spec) {
        return;
    }
    let of_pod = of_pod(spec).cloned();
    for list in LISTS {
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

/// Returns the warnings about annotations of a new pod that become members, or that cannot.
pub(super) fn warnings(pod: &Fields) -> Vec<String> {
    let annotations = read_path(pod, "metadata.annotations").and_then(Value::as_object);
    let (Some(annotations), Some(spec)) = (annotations, pod.get("spec")) else { return Vec::new() };
    if is_windows(spec) {
        return Vec::new();
    }
    let containers = LISTS.iter().flat_map(|list| items(member(spec, list)));
    let profile_in = |one| member(member(one, "securityContext"), "appArmorProfile");
    let keys = containers.filter(|one| profile_in(one).is_null()).map(|one| {
        let key = format!("{APP_ARMOR}{}", text(one, "name"));
        let annotation = annotations.get(&key).and_then(Value::as_str);
        (key, annotation)
    });
    let warned = keys.filter(|(_, annotation)| {
        annotation.is_some_and(|annotation| {
            profile_of(annotation).is_none_or(|profile| of_pod(spec) != Some(&profile))
        })
    });
    warned.map(|(key, _)| format!("metadata.annotations[{key}]: {DEPRECATED}")).collect()
}

fn is_windows(spec: &Value) -> bool {
    spec.pointer("/os/name").is_some_and(|os| os == "windows")
}

/// Returns the profile of all containers of a pod.
fn of_pod(spec: &Value) -> Option<&Value> {
    spec.pointer("/securityContext/appArmorProfile")
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
    fn annotation_without_a_member_is_warned_about() {
        let pod = |annotation: &str, spec: Value| {
            let annotations = json!({format!("{APP_ARMOR}a"): annotation});
            let metadata = json!({ "annotations": annotations });
            Fields::from_iter([("metadata".to_owned(), metadata), ("spec".to_owned(), spec)])
        };
        let container = |context: Value| json!([{"name": "a", "securityContext": context}]);
        let unconfined = json!({"appArmorProfile": {"type": "Unconfined"}});
        let plain = json!({"containers": [{"name": "a"}]});
        let warned = [format!("metadata.annotations[{APP_ARMOR}a]: {DEPRECATED}")];
        assert_eq!(warnings(&pod("unconfined", plain.clone())), warned);
        assert_eq!(warnings(&pod("banana", plain.clone())), warned);
        let own = json!({"containers": container(unconfined.clone())});
        assert!(warnings(&pod("runtime/default", own)).is_empty());
        let mut of_pod = plain.clone();
        of_pod["securityContext"] = unconfined;
        assert!(warnings(&pod("unconfined", of_pod.clone())).is_empty());
        assert_eq!(warnings(&pod("runtime/default", of_pod)), warned);
        let mut windows = plain;
        windows["os"] = json!({"name": "windows"});
        assert!(warnings(&pod("unconfined", windows)).is_empty());
    }

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
