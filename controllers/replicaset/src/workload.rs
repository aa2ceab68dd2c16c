//! A projection of a `ReplicaSet` or a `ReplicationController`: the fields that the controller
//! decides on are parsed, and the spec is kept as JSON.
//!
//! The controller sends the pod template back to the API server with each pod, and the complete
//! object with each status. Typed structs would drop the fields that a newer server knows and this
//! program does not.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use homeostat::owner::controller_of;
use homeostat_core::{LabelSelector, LabelSelectorError};
use k8s_openapi::api::apps::v1::{self as apps, ReplicaSetStatus};
use k8s_openapi::api::core::v1 as core;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::kind::WorkloadKind;

/// The fields of a `ReplicaSet` that the controller uses.
pub type ReplicaSet = Workload<apps::ReplicaSet>;

/// The fields of a `ReplicationController` that the controller uses.
pub type ReplicationController = Workload<core::ReplicationController>;

/// The fields of an object that keeps a number of equal pods.
pub struct Workload<K> {
    /// Name, labels, owners and times, as the server sent them.
    pub metadata: ObjectMeta,
    /// The desired state.
    pub spec: WorkloadSpec,
    /// The status that was last written. Both kinds have these fields, except that only a
    /// `ReplicaSet` reports `terminatingReplicas`.
    pub status: ReplicaSetStatus,
    kind: PhantomData<fn() -> K>,
}

/// The desired state.
#[derive(Clone)]
pub struct WorkloadSpec {
    /// The desired number of pods (default 1; a negative number counts as 0).
    pub replicas: usize,
    /// The seconds that a pod must be ready before it counts as available.
    pub min_ready_seconds: i32,
    /// Selects the pods; empty if it is missing. An unusable selector is reported when it is used.
    pub selector: Result<LabelSelector, LabelSelectorError>,
    /// The labels of the pod template.
    pub template_labels: BTreeMap<String, String>,
    /// The complete spec, as the server sent it.
    pub(crate) json: Box<RawValue>,
}

#[derive(Deserialize)]
struct Wire {
    #[serde(default)]
    metadata: ObjectMeta,
    #[serde(default)]
    spec: Option<Box<RawValue>>,
    #[serde(default)]
    status: Option<ReplicaSetStatus>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireSpec<S> {
    replicas: Option<i32>,
    min_ready_seconds: Option<i32>,
    selector: Option<S>,
    template: Option<WireTemplate>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WireTemplate {
    metadata: Option<ObjectMeta>,
}

// === impl Workload ===

impl<K> Workload<K> {
    /// Returns the reference to the controller of this object. That of a `ReplicaSet` is usually a
    /// Deployment.
    pub fn controller(&self) -> Option<&OwnerReference> {
        controller_of(&self.metadata)
    }

    /// Returns true if the object is being deleted.
    pub fn is_leaving(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    /// Returns the namespace, empty if the server sent none.
    pub(crate) fn namespace(&self) -> &str {
        self.metadata.namespace.as_deref().unwrap_or_default()
    }

    /// Returns the name, empty if the server sent none.
    pub(crate) fn name(&self) -> &str {
        self.metadata.name.as_deref().unwrap_or_default()
    }

    /// Returns the UID, empty if the server sent none.
    pub(crate) fn uid_str(&self) -> &str {
        self.metadata.uid.as_deref().unwrap_or_default()
    }

    /// Returns true if the selector matches a pod with these labels.
    ///
    /// A selector that is missing, empty or unusable matches **no** pod. Elsewhere in Kubernetes
    /// the empty one matches everything, but a controller must never take every pod of its
    /// namespace.
    pub fn selects(&self, labels: Option<&BTreeMap<String, String>>) -> bool {
        self.spec.selector.as_ref().is_ok_and(|it| !it.is_empty() && it.matches(labels))
    }
}

impl<K> Clone for Workload<K> {
    fn clone(&self) -> Self {
        Self {
            metadata: self.metadata.clone(),
            spec: self.spec.clone(),
            status: self.status.clone(),
            kind: PhantomData,
        }
    }
}

impl<K: WorkloadKind> homeostat::Object for Workload<K> {
    type Kind = K;

    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }
}

/// Prints the object's identity and size, never the template: it may contain secrets.
impl<K: WorkloadKind> fmt::Debug for Workload<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct(K::KIND)
            .field("namespace", &self.namespace())
            .field("name", &self.name())
            .field("uid", &self.uid_str())
            .field("replicas", &self.spec.replicas)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for WorkloadSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkloadSpec")
            .field("replicas", &self.replicas)
            .field("min_ready_seconds", &self.min_ready_seconds)
            .field("selector", &self.selector)
            .finish_non_exhaustive()
    }
}

impl<'de, K: WorkloadKind> Deserialize<'de> for Workload<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Wire { metadata, spec, status } = Wire::deserialize(deserializer)?;
        let json = spec.unwrap_or_else(|| RawValue::NULL.to_owned());
        let parsed: Option<WireSpec<K::Selector>> =
            serde_json::from_str(json.get()).map_err(D::Error::custom)?;
        let parsed = parsed.unwrap_or_default();
        let template = parsed.template.and_then(|template| template.metadata).unwrap_or_default();
        let template_labels = template.labels.unwrap_or_default();
        let spec = WorkloadSpec {
            replicas: usize::try_from(parsed.replicas.unwrap_or(1)).unwrap_or(0),
            min_ready_seconds: parsed.min_ready_seconds.unwrap_or(0),
            selector: K::selector(parsed.selector, &template_labels),
            template_labels,
            json,
        };
        Ok(Self { metadata, spec, status: status.unwrap_or_default(), kind: PhantomData })
    }
}

// === impl WorkloadSpec ===

impl WorkloadSpec {
    /// Returns the complete spec as JSON.
    pub fn json(&self) -> &str {
        self.json.get()
    }
}

// === impl WireSpec ===

impl<S> Default for WireSpec<S> {
    fn default() -> Self {
        Self { replicas: None, min_ready_seconds: None, selector: None, template: None }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn decode(value: &Value) -> serde_json::Result<ReplicaSet> {
        serde_json::from_str(&value.to_string())
    }

    #[test]
    fn unknown_fields_stay_in_the_spec() {
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
        assert_eq!(serde_json::from_str::<Value>(set.spec.json()).unwrap(), spec);
    }

    #[test]
    fn missing_replicas_mean_one_and_negative_replicas_mean_none() {
        let replicas = |spec: Value| decode(&json!({"spec": spec})).unwrap().spec.replicas;
        assert_eq!(replicas(json!({})), 1);
        assert_eq!(replicas(json!(null)), 1);
        assert_eq!(replicas(json!({"replicas": 0})), 0);
        assert_eq!(replicas(json!({"replicas": -5})), 0);
        assert_eq!(replicas(json!({"replicas": i32::MAX})), 2_147_483_647);
    }

    #[test]
    fn wrong_types_do_not_decode_and_an_unusable_selector_does() {
        assert!(decode(&json!({"spec": {"replicas": "three"}})).is_err());
        assert!(decode(&json!({"spec": {"template": "x"}})).is_err());
        let set = decode(&json!({"spec": {"selector": {"matchExpressions": [
            {"key": "a", "operator": "Near"}]}}}))
        .unwrap();
        assert!(set.spec.selector.is_err());
        assert!(!set.selects(None));
    }

    #[test]
    fn missing_or_empty_selector_selects_nothing() {
        let web = BTreeMap::from([("app".to_owned(), "web".to_owned())]);
        for empty in
            [json!(null), json!({}), json!({"matchLabels": {}}), json!({"matchExpressions": []})]
        {
            let set = decode(&json!({"spec": {"selector": empty}})).unwrap();
            assert!(!set.selects(Some(&web)), "{set:?}");
            assert!(!set.selects(None), "{set:?}");
        }
        let set = decode(&json!({"spec": {"selector": {"matchLabels": {"app": "web"}}}})).unwrap();
        assert!(set.selects(Some(&web)));
        assert!(!set.selects(None));
    }

    fn decode_rc(spec: &Value) -> serde_json::Result<ReplicationController> {
        serde_json::from_str(&json!({"spec": spec}).to_string())
    }

    #[test]
    fn replication_controller_has_a_map_for_a_selector() {
        let labels = |app: &str| BTreeMap::from([("app".to_owned(), app.to_owned())]);
        let template = json!({"metadata": {"labels": {"app": "web", "tier": "front"}}});
        let spec = json!({"replicas": 2, "selector": {"app": "web"}, "template": template});
        let controller = decode_rc(&spec).unwrap();
        assert_eq!(controller.spec.replicas, 2);
        assert!(controller.selects(Some(&labels("web"))), "one label is enough");
        assert!(!controller.selects(Some(&labels("db"))));
        assert!(decode_rc(&json!({"selector": {"app": 5}})).is_err());
        let unusable = decode_rc(&json!({"selector": {"app": "no spaces"}})).unwrap();
        assert!(unusable.spec.selector.is_err());
    }

    #[test]
    fn replication_controller_without_a_selector_selects_its_template_labels() {
        let labels = BTreeMap::from([("app".to_owned(), "web".to_owned())]);
        for selector in [json!(null), json!({})] {
            let template = json!({"metadata": {"labels": {"app": "web"}}});
            let spec = json!({"selector": selector, "template": template});
            let controller = decode_rc(&spec).unwrap();
            assert!(controller.selects(Some(&labels)));
            assert!(!controller.selects(None));
        }
        let unlabelled = decode_rc(&json!({"selector": null})).unwrap();
        assert!(!unlabelled.selects(Some(&labels)), "never every pod");
    }

    #[test]
    fn debug_output_contains_nothing_of_the_template() {
        let set = decode(&json!({"spec": {"template": {"spec": {"containers": [
            {"name": "c", "env": [{"name": "TOKEN", "value": "canary"}]}]}}}}))
        .unwrap();
        assert!(!format!("{set:?}").contains("canary"));
    }
}
