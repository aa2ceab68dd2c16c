//! What is to be done for a pod: decided from its last known state alone, without waiting.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use jiff::Timestamp;
use tokio::time::Instant;

use super::pod::{Container, Pod};

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
    Bind { uid: String, node: String },
    Run { pod: Running, ready: bool },
    Finish { uid: String },
}

/// What the status of a pod that runs is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Running {
    pub(super) uid: String,
    pub(super) containers: Vec<Container>,
    /// Whether its status says already that it runs, and since when.
    pub(super) runs: bool,
    pub(super) started: Option<Timestamp>,
}

/// All pods, as last seen.
#[derive(Debug)]
pub(super) struct Pods {
    known: BTreeMap<PodKey, Known>,
    nodes: Vec<String>,
    /// Which node gets the next pod.
    turn: usize,
    ready_delay: Duration,
    stop_delay: Duration,
}

#[derive(Debug)]
struct Known {
    pod: Pod,
    uid: String,
    /// When it was first seen to run.
    running: Option<Instant>,
    /// When it was first seen to be deleted.
    deleted: Option<Instant>,
    /// Set when it has been made ready: from then on its status is no business of ours.
    settled: bool,
}

// === impl Pods ===

impl Pods {
    pub(super) fn new(nodes: usize, ready_delay: Duration, stop_delay: Duration) -> Self {
        let nodes = (0..nodes).map(|node| format!("node-{node}")).collect();
        Self { known: BTreeMap::new(), nodes, turn: 0, ready_delay, stop_delay }
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
        let runs = pod.status.phase.as_deref() == Some("Running");
        let is_deleted = pod.metadata.deletion_timestamp.is_some();
        let since = |before: Option<Instant>, is: bool| is.then(|| before.unwrap_or(now));
        let known = Known {
            uid,
            running: since(before.as_ref().and_then(|known| known.running), runs),
            deleted: since(before.as_ref().and_then(|known| known.deleted), is_deleted),
            settled: before.is_some_and(|known| known.settled) || (runs && is_ready(&pod)),
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

    pub(super) fn plan(&mut self, key: &PodKey, now: Instant) -> Plan {
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
            return known.plan_deletion(since + self.stop_delay, now);
        }
        known.plan_status(self.ready_delay, now)
    }

    /// A step has been carried out.
    pub(super) fn done(&mut self, key: &PodKey, step: &Step) {
        if let Step::Run { pod, ready: true } = step
            && let Some(known) = self.known.get_mut(key)
            && known.uid == pod.uid
        {
            known.settled = true;
        }
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

    /// First running; then, `ready_delay` later, ready. One step when there is no delay.
    fn plan_status(&self, ready_delay: Duration, now: Instant) -> Plan {
        let phase = self.pod.status.phase.as_deref().unwrap_or("Pending");
        let ready = match (phase, self.running) {
            ("Pending", _) => ready_delay.is_zero(),
            ("Running", Some(since)) if !self.settled => {
                let time = since + ready_delay;
                if now < time {
                    return Plan::Later(time);
                }
                true
            }
            _ => return Plan::Nothing,
        };
        let pod = Running {
            uid: self.uid.clone(),
            containers: self.pod.spec.containers.clone(),
            runs: phase == "Running",
            started: self.pod.status.start_time.as_ref().map(|time| time.0),
        };
        Plan::Do(Step::Run { pod, ready })
    }
}

fn key(pod: &Pod) -> Option<PodKey> {
    let namespace = pod.metadata.namespace.clone()?;
    Some(PodKey { namespace, name: pod.metadata.name.clone()? })
}

fn is_ready(pod: &Pod) -> bool {
    let conditions = &pod.status.conditions;
    conditions.iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pod(spec: &Value, status: &Value) -> Pod {
        serde_json::from_value(json!({
            "metadata": { "namespace": "a", "name": "p", "uid": "u1" },
            "spec": spec,
            "status": status,
        }))
        .unwrap()
    }

    fn on_node(status: &Value) -> Pod {
        pod(&json!({ "nodeName": "node-0", "containers": [{ "name": "c" }] }), status)
    }

    fn plan(pods: &mut Pods, pod: Pod, now: Instant) -> Plan {
        let key = pods.apply(pod, now).unwrap();
        pods.plan(&key, now)
    }

    #[tokio::test(start_paused = true)]
    async fn a_pod_is_bound_then_run_then_left_alone() {
        let now = Instant::now();
        let mut pods = Pods::new(2, Duration::ZERO, Duration::ZERO);
        for node in ["node-0", "node-1", "node-0"] {
            let bind = Step::Bind { uid: "u1".to_owned(), node: node.to_owned() };
            assert_eq!(plan(&mut pods, pod(&json!({}), &json!({})), now), Plan::Do(bind));
        }
        let run = plan(&mut pods, on_node(&json!({ "phase": "Pending" })), now);
        let Plan::Do(step @ Step::Run { ready: true, .. }) = run else { panic!("{run:?}") };
        let key = pods.known.keys().next().unwrap().clone();
        pods.done(&key, &step);
        // Somebody made it unready: that is meant.
        let unready =
            json!({ "phase": "Running", "conditions": [{ "type": "Ready", "status": "False" }] });
        assert_eq!(plan(&mut pods, on_node(&unready), now), Plan::Nothing);
        assert_eq!(plan(&mut pods, on_node(&json!({ "phase": "Failed" })), now), Plan::Nothing);
    }

    #[tokio::test(start_paused = true)]
    async fn readiness_waits_for_its_delay() {
        let now = Instant::now();
        let delay = Duration::from_secs(10);
        let mut pods = Pods::new(1, delay, Duration::ZERO);
        let run = plan(&mut pods, on_node(&json!({})), now);
        assert!(matches!(run, Plan::Do(Step::Run { ready: false, .. })), "{run:?}");
        let running = on_node(&json!({ "phase": "Running" }));
        assert_eq!(plan(&mut pods, running.clone(), now), Plan::Later(now + delay));
        // Another event on the way does not start the delay anew.
        let later = now + Duration::from_secs(9);
        assert_eq!(plan(&mut pods, running.clone(), later), Plan::Later(now + delay));
        let ready = plan(&mut pods, running, now + delay);
        assert!(matches!(ready, Plan::Do(Step::Run { ready: true, .. })), "{ready:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_deleted_pod_is_finished_once_even_if_finalizers_keep_it() {
        let now = Instant::now();
        let mut pods = Pods::new(1, Duration::ZERO, Duration::from_secs(3));
        let mut deleted = on_node(&json!({ "phase": "Running" }));
        deleted.metadata.deletion_timestamp =
            Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(Timestamp::UNIX_EPOCH));
        deleted.metadata.deletion_grace_period_seconds = Some(30);
        let time = now + Duration::from_secs(3);
        assert_eq!(plan(&mut pods, deleted.clone(), now), Plan::Later(time));
        let finish = Plan::Do(Step::Finish { uid: "u1".to_owned() });
        assert_eq!(plan(&mut pods, deleted.clone(), time), finish);
        deleted.metadata.deletion_grace_period_seconds = Some(0);
        assert_eq!(plan(&mut pods, deleted, time), Plan::Nothing);
    }

    #[tokio::test(start_paused = true)]
    async fn pods_of_other_nodes_and_pods_that_are_gone_are_left_alone() {
        let now = Instant::now();
        let mut pods = Pods::new(1, Duration::ZERO, Duration::ZERO);
        let elsewhere = pod(&json!({ "nodeName": "node-7" }), &json!({}));
        assert_eq!(plan(&mut pods, elsewhere, now), Plan::Nothing);
        let key = pods.apply(on_node(&json!({})), now).unwrap();
        assert!(pods.replace(Vec::new(), now).is_empty());
        assert_eq!(pods.plan(&key, now), Plan::Nothing);
        // A late Deleted of the pod that had the name before.
        let mut successor = on_node(&json!({}));
        successor.metadata.uid = Some("u2".to_owned());
        pods.apply(successor, now).unwrap();
        pods.remove(&on_node(&json!({})));
        assert!(matches!(pods.plan(&key, now), Plan::Do(Step::Run { .. })));
    }
}
