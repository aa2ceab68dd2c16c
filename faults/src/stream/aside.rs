//! The events of single objects that wait while those of other objects pass. Nothing here waits
//! itself.

use bytes::Bytes;
use tokio::time::Instant;

use super::after;
use crate::object_events::ObjectKey;
use crate::object_rules::{EventFault, EventHoldId};

/// The events of a watch that wait, in the order of their arrival.
#[derive(Debug, Default)]
pub(super) struct Aside {
    waiting: Vec<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    key: ObjectKey,
    line: Bytes,
    until: Until,
}

/// The end of the wait. An event also waits for the earlier ones of its object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Until {
    /// It waits for earlier events alone.
    Earlier,
    Time(Instant),
    Released(EventHoldId),
    /// The next event of the object passes it.
    Next,
}

// === impl Aside ===

impl Aside {
    /// Returns true if no event waits.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Takes an event that has arrived. Returns what is delivered at once, in order.
    pub(super) fn arrive(
        &mut self,
        key: ObjectKey,
        line: Bytes,
        fault: Option<EventFault>,
        now: Instant,
    ) -> Vec<Bytes> {
        let earlier = self.waiting.iter().rposition(|waiting| waiting.key == key);
        if let Some(at) = earlier
            && self.waiting[at].until == Until::Next
        {
            // Both are delivered now, unless even earlier events of the object wait.
            let swapped = self.waiting.remove(at).line;
            if self.waiting.iter().all(|waiting| waiting.key != key) {
                return vec![line, swapped];
            }
            self.push(key.clone(), line, Until::Earlier);
            self.push(key, swapped, Until::Earlier);
            return Vec::new();
        }
        let until = match fault {
            Some(EventFault::Delay(delay)) => Until::Time(after(now, delay)),
            Some(EventFault::Hold(id)) => Until::Released(id),
            Some(EventFault::Swap) => Until::Next,
            Some(EventFault::Repeat) if earlier.is_some() => {
                self.push(key.clone(), line.clone(), Until::Earlier);
                Until::Earlier
            }
            Some(EventFault::Repeat) => return vec![line.clone(), line],
            None if earlier.is_some() => Until::Earlier,
            None => return vec![line],
        };
        self.push(key, line, until);
        Vec::new()
    }

    fn push(&mut self, key: ObjectKey, line: Bytes, until: Until) {
        self.waiting.push(Waiting { key, line, until });
    }

    /// Removes and returns the oldest event whose wait has ended.
    pub(super) fn next_due(
        &mut self,
        now: Instant,
        is_held: impl Fn(EventHoldId) -> bool,
    ) -> Option<Bytes> {
        let is_due = |until| match until {
            Until::Earlier => true,
            Until::Time(due) => due <= now,
            Until::Released(id) => !is_held(id),
            Until::Next => false,
        };
        let at = self.firsts().find(|at| is_due(self.waiting[*at].until))?;
        Some(self.waiting.remove(at).line)
    }

    /// Returns the earliest time at which the wait of an event ends.
    pub(super) fn next_time(&self) -> Option<Instant> {
        let time = |at: usize| match self.waiting[at].until {
            Until::Time(due) => Some(due),
            _ => None,
        };
        self.firsts().filter_map(time).min()
    }

    /// Returns the positions of the events that wait for no earlier one of their object.
    fn firsts(&self) -> impl Iterator<Item = usize> {
        let is_first = |at: &usize| {
            let (earlier, rest) = self.waiting.split_at(*at);
            earlier.iter().all(|earlier| earlier.key != rest[0].key)
        };
        (0..self.waiting.len()).filter(is_first)
    }

    /// Ends the waits for a next event: there is none.
    pub(super) fn end_swaps(&mut self) {
        for waiting in self.waiting.iter_mut().filter(|waiting| waiting.until == Until::Next) {
            waiting.until = Until::Earlier;
        }
    }

    pub(super) fn clear(&mut self) {
        self.waiting.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::object_events::ObjectEvent;
    use crate::object_rules::ObjectRules;

    fn key(name: &str) -> ObjectKey {
        let line = format!(r#"{{"type":"ADDED","object":{{"metadata":{{"name":"{name}"}}}}}}"#);
        ObjectEvent::parse(line.as_bytes()).unwrap().key
    }

    fn texts(lines: Vec<Bytes>) -> Vec<String> {
        lines.into_iter().map(|line| String::from_utf8(line.to_vec()).unwrap()).collect()
    }

    /// Returns all events that are due, in order.
    fn due(aside: &mut Aside, now: Instant) -> Vec<String> {
        texts(std::iter::from_fn(|| aside.next_due(now, |_| false)).collect())
    }

    #[test]
    fn delayed_event_is_passed_by_other_objects_alone() {
        let (mut aside, now) = (Aside::default(), Instant::now());
        let delay = Some(EventFault::Delay(Duration::from_secs(5)));
        assert!(aside.arrive(key("a"), Bytes::from("a1"), delay, now).is_empty());
        assert_eq!(texts(aside.arrive(key("b"), Bytes::from("b1"), None, now)), ["b1"]);
        assert!(aside.arrive(key("a"), Bytes::from("a2"), None, now).is_empty());
        assert!(due(&mut aside, now).is_empty());
        let later = aside.next_time().unwrap();
        assert_eq!(later, now + Duration::from_secs(5));
        assert_eq!(due(&mut aside, later), ["a1", "a2"]);
        assert!(aside.is_empty() && aside.next_time().is_none());
    }

    #[test]
    fn swapped_event_follows_the_next_one_of_its_object() {
        let (mut aside, now) = (Aside::default(), Instant::now());
        let swap = Some(EventFault::Swap);
        assert!(aside.arrive(key("a"), Bytes::from("a1"), swap, now).is_empty());
        assert_eq!(texts(aside.arrive(key("b"), Bytes::from("b1"), None, now)), ["b1"]);
        assert_eq!(texts(aside.arrive(key("a"), Bytes::from("a2"), None, now)), ["a2", "a1"]);
        assert!(aside.arrive(key("a"), Bytes::from("a3"), swap, now).is_empty());
        aside.end_swaps();
        assert_eq!(due(&mut aside, now), ["a3"]);
    }

    #[test]
    fn swap_behind_a_held_event_waits_for_it() {
        let (mut aside, now) = (Aside::default(), Instant::now());
        let id = ObjectRules::default().next_hold();
        let (hold, swap) = (Some(EventFault::Hold(id)), Some(EventFault::Swap));
        for (line, fault) in [("a1", hold), ("a2", swap), ("a3", None), ("a4", None)] {
            assert!(aside.arrive(key("a"), Bytes::from(line), fault, now).is_empty());
        }
        assert!(aside.next_due(now, |held| held == id).is_none());
        assert_eq!(due(&mut aside, now), ["a1", "a3", "a2", "a4"]);
    }

    #[test]
    fn repeated_event_comes_twice_in_a_row() {
        let (mut aside, now) = (Aside::default(), Instant::now());
        let (repeat, delay) = (Some(EventFault::Repeat), EventFault::Delay(Duration::ZERO));
        assert_eq!(texts(aside.arrive(key("a"), Bytes::from("a1"), repeat, now)), ["a1", "a1"]);
        assert!(aside.arrive(key("a"), Bytes::from("a2"), Some(delay), now).is_empty());
        assert!(aside.arrive(key("a"), Bytes::from("a3"), repeat, now).is_empty());
        assert_eq!(due(&mut aside, now), ["a2", "a3", "a3"]);
    }
}
