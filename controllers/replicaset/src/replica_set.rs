//! A `ReplicaSet`, as this controller needs it: what it decides on is parsed, the rest of its spec stays as it came.
//!
//! The pod template is handed to the API server again, once per pod, and the whole object with every status. Passing it
//! through typed structs would drop the fields that a newer server knows and this program does not; so the spec is kept as
//! the JSON that it is.

use std::collections::BTreeMap;
use std::fmt;

use homeostat::owner::controller_of;
use k8s_openapi::api::apps::v1::ReplicaSetStatus;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta, OwnerReference};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::selector::{Selector, SelectorError};

/// What this controller knows of a `ReplicaSet`.
#[derive(Clone)]
pub struct ReplicaSet {
    /// Name, labels, owners and times, as the server sent them.
    pub metadata: ObjectMeta,
    /// What is asked for.
    pub spec: ReplicaSetSpec,
    /// What was last reported.
    pub status: ReplicaSetStatus,
}

/// What is asked for.
#[derive(Clone)]
pub struct ReplicaSetSpec {
    /// How many pods; never negative, 1 when not said.
    pub replicas: usize,
    /// For how long a pod must be ready before it counts as available.
    pub min_ready_seconds: i32,
    /// Which pods; an unusable selector is reported when it is used.
    pub selector: Result<Selector, SelectorError>,
    /// The labels of the pods to be made.
    pub template_labels: BTreeMap<String, String>,
    /// The whole spec, as JSON.
    pub json: Box<str>,
}

#[derive(Deserialize)]
struct Wire {
    #[serde(default)]
    metadata: ObjectMeta,
    #[serde(default)]
    spec: Option<Value>,
    #[serde(default)]
    status: Option<ReplicaSetStatus>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct WireSpec {
    replicas: Option<i32>,
    min_ready_seconds: Option<i32>,
    selector: Option<LabelSelector>,
    template: Option<WireTemplate>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WireTemplate {
    metadata: Option<ObjectMeta>,
}

// === impl ReplicaSet ===

impl ReplicaSet {
    /// The owner that manages this `ReplicaSet`, a Deployment as a rule.
    pub fn controller(&self) -> Option<&OwnerReference> {
        controller_of(&self.metadata)
    }

    /// Whether the `ReplicaSet` is on its way out.
    pub fn is_leaving(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    /// Its namespace, empty when the server left it out.
    pub(crate) fn namespace(&self) -> &str {
        self.metadata.namespace.as_deref().unwrap_or_default()
    }

    /// Its name, empty when the server left it out.
    pub(crate) fn name(&self) -> &str {
        self.metadata.name.as_deref().unwrap_or_default()
    }

    /// Its uid, empty when the server left it out.
    pub(crate) fn uid_str(&self) -> &str {
        self.metadata.uid.as_deref().unwrap_or_default()
    }

    /// Whether it selects a pod with these labels; an unusable selector selects none.
    pub fn selects(&self, labels: Option<&BTreeMap<String, String>>) -> bool {
        self.spec.selector.as_ref().is_ok_and(|selector| selector.matches(labels))
    }
}

impl homeostat::Object for ReplicaSet {
    type Kind = k8s_openapi::api::apps::v1::ReplicaSet;

    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }
}

/// Names the object and what was decided on, never the template: it may hold secrets.
impl fmt::Debug for ReplicaSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplicaSet")
            .field("namespace", &self.namespace())
            .field("name", &self.name())
            .field("uid", &self.uid_str())
            .field("replicas", &self.spec.replicas)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for ReplicaSetSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplicaSetSpec")
            .field("replicas", &self.replicas)
            .field("min_ready_seconds", &self.min_ready_seconds)
            .field("selector", &self.selector)
            .finish_non_exhaustive()
    }
}

impl<'de> Deserialize<'de> for ReplicaSet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Wire { metadata, spec, status } = Wire::deserialize(deserializer)?;
        let spec = spec.unwrap_or_default();
        let parsed = Option::<WireSpec>::deserialize(&spec).map_err(D::Error::custom)?;
        let parsed = parsed.unwrap_or_default();
        let template = parsed.template.and_then(|template| template.metadata).unwrap_or_default();
        let spec = ReplicaSetSpec {
            replicas: usize::try_from(parsed.replicas.unwrap_or(1)).unwrap_or(0),
            min_ready_seconds: parsed.min_ready_seconds.unwrap_or(0),
            selector: Selector::compile(parsed.selector.as_ref()),
            template_labels: template.labels.unwrap_or_default(),
            json: spec.to_string().into_boxed_str(),
        };
        Ok(Self { metadata, spec, status: status.unwrap_or_default() })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn decode(value: &Value) -> serde_json::Result<ReplicaSet> {
        serde_json::from_str(&value.to_string())
    }

    #[test]
    fn what_is_not_understood_stays_in_the_spec() {
        let spec = json!({
            "replicas": 3, "minReadySeconds": 5, "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}},
                         "spec": {"containers": [], "fromTheFuture": {"x": [1, 2.5]}}},
            "alsoNew": true,
        });
        let set = decode(&json!({
            "metadata": {"name": "web", "namespace": "shop", "uid": "u"}, "spec": spec,
            "status": {"replicas": 2},
        }))
        .unwrap();
        assert_eq!((set.spec.replicas, set.spec.min_ready_seconds), (3, 5));
        assert_eq!(set.status.replicas, 2);
        assert!(set.selects(Some(&set.spec.template_labels)));
        assert_eq!(serde_json::from_str::<Value>(&set.spec.json).unwrap(), spec);
    }

    #[test]
    fn missing_replicas_mean_one_and_negative_ones_none() {
        let replicas = |spec: Value| decode(&json!({"spec": spec})).unwrap().spec.replicas;
        assert_eq!(replicas(json!({})), 1);
        assert_eq!(replicas(json!(null)), 1);
        assert_eq!(replicas(json!({"replicas": 0})), 0);
        assert_eq!(replicas(json!({"replicas": -5})), 0);
        assert_eq!(replicas(json!({"replicas": i32::MAX})), 2_147_483_647);
    }

    #[test]
    fn the_wrong_shape_does_not_decode_but_an_unusable_selector_does() {
        assert!(decode(&json!({"spec": {"replicas": "three"}})).is_err());
        assert!(decode(&json!({"spec": {"template": "x"}})).is_err());
        let set = decode(&json!({"spec": {"selector": {"matchExpressions": [
            {"key": "a", "operator": "Near"}]}}}))
        .unwrap();
        assert!(set.spec.selector.is_err());
        assert!(!set.selects(None));
    }

    #[test]
    fn debugging_output_holds_nothing_of_the_template() {
        let set = decode(&json!({"spec": {"template": {"spec": {"containers": [
            {"name": "c", "env": [{"name": "TOKEN", "value": "canary"}]}]}}}}))
        .unwrap();
        assert!(!format!("{set:?}").contains("canary"));
    }
}
