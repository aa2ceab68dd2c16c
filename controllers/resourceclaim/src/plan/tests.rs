use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::claim::FINALIZER;

fn pod(pod: &Value) -> Pod {
    let mut pod = pod.clone();
    pod["metadata"]["namespace"] = json!("shop");
    pod["metadata"]["name"] = json!("web");
    pod["metadata"]["uid"] = json!("u");
    serde_json::from_value(pod).unwrap()
}

fn consumer(uid: &str) -> Consumer {
    Consumer { resource: "pods".into(), name: uid.into(), uid: uid.into(), ..Consumer::default() }
}

/// A protected, allocated claim of `web` with these consumers.
fn claim(consumers: &[&str]) -> Claim {
    let owner = json!({"apiVersion": "v1", "kind": "Pod", "name": "web", "uid": "u",
                       "controller": true});
    let metadata = json!({"namespace": "shop", "name": "c", "resourceVersion": "7",
                          "finalizers": [FINALIZER], "ownerReferences": [owner]});
    Claim {
        metadata: serde_json::from_value(metadata).unwrap(),
        is_allocated: true,
        reserved_for: consumers.iter().map(|uid| consumer(uid)).collect(),
        ..Claim::default()
    }
}

fn release(uids: &[&str]) -> Change {
    Change::Release(uids.iter().map(|uid| (*uid).into()).collect())
}

fn foreign() -> Claim {
    let mut claim = claim(&[]);
    claim.metadata.owner_references = None;
    claim
}

fn unallocated(mut claim: Claim) -> Claim {
    claim.is_allocated = false;
    claim
}

#[test]
fn pod_needs_work_while_a_claim_is_missing_or_not_reserved() {
    let generated = json!([{"name": "e", "resourceClaimTemplateName": "t"}]);
    let chosen = json!([{"name": "e", "resourceClaimName": "c"}]);
    let recorded = json!([{"name": "e", "resourceClaimName": "c"}]);
    let needs = |claims: &Value, node: &str, statuses: &Value, cached: Option<Claim>| {
        let pod = pod(&json!({
            "spec": {"nodeName": node, "resourceClaims": claims},
            "status": {"resourceClaimStatuses": statuses},
        }));
        let cached = cached.map(Arc::new);
        needs_work(&pod, |_| cached.clone().map_or(Cached::Missing, Cached::Found))
    };
    let nothing = json!(null);
    assert!(needs(&generated, "", &nothing, None), "not created");
    assert!(needs(&json!([{"name": "e"}]), "", &nothing, None), "unsupported: an event");
    assert!(!needs(&generated, "", &json!([{"name": "e"}]), None), "not needed");
    assert!(needs(&generated, "", &recorded, None), "recorded and gone");
    assert!(!needs(&chosen, "n", &nothing, None), "the user creates it");
    assert!(!needs(&generated, "", &recorded, Some(claim(&[]))), "the scheduler reserves");
    assert!(needs(&generated, "n", &recorded, Some(claim(&[]))));
    assert!(!needs(&generated, "n", &recorded, Some(claim(&["u"]))), "reserved");
    assert!(!needs(&generated, "n", &recorded, Some(unallocated(claim(&[])))));
    assert!(!needs(&generated, "n", &recorded, Some(foreign())), "another pod's");
    assert!(needs(&chosen, "n", &nothing, Some(foreign())), "users share claims");
}

#[test]
fn later_entry_is_seen_behind_one_without_work() {
    let claims = json!([
        {"name": "a", "resourceClaimTemplateName": "t"}, {"name": "b", "resourceClaimName": "x"},
        {"name": "c", "resourceClaimTemplateName": "t"},
    ]);
    let pod = pod(&json!({
        "spec": {"resourceClaims": claims}, "status": {"resourceClaimStatuses": [{"name": "a"}]},
    }));
    assert!(needs_work(&pod, |_| Cached::Missing));
}

#[test]
fn finished_or_deleted_pod_needs_no_work() {
    let claims = json!([{"name": "e", "resourceClaimTemplateName": "t"}]);
    for phase in ["Succeeded", "Failed"] {
        let spec = json!({"nodeName": "n", "resourceClaims": claims});
        let pod = pod(&json!({"spec": spec, "status": {"phase": phase}}));
        assert!(!needs_work(&pod, |_| Cached::Missing), "{phase}");
    }
    let metadata = json!({"deletionTimestamp": "2026-01-01T00:00:00Z"});
    let pod = pod(&json!({"metadata": metadata, "spec": {"resourceClaims": claims}}));
    assert!(!needs_work(&pod, |_| Cached::Missing));
}

#[test]
fn claim_that_does_not_decode_is_not_missing() {
    let claims = json!([{"name": "e", "resourceClaimTemplateName": "t"}]);
    let statuses = json!([{"name": "e", "resourceClaimName": "c"}]);
    let pod = pod(&json!({"spec": {"nodeName": "n", "resourceClaims": claims},
                          "status": {"resourceClaimStatuses": statuses}}));
    assert!(!needs_work(&pod, |_| Cached::Opaque));
}

#[test]
fn apply_has_all_recorded_entries_of_the_spec() {
    let entry = |name: &str| json!({"name": name, "resourceClaimTemplateName": "t"});
    let claims = json!([entry("b"), entry("a"), entry("c"), entry("d"), entry("f"),
                        {"name": "mine", "resourceClaimName": "m"}]);
    let statuses = json!([
        {"name": "a", "resourceClaimName": "old-a"}, {"name": "b", "resourceClaimName": "old-b"},
        {"name": "c"}, {"name": "f", "resourceClaimName": ""},
        {"name": "gone", "resourceClaimName": "x"},
    ]);
    let pod = pod(&json!({
        "spec": {"resourceClaims": claims}, "status": {"resourceClaimStatuses": statuses},
    }));
    let found = BTreeMap::from([("b", "new-b".to_owned()), ("d", "new-d".to_owned())]);
    let statuses: Vec<_> = super::statuses(&pod, &found).into_iter().collect();
    let expected = [("a", "old-a"), ("b", "new-b"), ("d", "new-d")];
    assert_eq!(statuses, expected.map(|(entry, claim)| (entry.to_owned(), claim.to_owned())));
}

fn patch_of(claim: &Claim, changes: &[Change]) -> (Value, Vec<Outcome>) {
    let (write, outcomes) = StatusWrite::new(claim, changes);
    let patch = write.patch(claim);
    assert_eq!(patch["metadata"], json!({"resourceVersion": "7"}));
    assert_eq!(write.is_empty(), patch["status"] == json!({}));
    (patch["status"].clone(), outcomes)
}

#[test]
fn changes_that_wait_go_in_one_write() {
    let changes =
        [Change::Reserve(consumer("c")), release(&["a", "x"]), Change::Reserve(consumer("d"))];
    let (status, outcomes) = patch_of(&claim(&["a", "b"]), &changes);
    assert_eq!(outcomes, [Outcome::Done, Outcome::Done, Outcome::Done]);
    let added = |name| json!({"resource": "pods", "name": name, "uid": name});
    let consumers = json!([{"$patch": "delete", "uid": "a"}, added("c"), added("d")]);
    assert_eq!(status, json!({"reservedFor": consumers}));
}

#[test]
fn last_release_deallocates_a_protected_claim() {
    let released = json!([{"$patch": "delete", "uid": "a"}]);
    let (status, _) = patch_of(&claim(&["a"]), &[release(&["a"])]);
    assert_eq!(status, json!({"reservedFor": released, "allocation": null}));

    let (status, _) = patch_of(&claim(&["a", "b"]), &[release(&["a"])]);
    assert_eq!(status, json!({"reservedFor": released}), "another consumer is left");

    let changes = [release(&["a"]), Change::Reserve(consumer("b"))];
    let (status, _) = patch_of(&claim(&["a"]), &changes);
    assert!(status.get("allocation").is_none(), "a new consumer keeps the allocation: {status}");

    let mut other = claim(&["a"]);
    other.metadata.finalizers = None;
    let (status, _) = patch_of(&other, &[release(&["a"])]);
    assert_eq!(status, json!({"reservedFor": released}), "another allocator's claim");
}

#[test]
fn unused_claim_is_deallocated_only_when_it_is_deleted() {
    let (status, _) = patch_of(&claim(&[]), &[release(&["a"]), Change::Deallocate]);
    assert_eq!(status, json!({}));
    let deleted = being_deleted(claim(&[]));
    let (status, _) = patch_of(&deleted, &[Change::Deallocate]);
    assert_eq!(status, json!({"allocation": null}));
    let (status, _) = patch_of(&unallocated(deleted), &[Change::Deallocate]);
    assert_eq!(status, json!({}));
}

#[test]
fn reservation_needs_an_allocation_and_is_written_once() {
    let twice = [Change::Reserve(consumer("a")), Change::Reserve(consumer("a"))];
    let (status, outcomes) = patch_of(&unallocated(claim(&[])), &twice);
    assert_eq!((status, outcomes), (json!({}), vec![Outcome::NotAllocated; 2]));
    let (status, outcomes) = patch_of(&claim(&["a"]), &twice);
    assert_eq!((status, outcomes), (json!({}), vec![Outcome::Done; 2]));
    let (status, _) = patch_of(&claim(&[]), &twice);
    assert_eq!(status["reservedFor"].as_array().unwrap().len(), 1);
}

fn being_deleted(mut claim: Claim) -> Claim {
    claim.metadata.deletion_timestamp =
        serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap();
    claim
}

#[test]
fn claim_that_is_being_deleted_gets_no_consumer() {
    let changes = [Change::Reserve(consumer("c")), release(&["a"]), Change::Reserve(consumer("b"))];
    let (status, outcomes) = patch_of(&being_deleted(claim(&["a", "b"])), &changes);
    assert_eq!(outcomes, [Outcome::BeingDeleted, Outcome::Done, Outcome::Done]);
    assert_eq!(status, json!({"reservedFor": [{"$patch": "delete", "uid": "a"}]}));
    let (status, _) = patch_of(&being_deleted(claim(&["a"])), &changes);
    assert_eq!(status["allocation"], json!(null), "nothing takes the place of the last consumer");
    let claims = json!([{"name": "e", "resourceClaimName": "c"}]);
    let pod = pod(&json!({"spec": {"nodeName": "n", "resourceClaims": claims}}));
    assert!(needs_reservation(&pod, &claim(&[])));
    assert!(!needs_reservation(&pod, &being_deleted(claim(&[]))));
}

#[test]
fn no_more_than_256_consumers_are_reserved() {
    let uids: Vec<String> = (0..MAX_CONSUMERS).map(|n| n.to_string()).collect();
    let uids: Vec<&str> = uids.iter().map(String::as_str).collect();
    let changes = ["x", "y"].map(|uid| Change::Reserve(consumer(uid)));
    let (_, outcomes) = patch_of(&claim(&uids[1..]), &changes);
    assert_eq!(outcomes, [Outcome::Done, Outcome::Full]);
    let freed = [release(&["0"]), Change::Reserve(consumer("x"))];
    let (_, outcomes) = patch_of(&claim(&uids), &freed);
    assert_eq!(outcomes, [Outcome::Done, Outcome::Done], "a removal in the same write makes room");
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let uid = "[a-f]";
    let change = prop_oneof![
        uid.prop_map(|uid| Change::Reserve(consumer(&uid))),
        proptest::collection::btree_set(uid.prop_map(String::into_boxed_str), 0..4)
            .prop_map(Change::Release),
        Just(Change::Deallocate),
    ];
    proptest::collection::vec(change, 0..8)
}

proptest! {
    #[test]
    fn no_consumer_is_dropped_that_no_change_names(
        before in proptest::collection::btree_set("[a-f]", 0..6),
        changes in changes(),
    ) {
        let before: Vec<&str> = before.iter().map(String::as_str).collect();
        let (status, _) = patch_of(&claim(&before), &changes);
        let deleted: Vec<String> = status["reservedFor"]
            .as_array().into_iter().flatten()
            .filter(|it| it.get("$patch").is_some())
            .map(|it| it["uid"].as_str().unwrap().to_owned())
            .collect();
        for uid in &deleted {
            let is_named = changes.iter().any(|change| {
                matches!(change, Change::Release(uids) if uids.contains(uid.as_str()))
            });
            prop_assert!(is_named && before.contains(&uid.as_str()), "{uid}");
        }
        let is_deallocated = status.get("allocation").is_some();
        prop_assert!(!is_deallocated || deleted.len() == before.len());
    }
}
