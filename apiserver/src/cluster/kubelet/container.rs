//! One container: from its start to its end, and to the start after that.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{
    ContainerState, ContainerStateRunning, ContainerStateTerminated, ContainerStateWaiting,
    ContainerStatus,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use tokio::time::Instant;

use super::{
    pod::Pod,
    script::{Run, Script},
};

/// The longest wait for a restart, as on real nodes.
const LONGEST_WAIT: Duration = Duration::from_secs(300);

/// A container that ran for so long has no past: its next end counts as its first. As on real nodes.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(600);

/// The reason of a wait for a restart.
const BACK_OFF: &str = "CrashLoopBackOff";

/// How long things take on the nodes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Delays {
    /// From a container's start to its being ready.
    pub(super) ready: Duration,
    /// From a pod's deletion to its end.
    pub(super) stop: Duration,
    /// From a container's second end in a row to its start; doubled by each end that follows.
    pub(super) restart: Duration,
}

/// Now, by the clock that measures and by the one that is written down.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moment {
    pub(super) now: Instant,
    pub(super) time: Timestamp,
}

/// One container of a pod, as last seen.
#[derive(Debug)]
pub(super) struct Container {
    name: String,
    image: String,
    script: Result<Script, String>,
    status: Option<ContainerStatus>,
    /// Since when it is seen in this state.
    since: Instant,
    /// Set when it has been ready since its last start: from then on that is no business of ours.
    was_ready: bool,
    /// How often in a row it has ended.
    ends: u32,
}

/// What comes next for a container.
#[derive(Debug, PartialEq)]
pub(super) enum Next {
    Stays,
    /// Nothing before this time.
    Later(Instant),
    Becomes(Box<ContainerStatus>),
}

/// What a container's status says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// It has not been started, or waits for something that is not known here.
    New,
    Running,
    Ended(i32),
    BackingOff,
}

/// Whether a container is started again.
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

    fn restarts(self, code: i32) -> bool {
        match self {
            Self::Always => true,
            Self::OnFailure => code != 0,
            Self::Never => false,
        }
    }

    /// The phase of a pod whose containers are so.
    pub(super) fn phase(self, containers: &[ContainerStatus]) -> &'static str {
        let states: Vec<State> = containers.iter().map(|one| state(Some(one))).collect();
        let has_ended =
            |state: &State| matches!(state, State::Ended(code) if !self.restarts(*code));
        if states.iter().all(has_ended) {
            let all_well = states.iter().all(|state| *state == State::Ended(0));
            return if all_well { "Succeeded" } else { "Failed" };
        }
        if states.iter().all(|state| *state == State::New) { "Pending" } else { "Running" }
    }
}

// === impl Container ===

impl Container {
    /// All containers of a pod, which were `before` when they were last seen.
    pub(super) fn all(pod: &Pod, before: &[Self], now: Instant) -> Vec<Self> {
        let containers = pod.spec.containers.iter();
        containers
            .map(|container| {
                let mut this = Self {
                    name: container.name.clone(),
                    image: container.image.clone(),
                    script: Script::of(pod, &container.name),
                    status: None,
                    since: now,
                    was_ready: false,
                    ends: 0,
                };
                let mut statuses = pod.status.container_statuses.iter();
                this.status = statuses.find(|status| status.name == this.name).cloned();
                if this.status.is_none() && pod.status.phase.as_deref() == Some("Running") {
                    // Somebody says that it runs, and no more.
                    let started = pod.status.start_time.clone();
                    this.status = Some(this.running(0, pod.is_ready(), started));
                }
                this.remember(before.iter().find(|container| container.name == this.name), now);
                this
            })
            .collect()
    }

    fn remember(&mut self, before: Option<&Self>, now: Instant) {
        self.was_ready = self.status.as_ref().is_some_and(|status| status.ready);
        let Some(before) = before else {
            self.ends = u32::from(self.rests());
            return;
        };
        self.ends = before.ends;
        let is_same_run = self.restarts() == before.restarts();
        if is_same_run && self.state() == before.state() {
            self.since = before.since;
            self.was_ready |= before.was_ready;
        } else if self.rests() && !(is_same_run && before.rests()) {
            let ran = now.duration_since(before.since);
            let has_past = before.state() != State::Running || ran < FORGOTTEN_AFTER;
            self.ends = if has_past { self.ends.saturating_add(1) } else { 1 };
        }
    }

    pub(super) fn status(&self) -> Option<&ContainerStatus> {
        self.status.as_ref()
    }

    /// What comes next, in a pod that is to live.
    pub(super) fn next(&self, policy: RestartPolicy, delays: &Delays, at: Moment) -> Next {
        match (self.state(), &self.script) {
            (State::New, Err(why)) => self.refused(why),
            (State::New, Ok(_)) => {
                let started = Some(Time(at.time));
                becomes(self.running(0, delays.ready.is_zero(), started))
            }
            (State::Running, script) => {
                let run = script.as_ref().map_or(Run::On, |script| script.run(self.restarts()));
                self.next_of_run(run, delays, at)
            }
            (State::Ended(code), _) if !policy.restarts(code) => Next::Stays,
            (State::Ended(_), _) => match self.wait(delays) {
                Duration::ZERO => self.restarted(delays, at),
                wait => self.backing_off(wait),
            },
            (State::BackingOff, _) => match self.since + self.wait(delays) {
                time if at.now < time => Next::Later(time),
                _ => self.restarted(delays, at),
            },
        }
    }

    fn next_of_run(&self, run: Run, delays: &Delays, at: Moment) -> Next {
        let ready_at = (!self.was_ready).then(|| self.since + delays.ready);
        let ends_at = match run {
            Run::On => None,
            Run::Exits { after, code } => Some((self.since + after, code)),
        };
        match (ends_at, ready_at) {
            (Some((time, code)), _) if time <= at.now => self.ended(code, at.time),
            (_, Some(time)) if time <= at.now => {
                let mut status = self.status.clone().unwrap_or_default();
                status.ready = true;
                becomes(status)
            }
            (None, None) => Next::Stays,
            (ends_at, ready_at) => {
                let times = ends_at.map(|(time, _)| time).into_iter().chain(ready_at);
                times.min().map_or(Next::Stays, Next::Later)
            }
        }
    }

    /// How long its next start has to wait: the first end in a row costs nothing.
    fn wait(&self, delays: &Delays) -> Duration {
        match self.ends.checked_sub(2) {
            None => Duration::ZERO,
            Some(doublings) => {
                delays.restart.saturating_mul(2_u32.saturating_pow(doublings)).min(LONGEST_WAIT)
            }
        }
    }

    fn running(&self, restarts: i32, ready: bool, started_at: Option<Time>) -> ContainerStatus {
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

    fn restarted(&self, delays: &Delays, at: Moment) -> Next {
        let restarts = self.restarts().saturating_add(1);
        let running = self.running(restarts, delays.ready.is_zero(), Some(Time(at.time)));
        becomes(ContainerStatus { last_state: self.last_state(), ..running })
    }

    fn ended(&self, code: i32, time: Timestamp) -> Next {
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
        self.resting(state, self.status.as_ref().and_then(|status| status.last_state.clone()))
    }

    fn backing_off(&self, wait: Duration) -> Next {
        let message = format!("back-off {wait:?} restarting failed container={}", self.name);
        self.resting(waiting(BACK_OFF, message), self.last_state())
    }

    fn refused(&self, why: &str) -> Next {
        let state = waiting("CreateContainerConfigError", why.to_owned());
        let is_told =
            self.status.as_ref().is_some_and(|known| known.state.as_ref() == Some(&state));
        if is_told { Next::Stays } else { self.resting(state, None) }
    }

    fn resting(&self, state: ContainerState, last_state: Option<ContainerState>) -> Next {
        becomes(ContainerStatus {
            state: Some(state),
            last_state,
            started: Some(false),
            ..self.running(self.restarts(), false, None)
        })
    }

    /// Its last end.
    fn last_state(&self) -> Option<ContainerState> {
        let status = self.status.as_ref()?;
        match self.state() {
            State::Ended(_) => status.state.clone(),
            _ => status.last_state.clone(),
        }
    }

    /// Whether it has run, and does not now.
    fn rests(&self) -> bool {
        matches!(self.state(), State::Ended(_) | State::BackingOff)
    }

    fn state(&self) -> State {
        state(self.status.as_ref())
    }

    fn restarts(&self) -> i32 {
        self.status.as_ref().map_or(0, |status| status.restart_count)
    }
}

fn becomes(status: ContainerStatus) -> Next {
    Next::Becomes(Box::new(status))
}

fn waiting(reason: &str, message: String) -> ContainerState {
    let waiting = ContainerStateWaiting { reason: Some(reason.to_owned()), message: Some(message) };
    ContainerState { waiting: Some(waiting), ..ContainerState::default() }
}

fn state(status: Option<&ContainerStatus>) -> State {
    let Some(state) = status.and_then(|status| status.state.as_ref()) else { return State::New };
    if state.running.is_some() {
        return State::Running;
    }
    if let Some(terminated) = &state.terminated {
        return State::Ended(terminated.exit_code);
    }
    let reason = state.waiting.as_ref().and_then(|waiting| waiting.reason.as_deref());
    if reason == Some(BACK_OFF) { State::BackingOff } else { State::New }
}
