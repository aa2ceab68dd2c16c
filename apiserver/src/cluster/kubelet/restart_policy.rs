//! The restart policy of a pod.

use k8s_openapi::api::core::v1::ContainerStatus;

use super::container_state::State;
use super::pod::Pod;

/// The `restartPolicy` of a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RestartPolicy {
    Always,
    OnFailure,
    Never,
}

// === impl RestartPolicy ===

impl RestartPolicy {
    pub(super) fn of(pod: &Pod) -> Self {
        match pod.spec.restart_policy.as_deref() {
            Some("OnFailure") => Self::OnFailure,
            Some("Never") => Self::Never,
            _ => Self::Always,
        }
    }

    /// Returns true if a container that ended with this code is restarted.
    pub(super) fn restarts(self, code: i32) -> bool {
        match self {
            Self::Always => true,
            Self::OnFailure => code != 0,
            Self::Never => false,
        }
    }

    /// Returns the phase of a pod with these containers.
    pub(super) fn phase(self, containers: &[ContainerStatus]) -> &'static str {
        let states: Vec<State> = containers.iter().map(|one| State::of(Some(one))).collect();
        let has_ended =
            |state: &State| matches!(state, State::Ended(code) if !self.restarts(*code));
        if states.iter().all(has_ended) {
            let all_well = states.iter().all(|state| *state == State::Ended(0));
            return if all_well { "Succeeded" } else { "Failed" };
        }
        if states.iter().all(|state| *state == State::New) { "Pending" } else { "Running" }
    }
}
