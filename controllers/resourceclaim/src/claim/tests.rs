use serde_json::{Value, json};

use super::*;

fn claim(value: &Value) -> Claim {
    serde_json::from_str(&value.to_string()).unwrap()
}

fn owned_by(uid: &str, entry: &str, name: &str, created: &str) -> ObjectMeta {
    let owner = json!({"apiVersion": "v1", "kind": "Pod", "name": "web", "uid": uid,
                       "controller": true});
    let metadata = json!({
        "name": name, "namespace": "shop", "creationTimestamp": created,
        "annotations": {POD_CLAIM_NAME: entry}, "ownerReferences": [owner],
    });
    serde_json::from_value(metadata).unwrap()
}

fn controller(uid: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "name": "web", "uid": uid, "controller": true})
}

fn pod(namespace: &str, uid: &str) -> Pod {
    let metadata = json!({"namespace": namespace, "name": "web", "uid": uid});
    serde_json::from_value(json!({ "metadata": metadata })).unwrap()
}

#[test]
fn members_are_decoded_and_others_are_skipped() {
    let decoded = claim(&json!({
        "metadata": {"finalizers": ["a", FINALIZER]},
        "spec": {"devices": {"requests": [
            {"name": "a", "firstAvailable": [{"name": "x", "new": 1}]},
            {"name": "b", "exactly": {"deviceClassName": "c", "adminAccess": true}},
        ], "config": []}},
        "status": {"allocation": {"devices": {}}, "devices": [{"driver": "d"}],
                   "reservedFor": [{"resource": "pods", "name": "web", "uid": "u", "new": 1}]},
    }));
    assert!(decoded.is_protected() && decoded.is_allocated && decoded.admin_access);
    assert!(decoded.is_reserved_for("u") && !decoded.is_reserved_for("v"));
    assert!(decoded.reserved_for[0].is_pod());
    let empty = claim(&json!({"metadata": {}, "status": {"allocation": null}}));
    assert!(!empty.is_protected() && !empty.is_allocated && !empty.admin_access);
    let requests = json!([{"name": "a", "exactly": {"adminAccess": false}}, {"name": "b"}]);
    assert!(
        !claim(&json!({"metadata": {}, "spec": {"devices": {"requests": requests}}})).admin_access
    );
}

#[test]
fn only_pods_of_the_core_group_are_pods() {
    let consumer = |group: &str, resource: &str| Consumer {
        api_group: group.into(),
        resource: resource.into(),
        ..Consumer::default()
    };
    assert!(consumer("", "pods").is_pod());
    assert!(!consumer("", "services").is_pod());
    assert!(!consumer("scheduling.k8s.io", "podgroups").is_pod());
    assert!(!consumer("example.com", "pods").is_pod());
}

#[test]
fn claim_of_another_pod_is_an_error_with_upstreams_text() {
    let claim =
        Claim { metadata: owned_by("u", "e", "c", "2026-01-01T00:00:00Z"), ..Claim::default() };
    assert_eq!(claim.check_owner(&pod("shop", "u")), Ok(()));
    assert_eq!(
        claim.check_owner(&pod("shop", "v")).unwrap_err().to_string(),
        "ResourceClaim shop/c was not created for Pod shop/web (Pod is not owner)"
    );
    assert_eq!(
        claim.check_owner(&pod("office", "u")).unwrap_err().to_string(),
        "ResourceClaim shop/c is not in the same namespace as Pod office/web"
    );
    let unowned = Claim { metadata: ObjectMeta::default(), ..Claim::default() };
    assert!(unowned.check_owner(&pod("", "")).is_err());
}

#[test]
fn oldest_claim_of_an_entry_is_taken() {
    let claims = [
        owned_by("u", "other", "a", "2026-01-01T00:00:00Z"),
        owned_by("v", "e", "b", "2026-01-01T00:00:00Z"),
        owned_by("u", "e", "c", "2026-01-03T00:00:00Z"),
        owned_by("u", "e", "y", "2026-01-02T00:00:00Z"),
        owned_by("u", "e", "x", "2026-01-02T00:00:00Z"),
    ];
    let oldest = |uid, entry| {
        oldest_by_entry(claims.clone(), uid).remove(entry).and_then(|claim| claim.name)
    };
    assert_eq!(oldest("u", "e").as_deref(), Some("x"), "of the same second the lower name");
    assert_eq!(oldest("u", "other").as_deref(), Some("a"));
    assert_eq!(oldest("w", "e"), None);
}

#[test]
fn source_of_a_claim_is_read_from_its_annotations() {
    let source =
        |annotations: Value| claim(&json!({"metadata": {"annotations": annotations}})).source();
    assert_eq!(source(json!(null)), "");
    assert_eq!(source(json!({POD_CLAIM_NAME: ""})), "");
    assert_eq!(source(json!({POD_CLAIM_NAME: "e"})), "resource_claim_template");
    assert_eq!(source(json!({EXTENDED_RESOURCE: "false"})), "");
    let both = json!({EXTENDED_RESOURCE: "true", POD_CLAIM_NAME: "e"});
    assert_eq!(source(both), "extended_resource");
}

#[test]
fn owner_is_the_controller_and_a_pod() {
    let owner = |api_version: &str, kind: &str, controller: bool| {
        let owner = json!({"apiVersion": api_version, "kind": kind, "name": "web", "uid": "u",
                           "controller": controller});
        claim(&json!({"metadata": {"ownerReferences": [owner]}})).owner().is_some()
    };
    assert!(owner("v1", "Pod", true));
    assert!(!owner("v1", "Pod", false));
    assert!(!owner("apps/v1", "Pod", true));
    assert!(!owner("v1", "PodGroup", true));
}

/// The cases of upstream's `TestIsReservedForPod`. Reservations of a `PodGroup` do not count.
#[test]
fn reservation_is_found_by_the_uid_of_the_pod() {
    let consumer = |uid: &str| json!({"resource": "pods", "name": "web", "uid": uid});
    let group = json!({"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "web",
                       "uid": "group"});
    for (case, consumers, expected) in [
        ("not-reserved", json!([]), false),
        ("reserved-for-pod", json!([consumer("pod")]), true),
        ("reserved-for-other-pod", json!([consumer("other")]), false),
        ("multiple-reservations-including-pod", json!([consumer("other"), consumer("pod")]), true),
        ("multiple-reservations-excluding-pod", json!([consumer("a"), consumer("b")]), false),
        ("podgroup-disabled", json!([group]), false),
        ("reserved-for-pod-and-podgroup", json!([group, consumer("pod")]), true),
    ] {
        let claim = claim(&json!({"metadata": {}, "status": {"reservedFor": consumers}}));
        assert_eq!(claim.is_reserved_for("pod"), expected, "{case}");
    }
}

/// The cases of upstream's `TestGetAdminAccessMetricLabel`.
#[test]
fn one_request_with_admin_access_is_enough() {
    let exactly = |name: &str, access: Value| {
        let exactly = json!({"deviceClassName": "c", "adminAccess": access});
        json!({"name": name, "exactly": exactly})
    };
    let list = json!({"name": "l", "firstAvailable": [{"name": "s", "deviceClassName": "c"}]});
    for (case, requests, expected) in [
        ("no-requests", json!([]), false),
        ("admin-access-false", json!([exactly("a", json!(false))]), false),
        ("admin-access-true", json!([exactly("a", json!(true))]), true),
        ("prioritized-list", json!([list]), false),
        (
            "one-of-multiple-requests-with-admin-access-true",
            json!([exactly("a", json!(false)), exactly("b", json!(true))]),
            true,
        ),
        (
            "multiple-requests-admin-access-false-or-nil",
            json!([exactly("a", json!(false)), exactly("b", Value::Null)]),
            false,
        ),
    ] {
        let claim = claim(&json!({"metadata": {}, "spec": {"devices": {"requests": requests}}}));
        assert_eq!(claim.admin_access, expected, "{case}");
    }
}

/// The API server refuses such a claim. As upstream's `GetControllerOf`, the first one counts.
#[test]
fn first_of_two_controller_references_counts() {
    let references = json!([controller("u"), controller("v")]);
    let metadata = json!({"name": "c", "namespace": "shop", "ownerReferences": references,
                          "annotations": {POD_CLAIM_NAME: "e"}});
    let claim = claim(&json!({ "metadata": metadata }));
    assert_eq!(claim.owner().map(|owner| owner.uid.as_str()), Some("u"));
    assert_eq!(claim.check_owner(&pod("shop", "u")), Ok(()));
    assert!(claim.check_owner(&pod("shop", "v")).is_err());
    assert!(oldest_by_entry([claim.metadata.clone()], "v").is_empty());
    assert_eq!(owner_uid(&claim.metadata), Some("u"), "the index has it once");
}
