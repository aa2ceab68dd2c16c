use proptest::prelude::*;
use serde_json::{Value, json};

use crate::patch::{PatchError, PatchKind, apply};

fn try_patch(kind: &str, current: Value, patch: &Value) -> Result<Value, PatchError> {
    let api_version = match kind {
        "ReplicaSet" | "Deployment" => "apps/v1",
        "ResourceClaim" => "resource.k8s.io/v1",
        "PodDisruptionBudget" => "policy/v1",
        "Foo" => "samplecontroller.k8s.io/v1alpha1",
        _ => "v1",
    };
    apply(PatchKind::Strategic, current, patch.to_string().as_bytes(), api_version, kind)
}

fn patched(kind: &str, current: Value, patch: &Value) -> Value {
    try_patch(kind, current, patch).unwrap()
}

fn pod_with_owners(owners: &Value) -> Value {
    json!({"metadata": {"name": "p", "uid": "pod", "ownerReferences": owners}})
}

// === owner references and finalizers ===

#[test]
fn adoption_adds_the_controller_and_keeps_other_owners() {
    let pod = pod_with_owners(&json!([{"uid": "other", "name": "o", "kind": "Job"}]));
    let adopt = json!({"metadata": {
        "ownerReferences": [{
            "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "rs", "uid": "rs",
            "controller": true, "blockOwnerDeletion": true,
        }],
        "uid": "pod",
    }});
    assert_eq!(
        patched("Pod", pod, &adopt)["metadata"],
        json!({"name": "p", "uid": "pod", "ownerReferences": [
            {
                "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "rs", "uid": "rs",
                "controller": true, "blockOwnerDeletion": true,
            },
            {"uid": "other", "name": "o", "kind": "Job"},
        ]})
    );
}

#[test]
fn adoption_upgrades_a_reference_to_the_same_owner_in_place() {
    let pod = pod_with_owners(&json!([
        {"uid": "other", "name": "o"},
        {"uid": "rs", "name": "rs", "kind": "ReplicaSet"},
    ]));
    let adopt = json!({"metadata": {
        "ownerReferences": [{"uid": "rs", "name": "rs", "controller": true}],
    }});
    assert_eq!(
        patched("Pod", pod, &adopt)["metadata"]["ownerReferences"],
        json!([
            {"uid": "other", "name": "o"},
            {"uid": "rs", "name": "rs", "kind": "ReplicaSet", "controller": true},
        ])
    );
}

#[test]
fn adoption_of_another_uid_shows_the_uid_so_that_the_server_can_reject_it() {
    let adopt = json!({"metadata": {"uid": "former"}});
    let pod = patched("Pod", pod_with_owners(&json!([])), &adopt);
    assert_eq!(pod["metadata"]["uid"], "former");
}

#[test]
fn release_removes_the_owner_and_its_finalizer() {
    let pod = json!({"metadata": {
        "uid": "pod",
        "ownerReferences": [{"uid": "rs", "controller": true}, {"uid": "other"}],
        "finalizers": ["keep", "batch.kubernetes.io/job-tracking"],
    }});
    let release = json!({"metadata": {
        "uid": "pod",
        "ownerReferences": [{"$patch": "delete", "uid": "rs"}],
        "$deleteFromPrimitiveList/finalizers": ["batch.kubernetes.io/job-tracking"],
    }});
    assert_eq!(
        patched("Pod", pod, &release)["metadata"],
        json!({"uid": "pod", "ownerReferences": [{"uid": "other"}], "finalizers": ["keep"]})
    );
}

#[test]
fn release_of_the_last_owner_leaves_no_list() {
    let release = json!({"metadata": {
        "uid": "pod",
        "ownerReferences": [{"$patch": "delete", "uid": "rs"}],
        "$deleteFromPrimitiveList/finalizers": ["f"],
    }});
    let pod = json!({"metadata": {"uid": "pod", "ownerReferences": [{"uid": "rs"}],
        "finalizers": ["f"]}});
    assert_eq!(patched("Pod", pod, &release), json!({"metadata": {"uid": "pod"}}));
}

#[test]
fn release_of_a_pod_that_is_not_owned_changes_nothing() {
    let release = json!({"metadata": {"ownerReferences": [{"$patch": "delete", "uid": "rs"}]}});
    let pod = pod_with_owners(&json!([{"uid": "other"}]));
    assert_eq!(patched("Pod", pod.clone(), &release), pod);
}

#[test]
fn finalizers_are_a_set() {
    let pod = json!({"metadata": {"finalizers": ["a", "b"]}});
    let patch = json!({"metadata": {"finalizers": ["b", "c"]}});
    assert_eq!(patched("Pod", pod, &patch)["metadata"]["finalizers"], json!(["a", "b", "c"]));
}

// === lists by kind ===

#[test]
fn conditions_are_merged_by_type() {
    let pod = json!({"status": {"phase": "Pending", "conditions": [
        {"type": "Ready", "status": "False", "reason": "Starting"},
        {"type": "PodScheduled", "status": "True"},
    ]}});
    let patch = json!({"status": {"phase": "Running", "conditions": [
        {"type": "Ready", "status": "True", "reason": null},
    ]}});
    assert_eq!(
        patched("Pod", pod, &patch)["status"],
        json!({"phase": "Running", "conditions": [
            {"type": "Ready", "status": "True"},
            {"type": "PodScheduled", "status": "True"},
        ]})
    );
}

#[test]
fn containers_and_their_lists_are_merged_in_templates_as_in_pods() {
    let spec = json!({"containers": [
        {"name": "a", "image": "a:1", "env": [{"name": "X", "value": "1"}], "args": ["x", "y"]},
        {"name": "b", "image": "b:1", "ports": [{"containerPort": 80}]},
    ]});
    let change = json!({"containers": [
        {"name": "a", "image": "a:2", "env": [{"name": "Y", "value": "2"}], "args": ["z"]},
        {"name": "b", "ports": [{"containerPort": 80, "name": "http"}]},
    ]});
    let expected = json!({"containers": [
        {
            "name": "a", "image": "a:2", "args": ["z"],
            "env": [{"name": "Y", "value": "2"}, {"name": "X", "value": "1"}],
        },
        {"name": "b", "image": "b:1", "ports": [{"containerPort": 80, "name": "http"}]},
    ]});
    assert_eq!(
        patched("Pod", json!({"spec": spec}), &json!({"spec": change})),
        json!({"spec": expected})
    );
    let templated = |spec: &Value| json!({"spec": {"template": {"spec": spec}}});
    assert_eq!(patched("ReplicaSet", templated(&spec), &templated(&change)), templated(&expected));
}

#[test]
fn claim_statuses_and_reservations_have_their_keys() {
    let pod =
        json!({"status": {"resourceClaimStatuses": [{"name": "a", "resourceClaimName": "x"}]}});
    let patch =
        json!({"status": {"resourceClaimStatuses": [{"name": "b", "resourceClaimName": "y"}]}});
    let pod = patched("Pod", pod, &patch);
    assert_eq!(pod["status"]["resourceClaimStatuses"].as_array().unwrap().len(), 2);

    let claim =
        json!({"status": {"reservedFor": [{"uid": "1", "name": "p"}, {"uid": "2", "name": "q"}]}});
    let patch = json!({"status": {"reservedFor": [{"uid": "1", "$patch": "delete"}]}});
    assert_eq!(
        patched("ResourceClaim", claim, &patch)["status"]["reservedFor"],
        json!([{"uid": "2", "name": "q"}])
    );
}

#[test]
fn list_without_a_rule_is_replaced() {
    let pod = json!({"spec": {"tolerations": [{"key": "a"}, {"key": "b"}]}});
    let patch = json!({"spec": {"tolerations": [{"key": "c"}]}});
    assert_eq!(patched("Pod", pod, &patch), patch);
}

#[test]
fn selector_of_a_disruption_budget_is_replaced() {
    let budget = json!({"spec": {"minAvailable": 1, "selector": {"matchLabels": {"a": "b"}}}});
    let new = json!({"matchExpressions": [{"key": "c", "operator": "Exists"}]});
    assert_eq!(
        patched("PodDisruptionBudget", budget, &json!({"spec": {"selector": new}})),
        json!({"spec": {"minAvailable": 1, "selector": new}})
    );
}

#[test]
fn unknown_kind_has_only_the_rules_of_metadata() {
    let foo = json!({
        "metadata": {"finalizers": ["a"]},
        "status": {"conditions": [{"type": "A"}]},
    });
    let patch = json!({
        "metadata": {"finalizers": ["b"]},
        "status": {"conditions": [{"type": "B"}]},
    });
    assert_eq!(
        patched("Foo", foo, &patch),
        json!({
            "metadata": {"finalizers": ["b", "a"]},
            "status": {"conditions": [{"type": "B"}]},
        })
    );
}

// === directives ===

#[test]
fn null_removes_and_is_never_stored() {
    let pod = json!({"metadata": {"labels": {"a": "1", "b": "2"}}});
    let patch = json!({
        "metadata": {"labels": {"a": null, "none": null}, "annotations": {"x": null}},
        "spec": {"tolerations": [{"key": "k", "value": null}]},
    });
    assert_eq!(
        patched("Pod", pod, &patch),
        json!({
            "metadata": {"labels": {"b": "2"}, "annotations": {}},
            "spec": {"tolerations": [{"key": "k"}]},
        })
    );
}

#[test]
fn objects_obey_replace_and_delete() {
    let pod = json!({"metadata": {"labels": {"a": "1"}, "annotations": {"x": "y"}}});
    let patch = json!({"metadata": {
        "labels": {"$patch": "replace", "b": "2"},
        "annotations": {"$patch": "delete"},
    }});
    assert_eq!(
        patched("Pod", pod, &patch),
        json!({"metadata": {"labels": {"b": "2"}, "annotations": {}}})
    );
}

#[test]
fn keyed_lists_obey_replace_in_any_position() {
    let pod = json!({"spec": {"containers": [{"name": "a"}, {"name": "b"}]}});
    for containers in [
        json!([{"name": "c"}, {"$patch": "replace"}]),
        json!([{"$patch": "replace"}, {"name": "c"}]),
    ] {
        assert_eq!(
            patched("Pod", pod.clone(), &json!({"spec": {"containers": containers}})),
            json!({"spec": {"containers": [{"name": "c"}]}})
        );
    }
}

#[test]
fn elements_are_deleted_by_key() {
    let pod = json!({"spec": {"containers": [{"name": "a"}, {"name": "b"}, {"name": "c"}]}});
    let patch = json!({"spec": {"containers": [{"name": "b", "$patch": "delete"}]}});
    assert_eq!(
        patched("Pod", pod, &patch),
        json!({"spec": {"containers": [{"name": "a"}, {"name": "c"}]}})
    );
}

#[test]
fn created_object_contains_no_directive() {
    let patch = json!({"spec": {
        "$retainKeys": ["containers"],
        "$setElementOrder/containers": [{"name": "a"}],
        "containers": [{"name": "a"}, {"name": "b", "$patch": "delete"}],
    }});
    assert_eq!(patched("Pod", json!({}), &patch), json!({"spec": {"containers": [{"name": "a"}]}}));
}

#[test]
fn retained_keys_drop_the_others() {
    let deployment =
        json!({"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}});
    let patch = json!({"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}});
    assert_eq!(
        patched("Deployment", deployment, &patch),
        json!({"spec": {"strategy": {"type": "Recreate"}}})
    );

    let pod = json!({"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}});
    let patch = json!({"spec": {"volumes": [
        {"name": "v", "$retainKeys": ["name", "hostPath"], "hostPath": {"path": "/"}},
    ]}});
    assert_eq!(
        patched("Pod", pod, &patch),
        json!({"spec": {"volumes": [{"name": "v", "hostPath": {"path": "/"}}]}})
    );
}

#[test]
fn element_order_places_named_elements_and_leaves_others_near_their_place() {
    let names = |names: &str| -> Value {
        names.chars().map(|name| json!({"name": name.to_string()})).collect()
    };
    for (before, order, patch, after) in [
        ("ab", "ba", "", "ba"),
        ("ab", "bac", "c", "bac"),
        ("axb", "ab", "", "axb"),
        ("xab", "ba", "b", "xba"),
        ("ab", "c", "c", "cab"),
    ] {
        let pod = json!({"spec": {"containers": names(before)}});
        let mut patch = json!({"spec": {"containers": names(patch)}});
        patch["spec"]["$setElementOrder/containers"] = names(order);
        assert_eq!(
            patched("Pod", pod, &patch)["spec"]["containers"],
            names(after),
            "{before} {order}"
        );
    }
    let pod = json!({"metadata": {"finalizers": ["a", "b"]}});
    let patch = json!({"metadata": {"$setElementOrder/finalizers": ["b", "a"]}});
    assert_eq!(patched("Pod", pod, &patch), json!({"metadata": {"finalizers": ["b", "a"]}}));
}

// === rejections ===

#[test]
fn rejected_patches_have_the_servers_text() {
    let pod = json!({
        "metadata": {"labels": {"a": "b"}, "finalizers": ["f"]},
        "spec": {"containers": [{"name": "a"}]},
    });
    for (patch, code, message) in [
        (
            json!({"spec": {"containers": [{"image": "x"}]}}),
            500,
            "map: map[image:x] does not contain declared merge key: name",
        ),
        (
            json!({"spec": {"containers": [{"$patch": "delete", "image": "x"}]}}),
            500,
            "map: map[$patch:delete image:x] does not contain declared merge key: name",
        ),
        (
            json!({"spec": {"containers": [{"$patch": "merge", "name": "a"}]}}),
            500,
            "merging lists cannot yet be specified in the patch",
        ),
        (
            json!({"metadata": {"labels": {"$patch": "dance", "x": ["y", 1, null]}}}),
            500,
            "unknown patch type: dance in map: map[$patch:dance x:[y 1 <nil>]]",
        ),
        (
            json!({"spec": {"containers": [["a"]]}}),
            422,
            "the server rejected our request due to an error in our request",
        ),
        (
            json!({"metadata": {"$deleteFromPrimitiveList/finalizers": "f"}}),
            400,
            "invalid patch format of primitive list",
        ),
        (
            json!({"metadata": {"$setElementOrder/finalizers": "f"}}),
            400,
            "invalid patch format of setElementOrder list",
        ),
        (json!({"metadata": {"$retainKeys": "labels"}}), 400, "invalid patch format of retainKeys"),
        (
            json!({"metadata": {"$retainKeys": ["labels"], "finalizers": ["g"]}}),
            400,
            "invalid patch format of retainKeys",
        ),
        (
            json!({"metadata": {"$setElementOrder/finalizers": ["f"], "finalizers": ["g"]}}),
            500,
            "The order in patch list:\n[g]\n doesn't match $setElementOrder list:\n[f]\n",
        ),
    ] {
        let error = try_patch("Pod", pod.clone(), &patch).unwrap_err();
        assert_eq!((error.code(), error.to_string().as_str()), (code, message));
    }
}

#[test]
fn patch_that_is_no_object_is_a_bad_request() {
    for body in ["", "{", "[]", "3"] {
        let error = apply(PatchKind::Strategic, json!({}), body.as_bytes(), "v1", "Pod");
        assert_eq!(error.unwrap_err().code(), 400, "{body}");
    }
}

// === properties ===

/// Generates any JSON object of a few levels, with nulls.
pub(in crate::patch) fn any_object() -> impl Strategy<Value = Value> {
    let scalar = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (0..3).prop_map(Value::from),
        "[ab]".prop_map(Value::from),
    ];
    let value = scalar.prop_recursive(3, 16, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            members(inner),
        ]
    });
    members(value)
}

fn members(value: impl Strategy<Value = Value>) -> impl Strategy<Value = Value> {
    prop::collection::btree_map("[abc]", value, 0..4)
        .prop_map(|members| Value::Object(members.into_iter().collect()))
}

/// Generates a list of objects with different values of `key`, in any order, each with the members
/// of `rest`.
fn keyed(key: &'static str, rest: impl Strategy<Value = Value>) -> impl Strategy<Value = Value> {
    prop::collection::btree_map("[abcd]", rest, 0..4)
        .prop_map(move |elements| -> Vec<Value> {
            elements
                .into_iter()
                .map(|(id, mut element)| {
                    element[key] = Value::from(id);
                    element
                })
                .collect()
        })
        .prop_shuffle()
        .prop_map(Value::from)
}

fn any_pod() -> impl Strategy<Value = Value> {
    let finalizers = prop::collection::btree_set("[abc]", 0..4)
        .prop_map(|set| set.into_iter().collect::<Vec<_>>())
        .prop_shuffle();
    let owners = keyed("uid", any_object());
    let container = (any_object(), keyed("name", any_object())).prop_map(|(mut object, env)| {
        object["env"] = env;
        object
    });
    (finalizers, owners, keyed("name", container), any_object()).prop_map(
        |(finalizers, owners, containers, mut pod)| {
            pod["metadata"] = json!({"finalizers": finalizers, "ownerReferences": owners});
            pod["spec"] = json!({"containers": containers});
            pod
        },
    )
}

proptest! {
    #[test]
    fn empty_patch_changes_nothing(pod in any_pod()) {
        prop_assert_eq!(patched("Pod", pod.clone(), &json!({})), pod);
    }

    #[test]
    fn patching_twice_is_patching_once(pod in any_pod(), patch in any_pod()) {
        let once = patched("Pod", pod, &patch);
        prop_assert_eq!(patched("Pod", once.clone(), &patch), once);
    }

    #[test]
    fn every_element_of_both_lists_is_there_once(pod in any_pod(), patch in any_pod()) {
        let keys = |pod: &Value| -> Vec<String> {
            let owners = pod["metadata"]["ownerReferences"].as_array();
            owners.into_iter().flatten().map(|it| it["uid"].to_string()).collect()
        };
        let mut expected = keys(&pod);
        expected.extend(keys(&patch));
        expected.sort();
        expected.dedup();
        let mut merged = keys(&patched("Pod", pod, &patch));
        merged.sort();
        prop_assert_eq!(merged, expected);
    }

    #[test]
    fn patch_of_any_bytes_does_not_panic(pod in any_pod(), patch in any_object(), kind in 0..3_u8) {
        let kind = [PatchKind::Json, PatchKind::Merge, PatchKind::Strategic][usize::from(kind)];
        let patch = json!({"spec": {"containers": patch["a"],
            "$setElementOrder/containers": patch["b"]}, "metadata": patch["c"]});
        let _outcome = apply(kind, pod, patch.to_string().as_bytes(), "v1", "Pod");
    }
}
