//! A projection of a pod: the fields that the controller reads.
//!
//! A full `Pod` of `k8s-openapi` takes kilobytes for fields that this controller never reads, once
//! per pod of the cluster. This projection keeps the metadata, the node, the phase, the Ready
//! condition and the restart counts. All other fields are skipped while parsing, so that a pod with
//! unknown fields decodes.

use std::fmt;
use std::marker::PhantomData;

use homeostat::owner::controller_of;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference, Time};
use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// The fields of a pod that the controller reads.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Pod {
    /// Name, labels, owners and times, as the server sent them.
    pub metadata: ObjectMeta,
    /// The node and the sidecars.
    #[serde(deserialize_with = "null_is_default")]
    pub spec: PodSpec,
    /// The status that the kubelet reports.
    #[serde(deserialize_with = "null_is_default")]
    pub status: PodStatus,
}

/// The part of a pod's spec that is read.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PodSpec {
    /// The node that the pod is bound to; `None` while it is unscheduled.
    #[serde(deserialize_with = "absent_when_empty")]
    pub node_name: Option<Box<str>>,
    /// The names of the sidecars: init containers with `restartPolicy: Always`.
    #[serde(rename = "initContainers", deserialize_with = "sidecar_names")]
    pub sidecars: Box<[Box<str>]>,
}

/// The part of a pod's status that is read.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PodStatus {
    /// The pod's phase.
    #[serde(deserialize_with = "null_is_default")]
    pub phase: Phase,
    /// The Ready condition if it is True.
    #[serde(rename = "conditions", deserialize_with = "ready_condition")]
    pub ready: Option<Ready>,
    /// The highest restart count among its regular containers.
    #[serde(rename = "containerStatuses", deserialize_with = "highest_restarts")]
    pub restarts: i32,
    /// The init containers that have restarted, including those that are no sidecars.
    #[serde(rename = "initContainerStatuses", deserialize_with = "init_restarts")]
    pub init_restarts: InitRestarts,
}

/// Names and restart counts of init containers.
pub type InitRestarts = Box<[(Box<str>, i32)]>;

/// A pod's phase. An unknown phase counts as not finished.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// The pod is accepted, and not all containers have started.
    #[default]
    Pending,
    /// At least one container runs.
    Running,
    /// All containers have succeeded: the pod is finished and does not count.
    Succeeded,
    /// All containers have ended and one has failed: the pod is finished and does not count.
    Failed,
    /// The node does not report the pod's state.
    Unknown,
    /// An unknown phase.
    Other,
}

/// The Ready condition of a pod that is ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ready {
    /// The time of the last transition; `None` if the server sent none.
    pub since: Option<Timestamp>,
}

// === impl Pod ===

impl Pod {
    /// Returns true if the pod counts: it is not finished and not being deleted (upstream's
    /// `IsPodActive`).
    pub fn is_active(&self) -> bool {
        !self.is_terminal() && self.metadata.deletion_timestamp.is_none()
    }

    /// Returns true if the pod has succeeded or failed.
    pub fn is_terminal(&self) -> bool {
        matches!(self.status.phase, Phase::Succeeded | Phase::Failed)
    }

    /// Returns true if the pod is being deleted and has not finished.
    pub fn is_terminating(&self) -> bool {
        !self.is_terminal() && self.metadata.deletion_timestamp.is_some()
    }

    /// Returns true if the pod is ready.
    pub fn is_ready(&self) -> bool {
        self.status.ready.is_some()
    }

    /// Returns true if the pod has been ready for at least `min_ready_seconds`.
    pub fn is_available(&self, min_ready_seconds: i32, now: Timestamp) -> bool {
        let Some(ready) = self.status.ready else { return false };
        if min_ready_seconds <= 0 {
            return true;
        }
        ready.since.is_some_and(|since| remaining(since, min_ready_seconds, now) <= 0)
    }

    /// Returns the nanoseconds until the ready pod becomes available, or `None` if it is available
    /// or not ready.
    pub fn available_in(&self, min_ready_seconds: i32, now: Timestamp) -> Option<i128> {
        let since = self.status.ready?.since?;
        let left = remaining(since, min_ready_seconds, now);
        (min_ready_seconds > 0 && left > 0).then_some(left)
    }

    /// Returns the reference to the pod's controller.
    pub fn controller(&self) -> Option<&OwnerReference> {
        controller_of(&self.metadata)
    }

    /// Returns true if the owner with this UID is the pod's controller.
    pub fn is_controlled_by(&self, uid: &str) -> bool {
        self.controller().is_some_and(|owner| owner.uid == uid)
    }

    /// Returns the highest restart count of the sidecars.
    pub fn sidecar_restarts(&self) -> i32 {
        let is_sidecar = |name: &str| self.spec.sidecars.iter().any(|it| &**it == name);
        let restarts = self.status.init_restarts.iter();
        restarts.filter(|(name, _)| is_sidecar(name)).map(|(_, n)| *n).max().unwrap_or(0).max(0)
    }
}

/// Returns the nanoseconds until `since + seconds`. An `i128` holds the difference of any two
/// times.
fn remaining(since: Timestamp, seconds: i32, now: Timestamp) -> i128 {
    since.as_nanosecond() + i128::from(seconds) * 1_000_000_000 - now.as_nanosecond()
}

impl homeostat::Object for Pod {
    type Kind = k8s_openapi::api::core::v1::Pod;

    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }
}

// === impl Phase ===

impl<'de> Deserialize<'de> for Phase {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Name;
        impl Visitor<'_> for Name {
            type Value = Phase;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a phase")
            }

            fn visit_str<E>(self, name: &str) -> Result<Phase, E> {
                Ok(match name {
                    "Pending" => Phase::Pending,
                    "Running" => Phase::Running,
                    "Succeeded" => Phase::Succeeded,
                    "Failed" => Phase::Failed,
                    "Unknown" => Phase::Unknown,
                    _ => Phase::Other,
                })
            }
        }
        deserializer.deserialize_str(Name)
    }
}

// === decoding ===

/// Decodes `null`, which Go writes for an empty value, as the default.
fn null_is_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

fn absent_when_empty<'de, D>(deserializer: D) -> Result<Option<Box<str>>, D::Error>
where
    D: Deserializer<'de>,
{
    let name: Option<Box<str>> = Option::deserialize(deserializer)?;
    Ok(name.filter(|it| !it.is_empty()))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct InitContainer {
    #[serde(default)]
    name: Box<str>,
    #[serde(default)]
    restart_policy: Option<Box<str>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ContainerStatus {
    #[serde(default)]
    restart_count: i32,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct InitContainerStatus {
    #[serde(default)]
    name: Box<str>,
    #[serde(default)]
    restart_count: i32,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Condition<'a> {
    #[serde(rename = "type", default, borrow)]
    type_: std::borrow::Cow<'a, str>,
    #[serde(default, borrow)]
    status: std::borrow::Cow<'a, str>,
    #[serde(default)]
    last_transition_time: Option<Time>,
}

fn sidecar_names<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Box<[Box<str>]>, D::Error> {
    fold(deserializer, Vec::new(), |names, container: InitContainer| {
        if container.restart_policy.as_deref() == Some("Always") {
            names.push(container.name);
        }
    })
    .map(Vec::into_boxed_slice)
}

fn highest_restarts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i32, D::Error> {
    fold(deserializer, 0, |most, status: ContainerStatus| *most = status.restart_count.max(*most))
}

fn init_restarts<'de, D>(deserializer: D) -> Result<InitRestarts, D::Error>
where
    D: Deserializer<'de>,
{
    fold(deserializer, Vec::new(), |restarts, status: InitContainerStatus| {
        if status.restart_count > 0 {
            restarts.push((status.name, status.restart_count));
        }
    })
    .map(Vec::into_boxed_slice)
}

/// Decodes the first Ready condition, as upstream's lookup.
fn ready_condition<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Ready>, D::Error> {
    let first: Option<Option<Ready>> =
        fold(deserializer, None, |first, condition: Condition<'de>| {
            if first.is_none() && condition.type_ == "Ready" {
                let since = condition.last_transition_time.map(|Time(at)| at);
                *first = Some((condition.status == "True").then_some(Ready { since }));
            }
        })?;
    Ok(first.flatten())
}

/// Folds a list, which may be `null`, without keeping its elements.
fn fold<'de, D, T, A>(deserializer: D, into: A, step: impl FnMut(&mut A, T)) -> Result<A, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    struct List<A, F, T>(A, F, PhantomData<T>);
    impl<'de, A, F: FnMut(&mut A, T), T: Deserialize<'de>> Visitor<'de> for List<A, F, T> {
        type Value = A;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list or null")
        }

        fn visit_unit<E>(self) -> Result<A, E> {
            Ok(self.0)
        }

        fn visit_none<E>(self) -> Result<A, E> {
            Ok(self.0)
        }

        fn visit_some<D: Deserializer<'de>>(self, list: D) -> Result<A, D::Error> {
            list.deserialize_seq(self)
        }

        fn visit_seq<S: SeqAccess<'de>>(mut self, mut list: S) -> Result<A, S::Error> {
            while let Some(element) = list.next_element()? {
                (self.1)(&mut self.0, element);
            }
            Ok(self.0)
        }
    }
    deserializer.deserialize_option(List(into, step, PhantomData))
}

#[cfg(test)]
mod tests;
