//! The decision about the difference between desired and actual pods. Pure.

use std::collections::HashMap;
use std::sync::Arc;

use jiff::Timestamp;

use crate::pod::Pod;
use crate::ranking::sort_for_deletion;
use crate::workload::Workload;

/// The action of one pass.
#[derive(Clone, Debug)]
pub enum Plan {
    /// The number of pods is the desired one.
    Settled,
    /// Too few pods: create this many.
    Create(usize),
    /// Too many pods: delete these.
    Delete(Surplus),
}

/// The pods to delete.
#[derive(Clone, Debug)]
pub struct Surplus {
    /// The pods with the highest deletion rank.
    pub pods: Vec<Arc<Pod>>,
    /// True if the pods were ranked; false if all pods are deleted.
    pub ranked: bool,
}

/// The options of a plan.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// The maximum of creates or deletes in one pass.
    pub burst: usize,
    /// True if the deletion cost annotation counts.
    pub use_deletion_costs: bool,
}

/// Compares the desired number of pods with `active`, the pods that count.
///
/// `related` returns the pods of all workloads of the same controller. It is called only if
/// pods must be ranked: a pod on a node with many related pods is deleted first.
pub fn plan<K, R>(
    set: &Workload<K>,
    active: &[Arc<Pod>],
    related: impl FnOnce() -> R,
    rules: Rules,
    now: Timestamp,
) -> Plan
where
    R: IntoIterator<Item = Arc<Pod>>,
{
    let (desired, have) = (set.spec.replicas, active.len());
    if have < desired {
        return Plan::Create((desired - have).min(rules.burst));
    }
    let count = (have - desired).min(rules.burst);
    if count == 0 {
        return Plan::Settled;
    }
    if count == have {
        return Plan::Delete(Surplus { pods: active.to_vec(), ranked: false });
    }
    let on_node = active_by_node(related());
    let rank = |pod: &Pod| on_node.get(node(pod)).copied().unwrap_or(0);
    let mut pods = sort_for_deletion(active.to_vec(), rank, rules.use_deletion_costs, Some(now));
    pods.truncate(count);
    Plan::Delete(Surplus { pods, ranked: true })
}

/// Counts active pods by node. Unscheduled pods share a node without a name, as upstream.
fn active_by_node(related: impl IntoIterator<Item = Arc<Pod>>) -> HashMap<Box<str>, usize> {
    let mut on_node: HashMap<Box<str>, usize> = HashMap::new();
    for pod in related.into_iter().filter(|pod| pod.is_active()) {
        match on_node.get_mut(node(&pod)) {
            Some(count) => *count += 1,
            None => drop(on_node.insert(node(&pod).into(), 1)),
        }
    }
    on_node
}

fn node(pod: &Pod) -> &str {
    pod.spec.node_name.as_deref().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::workload::ReplicaSet;

    const RULES: Rules = Rules { burst: 500, use_deletion_costs: true };

    fn now() -> Timestamp {
        "2026-06-01T12:00:00Z".parse().unwrap()
    }

    fn set(replicas: i32) -> ReplicaSet {
        serde_json::from_str(&json!({"spec": {"replicas": replicas}}).to_string()).unwrap()
    }

    fn pod(uid: &str, node: &str, phase: &str) -> Arc<Pod> {
        let value = json!({"metadata": {"uid": uid}, "spec": {"nodeName": node},
                           "status": {"phase": phase}});
        Arc::new(serde_json::from_str(&value.to_string()).unwrap())
    }

    fn pods(count: usize) -> Vec<Arc<Pod>> {
        (0..count).map(|i| pod(&format!("{i:04}"), "n", "Running")).collect()
    }

    fn not_called() -> Vec<Arc<Pod>> {
        panic!("related pods are read only if pods must be ranked")
    }

    #[test]
    fn missing_pods_are_created_up_to_the_burst() {
        let planned = |replicas, have, burst| {
            let rules = Rules { burst, ..RULES };
            match plan(&set(replicas), &pods(have), not_called, rules, now()) {
                Plan::Create(n) => n,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(planned(3, 0, 500), 3);
        assert_eq!(planned(3, 2, 500), 1);
        assert_eq!(planned(1000, 0, 500), 500);
        assert_eq!(planned(i32::MAX, 7, 500), 500);
    }

    #[test]
    fn desired_number_of_pods_is_settled() {
        for n in [0, 1, 7] {
            let plan = plan(&set(n), &pods(usize::try_from(n).unwrap()), not_called, RULES, now());
            assert!(matches!(plan, Plan::Settled), "{n}");
        }
    }

    #[test]
    fn pods_are_not_ranked_if_all_are_deleted() {
        let Plan::Delete(surplus) = plan(&set(0), &pods(3), not_called, RULES, now()) else {
            panic!("too many")
        };
        assert_eq!((surplus.pods.len(), surplus.ranked), (3, false));
    }

    #[test]
    fn deletes_are_bounded_by_the_burst() {
        let rules = Rules { burst: 2, ..RULES };
        let Plan::Delete(surplus) = plan(&set(0), &pods(5), Vec::new, rules, now()) else {
            panic!("too many")
        };
        assert_eq!((surplus.pods.len(), surplus.ranked), (2, true));
    }

    #[test]
    fn pod_of_the_node_with_most_related_active_pods_is_deleted() {
        let active = [pod("a", "quiet", "Running"), pod("z", "crowded", "Running")];
        let related = || {
            vec![
                pod("a", "quiet", "Running"),
                pod("b", "quiet", "Failed"),
                pod("c", "quiet", "Failed"),
                pod("z", "crowded", "Running"),
                pod("y", "crowded", "Running"),
            ]
        };
        let Plan::Delete(surplus) = plan(&set(1), &active, related, RULES, now()) else {
            panic!("too many")
        };
        assert_eq!(surplus.pods[0].metadata.uid.as_deref(), Some("z"));
    }

    /// The pods of upstream's `TestGetPodsToDelete`, by the names that the test gives them.
    fn named(name: &str) -> Arc<Pod> {
        let (node, phase, ready) = match name {
            "unscheduled" => ("", "Pending", None),
            "pending" => ("node", "Pending", None),
            "not ready" => ("node", "Running", Some("False")),
            "ready on 1" => ("node-1", "Running", Some("True")),
            _ => ("node-2", "Running", Some("True")),
        };
        let conditions: Vec<_> =
            ready.iter().map(|status| json!({"type": "Ready", "status": status})).collect();
        let value = json!({"metadata": {"uid": name}, "spec": {"nodeName": node},
                           "status": {"phase": phase, "conditions": conditions}});
        Arc::new(serde_json::from_str(&value.to_string()).unwrap())
    }

    #[test]
    fn pods_to_delete_are_those_of_upstream() {
        let all = ["ready on 1", "ready on 1", "ready on 2", "not ready", "pending", "unscheduled"];
        let on_two_nodes = ["ready on 1", "ready on 2", "ready on 2"];
        let cases: [(&[&str], &[&str], &[&str]); 8] = [
            (&["not ready", "ready on 1"], &[], &["not ready", "ready on 1"]),
            (&["ready on 1", "not ready"], &[], &["not ready"]),
            (&all, &[], &all),
            (&["pending", "unscheduled"], &[], &["unscheduled"]),
            (&["ready on 1", "not ready", "not ready"], &[], &["not ready", "not ready"]),
            (&on_two_nodes[..2], &on_two_nodes, &["ready on 2"]),
            (&["pending", "not ready"], &[], &["pending"]),
            (
                &["ready on 1", "ready on 2", "not ready", "pending", "unscheduled"],
                &[],
                &["unscheduled", "pending", "not ready"],
            ),
        ];
        let pods = |names: &[&str]| names.iter().map(|name| named(name)).collect::<Vec<_>>();
        for (active, related, deleted) in cases {
            let (active, set) = (pods(active), set(to_i32(active.len() - deleted.len())));
            let related = if related.is_empty() { active.clone() } else { pods(related) };
            let Plan::Delete(surplus) = plan(&set, &active, || related, RULES, now()) else {
                panic!("too many")
            };
            let uids: Vec<_> =
                surplus.pods.iter().map(|pod| pod.metadata.uid.clone().unwrap()).collect();
            assert_eq!(uids, deleted);
        }
    }

    fn to_i32(count: usize) -> i32 {
        i32::try_from(count).unwrap()
    }

    proptest! {
        #[test]
        fn plan_closes_the_gap_or_uses_the_burst(
            replicas in 0_i32..60, have in 0_usize..60, burst in 1_usize..40,
        ) {
            let active = pods(have);
            let desired = usize::try_from(replicas).unwrap();
            let rules = Rules { burst, ..RULES };
            match plan(&set(replicas), &active, || active.clone(), rules, now()) {
                Plan::Settled => prop_assert_eq!(have, desired),
                Plan::Create(n) => {
                    prop_assert!(n > 0 && n <= burst);
                    prop_assert!(have + n == desired || (have + n < desired && n == burst));
                }
                Plan::Delete(Surplus { pods, .. }) => {
                    let n = pods.len();
                    prop_assert!(n > 0 && n <= burst);
                    prop_assert!(have - n == desired || (have - n > desired && n == burst));
                    let uids: HashSet<_> = pods.iter().map(|pod| &pod.metadata.uid).collect();
                    prop_assert_eq!(uids.len(), n, "no pod is listed twice");
                }
            }
        }
    }
}
