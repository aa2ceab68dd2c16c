//! The node selector that a namespace gives to its pods (the plugin `PodNodeSelector`).

use serde_json::{Value, json};

use super::columns::AdmitError;
use crate::fields::{Fields, read_path};

/// The annotation of a namespace with labels such as `a=b,c=d`.
const ANNOTATION: &str = "scheduler.alpha.kubernetes.io/node-selector";

/// Adds the labels of the namespace to the node selector of a new pod, which may not contradict
/// them.
pub(super) fn admit(
    pod: &mut Fields,
    find: &dyn Fn(&str) -> Option<Fields>,
    _: &dyn Fn() -> Vec<Fields>,
) -> Result<(), AdmitError> {
    let name = read_path(pod, "metadata.namespace").and_then(Value::as_str).unwrap_or_default();
    let namespace = find(name).unwrap_or_default();
    let annotations = read_path(&namespace, "metadata.annotations").unwrap_or(&Value::Null);
    let labels = labels(annotations[ANNOTATION].as_str().unwrap_or_default());
    let labels = labels.map_err(AdmitError::Unreadable)?;
    let Some(Value::Object(spec)) = pod.get_mut("spec") else { return Ok(()) };
    if labels.is_empty() {
        return Ok(());
    }
    let selector = spec.entry("nodeSelector").or_insert_with(|| json!({}));
    if !selector.is_object() {
        *selector = json!({});
    }
    let selector = selector.as_object_mut().expect("was just made an object");
    for (key, value) in labels {
        if *selector.entry(key).or_insert_with(|| json!(value)) != *value {
            let why = "pod node label selector conflicts with its namespace node label selector";
            return Err(AdmitError::Forbidden(why.to_owned()));
        }
    }
    Ok(())
}

/// Reads labels.
fn labels(text: &str) -> Result<Vec<(&str, &str)>, String> {
    let parts = text.split(',').filter(|_| !text.is_empty());
    let labels = parts.map(|part| match part.split('=').collect::<Vec<_>>().as_slice() {
        [key, value] => Ok((key.trim(), value.trim())),
        other => Err(format!("invalid selector: [{}]", other.join(" "))),
    });
    labels.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selector_of(annotation: &str, own: &Value) -> Result<Value, AdmitError> {
        let mut pod = json!({"metadata": {"namespace": "n"}, "spec": {"nodeSelector": own}});
        let namespace = json!({"metadata": {"annotations": {ANNOTATION: annotation}}});
        let find = |name: &str| (name == "n").then(|| namespace.as_object().cloned()).flatten();
        let pod = pod.as_object_mut().unwrap();
        admit(pod, &find, &Vec::new)?;
        Ok(pod["spec"]["nodeSelector"].clone())
    }

    #[test]
    fn labels_of_the_namespace_join_those_of_the_pod() {
        let both = Ok(json!({"a": "b", "c": "d"}));
        assert_eq!(selector_of("a=b, c = d", &Value::Null), both);
        assert_eq!(selector_of("a=b", &json!({"c": "d"})), both);
        assert_eq!(selector_of("", &json!({"c": "d"})), Ok(json!({"c": "d"})));
        let refused = selector_of("a=b", &json!({"a": "c"}));
        assert!(matches!(refused, Err(AdmitError::Forbidden(_))), "{refused:?}");
        let invalid = selector_of("a=b,x", &Value::Null);
        assert_eq!(invalid, Err(AdmitError::Unreadable("invalid selector: [x]".to_owned())));
    }
}
