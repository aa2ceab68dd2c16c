//! A handler that checks its events: it keeps a shadow of the store and records every event that
//! cannot follow from the earlier ones. Pure.

use std::collections::BTreeMap;
use std::sync::Arc;

use homeostat::informer::Event;

use super::Truth;
use super::weight::{Weight, metadata_truth};

/// The events of one handler.
#[derive(Debug)]
pub(super) struct Witness<K> {
    /// `true` if the handler has a resync period, so that states repeat.
    resyncs: bool,
    objects: BTreeMap<String, Seen<K>>,
    counts: BTreeMap<&'static str, usize>,
    complaints: Vec<String>,
    went_back: Vec<String>,
}

#[derive(Debug)]
struct Seen<K> {
    /// The last state that decoded.
    last: Option<Arc<K>>,
    now: Truth,
}

/// An event, compared with the state before it.
struct Verdict {
    name: &'static str,
    /// `true` if the event can follow.
    fits: bool,
    /// The state after the event.
    now: Option<Truth>,
}

// === impl Witness ===

impl<K: Weight> Witness<K> {
    pub(super) fn new(resyncs: bool) -> Self {
        Self {
            resyncs,
            objects: BTreeMap::new(),
            counts: BTreeMap::new(),
            complaints: Vec::new(),
            went_back: Vec::new(),
        }
    }

    /// Returns the state according to the events.
    pub(super) fn shadow(&self) -> BTreeMap<String, Truth> {
        self.objects.iter().map(|(key, seen)| (key.clone(), seen.now.clone())).collect()
    }

    /// Returns the events that cannot follow.
    pub(super) fn complaints(&self) -> &[String] {
        &self.complaints
    }

    /// Returns the versions that decreased, which is valid only if the server was restored.
    pub(super) fn went_back(&self) -> &[String] {
        &self.went_back
    }

    pub(super) fn counts(&self) -> impl Iterator<Item = (&'static str, usize)> {
        self.counts.iter().map(|(event, count)| (*event, *count))
    }

    pub(super) fn count(&self, event: &str) -> usize {
        self.counts.get(event).copied().unwrap_or_default()
    }

    pub(super) fn events(&self) -> usize {
        self.counts.values().sum()
    }

    pub(super) fn complain_if(&mut self, wrong: bool, about: impl FnOnce() -> String) {
        if wrong {
            self.complaints.push(about());
        }
    }

    pub(super) fn see(&mut self, event: Event<K>) {
        let key = event.key().to_string();
        let known = self.objects.remove(&key);
        let Verdict { name, fits, now } = self.judge(&event, known.as_ref());
        *self.counts.entry(name).or_default() += 1;
        let before = known.as_ref().map(|seen| (&seen.now, seen.last.is_some()));
        self.complain_if(!fits, || format!("{event:?} of {key} after {before:?}"));
        self.compare(&key, known.as_ref(), now.as_ref());
        if let Some(now) = now {
            let last = match event {
                Event::Added { object, .. } => Some(object),
                Event::Updated { new, .. } => Some(new),
                _ => known.and_then(|seen| seen.last),
            };
            self.objects.insert(key, Seen { last, now });
        }
    }

    fn judge(&self, event: &Event<K>, known: Option<&Seen<K>>) -> Verdict {
        let last = known.and_then(|seen| seen.last.as_ref());
        let (name, fits, now) = match event {
            Event::Added { object, .. } => ("added", last.is_none(), Some(object.truth())),
            Event::Updated { old, new } => {
                let again = Arc::ptr_eq(old, new);
                let follows = last.is_some_and(|last| Arc::ptr_eq(last, old));
                let fits = follows && old.uid() == new.uid() && (!again || self.resyncs);
                (if again { "resynced" } else { "updated" }, fits, Some(new.truth()))
            }
            Event::Deleted { last_known, certain } => {
                let same = last.is_some_and(|last| last.uid() == last_known.uid());
                (if *certain { "deleted" } else { "deleted unseen" }, same, None)
            }
            Event::Opaque { last_known, metadata } => {
                let same = match (last, last_known) {
                    (Some(last), Some(last_known)) => Arc::ptr_eq(last, last_known),
                    (None, None) => true,
                    _ => false,
                };
                ("opaque", same, Some(metadata_truth(metadata)))
            }
            Event::OpaqueDeleted { .. } => {
                ("opaque deleted", known.is_some() && last.is_none(), None)
            }
        };
        Verdict { name, fits, now }
    }

    /// Checks that the version of one object grows, unless a resync repeats a state.
    fn compare(&mut self, key: &str, known: Option<&Seen<K>>, now: Option<&Truth>) {
        let (Some(Seen { now: before, .. }), Some(now)) = (known, now) else { return };
        self.complain_if(before.0 != now.0, || format!("{key} has another uid: {now:?}"));
        let [from, to] = [&before.1, &now.1].map(|version| version.parse::<u64>().unwrap_or(0));
        let again = self.resyncs && before == now;
        if before.0 == now.0 && from >= to && !again {
            self.went_back.push(format!("{key} goes from version {from} to {to}"));
        }
    }
}
