//! Upstream's tables about services, claims and counters.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;

use homeostat_core::GroupResource;
use homeostat_quantity::ResourceName;
use homeostat_quota::object::Object;
use homeostat_quota::object::device::{DeviceClass, ResourceClaim};
use homeostat_quota::object::pod::Pod;
use homeostat_quota::{
    DeviceClassMapping, DeviceContext, Evaluator, Gates, Operation, OwnerPod, Registry,
    ScopeRequirement, SiblingClaim, is_ignored, pod_charge, resource_claim_charge,
};
use jiff::Timestamp;
use serde_json::{Value, json};

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

fn usage(evaluator: &Evaluator, object: &Value) -> String {
    let object = Object::read(evaluator.resource(), object).unwrap();
    let charge = evaluator.charge(&object, &DeviceClassMapping::default()).unwrap();
    charge.usage(NOW).to_string()
}

fn names(list: &[&str]) -> Vec<ResourceName> {
    list.iter().map(|name| ResourceName::from(*name)).collect()
}

fn matching(evaluator: &Evaluator, list: &[&str]) -> Vec<ResourceName> {
    evaluator.matching_resources(&names(list), &DeviceClassMapping::default())
}

#[test]
fn services_are_charged_for_load_balancers_and_node_ports() {
    let evaluator = Evaluator::services();
    let shown = |load_balancers: i64, node_ports: i64| {
        format!(
            "count/services=1,services=1,\
             services.loadbalancers={load_balancers},services.nodeports={node_ports}"
        )
    };
    let service = |kind: &str, allocate: Value, ports: Value| {
        let allocation = "allocateLoadBalancerNodePorts";
        json!({"type": kind, allocation: allocate, "ports": ports})
    };
    let balancer = |allocate: Value, ports: Value| service("LoadBalancer", allocate, ports);
    let given = json!([{"nodePort": 32001}, {"nodePort": 32002}]);
    let (null, none, one, two) = (Value::Null, json!([]), json!([{}]), json!([{}, {}]));
    for (case, spec, load_balancers, node_ports) in [
        ("loadbalancer", balancer(null.clone(), none.clone()), 1, 0),
        ("loadbalancer_ports", balancer(null.clone(), one.clone()), 1, 1),
        ("loadbalancer_2_ports", balancer(null.clone(), two.clone()), 1, 2),
        ("clusterip", service("ClusterIP", null.clone(), none), 0, 0),
        ("clusterip with a port", service("ClusterIP", null.clone(), one.clone()), 0, 0),
        ("external name", json!({"type": "ExternalName"}), 0, 0),
        ("no type", json!({"ports": one}), 0, 0),
        ("nodeports", service("NodePort", null.clone(), one), 0, 1),
        ("multi-nodeports", service("NodePort", null.clone(), two.clone()), 0, 2),
        ("nodeports-disabled", balancer(json!(false), two.clone()), 1, 0),
        ("nodeports-default-enabled", balancer(null, given.clone()), 1, 2),
        ("nodeports-explicitly-enabled", balancer(json!(true), two), 1, 2),
        ("nodeports-disabled-but-specified", balancer(json!(false), given), 1, 2),
        (
            "one of two ports specified",
            balancer(json!(false), json!([{"nodePort": 32001}, {}])),
            1,
            1,
        ),
    ] {
        assert_eq!(
            usage(&evaluator, &json!({"spec": spec})),
            shown(load_balancers, node_ports),
            "{case}"
        );
    }
    let list = [
        "services.nodeports",
        "count/services",
        "configmaps",
        "cpu",
        "services.loadbalancers",
        "services",
        "pods",
    ];
    assert_eq!(
        matching(&evaluator, &list),
        ["count/services", "services", "services.loadbalancers", "services.nodeports"]
    );
}

#[test]
fn services_and_device_claims_are_handled_without_constraints() {
    let required = names(&["services.loadbalancers", "services.nodeports", "services"]);
    for evaluator in [Evaluator::services(), Evaluator::resource_claims()] {
        for spec in [json!({"type": "LoadBalancer"}), json!({"type": "NodePort", "ports": [{}]})] {
            let object = Object::read(evaluator.resource(), &json!({"spec": spec})).unwrap();
            assert_eq!(evaluator.check_constraints(&required, &object), Ok(()));
            let handles = |operation, subresource| {
                evaluator.handles(operation, subresource, Some(&object), &object)
            };
            assert!(handles(Operation::Create, "") && handles(Operation::Update, ""));
            assert!(!handles(Operation::Create, "status"));
            assert!(!handles(Operation::Update, "status"));
        }
    }
}

#[test]
fn storage_is_charged_under_its_class_too() {
    let evaluator = Evaluator::persistent_volume_claims();
    let one = "count/persistentvolumeclaims=1";
    let claim = |storage: &str, class: Value| {
        let resources = json!({"requests": {"storage": storage}});
        json!({"spec": {"resources": resources, "storageClassName": class}})
    };
    let gold = "gold.storageclass.storage.k8s.io";
    for (object, expected) in [
        (
            claim("10Gi", json!(null)),
            format!("{one},persistentvolumeclaims=1,requests.storage=10Gi"),
        ),
        (
            claim("10Gi", json!("gold")),
            format!(
                "{one},{gold}/persistentvolumeclaims=1,{gold}/requests.storage=10Gi,\
                 persistentvolumeclaims=1,\
                 requests.storage=10Gi"
            ),
        ),
        (claim("1001m", json!(null)), format!("{one},persistentvolumeclaims=1,requests.storage=2")),
        (
            claim("1001m", json!("gold")),
            format!(
                "{one},{gold}/persistentvolumeclaims=1,{gold}/requests.storage=2,\
                 persistentvolumeclaims=1,requests.storage=2"
            ),
        ),
        (claim("007", json!("")), format!("{one},persistentvolumeclaims=1,requests.storage=007")),
        (json!({"spec": {}}), format!("{one},persistentvolumeclaims=1")),
        (
            json!({
                "metadata": {"annotations": {"volume.beta.kubernetes.io/storage-class": ""}},
                "spec": {"storageClassName": "gold"},
            }),
            format!("{one},persistentvolumeclaims=1"),
        ),
        (
            json!({
                "metadata": {"annotations": {
                    "volume.beta.kubernetes.io/storage-class": "gold",
                    "other": "x",
                }},
                "spec": {"storageClassName": "silver"},
            }),
            format!("{one},{gold}/persistentvolumeclaims=1,persistentvolumeclaims=1"),
        ),
    ] {
        assert_eq!(usage(&evaluator, &object), expected, "{object}");
    }
}

#[test]
fn allocated_storage_counts_if_it_is_larger() {
    let evaluator = Evaluator::persistent_volume_claims();
    for (requested, allocated, expected) in
        [("5G", "10G", "10G"), ("10G", "5G", "10G"), ("10G", "10000M", "10G"), ("1", "1500m", "2")]
    {
        let claim = json!({
            "spec": {"resources": {"requests": {"storage": requested}}},
            "status": {"allocatedResources": {"storage": allocated}},
        });
        let usage = usage(&evaluator, &claim);
        assert!(usage.ends_with(&format!("requests.storage={expected}")), "{usage}");
    }
}

#[test]
fn storage_names_match_by_suffix_in_input_order() {
    let list = [
        "requests.storage",
        "gold.storageclass.storage.k8s.io/requests.storage",
        "count/persistentvolumeclaims",
        "persistentvolumeclaims",
        "a.storageclass.storage.k8s.io/persistentvolumeclaims",
        "storage",
        "ephemeral-storage",
        "bronze.storageclass.storage.k8s.io/storage",
        "gold.storage.k8s.io/requests.storage",
    ];
    assert_eq!(matching(&Evaluator::persistent_volume_claims(), &list), list[..5]);
}

#[test]
fn storage_claim_is_in_the_scope_of_each_class_it_names() {
    let evaluator = Evaluator::persistent_volume_claims();
    let requirement = |operator, values: &[&str]| {
        ScopeRequirement::new("VolumeAttributesClass", operator, values.iter().copied())
    };
    let requirements = [
        requirement("DoesNotExist", &[]),
        requirement("Exists", &[]),
        requirement("In", &["class1"]),
        requirement("In", &["class2"]),
        requirement("In", &["class3"]),
        requirement("In", &["class1", "class2"]),
        requirement("In", &["class1", "class2", "class3", "class4"]),
        requirement("In", &["class4"]),
        requirement("NotIn", &["class4"]),
        requirement("NotIn", &["class1"]),
        ScopeRequirement::new("Terminating", "Exists", [""; 0]),
    ];
    let matched = |object: &Value| -> Vec<bool> {
        let object = Object::read(evaluator.resource(), object).unwrap();
        let charge = evaluator.charge(&object, &DeviceClassMapping::default()).unwrap();
        requirements.iter().map(|it| it.matches(charge.scopes()).unwrap()).collect()
    };
    let (no, yes) = (false, true);
    let spec = json!({"volumeAttributesClassName": "class1"});
    let current = json!({"currentVolumeAttributesClassName": "class2"});
    let target = json!({
        "currentVolumeAttributesClassName": "class2",
        "modifyVolumeStatus": {"targetVolumeAttributesClassName": "class3"},
    });
    for (case, object, expected) in [
        ("EmptyPVC", json!({}), [yes, no, no, no, no, no, no, no, yes, yes, no]),
        (
            "VolumeAttributesClass",
            json!({"spec": spec}),
            [no, yes, yes, no, no, yes, yes, no, yes, no, no],
        ),
        (
            "VolumeAttributesClassWithTarget",
            json!({"spec": spec, "status": current}),
            [no, yes, yes, yes, no, yes, yes, no, yes, yes, no],
        ),
        (
            "VolumeAttributesClassWithModityStatus",
            json!({"spec": spec, "status": target}),
            [no, yes, yes, yes, yes, yes, yes, no, yes, yes, no],
        ),
    ] {
        assert_eq!(matched(&object), expected, "{case}");
    }
}

#[test]
fn storage_status_is_handled_when_the_charge_differs() {
    let evaluator = Evaluator::persistent_volume_claims();
    let claim = |allocated: &str, class: &str| {
        let claim = json!({
            "spec": {"resources": {"requests": {"storage": "1Gi"}}},
            "status": {
                "allocatedResources": {"storage": allocated},
                "currentVolumeAttributesClassName": class,
            },
        });
        Object::read(evaluator.resource(), &claim).unwrap()
    };
    let base = claim("1Gi", "a");
    let handles = |new: Object| evaluator.handles(Operation::Update, "status", Some(&base), &new);
    assert!(!handles(claim("1024Mi", "a")));
    assert!(!handles(claim("512Mi", "a")));
    assert!(handles(claim("2Gi", "a")));
    assert!(handles(claim("1Gi", "b")));
    assert!(evaluator.handles(Operation::Create, "", None, &base));
    assert!(evaluator.handles(Operation::Update, "", Some(&base), &base));
    assert!(!evaluator.handles(Operation::Update, "other", Some(&base), &base));
}

#[test]
fn counters_have_old_names() {
    for (resource, expected) in [
        (GroupResource::new("", "secrets"), "count/secrets=1,secrets=1"),
        (GroupResource::new("", "configmaps"), "configmaps=1,count/configmaps=1"),
        (GroupResource::new("", "resourcequotas"), "count/resourcequotas=1,resourcequotas=1"),
        (GroupResource::new("", "endpoints"), "count/endpoints=1"),
        (GroupResource::new("example.com", "secrets"), "count/secrets.example.com=1"),
    ] {
        let evaluator = Evaluator::counter(resource);
        assert_eq!(usage(&evaluator, &json!({"any": 1})), expected);
        assert!(evaluator.is_counter());
        assert!(evaluator.handles(Operation::Create, "", None, &Object::Other));
        assert!(!evaluator.handles(Operation::Update, "", None, &Object::Other));
        assert!(!evaluator.handles(Operation::Create, "status", None, &Object::Other));
    }
}

#[test]
fn registry_knows_the_static_evaluators() {
    let mut registry = Registry::new(Gates::default());
    let known: Vec<String> = registry.iter().map(|it| it.resource().to_string()).collect();
    assert_eq!(
        known,
        [
            "configmaps",
            "persistentvolumeclaims",
            "pods",
            "replicationcontrollers",
            "resourcequotas",
            "secrets",
            "services",
            "resourceclaims.resource.k8s.io",
        ]
    );
    let foos = GroupResource::new("example.com", "foos");
    assert!(registry.add_counter(foos.clone()));
    let list = names(&["count/foos.example.com", "pods", "foobars.example.com", "pods"]);
    let classes = DeviceClassMapping::default();
    assert_eq!(registry.matching_resources(&list, &classes), ["count/foos.example.com", "pods"]);
    assert!(registry.remove(&foos).is_some());
    assert_eq!(registry.matching_resources(&list, &classes), ["pods"]);
    for (group, resource) in [("", "events"), ("events.k8s.io", "events"), ("", "bindings")] {
        assert!(is_ignored(&GroupResource::new(group, resource)));
    }
    assert!(!is_ignored(&GroupResource::new("coordination.k8s.io", "leases")));
}

// === claims to devices ===

/// A namespace with pods and claims.
#[derive(Debug, Default)]
struct World {
    classes: DeviceClassMapping,
    pod: Option<Pod>,
    siblings: Vec<SiblingClaim>,
}

impl DeviceContext for World {
    fn classes(&self) -> &DeviceClassMapping {
        &self.classes
    }

    fn pod(&self, _: &str, name: &str) -> Option<OwnerPod> {
        let pod = self.pod.as_ref().filter(|pod| pod.metadata.name == name)?;
        let claim = pod.status.extended_resource_claim_status.as_ref();
        Some(OwnerPod {
            uid: pod.metadata.uid.clone(),
            extended_resource_claim: claim.map(|claim| claim.resource_claim_name.clone()),
            usage: pod_charge(pod, Gates::default()).usage(NOW),
        })
    }

    fn claims_of(&self, _: &str, _: &str) -> Vec<SiblingClaim> {
        self.siblings.clone()
    }
}

fn class(name: &str, resource: Option<&str>, created: &str) -> DeviceClass {
    serde_json::from_value(json!({
        "metadata": {"name": name, "creationTimestamp": created},
        "spec": {"extendedResourceName": resource},
    }))
    .unwrap()
}

fn gpu_classes() -> DeviceClassMapping {
    let mut classes = DeviceClassMapping::default();
    classes.apply(&class("gpu", Some("example.com/gpu"), "2026-01-01T00:00:00Z"));
    classes
}

fn claim_usage(requests: &Value, extended: bool, world: &World) -> String {
    let mut claim = json!({
        "metadata": {"name": "foo", "namespace": "ns", "creationTimestamp": "2026-01-02T00:00:00Z"},
        "spec": {"devices": {"requests": requests}},
    });
    if extended {
        claim["metadata"]["annotations"] =
            json!({"resource.kubernetes.io/extended-resource-claim": "true"});
        claim["metadata"]["ownerReferences"] = json!([{
            "apiVersion": "v1",
            "kind": "Pod",
            "name": "pod",
            "uid": "uid",
            "controller": true,
        }]);
    }
    let claim: ResourceClaim = serde_json::from_value(claim).unwrap();
    resource_claim_charge(&claim, world).usage(NOW).to_string()
}

fn devices(class: &str, mode: &str, count: i64) -> Value {
    json!({"deviceClassName": class, "allocationMode": mode, "count": count})
}

fn exactly(class: &str, mode: &str, count: i64) -> Value {
    json!({"name": "r", "exactly": devices(class, mode, count)})
}

fn first_available(ways: &[(&str, &str, i64)]) -> Value {
    let way = |(class, mode, count): &(&str, &str, i64)| devices(class, mode, *count);
    json!({"firstAvailable": ways.iter().map(way).collect::<Vec<_>>()})
}

#[test]
fn device_claims_are_charged_for_the_most_they_can_get() {
    let one = exactly("gpu", "ExactCount", 1);
    let mut admin = one.clone();
    admin["exactly"]["adminAccess"] = json!(true);
    let gpus = |count: i64| {
        format!(
            "count/resourceclaims.resource.k8s.io=1,\
             gpu.deviceclass.resource.k8s.io/devices={count},\
             requests.deviceclass.resource.kubernetes.io/gpu={count}"
        )
    };
    let count = "ExactCount";
    for (requests, expected) in [
        (json!([one]), gpus(1)),
        (json!([one, one, one, one, one]), gpus(5)),
        (json!([exactly("gpu", count, 5)]), gpus(5)),
        (json!([exactly("gpu", "All", 0)]), gpus(32)),
        (json!([admin]), gpus(1)),
        (json!([first_available(&[("gpu", count, 1)])]), gpus(1)),
        (json!([first_available(&[("gpu", count, 2), ("gpu", count, 1)])]), gpus(2)),
        (json!([first_available(&[("gpu", count, 1), ("gpu", "All", 0)])]), gpus(32)),
        (
            json!([first_available(&[("gpu", count, 2)]), first_available(&[("gpu", count, 3)])]),
            gpus(5),
        ),
        (json!([{"name": "unknown"}]), "count/resourceclaims.resource.k8s.io=1".to_owned()),
        (
            json!([exactly("gpu", "future-mode", 3)]),
            "count/resourceclaims.resource.k8s.io=1,gpu.deviceclass.resource.k8s.io/devices=0"
                .to_owned(),
        ),
        (
            json!([first_available(&[("gpu", "future-mode", 3)])]),
            "count/resourceclaims.resource.k8s.io=1".to_owned(),
        ),
        (
            json!([first_available(&[("gpu", count, 1), ("tpu", "All", 0)])]),
            format!(
                "{},requests.deviceclass.resource.kubernetes.io/tpu=32,\
                 tpu.deviceclass.resource.k8s.io/devices=32",
                gpus(1)
            ),
        ),
    ] {
        assert_eq!(claim_usage(&requests, false, &World::default()), expected, "{requests}");
    }
}

fn owner(requests: &Value, claim: Option<&str>) -> Pod {
    let status = claim.map(|name| json!({"resourceClaimName": name}));
    serde_json::from_value(json!({
        "metadata": {"name": "pod", "uid": "uid"},
        "spec": {"containers": [{"resources": {"requests": requests}}]},
        "status": {"extendedResourceClaimStatus": status},
    }))
    .unwrap()
}

/// The usage of a claim: devices, the implicit extended resource, the explicit one.
fn extended(devices: i64, implicit: i64, explicit: i64) -> String {
    let mut shown = vec![
        "count/resourceclaims.resource.k8s.io=1".to_owned(),
        format!("gpu.deviceclass.resource.k8s.io/devices={devices}"),
    ];
    if implicit > 0 {
        shown.push(format!("requests.deviceclass.resource.kubernetes.io/gpu={implicit}"));
    }
    if explicit > 0 {
        shown.push(format!("requests.example.com/gpu={explicit}"));
    }
    shown.join(",")
}

#[test]
fn device_claim_is_not_charged_for_what_its_pod_is_charged() {
    let (implicit, explicit) = ("deviceclass.resource.kubernetes.io/gpu", "example.com/gpu");
    let one = json!([exactly("gpu", "ExactCount", 1)]);
    let two = json!([exactly("gpu", "ExactCount", 1), exactly("gpu", "ExactCount", 1)]);
    for (requests, pod, claim, expected) in [
        (&one, json!({implicit: "1"}), Some("foo"), extended(1, 0, 1)),
        (&one, json!({explicit: "1"}), Some("foo"), extended(1, 1, 0)),
        (&two, json!({explicit: "1", implicit: "1"}), Some("foo"), extended(2, 1, 1)),
        (&two, json!({explicit: "1", implicit: "1"}), None, extended(2, 1, 1)),
        (&one, json!({implicit: "5"}), Some("foo"), extended(1, 0, 1)),
        // The pod names another claim.
        (&one, json!({implicit: "1"}), Some("bar"), extended(1, 1, 1)),
    ] {
        let world =
            World { classes: gpu_classes(), pod: Some(owner(&pod, claim)), siblings: Vec::new() };
        assert_eq!(claim_usage(requests, true, &world), expected, "{pod} {claim:?}");
        assert!(claim_usage(requests, false, &world).contains("gpu=1") || requests == &two);
    }
    // Init containers run one after another: the pod is charged for one of each.
    let amounts = |requests: &Value| json!({"resources": {"requests": requests}});
    let (only_implicit, only_explicit) = (json!({implicit: "1"}), json!({explicit: "1"}));
    let each = json!({explicit: "1", implicit: "1"});
    for (case, requests, init, container, claim, expected) in [
        ("explicit", &one, vec![&only_explicit], None, Some("foo"), extended(1, 1, 0)),
        ("hybrid", &two, vec![&each], Some(&each), Some("foo"), extended(2, 1, 1)),
        ("nil-status", &two, vec![&only_explicit], Some(&only_implicit), None, extended(2, 1, 1)),
        ("init", &two, vec![&each, &each], Some(&each), Some("foo"), extended(2, 1, 1)),
    ] {
        let mut pod = owner(&json!({}), claim);
        pod.spec = serde_json::from_value(json!({
            "initContainers": init.into_iter().map(amounts).collect::<Vec<_>>(),
            "containers": container.into_iter().map(amounts).collect::<Vec<_>>(),
        }))
        .unwrap();
        let world = World { classes: gpu_classes(), pod: Some(pod), siblings: Vec::new() };
        assert_eq!(claim_usage(requests, true, &world), expected, "{case}");
    }
    let mut pod = owner(&json!({implicit: "1"}), Some("foo"));
    pod.metadata.uid = "another".into();
    let world = World { classes: gpu_classes(), pod: Some(pod), siblings: Vec::new() };
    assert_eq!(claim_usage(&one, true, &world), extended(1, 1, 1));
}

#[test]
fn earliest_claim_of_a_pod_is_exempted() {
    let pod = owner(&json!({"example.com/gpu": "1"}), None);
    let one = json!([exactly("gpu", "ExactCount", 1)]);
    let sibling = |name: &str, created: &str| SiblingClaim {
        created: Some(created.parse().unwrap()),
        name: name.into(),
    };
    let (earlier, same, later) =
        ("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z", "2026-01-03T00:00:00Z");
    for (sibling, explicit) in [
        (sibling("foo", same), 0),
        (sibling("a", earlier), 1),
        (sibling("z", earlier), 1),
        (sibling("a", same), 1),
        (sibling("z", same), 0),
        (sibling("a", later), 0),
        // Go's zero time precedes all others.
        (SiblingClaim { created: None, name: "z".into() }, 1),
    ] {
        let world = World {
            classes: gpu_classes(),
            pod: Some(pod.clone()),
            siblings: vec![sibling.clone()],
        };
        assert_eq!(claim_usage(&one, true, &world), extended(1, 1, explicit), "{sibling:?}");
    }
}

#[test]
fn device_claims_match_mapped_names() {
    let evaluator = Evaluator::resource_claims();
    let list = names(&[
        "count/resourceclaims.resource.k8s.io",
        "gpu.deviceclass.resource.k8s.io/devices",
        "requests.example.com/gpu",
        "requests.deviceclass.resource.kubernetes.io/gpu",
        "requests.deviceclass.resource.kubernetes.io/other",
        "requests.example.com/other",
        "resourceclaims",
        "storage",
        "ephemeral-storage",
        "bronze.deviceclass.resource.k8s.io/storage",
        "gpu.storage.k8s.io/requests.storage",
    ]);
    assert_eq!(evaluator.matching_resources(&list, &gpu_classes()), list[..4]);
    assert_eq!(evaluator.matching_resources(&list, &DeviceClassMapping::default()), list[..2]);
    let mut implicit = DeviceClassMapping::default();
    implicit.apply(&class("gpu", None, "2026-01-01T00:00:00Z"));
    let matched = evaluator.matching_resources(&list, &implicit);
    assert_eq!(matched, [list[0].clone(), list[1].clone(), list[3].clone()]);
}

#[test]
fn mapping_prefers_the_newer_class_and_then_the_lower_name() {
    let (old, new) = ("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z");
    let mut classes = DeviceClassMapping::default();
    classes.apply(&class("b", Some("example.com/gpu"), old));
    assert_eq!(classes.class_of("example.com/gpu"), Some("b"));
    classes.apply(&class("a", Some("example.com/gpu"), old));
    assert_eq!(classes.class_of("example.com/gpu"), Some("a"));
    classes.apply(&class("z", Some("example.com/gpu"), new));
    assert_eq!(classes.class_of("example.com/gpu"), Some("z"));
    // The loser keeps its implicit resource, and takes over when the winner goes.
    assert_eq!(classes.class_of("deviceclass.resource.kubernetes.io/b"), Some("b"));
    classes.remove("z");
    assert_eq!(classes.class_of("example.com/gpu"), Some("a"));
    let affected = classes.apply(&class("a", Some("example.com/tpu"), old));
    let expected = [
        "requests.deviceclass.resource.kubernetes.io/a",
        "requests.example.com/gpu",
        "requests.example.com/tpu",
    ];
    assert_eq!(affected, BTreeSet::from(expected.map(ResourceName::from)));
    assert_eq!(classes.class_of("example.com/gpu"), Some("b"));
    assert_eq!(
        (classes.class_of("example.com/tpu"), classes.resource_of("a")),
        (Some("a"), Some("example.com/tpu"))
    );
    assert!(classes.apply(&class("a", Some("example.com/tpu"), old)).is_empty());
    classes.apply(&class("a", None, old));
    assert_eq!((classes.class_of("example.com/tpu"), classes.resource_of("a")), (None, None));
    classes.remove("a");
    classes.remove("b");
    assert_eq!(classes, DeviceClassMapping::default());
    assert!(classes.remove("b").is_empty());
}
