//! Decides the next step for a pod from its last known state, without I/O.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::ContainerStatus;
use serde_json::Value;
use tokio::time::Instant;

use super::container::{Container, Delays, Moment, Next, RestartPolicy};
use super::pod::Pod;
use super::status;

/// The namespace and name of a pod; a later pod may have the same key.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct PodKey {
    pub(super) namespace: String,
    pub(super) name: String,
}

/// The next step for a pod.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Plan {
    Nothing,
    /// The pod is due at this time.
    Later(Instant),
    Do(Step),
}

/// One request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    Bind {
        uid: String,
        node: String,
    },
    /// Patches the status, on condition that the pod is unchanged, so that no transition is written
    /// twice.
    PatchStatus(Value),
    Delete {
        uid: String,
    },
}

/// All pods, as last seen.
#[derive(Debug)]
pub(super) struct Pods {
    known: BTreeMap<PodKey, KnownPod>,
    nodes: Vec<String>,
    /// The number of pods bound so far, for the round-robin choice of a node.
    bound: usize,
    delays: Delays,
}

#[derive(Debug)]
struct KnownPod {
    pod: Pod,
    uid: String,
    containers: Vec<Container>,
    /// The time at which its deletion was seen first.
    deleted: Option<Instant>,
}

// === impl Pods ===

impl Pods {
    pub(super) fn new(nodes: Vec<String>, delays: Delays) -> Self {
        Self { known: BTreeMap::new(), nodes, bound: 0, delays }
    }

    /// Replaces all pods. Returns their keys.
    pub(super) fn replace(&mut self, pods: Vec<Pod>, now: Instant) -> Vec<PodKey> {
        let keys: Vec<PodKey> = pods.into_iter().filter_map(|pod| self.apply(pod, now)).collect();
        let present: BTreeSet<&PodKey> = keys.iter().collect();
        self.known.retain(|key, _| present.contains(key));
        keys
    }

    /// Adds or updates a pod. Returns its key, or `None` if it has no namespace, name or UID.
    pub(super) fn apply(&mut self, pod: Pod, now: Instant) -> Option<PodKey> {
        let key = key(&pod)?;
        let uid = pod.metadata.uid.clone()?;
        let before = self.known.remove(&key).filter(|known| known.uid == uid);
        let is_deleted = pod.metadata.deletion_timestamp.is_some();
        let deleted_before = before.as_ref().and_then(|known| known.deleted);
        let containers = before.as_ref().map_or(&[][..], |known| &known.containers);
        let known = KnownPod {
            uid,
            containers: Container::all(&pod, containers, now),
            deleted: is_deleted.then(|| deleted_before.unwrap_or(now)),
            pod,
        };
        self.known.insert(key.clone(), known);
        Some(key)
    }

    pub(super) fn remove(&mut self, pod: &Pod) {
        if let Some(key) = key(pod)
            && self
                .known
                .get(&key)
                .is_some_and(|known| Some(&known.uid) == pod.metadata.uid.as_ref())
        {
            self.known.remove(&key);
        }
    }

    pub(super) fn plan(&mut self, key: &PodKey, at: Moment) -> Plan {
        let Some(known) = self.known.get(key) else { return Plan::Nothing };
        let Some(node) = known.pod.spec.node_name.as_ref().filter(|node| !node.is_empty()) else {
            // The API server removes an unbound pod by itself, and binds none that has gates. Pods
            // with claims are bound when their devices are allocated.
            let spec = &known.pod.spec;
            let waits = !spec.scheduling_gates.is_empty() || !spec.resource_claims.is_empty();
            if known.deleted.is_some() || waits {
                return Plan::Nothing;
            }
            let node = self.nodes[self.bound % self.nodes.len()].clone();
            self.bound += 1;
            return Plan::Do(Step::Bind { uid: known.uid.clone(), node });
        };
        if !self.nodes.contains(node) {
            return Plan::Nothing;
        }
        if let Some(since) = known.deleted {
            return known.plan_deletion(since + self.delays.stop, at.now);
        }
        known.plan_status(&self.delays, at)
    }
}

// === impl KnownPod ===

impl KnownPod {
    /// Plans the deletion of a pod. Once the grace period is 0, the kubelet is done; finalizers may
    /// keep the pod.
    fn plan_deletion(&self, time: Instant, now: Instant) -> Plan {
        if self.pod.metadata.deletion_grace_period_seconds == Some(0) {
            Plan::Nothing
        } else if now < time {
            Plan::Later(time)
        } else {
            Plan::Do(Step::Delete { uid: self.uid.clone() })
        }
    }

    /// Plans the next status of a pod, with all changes that are due. A finished pod does not
    /// change.
    fn plan_status(&self, delays: &Delays, at: Moment) -> Plan {
        let phase = self.pod.status.phase.as_deref().unwrap_or("Pending");
        if !matches!(phase, "Pending" | "Running") {
            return Plan::Nothing;
        }
        let policy = RestartPolicy::of(&self.pod);
        let mut later: Option<Instant> = None;
        let mut has_changed = false;
        let mut statuses: Vec<ContainerStatus> = Vec::new();
        for container in &self.containers {
            match container.next(policy, delays, at) {
                Next::Becomes(status) => {
                    has_changed = true;
                    statuses.push(*status);
                    continue;
                }
                Next::Later(time) => later = Some(later.map_or(time, |known| known.min(time))),
                Next::Unchanged => {}
            }
            statuses.extend(container.status().cloned());
        }
        if has_changed {
            let phase = policy.phase(&statuses);
            return Plan::Do(Step::PatchStatus(status::report(
                &self.pod, phase, &statuses, at.time,
            )));
        }
        later.map_or(Plan::Nothing, Plan::Later)
    }
}

fn key(pod: &Pod) -> Option<PodKey> {
    let namespace = pod.metadata.namespace.clone()?;
    Some(PodKey { namespace, name: pod.metadata.name.clone()? })
}

#[cfg(test)]
mod tests;
