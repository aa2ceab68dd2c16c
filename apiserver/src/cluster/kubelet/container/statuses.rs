//! The statuses that a container gets.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{
    ContainerState, ContainerStateRunning, ContainerStateTerminated, ContainerStateWaiting,
    ContainerStatus,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::super::container_state::{BACK_OFF, State};
use super::{Container, Delays, Moment, Next};

/// The exit code of a container that SIGKILL ends.
const KILLED: i32 = 137;

impl Container {
    /// Returns the status of a container that waits for the init containers.
    pub(in crate::cluster::kubelet) fn initializing(&self) -> ContainerStatus {
        let waiting = ContainerStateWaiting {
            reason: Some("PodInitializing".to_owned()),
            ..ContainerStateWaiting::default()
        };
        let state = ContainerState { waiting: Some(waiting), ..ContainerState::default() };
        ContainerStatus { state: Some(state), started: Some(false), ..self.running(0, false, None) }
    }

    /// Returns the status of a container once its pod is deleted: if it was running, it is killed.
    pub(in crate::cluster::kubelet) fn killed(&self, time: Timestamp) -> Option<ContainerStatus> {
        match (self.state(), self.ended(KILLED, time)) {
            (State::Running, Next::Becomes(status)) => Some(*status),
            _ => self.status.clone(),
        }
    }

    pub(super) fn running(
        &self,
        restarts: i32,
        ready: bool,
        started_at: Option<Time>,
    ) -> ContainerStatus {
        ContainerStatus {
            name: self.name.clone(),
            image: self.image.clone(),
            ready,
            started: Some(true),
            restart_count: restarts,
            state: Some(ContainerState {
                running: Some(ContainerStateRunning { started_at }),
                ..ContainerState::default()
            }),
            ..ContainerStatus::default()
        }
    }

    /// Returns the step of a container that starts again.
    pub(super) fn restarted(&self, delays: &Delays, at: Moment) -> Next {
        let restarts = self.restarts().saturating_add(1);
        let is_ready = self.is_ready_at_once(delays);
        let running = self.running(restarts, is_ready, Some(Time(at.time)));
        becomes(ContainerStatus { last_state: self.last_state(), ..running })
    }

    pub(super) fn ended(&self, code: i32, time: Timestamp) -> Next {
        let state = self.status.as_ref().and_then(|status| status.state.as_ref());
        let running = state.and_then(|state| state.running.as_ref());
        let terminated = ContainerStateTerminated {
            exit_code: code,
            reason: Some(if code == 0 { "Completed" } else { "Error" }.to_owned()),
            started_at: running.and_then(|running| running.started_at.clone()),
            finished_at: Some(Time(time)),
            ..ContainerStateTerminated::default()
        };
        let state = ContainerState { terminated: Some(terminated), ..ContainerState::default() };
        self.stopped(state, self.status.as_ref().and_then(|status| status.last_state.clone()))
    }

    /// Returns the step of a container that waits this long for its restart.
    pub(super) fn backing_off(&self, wait: Duration) -> Next {
        let message = format!("back-off {wait:?} restarting failed container={}", self.name);
        self.stopped(waiting(BACK_OFF, message), self.last_state())
    }

    pub(super) fn config_error(&self, message: &str) -> Next {
        let state = waiting("CreateContainerConfigError", message.to_owned());
        let is_reported =
            self.status.as_ref().is_some_and(|known| known.state.as_ref() == Some(&state));
        if is_reported { Next::Unchanged } else { self.stopped(state, None) }
    }

    fn stopped(&self, state: ContainerState, last_state: Option<ContainerState>) -> Next {
        becomes(ContainerStatus {
            state: Some(state),
            last_state,
            started: Some(false),
            ..self.running(self.restarts(), false, None)
        })
    }

    /// Returns the state of its last end.
    fn last_state(&self) -> Option<ContainerState> {
        let status = self.status.as_ref()?;
        match self.state() {
            State::Ended(_) => status.state.clone(),
            _ => status.last_state.clone(),
        }
    }
}

pub(super) fn becomes(status: ContainerStatus) -> Next {
    Next::Becomes(Box::new(status))
}

fn waiting(reason: &str, message: String) -> ContainerState {
    let waiting = ContainerStateWaiting { reason: Some(reason.to_owned()), message: Some(message) };
    ContainerState { waiting: Some(waiting), ..ContainerState::default() }
}
