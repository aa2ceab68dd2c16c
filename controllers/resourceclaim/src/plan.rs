//! Decisions about pods and claims. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Value, json};

use crate::claim::{Claim, Consumer};
use crate::pod::{Pod, Resolution};

/// The maximum number of consumers of one claim: the API server's limit.
pub const MAX_CONSUMERS: usize = 256;

/// A claim in the cache.
#[derive(Debug)]
pub enum Cached {
    /// The cache does not have the claim.
    Missing,
    /// The claim does not decode.
    Opaque,
    /// The claim.
    Found(Arc<Claim>),
}

/// A change of a claim's status that one pass asks for. Changes of several passes go in one write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Reserves the allocated claim for a pod.
    Reserve(Consumer),
    /// Removes the consumers with these UIDs, and deallocates a protected claim that has no
    /// consumer left.
    Release(BTreeSet<Box<str>>),
    /// Deallocates a protected claim that is being deleted and has no consumer.
    Deallocate,
}

/// The result of one [`Change`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The claim is as the change asks.
    Done,
    /// The claim is not allocated any more: nothing was reserved.
    NotAllocated,
    /// The claim is being deleted: the server would refuse a new consumer, and with it the other
    /// changes of the write.
    BeingDeleted,
    /// The claim has 256 consumers: nothing was reserved.
    Full,
}

/// One write of a claim's status for several changes.
#[derive(Debug, PartialEq)]
pub struct StatusWrite {
    /// The consumers that are added.
    added: Vec<Consumer>,
    /// The UIDs of the consumers that are removed.
    removed: BTreeSet<Box<str>>,
    /// True if the allocation is removed.
    deallocated: bool,
}

/// Returns true if the pass over `pod` has something to do (upstream's `podNeedsWork`). `claim`
/// returns the cached claim of a name.
///
/// A terminal pod is no work: upstream reserves claims for it, which the claim's pass then removes.
pub fn needs_work(pod: &Pod, claim: impl Fn(&str) -> Cached) -> bool {
    if pod.is_being_deleted() || pod.is_terminal {
        return false;
    }
    pod.resolutions().any(|(_, resolution)| match resolution {
        Resolution::NotCreated | Resolution::Unsupported => true,
        Resolution::NotNeeded => false,
        Resolution::Chosen(name) => match claim(name) {
            Cached::Missing | Cached::Opaque => false,
            Cached::Found(claim) => needs_reservation(pod, &claim),
        },
        Resolution::Generated(name) => match claim(name) {
            Cached::Missing => true,
            Cached::Opaque => false,
            Cached::Found(claim) => {
                claim.check_owner(pod).is_ok() && needs_reservation(pod, &claim)
            }
        },
    })
}

/// Returns true if the pod is on a node and the claim is allocated and not reserved for it: the pod
/// did not pass through the scheduler. A claim that is being deleted takes no new consumers.
pub fn needs_reservation(pod: &Pod, claim: &Claim) -> bool {
    let is_available = claim.is_allocated && !claim.is_being_deleted();
    !pod.node_name.is_empty() && is_available && !claim.is_reserved_for(pod.uid())
}

/// Returns the entries of `status.resourceClaimStatuses` to apply, sorted by name: those in the
/// cache and, over them, those that this pass `found`.
///
/// An apply removes entries of the same field manager that it leaves out, so all entries are in it.
/// Entries without a claim belong to the manager that wrote them.
pub fn statuses(pod: &Pod, found: &BTreeMap<&str, String>) -> BTreeMap<String, String> {
    let recorded = pod.resolutions().filter_map(|(entry, resolution)| match resolution {
        Resolution::Generated(name) if !name.is_empty() => {
            Some((entry.name.to_string(), name.to_owned()))
        }
        _ => None,
    });
    let found = found.iter().map(|(entry, name)| ((*entry).to_owned(), name.clone()));
    recorded.chain(found).collect()
}

// === impl StatusWrite ===

impl StatusWrite {
    /// Joins `changes` to one write of `claim`, and returns it with the outcome of each change.
    pub fn new<'a>(
        claim: &Claim,
        changes: impl IntoIterator<Item = &'a Change>,
    ) -> (Self, Vec<Outcome>) {
        let changes: Vec<_> = changes.into_iter().collect();
        let mut removed = BTreeSet::new();
        for change in &changes {
            if let Change::Release(uids) = change {
                removed.extend(uids.iter().filter(|uid| claim.is_reserved_for(uid)).cloned());
            }
        }
        let kept = claim.reserved_for.len() - removed.len().min(claim.reserved_for.len());
        let mut added: Vec<Consumer> = Vec::new();
        let outcomes = changes.iter().map(|change| {
            let Change::Reserve(consumer) = change else { return Outcome::Done };
            let is_there = claim.is_reserved_for(&consumer.uid);
            if is_there || added.iter().any(|other| other.uid == consumer.uid) {
                return Outcome::Done;
            }
            if claim.is_being_deleted() {
                return Outcome::BeingDeleted;
            }
            if !claim.is_allocated {
                return Outcome::NotAllocated;
            }
            if kept + added.len() >= MAX_CONSUMERS {
                return Outcome::Full;
            }
            added.push(consumer.clone());
            Outcome::Done
        });
        let outcomes = outcomes.collect();
        let is_unused = kept == 0 && added.is_empty() && claim.is_protected();
        let is_deleted = claim.is_being_deleted() && changes.contains(&&Change::Deallocate);
        let deallocated = claim.is_allocated && is_unused && (!removed.is_empty() || is_deleted);
        (Self { added, removed, deallocated }, outcomes)
    }

    /// Returns true if nothing is written.
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty() && !self.deallocated
    }

    /// Returns the strategic merge patch. The server refuses it with 409 if its object has another
    /// resourceVersion than `claim`.
    ///
    /// It names the consumers that it changes and leaves all other members of the status alone. The
    /// server itself removes `status.devices` together with the allocation.
    pub fn patch(&self, claim: &Claim) -> Value {
        let removed = self.removed.iter().map(|uid| json!({"$patch": "delete", "uid": uid}));
        let consumers: Vec<_> = removed.chain(self.added.iter().map(|it| json!(it))).collect();
        let mut status = serde_json::Map::new();
        if !consumers.is_empty() {
            status.insert("reservedFor".to_owned(), consumers.into());
        }
        if self.deallocated {
            status.insert("allocation".to_owned(), Value::Null);
        }
        let version = &claim.metadata.resource_version;
        json!({"metadata": {"resourceVersion": version}, "status": status})
    }
}

#[cfg(test)]
mod tests;
