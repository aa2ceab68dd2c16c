//! What to do about the difference between the pods that are asked for and those that count. Pure.

use std::collections::HashMap;
use std::sync::Arc;

use jiff::Timestamp;

use crate::pod::Pod;
use crate::ranking::sort_for_deletion;
use crate::replica_set::ReplicaSet;

/// What one pass does.
#[derive(Clone, Debug)]
pub enum Plan {
    /// As many as asked for.
    Settled,
    /// Too few: make this many.
    Create(usize),
    /// Too many: delete these.
    Delete(Surplus),
}

/// The pods to delete.
#[derive(Clone, Debug)]
pub struct Surplus {
    /// Those that would be missed least.
    pub pods: Vec<Arc<Pod>>,
    /// Whether they were chosen, or all pods go.
    pub ranked: bool,
}

/// What bounds and colours a plan.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// At most so many creates, or deletes, in one pass.
    pub burst: usize,
    /// Whether the deletion cost annotation counts.
    pub heed_costs: bool,
}

/// Compares what is asked for with `active`, the pods that count.
///
/// `related` is asked only when pods must be chosen: the pods of all `ReplicaSet`s under the same controller, so that a
/// Deployment spread over several of them is thinned where it is densest.
pub fn plan<R>(
    set: &ReplicaSet,
    active: &[Arc<Pod>],
    related: impl FnOnce() -> R,
    rules: Rules,
    now: Timestamp,
) -> Plan
where
    R: IntoIterator<Item = Arc<Pod>>,
{
    let (asked, have) = (set.spec.replicas, active.len());
    if have < asked {
        return Plan::Create((asked - have).min(rules.burst));
    }
    let count = (have - asked).min(rules.burst);
    if count == 0 {
        return Plan::Settled;
    }
    if count == have {
        return Plan::Delete(Surplus { pods: active.to_vec(), ranked: false });
    }
    let on_node = active_by_node(related());
    let rank = |pod: &Pod| on_node.get(node(pod)).copied().unwrap_or(0);
    let mut pods = sort_for_deletion(active.to_vec(), rank, rules.heed_costs, Some(now));
    pods.truncate(count);
    Plan::Delete(Surplus { pods, ranked: true })
}

/// How many active pods each node holds; the unscheduled ones are together on a node without a name, as upstream counts.
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

    const RULES: Rules = Rules { burst: 500, heed_costs: true };

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

    fn not_asked() -> Vec<Arc<Pod>> {
        panic!("related pods are asked for only when pods must be chosen")
    }

    #[test]
    fn too_few_are_made_up_to_the_burst() {
        let planned = |replicas, have, burst| {
            let rules = Rules { burst, ..RULES };
            match plan(&set(replicas), &pods(have), not_asked, rules, now()) {
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
    fn as_many_as_asked_for_is_settled() {
        for n in [0, 1, 7] {
            let plan = plan(&set(n), &pods(usize::try_from(n).unwrap()), not_asked, RULES, now());
            assert!(matches!(plan, Plan::Settled), "{n}");
        }
    }

    #[test]
    fn when_all_go_nobody_is_asked_who_goes_first() {
        let Plan::Delete(surplus) = plan(&set(0), &pods(3), not_asked, RULES, now()) else {
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
    fn the_node_that_holds_most_related_active_pods_loses_one() {
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

    proptest! {
        #[test]
        fn a_plan_closes_the_gap_or_spends_the_burst(
            replicas in 0_i32..60, have in 0_usize..60, burst in 1_usize..40,
        ) {
            let active = pods(have);
            let asked = usize::try_from(replicas).unwrap();
            let rules = Rules { burst, ..RULES };
            match plan(&set(replicas), &active, || active.clone(), rules, now()) {
                Plan::Settled => prop_assert_eq!(have, asked),
                Plan::Create(n) => {
                    prop_assert!(n > 0 && n <= burst);
                    prop_assert!(have + n == asked || (have + n < asked && n == burst));
                }
                Plan::Delete(Surplus { pods, .. }) => {
                    let n = pods.len();
                    prop_assert!(n > 0 && n <= burst);
                    prop_assert!(have - n == asked || (have - n > asked && n == burst));
                    let uids: HashSet<_> = pods.iter().map(|pod| &pod.metadata.uid).collect();
                    prop_assert_eq!(uids.len(), n, "no pod is named twice");
                }
            }
        }
    }
}
