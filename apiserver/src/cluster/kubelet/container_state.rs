//! The state of a container, as its status has it.

use k8s_openapi::api::core::v1::ContainerStatus;

/// The reason in the status while a container waits for its restart.
pub(super) const BACK_OFF: &str = "CrashLoopBackOff";

/// The state in the status of a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// It has not been started, or waits for another reason than a restart.
    New,
    Running,
    Ended(i32),
    BackingOff,
}

// === impl State ===

impl State {
    pub(super) fn of(status: Option<&ContainerStatus>) -> Self {
        let Some(state) = status.and_then(|status| status.state.as_ref()) else { return Self::New };
        if state.running.is_some() {
            return Self::Running;
        }
        if let Some(terminated) = &state.terminated {
            return Self::Ended(terminated.exit_code);
        }
        let reason = state.waiting.as_ref().and_then(|waiting| waiting.reason.as_deref());
        if reason == Some(BACK_OFF) { Self::BackingOff } else { Self::New }
    }
}
