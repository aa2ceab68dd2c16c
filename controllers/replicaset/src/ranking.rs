//! The order in which surplus pods are deleted: upstream's nine rules (`ActivePodsWithRanks`).
//!
//! The rules are no total order. Pods of one age bucket whose times differ are ordered by UID only,
//! and pods whose times are equal by their restarts, so that three pods can precede each other in a
//! circle. The standard library's sorts may panic on such an order. The merge sort below compares
//! each pair at most once and returns all pods for every comparison function.

use std::cmp::Ordering;
use std::sync::Arc;

use jiff::Timestamp;

use crate::pod::{Phase, Pod};

/// The annotation with a pod's deletion cost.
pub(crate) const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";

/// Sorts pods so that the one to delete first comes first.
///
/// `rank` returns the number of related pods on the pod's node. Without `now`, ages are compared
/// exactly; with it, by magnitude.
pub fn sort_for_deletion<P: AsRef<Pod>>(
    pods: Vec<P>,
    rank: impl Fn(&Pod) -> usize,
    use_deletion_costs: bool,
    now: Option<Timestamp>,
) -> Vec<P> {
    let mut order: Vec<usize> = (0..pods.len()).collect();
    {
        let facts: Vec<Facts<'_>> = pods
            .iter()
            .map(|pod| Facts::of(pod.as_ref(), rank(pod.as_ref()), use_deletion_costs))
            .collect();
        merge_sort(&mut order, &|&p, &q| facts[p].compare(&facts[q], now));
    }
    let mut pods: Vec<Option<P>> = pods.into_iter().map(Some).collect();
    order.into_iter().filter_map(|index| pods[index].take()).collect()
}

/// The properties of a pod that the rules compare, read once.
struct Facts<'a> {
    assigned: bool,
    phase: u8,
    ready: bool,
    cost: i32,
    rank: usize,
    ready_since: Option<Timestamp>,
    restarts: i32,
    sidecar_restarts: i32,
    created: Option<Timestamp>,
    uid: &'a str,
}

// === impl Facts ===

impl<'a> Facts<'a> {
    fn of(pod: &'a Pod, rank: usize, use_deletion_costs: bool) -> Self {
        Self {
            assigned: pod.spec.node_name.is_some(),
            phase: match pod.status.phase {
                Phase::Running => 2,
                Phase::Unknown => 1,
                _ => 0,
            },
            ready: pod.is_ready(),
            cost: if use_deletion_costs { deletion_cost(pod) } else { 0 },
            rank,
            ready_since: pod.status.ready.and_then(|ready| ready.since),
            restarts: pod.status.restarts,
            sidecar_restarts: pod.sidecar_restarts(),
            created: pod.metadata.creation_timestamp.as_ref().map(|time| time.0),
            uid: pod.metadata.uid.as_deref().unwrap_or_default(),
        }
    }

    /// Returns `Less` if this pod is deleted before the other.
    fn compare(&self, other: &Self, now: Option<Timestamp>) -> Ordering {
        let decided = self
            .assigned
            .cmp(&other.assigned) // 1: unassigned first
            .then(self.phase.cmp(&other.phase)) // 2: Pending < Unknown < Running
            .then(self.ready.cmp(&other.ready)) // 3: not ready first
            .then(self.cost.cmp(&other.cost)) // 4: the cheaper first
            .then(other.rank.cmp(&self.rank)); // 5: the more crowded first
        if decided.is_ne() {
            return decided;
        }
        // 6: the more recently ready first. Both are ready here, or neither is.
        if self.ready && self.ready_since != other.ready_since {
            return self.younger_first(other, self.ready_since, other.ready_since, now);
        }
        let decided = other
            .restarts
            .cmp(&self.restarts) // 7: more restarts first
            .then(other.sidecar_restarts.cmp(&self.sidecar_restarts));
        if decided.is_ne() || self.created == other.created {
            return decided; // 9: equal
        }
        self.younger_first(other, self.created, other.created, now) // 8: the younger first
    }

    /// Compares two different times: a missing one first, then the younger by magnitude of age,
    /// then the smaller UID.
    fn younger_first(
        &self,
        other: &Self,
        mine: Option<Timestamp>,
        theirs: Option<Timestamp>,
        now: Option<Timestamp>,
    ) -> Ordering {
        match (mine, theirs, now) {
            (None, _, _) => Ordering::Less,
            (_, None, _) => Ordering::Greater,
            (Some(mine), Some(theirs), None) => theirs.cmp(&mine),
            (Some(mine), Some(theirs), Some(now)) => {
                age_bucket(mine, now).cmp(&age_bucket(theirs, now)).then(self.uid.cmp(other.uid))
            }
        }
    }
}

/// Returns the magnitude of an age: the integer part of the binary logarithm of its nanoseconds, or
/// −1 for an age of zero or less. Ages from the end of Go's durations on have the magnitude 63:
/// 2⁶³ − 1 ns are 2⁶³ ns as a floating-point number, whose logarithm upstream takes.
fn age_bucket(time: Timestamp, now: Timestamp) -> i32 {
    const LONGEST: u64 = i64::MAX.unsigned_abs();
    let age = now.as_nanosecond() - time.as_nanosecond();
    match u64::try_from(age) {
        Ok(0) => -1,
        Ok(age @ 1..LONGEST) => age.ilog2().cast_signed(),
        Err(_) if age < 0 => -1,
        Ok(_) | Err(_) => 63,
    }
}

/// Returns the pod's deletion cost, or 0 if upstream does not accept the annotation as a number.
fn deletion_cost(pod: &Pod) -> i32 {
    let annotations = pod.metadata.annotations.as_ref();
    let Some(text) = annotations.and_then(|it| it.get(DELETION_COST)) else { return 0 };
    // A plus sign and leading zeros are not accepted.
    match text.as_bytes().first() {
        Some(b'-' | b'1'..=b'9') => text.parse().unwrap_or(0),
        _ => 0,
    }
}

/// Returns the ratio of the age of each chosen pod that is ready to the age of the youngest ready
/// pod of all `active` ones. An age counts from the creation. Upstream's metric has whole numbers,
/// rounded down, and so does this one.
#[expect(clippy::cast_precision_loss, reason = "a ratio above 2^52 needs no precision")]
pub fn age_ratios(chosen: &[Arc<Pod>], active: &[Arc<Pod>], now: Timestamp) -> Vec<f64> {
    let age = |pod: &Arc<Pod>| {
        if !pod.is_ready() {
            return None;
        }
        let created = pod.metadata.creation_timestamp.as_ref()?.0;
        u64::try_from((now.as_nanosecond() - created.as_nanosecond()) / 1_000_000).ok()
    };
    // An age below a millisecond would divide by zero.
    let Some(youngest) = active.iter().filter_map(age).min().map(|age| age.max(1)) else {
        return Vec::new();
    };
    chosen.iter().filter_map(age).map(|age| (age / youngest) as f64).collect()
}

/// A stable merge sort that keeps all elements for every `compare`, consistent or not.
fn merge_sort<T: Copy>(items: &mut Vec<T>, compare: &impl Fn(&T, &T) -> Ordering) {
    let mut merged = Vec::with_capacity(items.len());
    let mut width = 1;
    while width < items.len() {
        merged.clear();
        for run in items.chunks(width.saturating_mul(2)) {
            let (left, right) = run.split_at(width.min(run.len()));
            merge(left, right, &mut merged, compare);
        }
        std::mem::swap(items, &mut merged);
        width = width.saturating_mul(2);
    }
}

fn merge<T: Copy>(
    mut left: &[T],
    mut right: &[T],
    into: &mut Vec<T>,
    compare: &impl Fn(&T, &T) -> Ordering,
) {
    while let ([first, left_rest @ ..], [second, right_rest @ ..]) = (left, right) {
        if compare(second, first).is_lt() {
            into.push(*second);
            right = right_rest;
        } else {
            into.push(*first);
            left = left_rest;
        }
    }
    into.extend_from_slice(left);
    into.extend_from_slice(right);
}

#[cfg(test)]
mod tests;
