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
    /// True if the condition `Ready` is true.
    #[serde(rename = "conditions", deserialize_with = "read_readiness")]
    is_ready: bool,
}

// === impl Pod ===

impl Pod {
    /// Returns true if the condition `Ready` is true.
    pub(crate) fn is_ready(&self) -> bool {
        self.status.is_ready
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

fn read_readiness<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    #[derive(Deserialize)]
    struct Condition<'a> {
        #[serde(rename = "type", borrow)]
        kind: Cow<'a, str>,
        #[serde(borrow)]
        status: Cow<'a, str>,
    }
    let conditions = Vec::<Condition<'_>>::deserialize(deserializer)?;
    let is_ready = |one: &Condition<'_>| one.kind == "Ready" && one.status == "True";
    Ok(conditions.iter().any(is_ready))
}
