//! The event of a pod whose claim cannot be created, with upstream's reason.

use homeostat::EventRecorder;
use homeostat::events::{EventType, reference};

use crate::pod::Pod;

/// The source of the events: upstream's name, so that existing filters work.
pub(crate) const COMPONENT: &str = "resource_claim";

/// Records the failed creations of claims.
#[derive(Clone, Debug)]
pub(crate) struct Events {
    recorder: EventRecorder,
}

// === impl Events ===

impl Events {
    pub(crate) fn new(recorder: EventRecorder) -> Self {
        Self { recorder }
    }

    pub(crate) fn failed_creation(&self, pod: &Pod, message: &str) {
        let reason = "FailedResourceClaimCreation";
        self.recorder.record(reference(pod), EventType::Warning, reason, message);
    }
}
