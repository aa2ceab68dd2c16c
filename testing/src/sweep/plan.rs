//! The faults that a sweep tries, one per run.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use homeostat_faults::{Break, Calls, Crash, CrashPoint, Cut, FaultRule, Faults};

use super::CONTROLLER;
use crate::Simulation;

/// The fault that the controller meets in one run of a sweep.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Plan {
    /// The controller crashes, and a successor without any state takes over.
    Crash(CrashPoint),
    /// The reply to the mutating call of this number is lost; the controller goes on.
    LostReply(u64),
    /// The controller crashes after the mutating call of this number. For 10 s the watch cache that
    /// its successor reads is one revision behind: it does not show a call that stored one
    /// revision.
    StaleSuccessor(u64),
    /// An event of the controller's first watch of a resource is disturbed.
    Event {
        /// The plural of the resource, with its group behind it: `pods`, `replicasets.apps`.
        resource: String,
        /// The position of the event in the watch, counted from 1 and with bookmarks.
        nth: u64,
        /// The fault of its delivery.
        how: Disturbance,
    },
}

/// A disturbed delivery of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Disturbance {
    /// The event and those behind it arrive 10 s late; the other watches go on.
    Held,
    /// The watch ends after the event. The next one starts before it, and delivers it again
    /// if the controller has one watch of the resource.
    Repeated,
    /// The event and those of the next 10 s are lost, and the watch ends with the code 410. The
    /// controller lists again, and never observes the states in between.
    Lost,
}

/// The faults of a plan in one run.
#[derive(Debug)]
pub(super) struct Injected {
    pub(super) crash: Option<Crash>,
    lost: Option<FaultRule>,
    /// The rule of a disturbed event.
    event: Option<FaultRule>,
}

/// The time for which an event is held, or a cache is behind.
pub(super) const PAUSE: Duration = Duration::from_secs(10);

// === impl Plan ===

impl Plan {
    /// Returns a plan per mutating call and fault of it.
    pub(super) fn of_calls(calls: u64) -> Vec<Self> {
        let of = |call| {
            let crashes = [CrashPoint::Before(call), CrashPoint::After(call)].map(Self::Crash);
            crashes.into_iter().chain([Self::LostReply(call)])
        };
        (1..=calls).flat_map(of).collect()
    }

    /// Returns a plan per mutating call with a stale successor, then per event and disturbance, the
    /// first events first.
    pub(super) fn of_events(calls: u64, events: &BTreeMap<String, u64>) -> Vec<Self> {
        let most = events.values().copied().max().unwrap_or(0);
        let nth = |nth: u64| {
            let resources = events.iter().filter(move |(_, count)| nth <= **count);
            resources.flat_map(move |(resource, _)| {
                let how = [Disturbance::Held, Disturbance::Repeated, Disturbance::Lost];
                how.map(|how| Self::Event { resource: resource.clone(), nth, how })
            })
        };
        (1..=calls).map(Self::StaleSuccessor).chain((1..=most).flat_map(nth)).collect()
    }

    /// Returns the plan whose text is `name`; `None` if no plan has it.
    pub(super) fn named(name: &str) -> Option<Self> {
        let call = |prefix: &str| name.strip_prefix(prefix)?.parse::<u64>().ok();
        let crashes = [
            call("crash before mutating call ").map(|call| Self::Crash(CrashPoint::Before(call))),
            call("crash after mutating call ").map(|call| Self::Crash(CrashPoint::After(call))),
            call("lost reply to mutating call ").map(Self::LostReply),
            call("stale successor after mutating call ").map(Self::StaleSuccessor),
        ];
        crashes.into_iter().flatten().next().or_else(|| {
            let (event, resource) = name.split_once(" of ")?;
            let (how, nth) = event.split_once(" event ")?;
            let ways = [Disturbance::Held, Disturbance::Repeated, Disturbance::Lost];
            let how = ways.into_iter().find(|way| way.to_string() == how)?;
            Some(Self::Event { resource: resource.to_owned(), nth: nth.parse().ok()?, how })
        })
    }

    pub(super) fn inject(&self, simulation: &Simulation) -> Injected {
        let faults = simulation.faults();
        let (mut crash, mut lost, mut event) = (None, None, None);
        match self {
            Self::Crash(point) => crash = Some(faults.crash_at(CONTROLLER, *point)),
            Self::LostReply(call) => {
                lost = Some(faults.lose_reply(Calls::mutating().by(CONTROLLER).nth(*call)));
            }
            Self::StaleSuccessor(call) => {
                crash = Some(faults.crash_at(CONTROLLER, CrashPoint::After(*call)));
            }
            Self::Event { resource, nth, how } => {
                event = Some(how.inject(&faults, resource, *nth));
            }
        }
        Injected { crash, lost, event }
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Crash(point) => write!(f, "crash {point}"),
            Self::LostReply(call) => write!(f, "lost reply to mutating call {call}"),
            Self::StaleSuccessor(call) => write!(f, "stale successor after mutating call {call}"),
            Self::Event { resource, nth, how } => write!(f, "{how} event {nth} of {resource}"),
        }
    }
}

// === impl Disturbance ===

impl Disturbance {
    /// Adds the rules for an event. Returns the one that hits the event.
    fn inject(self, faults: &Faults, resource: &str, nth: u64) -> FaultRule {
        let (plural, group) = resource.split_once('.').unwrap_or((resource, ""));
        // The definition of a custom kind may come later.
        faults.add_resource(plural, []);
        let first = Calls::watch(plural).in_group(group).by(CONTROLLER);
        match self {
            Self::Held => faults.hold_event(first, nth, PAUSE),
            Self::Lost => faults.lose_events(first, nth, PAUSE),
            Self::Repeated => {
                faults.rewind_watches(first.clone().nth(2), 1);
                faults.break_watches(first, Cut::Events(nth), Break::End)
            }
        }
    }
}

impl fmt::Display for Disturbance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Held => "held",
            Self::Repeated => "repeated",
            Self::Lost => "lost",
        })
    }
}

// === impl Injected ===

impl Injected {
    /// Returns true if a planned crash or a planned loss of a reply did not happen.
    pub(super) fn is_missed(&self) -> bool {
        self.crash.as_ref().is_some_and(|crash| !crash.is_reached())
            || self.lost.as_ref().is_some_and(|rule| rule.hits() == 0)
    }

    /// Returns true if the event of the plan did not arrive.
    pub(super) fn is_event_missed(&self) -> bool {
        self.event.as_ref().is_some_and(|rule| rule.hits() == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_of_first_events_come_first() {
        let events = BTreeMap::from([("pods".to_owned(), 1), ("nodes".to_owned(), 2)]);
        let plans: Vec<String> =
            Plan::of_events(1, &events).iter().map(ToString::to_string).collect();
        assert_eq!(
            plans,
            [
                "stale successor after mutating call 1",
                "held event 1 of nodes",
                "repeated event 1 of nodes",
                "lost event 1 of nodes",
                "held event 1 of pods",
                "repeated event 1 of pods",
                "lost event 1 of pods",
                "held event 2 of nodes",
                "repeated event 2 of nodes",
                "lost event 2 of nodes",
            ]
        );
    }
}
