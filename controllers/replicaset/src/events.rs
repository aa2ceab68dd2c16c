//! The four events that users see beside a `ReplicaSet`, with upstream's reasons and texts.

use homeostat::EventRecorder;
use homeostat::events::EventType;
use k8s_openapi::api::core::v1::ObjectReference;

use crate::replica_set::ReplicaSet;

/// The source of the events: upstream's name, so that what filters on it goes on working.
pub(crate) const COMPONENT: &str = "replicaset-controller";

/// Records what was done to the pods of a `ReplicaSet`.
#[derive(Clone, Debug)]
pub(crate) struct Events {
    recorder: EventRecorder,
}

// === impl Events ===

impl Events {
    pub(crate) fn new(recorder: EventRecorder) -> Self {
        Self { recorder }
    }

    pub(crate) fn created(&self, set: &ReplicaSet, pod: &str) {
        self.record(set, EventType::Normal, "SuccessfulCreate", format!("Created pod: {pod}"));
    }

    pub(crate) fn deleted(&self, set: &ReplicaSet, pod: &str) {
        self.record(set, EventType::Normal, "SuccessfulDelete", format!("Deleted pod: {pod}"));
    }

    pub(crate) fn failed_create(&self, set: &ReplicaSet, why: &str) {
        self.record(set, EventType::Warning, "FailedCreate", format!("Error creating: {why}"));
    }

    pub(crate) fn failed_delete(&self, set: &ReplicaSet, why: &str) {
        self.record(set, EventType::Warning, "FailedDelete", format!("Error deleting: {why}"));
    }

    fn record(&self, set: &ReplicaSet, of_type: EventType, reason: &str, message: String) {
        self.recorder.record(reference(set), of_type, reason, message);
    }
}

fn reference(set: &ReplicaSet) -> ObjectReference {
    ObjectReference {
        api_version: Some("apps/v1".to_owned()),
        kind: Some("ReplicaSet".to_owned()),
        namespace: set.metadata.namespace.clone(),
        name: set.metadata.name.clone(),
        uid: set.metadata.uid.clone(),
        resource_version: set.metadata.resource_version.clone(),
        field_path: None,
    }
}
