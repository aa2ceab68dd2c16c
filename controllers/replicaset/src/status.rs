//! What a `ReplicaSet` reports of its pods, and when to look again. Pure.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{ReplicaSetCondition, ReplicaSetStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::pod::Pod;
use crate::replica_set::ReplicaSet;

/// The one condition that this controller sets.
const REPLICA_FAILURE: &str = "ReplicaFailure";

/// What one pass saw: what the status is made of.
#[derive(Clone, Copy, Debug)]
pub struct Observed<'a> {
    /// The pods that count, as they were before this pass changed anything.
    pub active: &'a [Arc<Pod>],
    /// How many are on their way out, if that is reported.
    pub terminating: Option<usize>,
    /// Why pods could not be made or deleted in this pass.
    pub failure: Option<&'a str>,
    /// When.
    pub now: Timestamp,
}

/// The status that `set` should have. What this controller does not know of stays as it is.
pub fn next_status(set: &ReplicaSet, observed: Observed<'_>) -> ReplicaSetStatus {
    let Observed { active, terminating, failure, now } = observed;
    let count = |counts: &dyn Fn(&Pod) -> bool| active.iter().filter(|pod| counts(pod)).count();
    let min_ready_seconds = set.spec.min_ready_seconds;
    let mut status = set.status.clone();
    status.replicas = to_i32(active.len());
    status.fully_labeled_replicas = unless_zero(count(&|pod| is_fully_labelled(set, pod)));
    status.ready_replicas = unless_zero(count(&Pod::is_ready));
    status.available_replicas = unless_zero(count(&|pod| pod.is_available(min_ready_seconds, now)));
    status.terminating_replicas = terminating.map(to_i32);
    status.observed_generation = set.metadata.generation;
    set_failure(&mut status, set, observed, failure);
    status
}

/// Whether a write would change nothing; `null`, zero and empty mean the same, except for `terminatingReplicas`.
pub fn is_current(set: &ReplicaSet, next: &ReplicaSetStatus) -> bool {
    let old = &set.status;
    let same = |a: Option<i32>, b: Option<i32>| a.unwrap_or(0) == b.unwrap_or(0);
    old.replicas == next.replicas
        && same(old.fully_labeled_replicas, next.fully_labeled_replicas)
        && same(old.ready_replicas, next.ready_replicas)
        && same(old.available_replicas, next.available_replicas)
        && old.terminating_replicas == next.terminating_replicas
        && set.metadata.generation.unwrap_or(0) == old.observed_generation.unwrap_or(0)
        && old.conditions.as_deref().unwrap_or_default()
            == next.conditions.as_deref().unwrap_or_default()
}

/// When to look again because pods become available by the passing of time alone.
pub fn next_availability(
    set: &ReplicaSet,
    status: &ReplicaSetStatus,
    active: &[Arc<Pod>],
    measured: Timestamp,
    clock: impl FnOnce() -> Timestamp,
) -> Option<Duration> {
    let min_ready_seconds = set.spec.min_ready_seconds;
    if min_ready_seconds <= 0 || status.ready_replicas == status.available_replicas {
        return None;
    }
    let wait_of = |pod: &Pod, now| pod.available_in(min_ready_seconds, now);
    let soonest = active
        .iter()
        .filter_map(|pod| Some((wait_of(pod, measured)?, pod)))
        .min_by_key(|(wait, _)| *wait);
    Some(match soonest {
        // Measured again: time has passed since, and waiting for it twice would be late.
        Some((_, pod)) => wait_of(pod, clock()).map_or(Duration::ZERO, from_nanos),
        None => Duration::from_secs(min_ready_seconds.unsigned_abs().into()),
    })
}

fn from_nanos(nanos: i128) -> Duration {
    Duration::from_nanos(u64::try_from(nanos.max(0)).unwrap_or(u64::MAX))
}

fn to_i32(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

/// The API leaves zeros out.
fn unless_zero(count: usize) -> Option<i32> {
    (count > 0).then(|| to_i32(count))
}

fn is_fully_labelled(set: &ReplicaSet, pod: &Pod) -> bool {
    let labels = pod.metadata.labels.as_ref();
    let has =
        |(key, value): (&String, &String)| labels.is_some_and(|it| it.get(key) == Some(value));
    set.spec.template_labels.iter().all(has)
}

/// A failure that is reported already keeps its first message and its time, as upstream.
fn set_failure(
    status: &mut ReplicaSetStatus,
    set: &ReplicaSet,
    observed: Observed<'_>,
    failure: Option<&str>,
) {
    let conditions = status.conditions.get_or_insert_default();
    let is_failure = |it: &ReplicaSetCondition| it.type_.as_deref() == Some(REPLICA_FAILURE);
    let reported = conditions.iter().any(is_failure);
    match failure {
        None => conditions.retain(|it| !is_failure(it)),
        Some(_) if reported => {}
        Some(message) => {
            let reason = match observed.active.len().cmp(&set.spec.replicas) {
                std::cmp::Ordering::Less => "FailedCreate",
                std::cmp::Ordering::Greater => "FailedDelete",
                std::cmp::Ordering::Equal => "",
            };
            conditions.push(ReplicaSetCondition {
                type_: Some(REPLICA_FAILURE.to_owned()),
                status: Some("True".to_owned()),
                reason: (!reason.is_empty()).then(|| reason.to_owned()),
                message: Some(message.to_owned()),
                last_transition_time: Some(Time(whole_seconds(observed.now))),
            });
        }
    }
    if conditions.is_empty() {
        status.conditions = None;
    }
}

/// The API keeps times to the second.
fn whole_seconds(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}

#[cfg(test)]
mod tests;
