//! [`plan`]: decides what one Foo needs. It is pure: no client, no cache, no clock.

use homeostat::owner::{controller_of, controller_reference};
use k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec};
use k8s_openapi::api::core::v1::{Container, PodSpec, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};

use crate::foo::{Foo, FooStatus};

/// The replicas of a Deployment whose `spec.replicas` is absent. The API server sets it.
const DEFAULT_REPLICAS: i32 = 1;

/// The next step for one Foo.
#[derive(Clone, Debug, PartialEq)]
pub enum Plan {
    /// The Foo is being deleted. The garbage collector deletes its Deployment.
    Nothing,
    /// The Foo names no Deployment.
    Unnamed,
    /// The Deployment does not exist: create it.
    Create(Box<Deployment>),
    /// Another owner, or none, controls the Deployment: leave it alone.
    Taken,
    /// The Deployment has another number of replicas: change that, and nothing else.
    Scale(Scale),
    /// The Deployment is as it should be. The status, if it must be written.
    Settled(Option<FooStatus>),
}

/// A change of the number of replicas, for the version of the Deployment that the plan has seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scale {
    /// The namespace of the Deployment.
    pub namespace: String,
    /// The name of the Deployment.
    pub name: String,
    /// Its UID.
    pub uid: Option<String>,
    /// Its version.
    pub resource_version: Option<String>,
    /// The number of replicas that it gets.
    pub replicas: i32,
}

/// Returns the next step for `foo`, whose Deployment is `deployment`.
///
/// # Examples
///
/// ```
/// use homeostat_sample::{Foo, FooSpec, Plan, plan};
///
/// let spec = FooSpec { deployment_name: "web".to_owned(), replicas: Some(2) };
/// let Plan::Create(deployment) = plan(&Foo::new("shop", spec), None) else { panic!() };
/// assert_eq!(deployment.spec.replicas, Some(2));
/// ```
pub fn plan(foo: &Foo, deployment: Option<&Deployment>) -> Plan {
    if foo.metadata.deletion_timestamp.is_some() {
        return Plan::Nothing;
    }
    if foo.spec.deployment_name.is_empty() {
        return Plan::Unnamed;
    }
    let Some(deployment) = deployment else {
        return Plan::Create(Box::new(deployment_of(foo)));
    };
    if !is_controlled_by(deployment, foo) {
        return Plan::Taken;
    }
    let current = deployment.spec.replicas;
    match foo.spec.replicas {
        Some(desired) if desired != current.unwrap_or(DEFAULT_REPLICAS) => {
            Plan::Scale(scale(&deployment.metadata, desired))
        }
        _ => Plan::Settled(status_change(foo, deployment)),
    }
}

/// Returns true if the controller reference of `deployment` has the UID of `foo`.
fn is_controlled_by(deployment: &Deployment, foo: &Foo) -> bool {
    controller_of(&deployment.metadata)
        .is_some_and(|owner| Some(&owner.uid) == foo.metadata.uid.as_ref())
}

fn scale(deployment: &ObjectMeta, replicas: i32) -> Scale {
    Scale {
        namespace: deployment.namespace.clone().unwrap_or_default(),
        name: deployment.name.clone().unwrap_or_default(),
        uid: deployment.uid.clone(),
        resource_version: deployment.resource_version.clone(),
        replicas,
    }
}

/// Returns the status of `foo`, unless it has it.
fn status_change(foo: &Foo, deployment: &Deployment) -> Option<FooStatus> {
    let available = deployment.status.as_ref().and_then(|status| status.available_replicas);
    let status = FooStatus { available_replicas: available.unwrap_or(0) };
    (foo.status.as_ref() != Some(&status)).then_some(status)
}

/// Returns the Deployment of `foo`, with the labels, image and owner of upstream's.
fn deployment_of(foo: &Foo) -> Deployment {
    let name = foo.metadata.name.clone().unwrap_or_default();
    let labels = [("app".to_owned(), "nginx".to_owned()), ("controller".to_owned(), name)];
    let nginx = Container {
        name: "nginx".to_owned(),
        image: Some("nginx:latest".to_owned()),
        ..Container::default()
    };
    Deployment {
        metadata: ObjectMeta {
            name: Some(foo.spec.deployment_name.clone()),
            namespace: foo.metadata.namespace.clone(),
            owner_references: controller_reference(foo).map(|owner| vec![owner]),
            ..ObjectMeta::default()
        },
        spec: DeploymentSpec {
            replicas: foo.spec.replicas,
            selector: LabelSelector {
                match_labels: Some(labels.clone().into()),
                ..LabelSelector::default()
            },
            template: PodTemplateSpec {
                metadata: Some(ObjectMeta { labels: Some(labels.into()), ..ObjectMeta::default() }),
                spec: Some(PodSpec { containers: vec![nginx], ..PodSpec::default() }),
            },
            ..DeploymentSpec::default()
        },
        status: None,
    }
}

#[cfg(test)]
pub(crate) mod tests;
