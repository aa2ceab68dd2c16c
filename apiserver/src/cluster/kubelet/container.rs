//! The state machine of one container: start, end and restart.

mod statuses;

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ContainerStatus;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use tokio::time::Instant;

use super::container_state::State;
use super::exit_script::{ExitScript, Run};
use super::pod::{Container as SpecContainer, Pod};
use super::ready_script::ReadyScript;
use super::restart_policy::RestartPolicy;
use statuses::becomes;

/// Maximum restart delay, as on real nodes.
const MAX_RESTART_DELAY: Duration = Duration::from_secs(300);

/// After a run of this length the next end counts as the first one, as on real nodes.
const BACKOFF_RESET: Duration = Duration::from_secs(600);

/// The delays of the simulated nodes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Delays {
    /// From the start of a container until it is ready.
    pub(super) ready: Duration,
    /// From the deletion of a pod until it has stopped.
    pub(super) stop: Duration,
    /// From the second consecutive end of a container to its restart; each further end doubles it.
    pub(super) restart: Duration,
}

/// The present time, by tokio's clock and by the server's wall clock.
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
    /// The time from a start to the first probe of its readiness.
    probe_delay: Duration,
    status: Option<ContainerStatus>,
    /// The time at which this state was seen first.
    since: Instant,
    /// True if it has been ready since its last start; after that another client may change it.
    was_ready: bool,
    /// Number of consecutive ends.
    ends: u32,
    /// True for an init container that goes on beside the others.
    goes_on: bool,
}

/// The scripted behaviour of a container.
#[derive(Debug)]
struct Script {
    exits: ExitScript,
    /// `None` if the container is ready after the usual delay.
    ready: Option<ReadyScript>,
}

/// The next step of a container.
#[derive(Debug, PartialEq)]
pub(super) enum Next {
    Unchanged,
    /// The container changes at this time.
    Later(Instant),
    Becomes(Box<ContainerStatus>),
}

/// Returns the time this long after another one. A delay that no clock can express, such as
/// `Duration::MAX`, is 30 years.
pub(super) fn later(since: Instant, delay: Duration) -> Instant {
    const LONG: Duration = Duration::from_secs(30 * 365 * 24 * 3600);
    since.checked_add(delay).unwrap_or_else(|| since + LONG)
}

// === impl Container ===

impl Container {
    /// Returns the containers of a pod that run beside each other. `before` are the same containers
    /// when they were last seen.
    pub(super) fn all(pod: &Pod, before: &[Self], now: Instant) -> Vec<Self> {
        let containers = pod.spec.containers.iter();
        containers
            .map(|container| {
                let mut this = Self::new(container, Script::parse(pod, &container.name), now);
                let mut statuses = pod.status.container_statuses.iter();
                this.status = statuses.find(|status| status.name == this.name).cloned();
                if this.status.is_none() && pod.status.phase.as_deref() == Some("Running") {
                    // Another client set the phase, without container statuses.
                    let started = pod.status.start_time.clone();
                    this.status = Some(this.running(0, pod.is_ready(), started));
                }
                this.carry_over(before.iter().find(|container| container.name == this.name), now);
                this
            })
            .collect()
    }

    /// Returns the init containers of a pod, in their order.
    pub(super) fn inits(pod: &Pod, before: &[Self], now: Instant) -> Vec<Self> {
        let containers = pod.spec.init_containers.iter();
        containers
            .map(|container| {
                let mut script = Script::parse(pod, &container.name);
                let goes_on = is_sidecar(container);
                if let Ok(Script { exits, .. }) = &mut script
                    && !goes_on
                {
                    *exits = exits.clone().of_init();
                }
                let mut this = Self { goes_on, ..Self::new(container, script, now) };
                let mut statuses = pod.status.init_container_statuses.iter();
                this.status = statuses.find(|status| status.name == this.name).cloned();
                this.carry_over(before.iter().find(|container| container.name == this.name), now);
                this
            })
            .collect()
    }

    fn new(of: &SpecContainer, script: Result<Script, String>, now: Instant) -> Self {
        Self {
            name: of.name.clone(),
            image: of.image.clone(),
            script,
            probe_delay: of
                .readiness_probe
                .as_ref()
                .map_or(Duration::ZERO, |probe| Duration::from_secs(probe.initial_delay_seconds)),
            status: None,
            since: now,
            was_ready: false,
            ends: 0,
            goes_on: false,
        }
    }

    /// Returns the policy for the restarts of an init container in a pod with this policy.
    pub(super) fn init_policy(&self, policy: RestartPolicy) -> RestartPolicy {
        match policy {
            _ if self.goes_on => RestartPolicy::Always,
            RestartPolicy::Never => RestartPolicy::Never,
            RestartPolicy::Always | RestartPolicy::OnFailure => RestartPolicy::OnFailure,
        }
    }

    /// Returns true if the next container may start once an init container has this status.
    pub(super) fn is_initialized(&self, status: Option<&ContainerStatus>) -> bool {
        match State::of(status) {
            State::Ended(code) => code == 0 && !self.goes_on,
            State::Running => self.goes_on && status.is_some_and(|status| status.ready),
            State::New | State::BackingOff => false,
        }
    }

    /// Returns true if an init container with this status fails its pod.
    pub(super) fn has_failed(&self, policy: RestartPolicy, status: &ContainerStatus) -> bool {
        let policy = self.init_policy(policy);
        matches!(State::of(Some(status)), State::Ended(code) if code != 0 && !policy.restarts(code))
    }

    fn carry_over(&mut self, before: Option<&Self>, now: Instant) {
        self.was_ready = self.status.as_ref().is_some_and(|status| status.ready);
        let Some(before) = before else {
            self.ends = u32::from(self.is_stopped());
            return;
        };
        self.ends = before.ends;
        let is_same_run = self.restarts() == before.restarts();
        if is_same_run && self.state() == before.state() {
            self.since = before.since;
            self.was_ready |= before.was_ready;
        } else if self.is_stopped() && !(is_same_run && before.is_stopped()) {
            let ran = now.duration_since(before.since);
            let has_past = before.state() != State::Running || ran < BACKOFF_RESET;
            self.ends = if has_past { self.ends.saturating_add(1) } else { 1 };
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn status(&self) -> Option<&ContainerStatus> {
        self.status.as_ref()
    }

    /// Returns the next step in a pod that is not being deleted.
    pub(super) fn next(&self, policy: RestartPolicy, delays: &Delays, at: Moment) -> Next {
        match (self.state(), &self.script) {
            (State::New, Err(message)) => self.config_error(message),
            (State::New, Ok(_)) => {
                let started = Some(Time(at.time));
                becomes(self.running(0, self.is_ready_at_once(delays), started))
            }
            (State::Running, script) => {
                let run = |script: &Script| script.exits.run(self.restarts());
                self.next_while_running(script.as_ref().map_or(Run::Forever, run), delays, at)
            }
            (State::Ended(code), _) if !policy.restarts(code) => Next::Unchanged,
            (State::Ended(_), _) => match self.restart_delay(delays) {
                Duration::ZERO => self.restarted(delays, at),
                wait => self.backing_off(wait),
            },
            (State::BackingOff, _) => match later(self.since, self.restart_delay(delays)) {
                time if at.now < time => Next::Later(time),
                _ => self.restarted(delays, at),
            },
        }
    }

    fn next_while_running(&self, run: Run, delays: &Delays, at: Moment) -> Next {
        let readiness = self.next_readiness(delays, at.now);
        let ends_at = match run {
            Run::Forever => None,
            Run::Exits { after, code } => Some((later(self.since, after), code)),
        };
        match (ends_at, readiness) {
            (Some((time, code)), _) if time <= at.now => self.ended(code, at.time),
            (_, Some((time, is_ready))) if time <= at.now => {
                let mut status = self.status.clone().unwrap_or_default();
                status.ready = is_ready;
                becomes(status)
            }
            (None, None) => Next::Unchanged,
            (ends_at, readiness) => {
                let ends_at = ends_at.map(|(time, _)| time);
                let times = ends_at.into_iter().chain(readiness.map(|(time, _)| time));
                times.min().map_or(Next::Unchanged, Next::Later)
            }
        }
    }

    /// Returns the next change of a running container's readiness, which may be due.
    fn next_readiness(&self, delays: &Delays, now: Instant) -> Option<(Instant, bool)> {
        let Some(script) = self.ready_script() else {
            return (!self.was_ready).then(|| (later(self.since, self.ready_delay(delays)), true));
        };
        let elapsed = now.duration_since(self.since);
        let wanted = script.after(elapsed);
        if self.status.as_ref().is_some_and(|status| status.ready != wanted) {
            return Some((now, wanted));
        }
        script.next(elapsed).map(|(after, is_ready)| (later(self.since, after), is_ready))
    }

    fn is_ready_at_once(&self, delays: &Delays) -> bool {
        match self.ready_script() {
            None => self.ready_delay(delays).is_zero(),
            Some(script) => script.after(Duration::ZERO),
        }
    }

    /// Returns the time from a start until the container is ready, without a script.
    fn ready_delay(&self, delays: &Delays) -> Duration {
        delays.ready.max(self.probe_delay)
    }

    fn ready_script(&self) -> Option<&ReadyScript> {
        self.script.as_ref().ok().and_then(|script| script.ready.as_ref())
    }

    /// Returns the restart delay; after the first of several consecutive ends it is 0.
    fn restart_delay(&self, delays: &Delays) -> Duration {
        match self.ends.checked_sub(2) {
            None => Duration::ZERO,
            Some(doublings) => delays
                .restart
                .saturating_mul(2_u32.saturating_pow(doublings))
                .min(MAX_RESTART_DELAY),
        }
    }

    /// Returns true if the container has run and does not run now.
    fn is_stopped(&self) -> bool {
        matches!(self.state(), State::Ended(_) | State::BackingOff)
    }

    fn state(&self) -> State {
        State::of(self.status.as_ref())
    }

    fn restarts(&self) -> i32 {
        self.status.as_ref().map_or(0, |status| status.restart_count)
    }
}

// === impl Script ===

impl Script {
    fn parse(pod: &Pod, container: &str) -> Result<Self, String> {
        let exits = ExitScript::parse(pod, container)?;
        Ok(Self { exits, ready: ReadyScript::parse(pod, container)? })
    }
}

fn is_sidecar(container: &SpecContainer) -> bool {
    container.restart_policy.as_deref() == Some("Always")
}
