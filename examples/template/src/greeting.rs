//! [`Greeting`], the custom resource: its fields, and the definition that a server installs.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The desired state: what users write.
///
/// Each member has a default, so that objects which are older than a member decode.
#[derive(CustomResource, JsonSchema, Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[kube(group = "example.com", version = "v1", kind = "Greeting", namespaced)]
#[kube(status = "GreetingStatus", derive = "PartialEq")]
#[kube(printcolumn = r#"{"name":"Text","type":"string","jsonPath":".spec.text"}"#)]
#[serde(default, rename_all = "camelCase")]
pub struct GreetingSpec {
    /// The text to publish.
    pub text: String,
}

/// The observed state: what the controller reports.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct GreetingStatus {
    /// The `metadata.generation` that is published.
    pub observed_generation: i64,
}
