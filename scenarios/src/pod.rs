//! A projection of a pod: the fields that the scenarios read. Decoding all others would take most
//! of the time of a user who looks at the pods in each minute.

use std::borrow::Cow;

use homeostat::kube_client::core::{NamespaceResourceScope, Resource};
use k8s_openapi::api::core::v1 as core;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference, Time};
use serde::{Deserialize, Deserializer};

/// The fields of a pod that the scenarios read.
#[derive(Clone, Debug, Deserialize)]
pub struct Pod {
    /// The name, the owners and the time of the deletion; nothing else.
    #[serde(deserialize_with = "read_metadata")]
    pub metadata: ObjectMeta,
    #[serde(default)]
    status: Status,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Status {
    conditions: Vec<Condition>,
}

#[derive(Clone, Debug, Deserialize)]
struct Condition {
    #[serde(rename = "type")]
    kind: String,
    status: String,
}

// === impl Pod ===

impl Pod {
    /// Returns true if the condition `Ready` is true.
    pub(crate) fn is_ready(&self) -> bool {
        let mut conditions = self.status.conditions.iter();
        conditions.any(|condition| condition.kind == "Ready" && condition.status == "True")
    }
}

impl Resource for Pod {
    type DynamicType = ();
    type Scope = NamespaceResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        core::Pod::kind(&())
    }

    fn group((): &()) -> Cow<'_, str> {
        core::Pod::group(&())
    }

    fn version((): &()) -> Cow<'_, str> {
        core::Pod::version(&())
    }

    fn plural((): &()) -> Cow<'_, str> {
        core::Pod::plural(&())
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

fn read_metadata<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ObjectMeta, D::Error> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Metadata {
        name: Option<String>,
        deletion_timestamp: Option<Time>,
        owner_references: Option<Vec<OwnerReference>>,
    }
    let Metadata { name, deletion_timestamp, owner_references } =
        Metadata::deserialize(deserializer)?;
    Ok(ObjectMeta { name, deletion_timestamp, owner_references, ..ObjectMeta::default() })
}
