//! The rules for the watch events of single objects, and their faults.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use crate::calls::Calls;
use crate::object_events::{ObjectEvent, ObjectEvents};
use crate::request_info::ClientRequest;
use crate::rules::RuleCounts;

/// A fault on one watch event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EventFault {
    /// The event arrives later; those of other objects pass it.
    Delay(Duration),
    /// The event arrives twice.
    Repeat,
    /// The event arrives after the next one of its object.
    Swap,
    /// The event waits for the end of a hold.
    Hold(EventHoldId),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EventHoldId(u64);

/// The rules, in the order in which they were added.
#[derive(Debug, Default)]
pub(crate) struct ObjectRules {
    /// True if there is a rule, so that watches without one need no lock.
    is_active: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    rules: Vec<Rule>,
    last_hold: u64,
}

#[derive(Debug)]
struct Rule {
    watches: Calls,
    events: ObjectEvents,
    fault: EventFault,
    counts: Arc<RuleCounts>,
    /// Number of matching events that still pass before the first hit.
    pass: u64,
    hits_left: u64,
}

// === impl ObjectRules ===

impl ObjectRules {
    pub(crate) fn is_active(&self) -> bool {
        self.is_active.load(Ordering::Relaxed)
    }

    /// Adds a rule after the others: if several hit an event, the oldest is applied.
    pub(crate) fn add(
        &self,
        watches: Calls,
        events: ObjectEvents,
        fault: EventFault,
    ) -> Arc<RuleCounts> {
        let mut state = self.state.lock();
        let counts =
            Arc::new(RuleCounts::of_events(&watches, &format_args!("{fault} of {events}")));
        let default = if matches!(fault, EventFault::Hold(_)) { u64::MAX } else { 1 };
        let (pass, hits_left) = events.selection.hits(default);
        state.rules.push(Rule {
            watches,
            events,
            fault,
            counts: Arc::clone(&counts),
            pass,
            hits_left,
        });
        self.is_active.store(true, Ordering::Relaxed);
        counts
    }

    /// Returns the id of a new hold.
    pub(crate) fn next_hold(&self) -> EventHoldId {
        let mut state = self.state.lock();
        state.last_hold += 1;
        EventHoldId(state.last_hold)
    }

    /// Returns true while a hold goes on.
    pub(crate) fn is_held(&self, id: EventHoldId) -> bool {
        self.state.lock().rules.iter().any(|rule| rule.fault == EventFault::Hold(id))
    }

    pub(crate) fn release(&self, id: EventHoldId) {
        self.retain(|rule| rule.fault != EventFault::Hold(id));
    }

    /// Removes all rules except holds, which end with their guards.
    pub(crate) fn clear(&self) {
        self.retain(|rule| matches!(rule.fault, EventFault::Hold(_)));
    }

    fn retain(&self, keep: impl Fn(&Rule) -> bool) {
        self.retain_in(&mut self.state.lock(), keep);
    }

    fn retain_in(&self, state: &mut State, keep: impl Fn(&Rule) -> bool) {
        state.rules.retain(keep);
        self.is_active.store(!state.rules.is_empty(), Ordering::Relaxed);
    }

    /// Returns the fault of an event. Every matching rule counts the event, and a rule ends with
    /// its last hit. A hold stays until its guard is dropped.
    pub(crate) fn decide(&self, watch: &ClientRequest, event: &ObjectEvent) -> Option<EventFault> {
        let mut state = self.state.lock();
        let mut hit: Option<&Rule> = None;
        for rule in &mut state.rules {
            if rule.watches.matches(watch) && rule.events.matches(event) && rule.count() {
                hit = hit.or(Some(rule));
            }
        }
        let hit = hit?;
        hit.counts.count_hit();
        let fault = hit.fault;
        self.retain_in(&mut state, |rule| {
            rule.hits_left > 0 || matches!(rule.fault, EventFault::Hold(_))
        });
        Some(fault)
    }
}

// === impl Rule ===

impl Rule {
    /// Counts a matching event. Returns true if the rule hits it.
    fn count(&mut self) -> bool {
        if self.hits_left == 0 {
            return false;
        }
        self.counts.count_match();
        if self.pass > 0 {
            self.pass -= 1;
            return false;
        }
        self.hits_left -= 1;
        true
    }
}

// === impl EventFault ===

impl fmt::Display for EventFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Delay(delay) => write!(f, "delay by {delay:?}"),
            Self::Repeat => f.write_str("repetition"),
            Self::Swap => f.write_str("delivery behind the next event"),
            Self::Hold(_) => f.write_str("hold"),
        }
    }
}
