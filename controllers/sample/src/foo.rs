//! [`Foo`], the custom resource: its fields, and the definition that a server installs.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The desired state of a Foo.
///
/// A member that is absent has its default, as in Go. So every Foo with a `spec` decodes.
#[derive(CustomResource, JsonSchema, Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[kube(group = "samplecontroller.k8s.io", version = "v1alpha1", kind = "Foo", namespaced)]
#[kube(status = "FooStatus", derive = "PartialEq")]
#[kube(doc = "A Deployment of nginx with a name and a number of replicas.")]
#[kube(annotation(
    "api-approved.kubernetes.io",
    "unapproved, experimental-only; please get an approval from Kubernetes API reviewers if \
     you're trying to develop a CRD in the *.k8s.io or *.kubernetes.io groups"
))]
#[kube(printcolumn = r#"{"name":"Deployment","type":"string","jsonPath":".spec.deploymentName"}"#)]
#[kube(printcolumn = r#"{"name":"Desired","type":"integer","jsonPath":".spec.replicas"}"#)]
#[kube(printcolumn = r#"{"name":"Available","type":"integer",
                         "jsonPath":".status.availableReplicas"}"#)]
#[kube(printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#)]
#[serde(default, rename_all = "camelCase")]
pub struct FooSpec {
    /// The name of the Deployment. A Foo without it has none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub deployment_name: String,
    /// The number of replicas. Without it the Deployment keeps its own number, 1 at first.
    #[schemars(range(min = 1, max = 10))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
}

/// The observed state of a Foo.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct FooStatus {
    /// The number of available replicas of the Deployment.
    pub available_replicas: i32,
}

#[cfg(test)]
mod tests;
