//! The body of the request that creates a pod from a workload's template. Pure.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::workload::Workload;

/// The error of a template from which no pod can be created.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TemplateError {
    /// The selector would not match a pod without labels, and the controller would never stop
    /// creating pods.
    #[error("unable to create pods, no labels")]
    NoLabels,
    /// The template does not serialize: a bug of this program.
    #[error("failed to serialize the pod: {0}")]
    Json(#[from] serde_json::Error),
}

#[derive(Deserialize)]
struct Spec<'a> {
    #[serde(borrow, default)]
    template: Option<Template<'a>>,
}

#[derive(Default, Deserialize)]
struct Template<'a> {
    #[serde(default)]
    metadata: Option<TemplateMetadata>,
    /// The JSON of the server, with all its fields.
    #[serde(borrow, default)]
    spec: Option<&'a RawValue>,
}

/// The metadata that a pod gets from its template.
#[derive(Default, Deserialize)]
struct TemplateMetadata {
    #[serde(default)]
    labels: Option<BTreeMap<String, String>>,
    #[serde(default)]
    annotations: Option<BTreeMap<String, String>>,
    #[serde(default)]
    finalizers: Option<Vec<String>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct NewPod<'a> {
    api_version: &'static str,
    kind: &'static str,
    metadata: NewMetadata<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    spec: Option<&'a RawValue>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct NewMetadata<'a> {
    generate_name: String,
    labels: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    annotations: Option<BTreeMap<String, String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    finalizers: Option<Vec<String>>,
    owner_references: [&'a OwnerReference; 1],
}

/// Returns the body of the request that creates one pod of `set`.
///
/// # Errors
///
/// Returns an error if the template has no labels.
pub(crate) fn new_pod<K>(
    set: &Workload<K>,
    owner: &OwnerReference,
) -> Result<Vec<u8>, TemplateError> {
    let spec: Option<Spec<'_>> = serde_json::from_str(set.spec.json())?;
    let template = spec.and_then(|spec| spec.template).unwrap_or_default();
    let metadata = template.metadata.unwrap_or_default();
    let labels = metadata.labels.filter(|labels| !labels.is_empty());
    let pod = NewPod {
        api_version: "v1",
        kind: "Pod",
        metadata: NewMetadata {
            generate_name: generate_name(set.name()),
            labels: labels.ok_or(TemplateError::NoLabels)?,
            annotations: metadata.annotations,
            finalizers: metadata.finalizers,
            owner_references: [owner],
        },
        spec: template.spec,
    };
    Ok(serde_json::to_vec(&pod)?)
}

/// Returns `<owner>-`, or the owner's name alone if a pod's name cannot start with the former.
fn generate_name(owner: &str) -> String {
    let dash = if is_dns_subdomain(owner) { "-" } else { "" };
    format!("{owner}{dash}")
}

/// Returns true if `text` is an RFC 1123 subdomain: at most 253 bytes of dot-separated lower-case
/// labels.
fn is_dns_subdomain(text: &str) -> bool {
    let is_label = |label: &str| {
        let bytes = label.as_bytes();
        let edge = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        bytes.iter().all(|byte| edge(byte) || *byte == b'-')
            && bytes.first().is_some_and(edge)
            && bytes.last().is_some_and(edge)
    };
    text.len() <= 253 && text.split('.').all(is_label)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::workload::ReplicaSet;

    fn body(template: &Value) -> Result<Value, TemplateError> {
        let set = json!({"metadata": {"name": "web", "uid": "u"}, "spec": {"template": template}});
        let set: ReplicaSet = serde_json::from_str(&set.to_string()).unwrap();
        let owner = OwnerReference {
            api_version: "apps/v1".to_owned(),
            kind: "ReplicaSet".to_owned(),
            name: "web".to_owned(),
            uid: "u".to_owned(),
            controller: Some(true),
            block_owner_deletion: Some(true),
        };
        Ok(serde_json::from_slice(&new_pod(&set, &owner)?).unwrap())
    }

    #[test]
    fn pod_is_its_template_with_an_owner() {
        let spec =
            json!({"containers": [{"name": "c", "image": "i"}], "fromTheFuture": [1.5, null]});
        let template = json!({
            "metadata": {"labels": {"app": "web"}, "annotations": {"a": "b"}, "finalizers": ["f/g"],
                         "name": "ignored", "namespace": "ignored", "creationTimestamp": null},
            "spec": spec,
        });
        assert_eq!(
            body(&template).unwrap(),
            json!({
                "apiVersion": "v1", "kind": "Pod",
                "metadata": {
                    "generateName": "web-", "labels": {"app": "web"}, "annotations": {"a": "b"},
                    "finalizers": ["f/g"],
                    "ownerReferences": [{
                        "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u",
                        "controller": true, "blockOwnerDeletion": true,
                    }],
                },
                "spec": spec,
            })
        );
    }

    #[test]
    fn template_without_labels_creates_no_pods() {
        for template in [json!(null), json!({}), json!({"metadata": {"labels": {}}})] {
            let error = body(&template).unwrap_err();
            assert_eq!(error.to_string(), "unable to create pods, no labels");
        }
    }

    #[test]
    fn names_that_cannot_start_a_pod_name_get_no_dash() {
        assert_eq!(generate_name("web.v1"), "web.v1-");
        assert_eq!(generate_name("Web"), "Web");
    }

    #[test]
    fn dns_names_are_lower_case_labels() {
        for good in ["a", "a-b.c9", "9"] {
            assert!(is_dns_subdomain(good), "{good}");
        }
        for bad in ["", "a..b", "-a", "a-", "A", "a_b", ".", &"a".repeat(254)] {
            assert!(!is_dns_subdomain(bad), "{bad}");
        }
    }
}
