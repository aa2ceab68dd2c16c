//! Deltas in the order of the server, across all objects.

use std::collections::VecDeque;

use crate::{
    delta::{Batch, Delta},
    list_watch::{Decoded, WatchEvent},
    object::{Object, ResourceVersion},
};

/// A queue that drops nothing and merges nothing.
pub(super) struct InOrder<K: Object> {
    deltas: VecDeque<Delta<K>>,
    /// What the consumer has reached.
    reached: Option<ResourceVersion>,
    /// Whether the first list, if anything began with one, has been handed out; `None` before there was anything.
    synced: Option<bool>,
}

// === impl InOrder ===

impl<K: Object> InOrder<K> {
    pub(super) fn new() -> Self {
        Self { deltas: VecDeque::new(), reached: None, synced: None }
    }

    pub(super) fn push(&mut self, events: Vec<WatchEvent<K>>) {
        if !events.is_empty() {
            self.synced.get_or_insert(true);
        }
        self.deltas.extend(events.into_iter().map(Delta::from));
    }

    pub(super) fn replace(&mut self, objects: Vec<Decoded<K>>, version: ResourceVersion) {
        self.synced.get_or_insert(false);
        self.deltas.push_back(Delta::Replaced { objects, resource_version: version });
    }

    pub(super) fn resync(&mut self) {
        self.deltas.push_back(Delta::ResyncedAll);
    }

    /// The next deltas, at most `limit`. A whole state comes alone.
    pub(super) fn pop(&mut self, limit: usize) -> Option<Batch<K>> {
        let small = |delta: &Delta<K>| !matches!(delta, Delta::Replaced { .. });
        let run = self.deltas.iter().take(limit).take_while(|delta| small(delta)).count();
        let count = if run == 0 { self.deltas.len().min(1) } else { run };
        if count == 0 {
            return None;
        }
        let mut batch = Batch::from(self.deltas.drain(..count).collect::<Vec<_>>());
        if batch.relisted {
            self.synced = Some(true);
        }
        batch.synced = self.synced == Some(true);
        let relisted = batch.relisted;
        batch.reached = batch.reached.filter(|version| {
            relisted || self.reached.as_ref().is_none_or(|own| version.may_follow(own))
        });
        if batch.reached.is_some() {
            self.reached.clone_from(&batch.reached);
        }
        Some(batch)
    }

    pub(super) fn len(&self) -> usize {
        self.deltas.len()
    }
}
