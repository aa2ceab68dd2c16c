//! A pod, as far as a `ReplicaSet` looks at it: whether it counts, whether it is ready, and how much it would be missed.
//!
//! A full `Pod` of `k8s-openapi` costs kilobytes for fields that this controller never reads, once per pod of the
//! cluster. This projection keeps the metadata, the node, the phase, the Ready condition and the restart counts;
//! everything else is skipped while parsing, so that a pod decodes whatever other fields its server knows.

use std::fmt;
use std::marker::PhantomData;

use homeostat::owner::controller_of;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference, Time};
use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// What this controller knows of a pod.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Pod {
    /// Name, labels, owners and times, as the server sent them.
    pub metadata: ObjectMeta,
    /// Where it runs, and its sidecars.
    #[serde(deserialize_with = "null_is_default")]
    pub spec: PodSpec,
    /// What its kubelet says of it.
    #[serde(deserialize_with = "null_is_default")]
    pub status: PodStatus,
}

/// The part of a pod's spec that is read.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PodSpec {
    /// The node it is bound to; absent while it is unscheduled.
    #[serde(deserialize_with = "absent_when_empty")]
    pub node_name: Option<Box<str>>,
    /// Names of the init containers that restart (`restartPolicy: Always`), which is what a sidecar is.
    #[serde(rename = "initContainers", deserialize_with = "sidecar_names")]
    pub sidecars: Box<[Box<str>]>,
}

/// The part of a pod's status that is read.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PodStatus {
    /// Where it is in its life.
    #[serde(deserialize_with = "null_is_default")]
    pub phase: Phase,
    /// Its Ready condition, if that is True.
    #[serde(rename = "conditions", deserialize_with = "ready_condition")]
    pub ready: Option<Ready>,
    /// The highest restart count among its regular containers.
    #[serde(rename = "containerStatuses", deserialize_with = "highest_restarts")]
    pub restarts: i32,
    /// Init containers that did restart, sidecars or not.
    #[serde(rename = "initContainerStatuses", deserialize_with = "init_restarts")]
    pub init_restarts: InitRestarts,
}

/// Names and restart counts of init containers.
pub type InitRestarts = Box<[(Box<str>, i32)]>;

/// A pod's phase. What is none of these counts as not finished.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// Accepted; not all containers have started.
    #[default]
    Pending,
    /// At least one container runs.
    Running,
    /// All containers ended well: the pod is finished, and no longer counted.
    Succeeded,
    /// All containers ended, one of them badly: the pod is finished, and no longer counted.
    Failed,
    /// The node does not answer.
    Unknown,
    /// A phase that this controller has not heard of, or none.
    Other,
}

/// The Ready condition of a pod that is ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ready {
    /// Since when; absent when the server did not say.
    pub since: Option<Timestamp>,
}

// === impl Pod ===

impl Pod {
    /// Whether the pod counts towards the number asked for: not finished, and not on its way out.
    pub fn is_active(&self) -> bool {
        !self.is_terminal() && self.metadata.deletion_timestamp.is_none()
    }

    /// Whether the pod has finished, well or badly.
    pub fn is_terminal(&self) -> bool {
        matches!(self.status.phase, Phase::Succeeded | Phase::Failed)
    }

    /// Whether the pod is on its way out and has not finished yet.
    pub fn is_terminating(&self) -> bool {
        !self.is_terminal() && self.metadata.deletion_timestamp.is_some()
    }

    /// Whether the pod serves.
    pub fn is_ready(&self) -> bool {
        self.status.ready.is_some()
    }

    /// Whether the pod has been ready for `min_ready_seconds`; the last moment of them counts.
    pub fn is_available(&self, min_ready_seconds: i32, now: Timestamp) -> bool {
        let Some(ready) = self.status.ready else { return false };
        if min_ready_seconds <= 0 {
            return true;
        }
        ready.since.is_some_and(|since| remaining(since, min_ready_seconds, now) <= 0)
    }

    /// How many nanoseconds from `now` the pod becomes available, if all it needs for that is time.
    pub fn available_in(&self, min_ready_seconds: i32, now: Timestamp) -> Option<i128> {
        let since = self.status.ready?.since?;
        let left = remaining(since, min_ready_seconds, now);
        (min_ready_seconds > 0 && left > 0).then_some(left)
    }

    /// The owner that manages this pod, if it has one.
    pub fn controller(&self) -> Option<&OwnerReference> {
        controller_of(&self.metadata)
    }

    /// Whether the owner with this uid manages the pod.
    pub fn is_controlled_by(&self, uid: &str) -> bool {
        self.controller().is_some_and(|owner| owner.uid == uid)
    }

    /// The highest restart count among the sidecars.
    pub fn sidecar_restarts(&self) -> i32 {
        let is_sidecar = |name: &str| self.spec.sidecars.iter().any(|it| &**it == name);
        let restarts = self.status.init_restarts.iter();
        restarts.filter(|(name, _)| is_sidecar(name)).map(|(_, n)| *n).max().unwrap_or(0).max(0)
    }
}

/// Nanoseconds until `since + seconds`; an `i128` holds the difference of any two timestamps.
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

/// Go writes `null` where it means nothing.
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

/// The first Ready condition decides, as upstream's lookup does.
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

/// Folds a list that may be `null` without keeping its elements.
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
