//! From a `ReplicaSet`'s template to the request that makes a pod: serialised once, sent as often as needed. Pure.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::replica_set::ReplicaSet;
use crate::selector::is_dns_subdomain;

/// Why no pod can be made from a template.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TemplateError {
    /// Such a pod would be selected by nobody, and made again and again.
    #[error("unable to create pods, no labels")]
    NoLabels,
    /// The template is not what it was when it was decoded: a mistake of this program.
    #[error("failed to serialise the pod: {0}")]
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
    metadata: Option<ObjectMeta>,
    /// As the server sent it, with all fields that it knows.
    #[serde(borrow, default)]
    spec: Option<&'a RawValue>,
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

/// The body of the request that makes one pod of `set`.
///
/// # Errors
/// When the template has no labels.
pub(crate) fn new_pod(set: &ReplicaSet, owner: &OwnerReference) -> Result<Vec<u8>, TemplateError> {
    let spec: Option<Spec<'_>> = serde_json::from_str(&set.spec.json)?;
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

/// `<owner>-`, or the owner's name alone where a pod's name could not begin with that.
fn generate_name(owner: &str) -> String {
    let dash = if is_dns_subdomain(owner) { "-" } else { "" };
    format!("{owner}{dash}")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

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
    fn a_pod_is_its_template_with_an_owner() {
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
                    "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web",
                        "uid": "u", "controller": true, "blockOwnerDeletion": true}],
                },
                "spec": spec,
            })
        );
    }

    #[test]
    fn a_template_without_labels_makes_no_pods() {
        for template in [json!(null), json!({}), json!({"metadata": {"labels": {}}})] {
            let error = body(&template).unwrap_err();
            assert_eq!(error.to_string(), "unable to create pods, no labels");
        }
    }

    #[test]
    fn names_that_cannot_begin_a_pods_name_get_no_dash() {
        assert_eq!(generate_name("web.v1"), "web.v1-");
        assert_eq!(generate_name("Web"), "Web");
    }
}
