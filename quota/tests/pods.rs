//! Upstream's tables about pods (`pods_test.go`, `helpers_test.go`, `qos_test.go`).

use homeostat_quantity::ResourceName;
use homeostat_quota::object::Object;
use homeostat_quota::object::pod::Pod;
use homeostat_quota::{
    Charge, DeviceClassMapping, Evaluator, Gates, Operation, PodResourcesOptions, QosClass,
    ScopeFacts, ScopeRequirement, compute_qos_class, pod_charge, pod_limits, pod_requests,
};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

fn pod(pod: &Value) -> Pod {
    serde_json::from_value(pod.clone()).unwrap_or_else(|error| panic!("{pod}: {error}"))
}

fn charge(value: &Value) -> Charge {
    pod_charge(&pod(value), Gates::default())
}

fn usage(value: &Value) -> String {
    charge(value).usage(NOW).to_string()
}

fn container(name: &str, requests: impl Into<Value>, limits: impl Into<Value>) -> Value {
    json!({"name": name, "resources": {"requests": requests.into(), "limits": limits.into()}})
}

fn names(list: &[&str]) -> Vec<ResourceName> {
    list.iter().map(|name| ResourceName::from(*name)).collect()
}

#[test]
fn usage_has_each_kind_of_resource() {
    let cases = [
        (
            json!({"cpu": "1m"}),
            json!({"cpu": "2m"}),
            "count/pods=1,cpu=1m,limits.cpu=2m,pods=1,requests.cpu=1m",
        ),
        (
            json!({"memory": "1m"}),
            json!({"memory": "2m"}),
            "count/pods=1,limits.memory=2m,memory=1m,pods=1,requests.memory=1m",
        ),
        (
            json!({"ephemeral-storage": "32Mi"}),
            json!({"ephemeral-storage": "64Mi"}),
            "count/pods=1,ephemeral-storage=32Mi,limits.ephemeral-storage=64Mi,pods=1,\
             requests.ephemeral-storage=32Mi",
        ),
        (
            json!({"hugepages-2Mi": "100Mi"}),
            json!({}),
            "count/pods=1,hugepages-2Mi=100Mi,pods=1,requests.hugepages-2Mi=100Mi",
        ),
        (
            json!({"example.com/dongle": "3"}),
            json!({"example.com/dongle": "3"}),
            "count/pods=1,pods=1,requests.example.com/dongle=3",
        ),
        (
            json!({"deviceclass.resource.kubernetes.io/device-class": "3"}),
            json!({}),
            "count/pods=1,pods=1,requests.deviceclass.resource.kubernetes.io/device-class=3",
        ),
        // Neither native, nor valid as the name of a quota.
        (
            json!({"example.com/-x": "3", "kubernetes.io/x": "1", "requests.a.b/c": "1"}),
            json!({}),
            "count/pods=1,pods=1",
        ),
    ];
    for (requests, limits, expected) in cases {
        for place in ["containers", "initContainers"] {
            let pod = json!({"spec": {place: [container("a", requests.clone(), limits.clone())]}});
            assert_eq!(usage(&pod), expected, "{place}");
        }
    }
}

#[test]
fn init_container_maximum_replaces_smaller_sum() {
    let of = |cpu: &str, memory: &str, dongle: &str, limit_cpu: &str, limit_memory: &str| {
        container(
            "",
            json!({"cpu": cpu, "memory": memory, "example.com/dongle": dongle}),
            json!({"cpu": limit_cpu, "memory": limit_memory, "example.com/dongle": dongle}),
        )
    };
    let pod = json!({"spec": {
        "initContainers": [of("4", "100M", "4", "8", "200M"), of("1", "50M", "2", "2", "100M")],
        "containers": [of("1", "50M", "1", "2", "100M"), of("2", "25M", "2", "5", "50M")],
    }});
    let expected = "count/pods=1,cpu=4,limits.cpu=8,limits.memory=200M,memory=100M,pods=1,\
                    requests.cpu=4,requests.example.com/dongle=4,requests.memory=100M";
    assert_eq!(usage(&pod), expected);
}

#[test]
fn finished_pod_is_counted_and_not_charged() {
    for phase in ["Succeeded", "Failed"] {
        let pod = json!({
            "spec": {"containers": [container("a", json!({"cpu": "1"}), json!({}))]},
            "status": {"phase": phase},
        });
        assert_eq!(usage(&pod), "count/pods=1");
    }
}

#[test]
fn charge_of_stuck_pod_ends_one_grace_period_after_deletion_time() {
    let deletion: Timestamp = "2026-01-01T00:00:30Z".parse().unwrap();
    let pod = json!({
        "metadata": {"deletionTimestamp": "2026-01-01T00:00:30Z", "deletionGracePeriodSeconds": 30},
        "spec": {"containers": [container("a", json!({"cpu": "1"}), json!({"cpu": "2"}))]},
    });
    let charge = charge(&pod);
    let end = deletion + SignedDuration::from_secs(30);
    assert_eq!(charge.until(), Some(end));
    let whole = "count/pods=1,cpu=1,limits.cpu=2,pods=1,requests.cpu=1";
    assert_eq!(charge.usage(end).to_string(), whole);
    assert_eq!(charge.usage(end + SignedDuration::from_nanos(1)).to_string(), "count/pods=1");
    // Without a grace period the charge has no end.
    let pod = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:30Z"}, "spec": {}});
    assert_eq!(charge_of(&pod).until(), None);
}

fn charge_of(value: &Value) -> Charge {
    charge(value)
}

#[test]
fn overhead_is_part_of_requests_and_of_present_limits() {
    let pod = json!({"spec": {
        "overhead": {"cpu": "1", "memory": "1Mi"},
        "containers": [container("a", json!({"cpu": "1"}), json!({"cpu": "2", "memory": "0"}))],
    }});
    let expected = "count/pods=1,cpu=2,limits.cpu=3,limits.memory=0,memory=1Mi,pods=1,\
                    requests.cpu=2,requests.memory=1Mi";
    assert_eq!(usage(&pod), expected);
}

#[test]
fn resources_of_the_pod_replace_those_of_its_containers() {
    let value = json!({"spec": {
        "resources": {
            "requests": {"memory": "1Mi", "example.com/x": "9"},
            "limits": {"memory": "2Mi"},
        },
        "containers": [container(
            "a",
            json!({"ephemeral-storage": "32Mi", "memory": "512Ki"}),
            json!({"ephemeral-storage": "64Mi"}),
        )],
    }});
    let expected = "count/pods=1,ephemeral-storage=32Mi,limits.ephemeral-storage=64Mi,\
                    limits.memory=2Mi,memory=1Mi,\
                    pods=1,requests.ephemeral-storage=32Mi,requests.memory=1Mi";
    assert_eq!(usage(&value), expected);
    for (resources, expected) in [
        (
            json!({"requests": {"cpu": "1m"}, "limits": {"cpu": "2m"}}),
            "count/pods=1,cpu=1m,limits.cpu=2m,pods=1,requests.cpu=1m",
        ),
        (
            json!({"requests": {"memory": "1Mi"}, "limits": {"memory": "2Mi"}}),
            "count/pods=1,limits.memory=2Mi,memory=1Mi,pods=1,requests.memory=1Mi",
        ),
    ] {
        assert_eq!(usage(&json!({"spec": {"resources": resources}})), expected);
    }
    let mut gates = Gates::default();
    gates.pod_level_resources = false;
    let without = pod_charge(&pod(&value), gates).usage(NOW).to_string();
    assert!(without.contains(",memory=512Ki,"), "{without}");
}

#[test]
fn resize_charges_the_larger_of_specification_and_status() {
    let resizing = |requests: Value, status: Value| {
        usage(&json!({
            "spec": {"containers": [container("a", requests, json!({"cpu": "200m"}))]},
            "status": {"containerStatuses": [status]},
        }))
    };
    let smaller = json!({"name": "a", "resources": {"requests": {"cpu": "50m"}}});
    let larger =
        json!({"name": "a", "resources": {"requests": {"cpu": "150m"}, "limits": {"cpu": "300m"}}});
    let request = json!({"cpu": "100m"});
    let shown = |cpu: &str, limit: &str| {
        format!("count/pods=1,cpu={cpu},limits.cpu={limit},pods=1,requests.cpu={cpu}")
    };
    assert_eq!(resizing(request.clone(), smaller), shown("100m", "200m"));
    assert_eq!(resizing(request.clone(), larger), shown("150m", "300m"));
    assert_eq!(resizing(request.clone(), json!({"name": "a"})), shown("100m", "200m"));
    let allocated = json!({"name": "a", "allocatedResources": {"cpu": "400m"}});
    assert_eq!(resizing(request.clone(), allocated), shown("400m", "200m"));
    let other = json!({"name": "b", "allocatedResources": {"cpu": "400m"}});
    assert_eq!(resizing(request, other), shown("100m", "200m"));
    // Upstream's cases name no containers, and have memory too.
    let both = |status: Value| {
        usage(&json!({
            "spec": {"containers": [{"resources": {
                "requests": {"cpu": "100m", "memory": "200Mi"},
                "limits": {"cpu": "200m", "memory": "400Mi"},
            }}]},
            "status": {"containerStatuses": [status]},
        }))
    };
    let expected = |cpu: &str, memory: &str| {
        format!(
            "count/pods=1,cpu={cpu},limits.cpu=200m,limits.memory=400Mi,memory={memory},pods=1,\
             requests.cpu={cpu},requests.memory={memory}"
        )
    };
    let in_effect = |cpu: &str, memory: &str| {
        let requests = json!({"cpu": cpu, "memory": memory});
        json!({"resources": {"requests": requests}})
    };
    assert_eq!(both(in_effect("150m", "150Mi")), expected("150m", "200Mi"));
    assert_eq!(both(in_effect("150m", "250Mi")), expected("150m", "250Mi"));
    assert_eq!(both(json!({})), expected("100m", "200Mi"));
}

#[test]
fn refused_resize_charges_what_is_in_effect() {
    let value = json!({
        "spec": {"containers": [container("a", json!({"cpu": "4"}), json!({"cpu": "8"}))]},
        "status": {
            "conditions": [{"type": "PodResizePending", "reason": "Infeasible"}],
            "containerStatuses": [{
                "name": "a",
                "allocatedResources": {"cpu": "2"},
                "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "3"}},
            }],
        },
    });
    let pod = pod(&value);
    let mut options = PodResourcesOptions::default();
    assert_eq!(pod_requests(&pod, options).to_string(), "cpu=2");
    assert_eq!(pod_limits(&pod, options).to_string(), "cpu=3");
    options.use_status_resources = false;
    assert_eq!(pod_requests(&pod, options).to_string(), "cpu=4");
    assert_eq!(pod_limits(&pod, options).to_string(), "cpu=8");
}

#[test]
fn sidecar_runs_beside_later_init_containers_and_containers() {
    let sidecar =
        |cpu: &str| json!({"restartPolicy": "Always", "resources": {"requests": {"cpu": cpu}}});
    let plain = |cpu: &str| json!({"resources": {"requests": {"cpu": cpu}}});
    for (init, containers, expected) in [
        (json!([sidecar("1")]), json!([plain("1")]), "cpu=2"),
        (json!([sidecar("1"), sidecar("2"), sidecar("3")]), json!([plain("1")]), "cpu=7"),
        (json!([sidecar("1"), sidecar("2"), plain("5")]), json!([plain("1")]), "cpu=8"),
        (json!([plain("5"), sidecar("1"), sidecar("2")]), json!([plain("1")]), "cpu=5"),
        (json!([sidecar("10"), plain("200")]), json!([plain("100")]), "cpu=210"),
    ] {
        let value = json!({"spec": {"initContainers": init, "containers": containers}});
        assert_eq!(
            pod_requests(&pod(&value), PodResourcesOptions::default()).to_string(),
            expected
        );
    }
}

#[test]
fn constraints_name_what_each_container_lacks() {
    let evaluator = Evaluator::pods(Gates::default());
    let check = |spec: Value, required: &[&str]| {
        let object = Object::read(evaluator.resource(), &json!({"spec": spec})).unwrap();
        evaluator.check_constraints(&names(required), &object).map_err(|error| error.to_string())
    };
    let cpu = |name: &str| container(name, json!({"cpu": "1m"}), json!({"cpu": "2m"}));
    let bare = |name: &str| json!({"name": name});
    let lacks = |text: &str| Err(text.to_owned());
    for place in ["containers", "initContainers"] {
        assert_eq!(
            check(json!({place: [cpu("dummy")]}), &["memory"]),
            lacks("must specify memory for: dummy")
        );
        assert_eq!(
            check(json!({place: [cpu("foo"), cpu("bar")]}), &["memory"]),
            lacks("must specify memory for: bar,foo")
        );
        assert_eq!(
            check(json!({place: [cpu("a")]}), &["cpu", "limits.cpu", "requests.cpu", "pods"]),
            Ok(())
        );
    }
    assert_eq!(
        check(json!({"containers": [bare("foo"), bare("bar")]}), &["memory", "cpu", "pods"]),
        lacks("must specify cpu for: bar,foo; memory for: bar,foo")
    );
    let mixed = json!({"containers": [cpu("a"), bare("b")], "initContainers": [bare("c")]});
    assert_eq!(
        check(mixed, &["limits.cpu", "requests.memory", "limits.ephemeral-storage"]),
        lacks("must specify limits.cpu for: b,c; requests.memory for: a,b,c")
    );
    let of_pod = json!({"resources": {"requests": {"cpu": "1m"}},
                        "containers": [bare("foo"), bare("bar")]});
    assert_eq!(check(of_pod, &["memory", "cpu"]), Ok(()));
}

#[test]
fn matching_resources_are_sorted_then_in_input_order() {
    let evaluator = Evaluator::pods(Gates::default());
    let list = names(&[
        "requests.hugepages-2Mi",
        "pods",
        "requests.example.com/gpu",
        "hugepages-1Gi",
        "count/pods",
        "requests.deviceclass.resource.kubernetes.io/gpu",
        "services",
        "cpu",
        "requests.kubernetes.io/x",
        "example.com/gpu",
        "foobars.example.com",
        "limits.example.com/gpu",
    ]);
    assert_eq!(
        evaluator.matching_resources(&list, &DeviceClassMapping::default()),
        [
            "count/pods",
            "cpu",
            "pods",
            "requests.hugepages-2Mi",
            "requests.example.com/gpu",
            "hugepages-1Gi",
            "requests.deviceclass.resource.kubernetes.io/gpu",
        ]
    );
}

#[test]
fn scopes_follow_from_the_pod() {
    let matched = |pod: Value, requirements: &[ScopeRequirement]| -> Vec<String> {
        let charge = charge(&json!({"spec": pod}));
        let in_scope = requirements.iter().filter(|it| it.matches(charge.scopes()).unwrap());
        in_scope.map(|it| format!("{} {}", it.scope_name, it.operator)).collect()
    };
    let exists = |name| ScopeRequirement::new(name, "Exists", [""; 0]);
    let all = [
        "Terminating",
        "NotTerminating",
        "BestEffort",
        "NotBestEffort",
        "PriorityClass",
        "CrossNamespacePodAffinity",
        "Unknown",
    ]
    .map(exists);
    assert_eq!(matched(json!({}), &all), ["NotTerminating Exists", "BestEffort Exists"]);
    let busy = json!({
        "activeDeadlineSeconds": 30,
        "priorityClassName": "class1",
        "containers": [container("a", json!({"cpu": "1"}), json!({}))],
    });
    assert_eq!(
        matched(busy.clone(), &all),
        ["Terminating Exists", "NotBestEffort Exists", "PriorityClass Exists"]
    );
    let classes = [
        ScopeRequirement::new("PriorityClass", "In", ["class1", "class2"]),
        ScopeRequirement::new("PriorityClass", "NotIn", ["class1"]),
        ScopeRequirement::new("PriorityClass", "DoesNotExist", [""; 0]),
    ];
    assert_eq!(matched(busy, &classes), ["PriorityClass In"]);
    assert_eq!(matched(json!({}), &classes), ["PriorityClass NotIn", "PriorityClass DoesNotExist"]);
    assert_eq!(matched(json!({"activeDeadlineSeconds": -1}), &all[..1]), [""; 0]);
    assert_eq!(matched(json!({"activeDeadlineSeconds": 0}), &all[..1]), ["Terminating Exists"]);
}

#[test]
fn affinity_to_other_namespaces_is_a_scope() {
    let crosses = |spec: Value| match charge(&json!({"spec": {"affinity": spec}})).scopes() {
        ScopeFacts::Pod(pod) => pod.cross_namespace_pod_affinity,
        other => panic!("{other:?}"),
    };
    let required = "requiredDuringSchedulingIgnoredDuringExecution";
    let preferred = "preferredDuringSchedulingIgnoredDuringExecution";
    for kind in ["podAffinity", "podAntiAffinity"] {
        for (term, expected) in [
            (json!({"namespaces": ["ns1"]}), true),
            (json!({"namespaceSelector": {}}), true),
            (json!({"namespaceSelector": {"matchLabels": {"a": "b"}}}), true),
            (json!({"namespaceSelector": null, "namespaces": []}), false),
            (json!({}), false),
        ] {
            assert_eq!(crosses(json!({kind: {required: [{}, term]}})), expected, "{kind} {term}");
            let weighted = json!({"weight": 1, "podAffinityTerm": term});
            assert_eq!(crosses(json!({kind: {preferred: [weighted]}})), expected, "{kind} {term}");
        }
    }
}

#[test]
fn quality_of_service_follows_cpu_and_memory() {
    use QosClass::{BestEffort, Burstable, Guaranteed};
    let both = |cpu: &str, memory: &str| json!({"cpu": cpu, "memory": memory});
    let guaranteed = (both("100m", "100Mi"), both("100m", "100Mi"));
    let idle = (json!({"ephemeral-storage": "10Gi"}), json!({"ephemeral-storage": "10Gi"}));
    let zero = (both("0", "0"), json!({}));
    let of = |list: &[&(Value, Value)]| {
        let containers: Vec<Value> = list
            .iter()
            .map(|(requests, limits)| container("", requests.clone(), limits.clone()))
            .collect();
        compute_qos_class(&pod(&json!({"spec": {"containers": containers}})), Gates::default())
    };
    let burstable = [
        (both("100m", "100Mi"), both("200m", "200Mi")),
        (both("100m", "100Mi"), both("100m", "200Mi")),
        (both("100m", "100Mi"), json!({})),
        (both("100m", "100Mi"), json!({"cpu": "100m"})),
        (json!({"cpu": "100m"}), json!({"cpu": "100m"})),
    ];
    assert_eq!(of(&[]), BestEffort);
    assert_eq!(of(&[&guaranteed]), Guaranteed);
    assert_eq!(of(&[&guaranteed, &guaranteed]), Guaranteed);
    assert_eq!(of(&[&idle, &zero]), BestEffort);
    assert_eq!(of(&[&guaranteed, &zero]), Burstable);
    for list in &burstable {
        assert_eq!(of(&[list]), Burstable, "{list:?}");
        assert_eq!(of(&[&idle, list]), Burstable, "{list:?}");
    }
}

#[test]
fn resources_of_the_pod_decide_its_quality_of_service() {
    use QosClass::{BestEffort, Guaranteed};
    let list = json!({"cpu": "100m", "memory": "100Mi"});
    let of = |resources: Value, fixed: bool, enabled: bool| {
        let mut gates = Gates::default();
        gates.pod_level_resources = enabled;
        gates.pod_level_resources_fix_kubelet_qos_class = fixed;
        let containers = [container("", list.clone(), list.clone())];
        compute_qos_class(
            &pod(&json!({"spec": {"resources": resources, "containers": containers}})),
            gates,
        )
    };
    let zero =
        json!({"requests": {"cpu": "0", "memory": "0"}, "limits": {"cpu": "0", "memory": "0"}});
    for (resources, fixed, expected) in [
        (json!(null), true, Guaranteed),
        (json!({}), true, Guaranteed),
        (json!({"requests": {}, "limits": {}}), true, Guaranteed),
        (json!({"requests": {"example.com/x": "1"}}), true, Guaranteed),
        (json!({}), false, BestEffort),
        (json!({"requests": {}, "limits": {}}), false, BestEffort),
        (zero.clone(), true, BestEffort),
        (zero.clone(), false, BestEffort),
    ] {
        assert_eq!(of(resources.clone(), fixed, true), expected, "{resources} {fixed}");
    }
    assert_eq!(of(zero, true, false), Guaranteed);
}

#[test]
fn class_in_the_status_precedes_the_computed_class() {
    let value = json!({"spec": {"containers": []}, "status": {"qosClass": "Burstable"}});
    match charge(&value).scopes() {
        ScopeFacts::Pod(pod) => assert!(!pod.best_effort),
        other => panic!("{other:?}"),
    }
}

#[test]
fn pods_are_handled_when_their_charge_may_rise() {
    let evaluator = Evaluator::pods(Gates::default());
    let object = |seconds: Value| {
        Object::read(evaluator.resource(), &json!({"spec": {"activeDeadlineSeconds": seconds}}))
            .unwrap()
    };
    let (with, without, later) = (object(json!(1)), object(json!(null)), object(json!(2)));
    let handles =
        |operation, subresource, old, new| evaluator.handles(operation, subresource, old, new);
    assert!(handles(Operation::Create, "", None, &with));
    assert!(handles(Operation::Update, "", Some(&with), &without));
    assert!(handles(Operation::Update, "", Some(&without), &with));
    assert!(!handles(Operation::Update, "", Some(&with), &later));
    assert!(!handles(Operation::Create, "binding", None, &with));
    assert!(!handles(Operation::Update, "status", Some(&with), &without));
    assert!(handles(Operation::Update, "resize", Some(&with), &with));
    assert!(!handles(Operation::Create, "resize", None, &with));
}

#[test]
fn unreadable_pod_is_an_error() {
    let evaluator = Evaluator::pods(Gates::default());
    for pod in [
        json!({"spec": {"containers": "none"}}),
        json!({"spec": {"containers": [{"resources": {"requests": {"cpu": "x"}}}]}}),
        json!({"spec": {"activeDeadlineSeconds": "1"}}),
        json!({"metadata": {"deletionTimestamp": "yesterday"}}),
    ] {
        assert!(Object::read(evaluator.resource(), &pod).is_err(), "{pod}");
    }
    let service = Object::read(Evaluator::services().resource(), &json!({})).unwrap();
    let error = evaluator.charge(&service, &DeviceClassMapping::default()).unwrap_err();
    assert_eq!(error.to_string(), "the object is not of resource pods");
}
