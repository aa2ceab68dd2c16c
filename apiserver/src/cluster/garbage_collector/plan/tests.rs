use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::Pod;
use kube_core::ApiResource;
use serde_json::json;

use super::*;
use crate::cluster::garbage_collector::graph::FollowedKind;
use crate::cluster::partial_object::PartialObject;

const PODS: usize = 0;
const SETS: usize = 1;

fn graph() -> Graph {
    let kinds = [ApiResource::erase::<Pod>(&()), ApiResource::erase::<ReplicaSet>(&())];
    Graph::new(kinds.map(|resource| FollowedKind { resource, is_namespaced: true }).into())
}

/// Returns an object whose name is its UID. It is owned by `ReplicaSets` with these UIDs and blocks
/// the deletion of each.
fn object(uid: &str, owners: &[&str], finalizers: &[&str], is_deleted: bool) -> PartialObject {
    let owners: Vec<_> = owners
        .iter()
        .map(|owner| {
            json!({
                "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner, "uid": owner,
                "blockOwnerDeletion": true,
            })
        })
        .collect();
    let mut metadata = json!({
        "namespace": "a", "name": uid, "uid": uid, "resourceVersion": "1",
        "ownerReferences": owners, "finalizers": finalizers,
    });
    if is_deleted {
        metadata["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    }
    serde_json::from_value(json!({ "metadata": metadata })).unwrap()
}

fn plan(graph: &Graph, uid: &str) -> Plan {
    graph.plan(&Uid::from(uid))
}

fn uids(touched: &[Uid]) -> Vec<&str> {
    touched.iter().map(|uid| &**uid).collect()
}

#[test]
fn dependent_is_deleted_after_its_last_owner() {
    let mut graph = graph();
    graph.apply(SETS, object("set", &[], &[], false));
    graph.apply(PODS, object("pod", &["set"], &[], false));
    assert_eq!(plan(&graph, "pod"), Plan::Nothing);
    let touched = graph.remove(Some("set"));
    assert_eq!(uids(&touched), ["pod"]);
    let Plan::Delete { target, policy } = plan(&graph, "pod") else { panic!("not deleted") };
    assert_eq!((&*target.uid, target.resource_version.as_deref()), ("pod", Some("1")));
    assert_eq!(policy, PropagationPolicy::Background);
    graph.remove(Some("pod"));
    assert!(graph.nodes.is_empty() && graph.dependents.is_empty() && graph.absent.is_empty());
}

#[test]
fn unseen_owner_is_looked_up_before_a_dependent_is_deleted() {
    let mut graph = graph();
    graph.apply(PODS, object("pod", &["set"], &[], false));
    let Plan::CheckOwners(owners) = plan(&graph, "pod") else { panic!("not looked up") };
    assert_eq!(owners.len(), 1);
    graph.mark_absent(owners[0].clone());
    assert!(matches!(plan(&graph, "pod"), Plan::Delete { .. }));
}

#[test]
fn owner_with_the_same_uid_and_another_name_is_not_the_owner() {
    let mut graph = graph();
    let mut set = object("set", &[], &[], false);
    set.metadata.name = Some("other".to_owned());
    graph.apply(SETS, set);
    graph.apply(PODS, object("pod", &["set"], &[], false));
    assert!(matches!(plan(&graph, "pod"), Plan::CheckOwners(_)));
    // The deletion of that object does not mark the owner as gone.
    graph.remove(Some("set"));
    assert!(matches!(plan(&graph, "pod"), Plan::CheckOwners(_)));
}

#[test]
fn owners_of_kinds_that_are_not_followed_count_as_existing() {
    let mut graph = graph();
    let mut pod = object("pod", &["job"], &[], false);
    pod.metadata.owner_references.as_mut().unwrap()[0].kind = "Job".to_owned();
    graph.apply(PODS, pod);
    assert_eq!(plan(&graph, "pod"), Plan::Nothing);
}

#[test]
fn references_to_deleted_owners_are_removed_while_one_owner_exists() {
    let mut graph = graph();
    graph.apply(SETS, object("set1", &[], &[], false));
    graph.apply(SETS, object("set2", &[], &[], false));
    graph.apply(PODS, object("pod", &["set1", "set2"], &[], false));
    graph.remove(Some("set1"));
    let Plan::SetOwners { owners, .. } = plan(&graph, "pod") else { panic!("not removed") };
    assert_eq!(owners.iter().map(|owner| &*owner.uid).collect::<Vec<_>>(), ["set2"]);
}

#[test]
fn foreground_deletion_waits_for_dependents_that_block() {
    let mut graph = graph();
    graph.apply(SETS, object("set", &[], &[], false));
    graph.apply(PODS, object("pod1", &["set"], &[], false));
    let mut non_blocking = object("pod2", &["set"], &["example.com/hold"], false);
    non_blocking.metadata.owner_references.as_mut().unwrap()[0].block_owner_deletion = None;
    graph.apply(PODS, non_blocking);

    let touched = graph.apply(SETS, object("set", &[], &[FOREGROUND, "other"], true));
    assert_eq!(uids(&touched), ["set", "pod1", "pod2"]);
    assert_eq!(plan(&graph, "set"), Plan::Nothing);
    assert!(matches!(plan(&graph, "pod1"), Plan::Delete { .. }));
    assert!(matches!(plan(&graph, "pod2"), Plan::Delete { .. }));

    let touched = graph.remove(Some("pod1"));
    assert_eq!(uids(&touched), ["set"]);
    let Plan::Release { finalizers, dependents, .. } = plan(&graph, "set") else {
        panic!("still waiting");
    };
    assert_eq!(finalizers, ["other"]);
    assert!(dependents.is_empty(), "foreground deletion changes no dependent");
}

#[test]
fn dependent_with_dependents_is_deleted_in_the_foreground() {
    let mut graph = graph();
    graph.apply(SETS, object("top", &[], &[FOREGROUND], true));
    graph.apply(SETS, object("middle", &["top"], &[], false));
    graph.apply(PODS, object("pod", &["middle"], &[], false));
    let middle = plan(&graph, "middle");
    assert!(
        matches!(&middle, Plan::Delete { policy: PropagationPolicy::Foreground, .. }),
        "{middle:?}"
    );
}

#[test]
fn cycle_of_owners_does_not_deadlock() {
    let mut graph = graph();
    graph.apply(SETS, object("one", &["two"], &[FOREGROUND], true));
    graph.apply(SETS, object("two", &["one"], &[], false));
    let Plan::SetOwners { owners, .. } = plan(&graph, "two") else { panic!("still blocking") };
    assert!(owners.iter().all(|owner| owner.block_owner_deletion == Some(false)));
}

#[test]
fn orphans_lose_their_reference_before_the_owner_is_deleted() {
    let mut graph = graph();
    graph.apply(SETS, object("other", &[], &[], false));
    graph.apply(SETS, object("set", &[], &[], false));
    graph.apply(PODS, object("pod1", &["set"], &[], false));
    graph.apply(PODS, object("pod2", &["set", "other"], &[], false));
    graph.apply(SETS, object("set", &[], &[ORPHAN], true));
    let Plan::Release { finalizers, dependents, .. } = plan(&graph, "set") else {
        panic!("not released");
    };
    assert!(finalizers.is_empty());
    let left: Vec<(&str, usize)> =
        dependents.iter().map(|(target, owners)| (&*target.uid, owners.len())).collect();
    assert_eq!(left, [("pod1", 0), ("pod2", 1)]);
    // The dependents have no plan of their own meanwhile.
    assert_eq!(plan(&graph, "pod1"), Plan::Nothing);
}

#[test]
fn object_missing_in_a_list_is_removed() {
    let mut graph = graph();
    graph.replace(SETS, vec![object("set1", &[], &[], false), object("set2", &[], &[], false)]);
    graph.replace(PODS, vec![object("pod", &["set1"], &[], false)]);
    let touched = graph.replace(SETS, vec![object("set2", &[], &[], false)]);
    assert_eq!(uids(&touched), ["pod"]);
    assert!(matches!(plan(&graph, "pod"), Plan::Delete { .. }));
}
