//! What is to be done for a pod: decided from its last known state alone, without waiting.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::ContainerStatus;
use serde_json::Value;
use tokio::time::Instant;

use super::{
    container::{Container, Delays, Moment, Next, RestartPolicy},
    pod::Pod,
    status,
};

/// A pod's place; another pod may take it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct PodKey {
    pub(super) namespace: String,
    pub(super) name: String,
}

/// What to do for a pod now.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Plan {
    Nothing,
    /// Nothing before this time.
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
    /// Patches the status, if the pod is still what was looked at: no transition is told twice.
    Report(Value),
    Finish {
        uid: String,
    },
}

/// All pods, as last seen.
#[derive(Debug)]
pub(super) struct Pods {
    known: BTreeMap<PodKey, Known>,
    nodes: Vec<String>,
    /// Which node gets the next pod.
    turn: usize,
    delays: Delays,
}

#[derive(Debug)]
struct Known {
    pod: Pod,
    uid: String,
    containers: Vec<Container>,
    /// When it was first seen to be deleted.
    deleted: Option<Instant>,
}

// === impl Pods ===

impl Pods {
    pub(super) fn new(nodes: Vec<String>, delays: Delays) -> Self {
        Self { known: BTreeMap::new(), nodes, turn: 0, delays }
    }

    /// These are all pods there are; returns the keys to look at.
    pub(super) fn replace(&mut self, pods: Vec<Pod>, now: Instant) -> Vec<PodKey> {
        let keys: Vec<PodKey> = pods.into_iter().filter_map(|pod| self.apply(pod, now)).collect();
        let present: BTreeSet<&PodKey> = keys.iter().collect();
        self.known.retain(|key, _| present.contains(key));
        keys
    }

    /// A pod is new or has changed; returns its key. None if it has no name, which no server sends.
    pub(super) fn apply(&mut self, pod: Pod, now: Instant) -> Option<PodKey> {
        let key = key(&pod)?;
        let uid = pod.metadata.uid.clone()?;
        let before = self.known.remove(&key).filter(|known| known.uid == uid);
        let is_deleted = pod.metadata.deletion_timestamp.is_some();
        let deleted_before = before.as_ref().and_then(|known| known.deleted);
        let containers = before.as_ref().map_or(&[][..], |known| &known.containers);
        let known = Known {
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
            // One that is deleted before it was bound goes without our help.
            if known.deleted.is_some() {
                return Plan::Nothing;
            }
            let node = self.nodes[self.turn % self.nodes.len()].clone();
            self.turn += 1;
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

// === impl Known ===

impl Known {
    /// Once the grace period is zero all that was asked of us is done; finalizers may keep the pod.
    fn plan_deletion(&self, time: Instant, now: Instant) -> Plan {
        if self.pod.metadata.deletion_grace_period_seconds == Some(0) {
            Plan::Nothing
        } else if now < time {
            Plan::Later(time)
        } else {
            Plan::Do(Step::Finish { uid: self.uid.clone() })
        }
    }

    /// What its containers do next is told, all that is due in one step. A pod that has finished stays as it is.
    fn plan_status(&self, delays: &Delays, at: Moment) -> Plan {
        let phase = self.pod.status.phase.as_deref().unwrap_or("Pending");
        if !matches!(phase, "Pending" | "Running") {
            return Plan::Nothing;
        }
        let policy = RestartPolicy::of(&self.pod);
        let mut later: Option<Instant> = None;
        let mut is_news = false;
        let mut statuses: Vec<ContainerStatus> = Vec::new();
        for container in &self.containers {
            match container.next(policy, delays, at) {
                Next::Becomes(status) => {
                    is_news = true;
                    statuses.push(*status);
                    continue;
                }
                Next::Later(time) => later = Some(later.map_or(time, |known| known.min(time))),
                Next::Stays => {}
            }
            statuses.extend(container.status().cloned());
        }
        if is_news {
            let phase = policy.phase(&statuses);
            return Plan::Do(Step::Report(status::report(&self.pod, phase, &statuses, at.time)));
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
