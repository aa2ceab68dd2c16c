use serde_json::json;

use super::*;

fn wrong(kind: &str, object: Value) -> Option<String> {
    let Value::Object(object) = object else { unreachable!() };
    let known = Types::all().of_kind("", "v1", kind).unwrap();
    wrong_member(known, &object).map(|wrong| wrong.decoded)
}

#[test]
fn first_wrong_type_in_text_is_reported() {
    let named = |spec: &str| {
        let body = super::super::read_in_order(spec.as_bytes()).unwrap();
        let pod = Types::all().of_kind("", "v1", "Pod").unwrap();
        wrong_in_order(pod, &body).unwrap().decoded
    };
    for (body, member) in [
        (r#"{"spec": {"restartPolicy": 1, "hostNetwork": "a"}}"#, "PodSpec.spec.restartPolicy"),
        (r#"{"spec": {"hostNetwork": "a", "restartPolicy": 1}}"#, "PodSpec.spec.hostNetwork"),
        (r#"{"spec": {"hostPID": "a", "hostPID": true}}"#, "PodSpec.spec.hostPID"),
        (r#"{"spec": {"hostPID": "a"}, "spec": {"containers": 1}}"#, "PodSpec.spec.hostPID"),
        (
            r#"{"spec": {"containers": [{"tty": 1}, {"image": 1}]}}"#,
            "Container.spec.containers.tty",
        ),
    ] {
        let found = named(body);
        assert!(found.contains(&format!("Go struct field {member} of")), "{body}: {found}");
    }
}

#[test]
fn error_of_type_with_own_decoder_comes_first() {
    let member = json!({"tty": 1, "resources": {"limits": {"cpu": "x"}}});
    let found = wrong("Pod", json!({"spec": {"containers": [member], "hostPID": 1}})).unwrap();
    assert!(found.starts_with("quantities must match"), "{found}");
    let found = wrong("Pod", json!({"metadata": {"annotations": 1, "deletionTimestamp": 5}}));
    assert!(found.unwrap().contains("ObjectMeta.metadata.deletionTimestamp of type string"));
}

#[test]
fn conversion_ends_at_first_member_of_gos_struct() {
    let restored = |container: Value| {
        let pod = json!({"spec": {"hostNetwork": 1, "containers": [container]}});
        let known = Types::all().of_kind("", "v1", "Pod").unwrap();
        wrong_member(known, pod.as_object().unwrap()).unwrap().restored
    };
    assert_eq!(
        restored(json!({"command": 1, "image": 1, "tty": "a"})),
        "cannot convert int64 to string"
    );
    assert_eq!(restored(json!({"name": "c"})), "unrecognized type: bool");
    let resources = json!({"limits": {"cpu": "x"}});
    let found = restored(json!({"lifecycle": 1, "resources": resources}));
    assert!(found.starts_with("quantities must match"), "{found}");
    let found = restored(json!({"args": 1, "resources": resources}));
    assert_eq!(found, "cannot restore slice from int64");
}

#[test]
fn changed_member_is_checked_beside_those_that_stay() {
    let pod = |value: Value| {
        let Value::Object(object) = value else { unreachable!() };
        object
    };
    let known = Types::all().of_kind("", "v1", "Pod").unwrap();
    let old = pod(json!({"spec": {"nodeName": "a", "priority": 1}, "status": {}}));
    let wrong =
        |spec: Value| wrong_change(known, &pod(json!({"spec": spec, "status": {}})), Some(&old));
    assert!(wrong(json!({"nodeName": "b", "priority": 1})).is_none());
    let found = wrong(json!({"nodeName": "a", "priority": "1"})).unwrap();
    let expected = "json: cannot unmarshal string into Go struct field PodSpec.spec.priority";
    assert!(found.decoded.starts_with(expected), "{}", found.decoded);
    assert!(wrong(json!({"nodeName": "a", "containers": [1]})).is_some());
}

#[test]
fn wrong_type_is_reported_with_gos_text() {
    let into = |what: &str| Some(format!("json: cannot unmarshal {what}"));
    for (spec, expected) in [
        (
            json!({"containers": {"a": 1}}),
            into("object into Go struct field PodSpec.spec.containers of type []v1.Container"),
        ),
        (
            json!({"containers": ["a"]}),
            into("string into Go struct field PodSpec.spec.containers of type v1.Container"),
        ),
        (
            json!({"restartPolicy": 3}),
            into(
                "number into Go struct field PodSpec.spec.restartPolicy of type \
                 v1.RestartPolicy",
            ),
        ),
        (
            json!({"nodeSelector": {"a": 1}}),
            into("number into Go struct field PodSpec.spec.nodeSelector of type string"),
        ),
        (
            json!({"terminationGracePeriodSeconds": 1.5}),
            into(
                "number 1.5 into Go struct field PodSpec.spec.terminationGracePeriodSeconds of \
                 type int64",
            ),
        ),
        (json!([]), into("array into Go struct field Pod.spec of type v1.PodSpec")),
        (
            json!({"containers": [{"resources": {"limits": ["a"]}}]}),
            into(
                "array into Go struct field \
                 ResourceRequirements.spec.containers.resources.limits of type v1.ResourceList",
            ),
        ),
        (
            json!({"containers": [{"resources": {"limits": {"cpu": "1.5", "memory": 7}}}],
                "hostNetwork": null}),
            None,
        ),
    ] {
        assert_eq!(wrong("Pod", json!({"spec": spec})), expected);
    }
    let number = json!({"data": {"a": 5}});
    assert_eq!(
        wrong("Secret", number),
        into("number into Go struct field Secret.data of type []uint8")
    );
    let bad = wrong("Secret", json!({"data": {"a": "!!"}}));
    assert_eq!(bad.as_deref(), Some("illegal base64 data at input byte 0"));
}

#[test]
fn path_of_a_wrong_type_names_the_structs_that_go_embeds() {
    let of_container = |member: Value| json!({"spec": {"containers": [member]}});
    for (kind, object, path) in [
        (
            "Pod",
            of_container(json!({"readinessProbe": {"httpGet": []}})),
            "Probe.spec.containers.readinessProbe.ProbeHandler.httpGet of type \
             v1.HTTPGetAction",
        ),
        (
            "Pod",
            of_container(json!({"readinessProbe": {"httpGet": {"path": 1}}})),
            "HTTPGetAction.spec.containers.readinessProbe.ProbeHandler.httpGet.path of type \
             string",
        ),
        (
            "Pod",
            of_container(json!({"readinessProbe": {"periodSeconds": []}})),
            "Probe.spec.containers.readinessProbe.periodSeconds of type int32",
        ),
        (
            "Pod",
            of_container(json!({"envFrom": [{"secretRef": {"name": 1}}]})),
            "SecretEnvSource.spec.containers.envFrom.secretRef.LocalObjectReference.name of \
             type string",
        ),
        (
            "PersistentVolume",
            json!({"spec": {"csi": "a"}}),
            "PersistentVolumeSpec.spec.PersistentVolumeSource.csi of type \
             v1.CSIPersistentVolumeSource",
        ),
    ] {
        let found = wrong(kind, object).unwrap();
        assert!(found.ends_with(&format!("into Go struct field {path}")), "{found}");
    }
    let rules = json!({"spec": {"matchConstraints": {"resourceRules": [{"scope": 1}]}}});
    let known = Types::all();
    let policy = known.of_kind("admissionregistration.k8s.io", "v1", POLICY).unwrap();
    let found = wrong_member(policy, rules.as_object().unwrap()).unwrap().decoded;
    let path = "spec.matchConstraints.resourceRules.RuleWithOperations.Rule.scope";
    assert!(found.contains(&format!("NamedRuleWithOperations.{path} of type")), "{found}");
}

const POLICY: &str = "ValidatingAdmissionPolicy";

#[test]
fn wrong_type_of_a_restored_member_is_reported_with_the_converters_text() {
    let restored = |spec: Value| {
        let Value::Object(object) = json!({"spec": spec}) else { unreachable!() };
        wrong_member(Types::all().of_kind("", "v1", "Service").unwrap(), &object)
            .map(|wrong| wrong.restored)
    };
    for (spec, expected) in [
        (json!({"selector": {"a": []}}), "unrecognized type: string"),
        (json!({"selector": {"a": 1}}), "cannot convert int64 to string"),
        (json!({"selector": []}), "cannot restore map from slice"),
        (json!({"type": 1}), "cannot convert int64 to v1.ServiceType"),
        (json!({"type": {}}), "unrecognized type: string"),
        (json!({"healthCheckNodePort": 1.5}), "cannot convert float64 to int32"),
        (json!({"sessionAffinityConfig": 1}), "cannot restore struct from: int64"),
        (
            json!({"ports": [{"targetPort": 1.5}]}),
            "json: cannot unmarshal number 1.5 into Go value of type int32",
        ),
    ] {
        assert_eq!(restored(spec).as_deref(), Some(expected));
    }
}
