//! Decides the next step for a pod from its last known state, without I/O.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use k8s_openapi::api::core::v1::ContainerStatus;
use serde_json::Value;
use tokio::time::Instant;

use super::addresses::{self, PodAddresses};
use super::container::{Container, Delays, Moment, Next, later};
use super::pod::Pod;
use super::restart_policy::RestartPolicy;
use super::status::{self, PodState};

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
    addresses: PodAddresses,
    delays: Delays,
}

#[derive(Debug)]
struct KnownPod {
    pod: Box<Pod>,
    uid: String,
    inits: Vec<Container>,
    containers: Vec<Container>,
    /// The address that it has, or that its next status reports.
    address: Option<Ipv4Addr>,
    /// The time at which its deletion was seen first.
    deleted: Option<Instant>,
}

/// The next steps of the containers of a pod.
#[derive(Debug, Default)]
struct Steps {
    has_changed: bool,
    later: Option<Instant>,
}

// === impl Pods ===

impl Pods {
    pub(super) fn new(nodes: Vec<String>, delays: Delays) -> Self {
        let addresses = PodAddresses::default();
        Self { known: BTreeMap::new(), nodes, bound: 0, addresses, delays }
    }

    /// Replaces all pods. Returns their keys.
    pub(super) fn replace(&mut self, pods: Vec<Pod>, now: Instant) -> Vec<PodKey> {
        let pods = pods.into_iter();
        let keys: Vec<PodKey> = pods.filter_map(|pod| self.apply(Box::new(pod), now)).collect();
        let present: BTreeSet<&PodKey> = keys.iter().collect();
        self.known.retain(|key, known| {
            let is_present = present.contains(key);
            if !is_present {
                self.addresses.release(known.address);
            }
            is_present
        });
        keys
    }

    /// Adds or updates a pod. Returns its key, or `None` if it has no namespace, name or UID.
    pub(super) fn apply(&mut self, pod: Box<Pod>, now: Instant) -> Option<PodKey> {
        let key = key(&pod)?;
        let uid = pod.metadata.uid.clone()?;
        let before = self.known.remove(&key);
        let reported = pod.status.pod_ip.as_deref().and_then(|address| address.parse().ok());
        let known = before.as_ref().and_then(|known| known.address);
        let before = before.filter(|known| known.uid == uid);
        let address = reported.or_else(|| before.as_ref()?.address);
        if address != known {
            self.addresses.release(known);
            self.addresses.keep(address);
        }
        let is_deleted = pod.metadata.deletion_timestamp.is_some();
        let deleted_before = before.as_ref().and_then(|known| known.deleted);
        let containers = before.as_ref().map_or(&[][..], |known| &known.containers);
        let inits = before.as_ref().map_or(&[][..], |known| &known.inits);
        let known = KnownPod {
            uid,
            inits: Container::inits(&pod, inits, now),
            containers: Container::all(&pod, containers, now),
            address,
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
            let address = self.known.remove(&key).and_then(|known| known.address);
            self.addresses.release(address);
        }
    }

    pub(super) fn plan(&mut self, key: &PodKey, at: Moment) -> Plan {
        let Some(known) = self.known.get_mut(key) else { return Plan::Nothing };
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
        let Some(position) = self.nodes.iter().position(|known| known == node) else {
            return Plan::Nothing;
        };
        if let Some(since) = known.deleted {
            return known.plan_deletion(later(since, self.delays.stop), at);
        }
        let host = addresses::of_node(position);
        let address = if known.pod.spec.host_network {
            host
        } else {
            *known.address.get_or_insert_with(|| self.addresses.take(&known.uid))
        };
        known.plan_status((address, host), &self.delays, at)
    }
}

// === impl KnownPod ===

impl KnownPod {
    /// Plans the deletion of a pod. Once the grace period is 0, the kubelet is done; finalizers may
    /// keep the pod, which has failed then.
    fn plan_deletion(&self, time: Instant, at: Moment) -> Plan {
        let is_done = self.pod.metadata.deletion_grace_period_seconds == Some(0);
        if at.now < time && !is_done {
            return Plan::Later(time);
        }
        // A pod without finalizers is gone at once: its last status would be read by no client.
        let is_kept = self.pod.metadata.finalizers.as_ref().is_some_and(|all| !all.is_empty());
        let phase = self.pod.status.phase.as_deref();
        if is_kept && !matches!(phase, Some("Succeeded" | "Failed")) {
            Plan::Do(Step::PatchStatus(self.last_status(at)))
        } else if is_done {
            Plan::Nothing
        } else {
            Plan::Do(Step::Delete { uid: self.uid.clone() })
        }
    }

    /// Returns the patch with the last status of a pod, whose containers are killed.
    fn last_status(&self, at: Moment) -> Value {
        let killed = |container: &Container| container.killed(at.time);
        let inits: Vec<_> = self.inits.iter().filter_map(killed).collect();
        let containers: Vec<_> = self.containers.iter().filter_map(killed).collect();
        let is_initialized = self.pod.holds("Initialized");
        let waiting = self.inits.iter().filter(|_| !is_initialized).map(Container::name);
        let has_ended =
            !containers.is_empty() && RestartPolicy::Never.phase(&containers) == "Succeeded";
        let state = PodState {
            phase: if has_ended { "Succeeded" } else { "Failed" },
            inits: &inits,
            uninitialized: waiting.collect(),
            containers: &containers,
            addresses: None,
        };
        status::report(&self.pod, &state, at.time)
    }

    /// Plans the next status of a pod, with all changes that are due. A finished pod does not
    /// change.
    fn plan_status(
        &self,
        (address, host): (Ipv4Addr, Ipv4Addr),
        delays: &Delays,
        at: Moment,
    ) -> Plan {
        let phase = self.pod.status.phase.as_deref().unwrap_or("Pending");
        if !matches!(phase, "Pending" | "Running") {
            return Plan::Nothing;
        }
        let policy = RestartPolicy::of(&self.pod);
        let mut steps = Steps::default();
        let (mut inits, mut uninitialized, mut failed) = (Vec::new(), Vec::new(), false);
        for init in &self.inits {
            if !uninitialized.is_empty() {
                uninitialized.push(init.name());
                inits.push(init.status().cloned().unwrap_or_else(|| init.initializing()));
                continue;
            }
            let status = steps.take(init, init.next(init.init_policy(policy), delays, at));
            if !init.is_initialized(status.as_ref()) {
                uninitialized.push(init.name());
            }
            failed |= status.as_ref().is_some_and(|status| init.has_failed(policy, status));
            inits.extend(status);
        }
        let mut containers: Vec<ContainerStatus> = Vec::new();
        for container in &self.containers {
            containers.extend(if uninitialized.is_empty() {
                steps.take(container, container.next(policy, delays, at))
            } else {
                Some(container.initializing())
            });
        }
        if !steps.has_changed && !status::awaits_readiness(&self.pod) {
            return steps.later.map_or(Plan::Nothing, Plan::Later);
        }
        let phase = if failed {
            "Failed"
        } else if uninitialized.is_empty() {
            policy.phase(&containers)
        } else {
            "Pending"
        };
        let addresses = self.pod.status.pod_ip.is_none().then_some((address, host));
        let (inits, containers) = (&inits[..], &containers[..]);
        let state = PodState { phase, inits, uninitialized, containers, addresses };
        Plan::Do(Step::PatchStatus(status::report(&self.pod, &state, at.time)))
    }
}

// === impl Steps ===

impl Steps {
    /// Returns the status of a container after its next step.
    fn take(&mut self, container: &Container, next: Next) -> Option<ContainerStatus> {
        match next {
            Next::Becomes(status) => {
                self.has_changed = true;
                return Some(*status);
            }
            Next::Later(time) => {
                self.later = Some(self.later.map_or(time, |known| known.min(time)));
            }
            Next::Unchanged => {}
        }
        container.status().cloned()
    }
}

fn key(pod: &Pod) -> Option<PodKey> {
    let namespace = pod.metadata.namespace.clone()?;
    Some(PodKey { namespace, name: pod.metadata.name.clone()? })
}

#[cfg(test)]
mod tests;
