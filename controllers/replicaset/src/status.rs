//! The status of a workload, and the time of the next availability check. Pure.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{ReplicaSetCondition, ReplicaSetStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::pod::Pod;
use crate::workload::Workload;

/// The condition that this controller sets.
const REPLICA_FAILURE: &str = "ReplicaFailure";

/// The reason of the condition, and of the event, while a pod does not decode.
pub(crate) const UNDECODABLE_PODS: &str = "UndecodablePods";

/// The number of pods that a message names.
const NAMED_PODS: usize = 3;

/// The observations of one pass.
#[derive(Clone, Copy, Debug)]
pub struct Observed<'a> {
    /// The pods that count, as they were before this pass created or deleted any.
    pub active: &'a [Arc<Pod>],
    /// The number of pods that this pass created. They count as replicas, with the labels of the
    /// template, and are not ready.
    pub created: usize,
    /// The number of pods that are being deleted, if that is reported.
    pub terminating: Option<usize>,
    /// The error of this pass if pods could not be created or deleted.
    pub failure: Option<&'a str>,
    /// The time of the observation.
    pub now: Timestamp,
}

/// Returns the status that `set` should have. Unknown conditions and fields stay.
pub fn next_status<K>(set: &Workload<K>, observed: Observed<'_>) -> ReplicaSetStatus {
    let Observed { active, created, terminating, failure, now } = observed;
    let count = |counts: &dyn Fn(&Pod) -> bool| active.iter().filter(|pod| counts(pod)).count();
    let min_ready_seconds = set.spec.min_ready_seconds;
    let mut status = set.status.clone();
    let labelled = count(&|pod| is_fully_labelled(set, pod));
    status.replicas = to_i32(active.len() + created);
    status.fully_labeled_replicas = unless_zero(labelled + created);
    status.ready_replicas = unless_zero(count(&Pod::is_ready));
    status.available_replicas = unless_zero(count(&|pod| pod.is_available(min_ready_seconds, now)));
    status.terminating_replicas = terminating.map(to_i32);
    status.observed_generation = set.metadata.generation;
    set_failure(&mut status, set, observed, failure);
    status
}

/// Returns the status of an object whose `pods` do not decode. The counts are unknown, so they
/// stay.
pub(crate) fn blocked_status<K>(
    set: &Workload<K>,
    pods: &[&str],
    now: Timestamp,
) -> ReplicaSetStatus {
    let mut status = set.status.clone();
    let conditions = status.conditions.get_or_insert_default();
    let reported = conditions.iter().position(is_failure).map(|index| conditions.remove(index));
    let since = reported.and_then(|it| it.last_transition_time);
    conditions.push(ReplicaSetCondition {
        type_: Some(REPLICA_FAILURE.to_owned()),
        status: Some("True".to_owned()),
        reason: Some(UNDECODABLE_PODS.to_owned()),
        message: Some(undecodable(pods)),
        last_transition_time: since.or_else(|| Some(Time(whole_seconds(now)))),
    });
    status
}

/// Returns the message about pods that do not decode.
pub(crate) fn undecodable(pods: &[&str]) -> String {
    let named = pods.iter().take(NAMED_PODS).copied().collect::<Vec<_>>().join(", ");
    let more = if pods.len() > NAMED_PODS { ", …" } else { "" };
    format!(
        "not creating or deleting pods: {} of them cannot be decoded ({named}{more})",
        pods.len()
    )
}

/// Returns true if a write of `next` would change nothing. A missing value equals zero or empty,
/// except for `terminatingReplicas`.
pub fn is_current<K>(set: &Workload<K>, next: &ReplicaSetStatus) -> bool {
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

/// Returns the time until the first pod becomes available without a further event, or `None`.
pub fn next_availability<K>(
    set: &Workload<K>,
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
        // Measured again: the next check must not wait for the time since the first one twice.
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

/// Returns `None` for zero: the API omits zeros.
fn unless_zero(count: usize) -> Option<i32> {
    (count > 0).then(|| to_i32(count))
}

fn is_fully_labelled<K>(set: &Workload<K>, pod: &Pod) -> bool {
    let labels = pod.metadata.labels.as_ref();
    let has =
        |(key, value): (&String, &String)| labels.is_some_and(|it| it.get(key) == Some(value));
    set.spec.template_labels.iter().all(has)
}

/// Sets or removes the failure condition. A reported failure keeps its first message and time, as
/// upstream.
fn set_failure<K>(
    status: &mut ReplicaSetStatus,
    set: &Workload<K>,
    observed: Observed<'_>,
    failure: Option<&str>,
) {
    let conditions = status.conditions.get_or_insert_default();
    // The pods decode now: only the outcome of this pass counts.
    conditions.retain(|it| !is_failure(it) || it.reason.as_deref() != Some(UNDECODABLE_PODS));
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

fn is_failure(condition: &ReplicaSetCondition) -> bool {
    condition.type_.as_deref() == Some(REPLICA_FAILURE)
}

/// Truncates to seconds, the API's resolution.
fn whole_seconds(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}

#[cfg(test)]
mod tests;
