use k8s_openapi::api::apps::v1::DeploymentStatus;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{OwnerReference, Time};

use super::*;
use crate::foo::FooSpec;

/// Returns the Foo `web` of the namespace `shop`, as a server has stored it.
pub(crate) fn foo(replicas: Option<i32>) -> Foo {
    let spec = FooSpec { deployment_name: "nginx".to_owned(), replicas };
    let mut foo = Foo::new("web", spec);
    foo.metadata.namespace = Some("shop".to_owned());
    foo.metadata.uid = Some("uid-of-foo".to_owned());
    foo.metadata.resource_version = Some("7".to_owned());
    foo
}

/// Returns the Deployment of `foo` as a server has stored it.
pub(crate) fn stored_deployment_of(foo: &Foo) -> Deployment {
    let mut deployment = deployment_of(foo);
    deployment.metadata.uid = Some("uid-of-deployment".to_owned());
    deployment.metadata.resource_version = Some("9".to_owned());
    deployment
}

fn settled(available: i32) -> Plan {
    Plan::Settled(Some(FooStatus { available_replicas: available }))
}

#[test]
fn missing_deployment_is_created_as_upstream_builds_it() {
    let Plan::Create(deployment) = plan(&foo(Some(3)), None) else { panic!("not created") };
    let expected = serde_json::json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {
            "name": "nginx", "namespace": "shop",
            "ownerReferences": [{
                "apiVersion": "samplecontroller.k8s.io/v1alpha1", "kind": "Foo", "name": "web",
                "uid": "uid-of-foo", "controller": true, "blockOwnerDeletion": true,
            }],
        },
        "spec": {
            "replicas": 3,
            "selector": { "matchLabels": { "app": "nginx", "controller": "web" } },
            "template": {
                "metadata": { "labels": { "app": "nginx", "controller": "web" } },
                "spec": { "containers": [{ "name": "nginx", "image": "nginx:latest" }] },
            },
        },
    });
    assert_eq!(serde_json::to_value(deployment).unwrap(), expected);
}

#[test]
fn deployment_with_the_desired_replicas_is_settled() {
    let mut web = foo(Some(2));
    let mut deployment = stored_deployment_of(&web);
    assert_eq!(plan(&web, Some(&deployment)), settled(0), "a new Foo gets a status");
    deployment.status =
        Some(DeploymentStatus { available_replicas: Some(2), ..DeploymentStatus::default() });
    assert_eq!(plan(&web, Some(&deployment)), settled(2));
    web.status = Some(FooStatus { available_replicas: 2 });
    assert_eq!(plan(&web, Some(&deployment)), Plan::Settled(None), "nothing is left to do");
}

#[test]
fn other_number_of_replicas_is_scaled_in_the_version_that_was_seen() {
    let deployment = stored_deployment_of(&foo(Some(2)));
    let expected = Scale {
        namespace: "shop".to_owned(),
        name: "nginx".to_owned(),
        uid: Some("uid-of-deployment".to_owned()),
        resource_version: Some("9".to_owned()),
        replicas: 5,
    };
    assert_eq!(plan(&foo(Some(5)), Some(&deployment)), Plan::Scale(expected));
}

#[test]
fn deployment_that_the_foo_does_not_control_is_left_alone() {
    let web = foo(Some(2));
    let mut other = stored_deployment_of(&web);
    let references = other.metadata.owner_references.take();
    assert_eq!(plan(&web, Some(&other)), Plan::Taken, "no owner");
    let mut not_controller = references.clone();
    not_controller.as_mut().unwrap()[0].controller = None;
    other.metadata.owner_references = not_controller;
    assert_eq!(plan(&web, Some(&other)), Plan::Taken, "an owner that is no controller");
    let set = OwnerReference {
        api_version: "apps/v1".to_owned(),
        kind: "ReplicaSet".to_owned(),
        uid: "uid-of-set".to_owned(),
        ..references.as_ref().unwrap()[0].clone()
    };
    other.metadata.owner_references = Some(vec![set]);
    assert_eq!(plan(&web, Some(&other)), Plan::Taken, "an owner of another kind");
    let earlier = OwnerReference { uid: "earlier".to_owned(), ..references.unwrap().remove(0) };
    other.metadata.owner_references = Some(vec![earlier]);
    assert_eq!(plan(&web, Some(&other)), Plan::Taken, "an earlier Foo of the same name");
}

#[test]
fn foo_without_replicas_leaves_the_number_alone() {
    let mut deployment = stored_deployment_of(&foo(None));
    assert_eq!(deployment.spec.replicas, None);
    assert_eq!(plan(&foo(None), Some(&deployment)), settled(0));
    deployment.spec.replicas = Some(4);
    assert_eq!(plan(&foo(None), Some(&deployment)), settled(0));
}

#[test]
fn absent_number_of_a_deployment_counts_as_one() {
    let deployment = stored_deployment_of(&foo(None));
    assert_eq!(plan(&foo(Some(1)), Some(&deployment)), settled(0));
    assert!(matches!(plan(&foo(Some(2)), Some(&deployment)), Plan::Scale(_)));
}

#[test]
fn foo_that_is_being_deleted_needs_nothing() {
    let mut web = foo(Some(2));
    let deployment = stored_deployment_of(&foo(Some(1)));
    web.metadata.deletion_timestamp = Some(Time(jiff::Timestamp::UNIX_EPOCH));
    assert_eq!(plan(&web, None), Plan::Nothing);
    assert_eq!(plan(&web, Some(&deployment)), Plan::Nothing);
    web.spec.deployment_name.clear();
    assert_eq!(plan(&web, None), Plan::Nothing);
}

#[test]
fn foo_without_a_deployment_name_is_unnamed() {
    let mut web = foo(Some(2));
    web.spec.deployment_name.clear();
    assert_eq!(plan(&web, None), Plan::Unnamed);
}

#[test]
fn image_and_labels_of_the_deployment_are_not_corrected() {
    let mut web = foo(Some(2));
    web.status = Some(FooStatus::default());
    let mut deployment = stored_deployment_of(&web);
    let template = &mut deployment.spec.template;
    template.metadata = None;
    template.spec.as_mut().unwrap().containers[0].image = Some("httpd".to_owned());
    assert_eq!(plan(&web, Some(&deployment)), Plan::Settled(None));
}
