//! The events of a workload, with upstream's reasons and texts.

use homeostat::EventRecorder;
use homeostat::events::EventType;
use k8s_openapi::api::core::v1::ObjectReference;

use crate::kind::WorkloadKind;
use crate::status::{UNDECODABLE_PODS, undecodable};
use crate::workload::Workload;

/// Records the creation and the deletion of pods.
#[derive(Clone, Debug)]
pub(crate) struct Events {
    recorder: EventRecorder,
}

// === impl Events ===

impl Events {
    pub(crate) fn new(recorder: EventRecorder) -> Self {
        Self { recorder }
    }

    pub(crate) fn created<K: WorkloadKind>(&self, set: &Workload<K>, pod: &str) {
        self.record(set, EventType::Normal, "SuccessfulCreate", format!("Created pod: {pod}"));
    }

    pub(crate) fn deleted<K: WorkloadKind>(&self, set: &Workload<K>, pod: &str) {
        self.record(set, EventType::Normal, "SuccessfulDelete", format!("Deleted pod: {pod}"));
    }

    pub(crate) fn failed_create<K: WorkloadKind>(&self, set: &Workload<K>, reason: &str) {
        self.record(set, EventType::Warning, "FailedCreate", format!("Error creating: {reason}"));
    }

    pub(crate) fn failed_delete<K: WorkloadKind>(&self, set: &Workload<K>, reason: &str) {
        self.record(set, EventType::Warning, "FailedDelete", format!("Error deleting: {reason}"));
    }

    pub(crate) fn undecodable_pods<K: WorkloadKind>(&self, set: &Workload<K>, pods: &[&str]) {
        self.record(set, EventType::Warning, UNDECODABLE_PODS, undecodable(pods));
    }

    fn record<K: WorkloadKind>(
        &self,
        set: &Workload<K>,
        event_type: EventType,
        reason: &str,
        message: String,
    ) {
        self.recorder.record(reference(set), event_type, reason, message);
    }
}

fn reference<K: WorkloadKind>(set: &Workload<K>) -> ObjectReference {
    ObjectReference {
        api_version: Some(K::API_VERSION.to_owned()),
        kind: Some(K::KIND.to_owned()),
        namespace: set.metadata.namespace.clone(),
        name: set.metadata.name.clone(),
        uid: set.metadata.uid.clone(),
        resource_version: set.metadata.resource_version.clone(),
        field_path: None,
    }
}
