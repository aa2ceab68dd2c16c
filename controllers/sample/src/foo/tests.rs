use homeostat::kube_client::core::CustomResourceExt as _;
use serde_json::{Value, json};

use super::*;

/// Upstream's manifest, as data: `artifacts/examples/crd-status-subresource.yaml` of
/// sample-controller v0.37.1.
fn upstream() -> Value {
    json!({
        "group": "samplecontroller.k8s.io",
        "names": { "kind": "Foo", "plural": "foos" },
        "scope": "Namespaced",
        "versions": [{
            "name": "v1alpha1", "served": true, "storage": true,
            "subresources": { "status": {} },
            "schema": { "openAPIV3Schema": { "type": "object", "properties": {
                "spec": { "type": "object", "properties": {
                    "deploymentName": { "type": "string" },
                    "replicas": { "type": "integer", "minimum": 1.0, "maximum": 10.0 },
                } },
                "status": { "type": "object", "properties": {
                    "availableReplicas": { "type": "integer" },
                } },
            } } },
        }],
    })
}

/// Returns the definition's spec without what only describes: texts, columns, formats, defaults.
fn bare(mut value: Value) -> Value {
    const DESCRIPTIVE: [&str; 7] = [
        "additionalPrinterColumns",
        "default",
        "description",
        "format",
        "nullable",
        "title",
        "singular",
    ];
    fn strip(value: &mut Value) {
        match value {
            Value::Object(members) => {
                members.retain(|name, member| {
                    strip(member);
                    let is_empty = member.as_array().is_some_and(Vec::is_empty);
                    !DESCRIPTIVE.contains(&name.as_str()) && !is_empty
                });
            }
            Value::Array(items) => items.iter_mut().for_each(strip),
            _ => {}
        }
    }
    strip(&mut value);
    value
}

#[test]
fn definition_is_upstreams_except_that_spec_is_required() {
    let definition = Foo::crd();
    assert_eq!(definition.metadata.name.as_deref(), Some("foos.samplecontroller.k8s.io"));
    let annotations = definition.metadata.annotations.unwrap();
    let approval = "unapproved, experimental-only; please get an approval from Kubernetes API \
        reviewers if you're trying to develop a CRD in the *.k8s.io or *.kubernetes.io groups";
    assert_eq!(annotations["api-approved.kubernetes.io"], approval);
    let mut spec = bare(serde_json::to_value(definition.spec).unwrap());
    let schema = &mut spec["versions"][0]["schema"]["openAPIV3Schema"];
    let required = schema.as_object_mut().unwrap().remove("required");
    assert_eq!(required, Some(json!(["spec"])));
    assert_eq!(spec, upstream());
}

#[test]
fn foo_that_upstream_accepts_decodes() {
    let decoded = |spec: Value, status: Value| {
        let foo = json!({
            "apiVersion": "samplecontroller.k8s.io/v1alpha1", "kind": "Foo",
            "metadata": { "name": "a" }, "spec": spec, "status": status,
        });
        serde_json::from_value::<Foo>(foo).unwrap()
    };
    let foo = decoded(json!({}), json!({}));
    assert_eq!((foo.spec.deployment_name.as_str(), foo.spec.replicas), ("", None));
    assert_eq!(foo.status, Some(FooStatus { available_replicas: 0 }));
    let foo = decoded(json!({ "deploymentName": "web", "replicas": null }), Value::Null);
    assert_eq!((foo.spec.deployment_name.as_str(), foo.spec.replicas), ("web", None));
    let foo = decoded(json!({ "replicas": 10, "later": [1] }), json!({ "availableReplicas": 3 }));
    assert_eq!((foo.spec.replicas, foo.status.unwrap().available_replicas), (Some(10), 3));
}

#[test]
fn foo_that_does_not_fit_is_an_error_and_no_panic() {
    for foo in [
        json!({ "metadata": { "name": "a" } }),
        json!({ "metadata": { "name": "a" }, "spec": null }),
        json!({ "metadata": { "name": "a" }, "spec": { "replicas": "3" } }),
        json!({ "metadata": { "name": "a" }, "spec": { "replicas": 2_147_483_648_u32 } }),
        json!({ "metadata": { "name": "a" }, "spec": { "replicas": 1.5 } }),
        json!({ "metadata": { "name": "a" }, "spec": { "deploymentName": 7 } }),
    ] {
        assert!(serde_json::from_value::<Foo>(foo.clone()).is_err(), "{foo}");
    }
}

#[test]
fn shipped_manifest_is_the_derived_definition() {
    let shipped: Value =
        serde_saphyr::from_str(include_str!("../../deploy/crd.yaml")).expect("the file is YAML");
    assert_eq!(shipped, serde_json::to_value(Foo::crd()).unwrap());
}
