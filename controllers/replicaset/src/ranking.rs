//! Which pod goes first when there are too many: upstream's nine rules, in upstream's order.
//!
//! The rules do not form a total order: pods of one age bucket whose times differ are told apart by uid and nothing
//! else, pods whose times are equal by their restarts, and so three pods can beat each other in a circle. The standard
//! library's sorts may panic on such an order; the merge sort below asks each question at most once, believes the
//! answer, and always ends with every pod it was given.

use std::cmp::Ordering;

use jiff::Timestamp;

use crate::pod::{Phase, Pod};

/// The annotation by which users say what a pod's deletion would cost them.
pub(crate) const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";

/// Sorts pods so that the one to delete first comes first.
///
/// `rank` is how many related pods share the pod's node; without `now`, ages are compared exactly rather than by magnitude.
pub fn sort_for_deletion<P: AsRef<Pod>>(
    pods: Vec<P>,
    rank: impl Fn(&Pod) -> usize,
    heed_costs: bool,
    now: Option<Timestamp>,
) -> Vec<P> {
    let mut order: Vec<usize> = (0..pods.len()).collect();
    {
        let facts: Vec<Facts<'_>> = pods
            .iter()
            .map(|pod| Facts::of(pod.as_ref(), rank(pod.as_ref()), heed_costs))
            .collect();
        merge_sort(&mut order, &|&p, &q| facts[p].compare(&facts[q], now));
    }
    let mut pods: Vec<Option<P>> = pods.into_iter().map(Some).collect();
    order.into_iter().filter_map(|index| pods[index].take()).collect()
}

/// What the rules ask of a pod, read once rather than at each comparison.
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
    fn of(pod: &'a Pod, rank: usize, heed_costs: bool) -> Self {
        Self {
            assigned: pod.spec.node_name.is_some(),
            phase: match pod.status.phase {
                Phase::Running => 2,
                Phase::Unknown => 1,
                _ => 0,
            },
            ready: pod.is_ready(),
            cost: if heed_costs { deletion_cost(pod) } else { 0 },
            rank,
            ready_since: pod.status.ready.and_then(|ready| ready.since),
            restarts: pod.status.restarts,
            sidecar_restarts: pod.sidecar_restarts(),
            created: pod.metadata.creation_timestamp.as_ref().map(|time| time.0),
            uid: pod.metadata.uid.as_deref().unwrap_or_default(),
        }
    }

    /// `Less` when this pod goes before the other.
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
            return decided; // 9: nothing tells them apart
        }
        self.younger_first(other, self.created, other.created, now) // 8: the younger first
    }

    /// Of two different times: a missing one first, then the younger by magnitude of age, then the smaller uid.
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

/// The magnitude of an age: the whole part of the binary logarithm of its nanoseconds, −1 for no age.
///
/// Go's durations end at 2⁶³ ns; older is as old as that.
fn age_bucket(time: Timestamp, now: Timestamp) -> i32 {
    let age = now.as_nanosecond() - time.as_nanosecond();
    match u64::try_from(age) {
        Ok(0) => -1,
        Ok(age) => age.min(i64::MAX.unsigned_abs()).ilog2().cast_signed(),
        Err(_) if age < 0 => -1,
        Err(_) => 62,
    }
}

/// The pod's deletion cost; what upstream does not take for a number counts as 0.
fn deletion_cost(pod: &Pod) -> i32 {
    let annotations = pod.metadata.annotations.as_ref();
    let Some(text) = annotations.and_then(|it| it.get(DELETION_COST)) else { return 0 };
    // Neither a sign before a positive number nor leading zeros are taken.
    match text.as_bytes().first() {
        Some(b'-' | b'1'..=b'9') => text.parse().unwrap_or(0),
        _ => 0,
    }
}

/// For each chosen pod that is ready: how often its age holds the age of the youngest ready pod.
pub fn age_ratios<'a>(chosen: impl Iterator<Item = &'a Pod> + Clone, now: Timestamp) -> Vec<u64> {
    let age = |pod: &Pod| {
        let since = pod.status.ready?.since?;
        u64::try_from((now.as_nanosecond() - since.as_nanosecond()) / 1_000_000).ok()
    };
    let ages: Vec<u64> = chosen.filter_map(age).collect();
    // An age below a millisecond would divide by zero.
    let Some(youngest) = ages.iter().copied().min().map(|age| age.max(1)) else { return ages };
    ages.into_iter().map(|age| age / youngest).collect()
}

/// A stable merge sort that ends, with the elements it was given, whatever `compare` answers.
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
