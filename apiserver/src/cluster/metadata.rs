//! Decodes the metadata that the actors use.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference, Time};
use serde::{Deserialize, Deserializer};

/// The members that the actors use.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct UsedMembers {
    annotations: Option<BTreeMap<String, String>>,
    creation_timestamp: Option<Time>,
    deletion_grace_period_seconds: Option<i64>,
    deletion_timestamp: Option<Time>,
    finalizers: Option<Vec<String>>,
    name: Option<String>,
    namespace: Option<String>,
    owner_references: Option<Vec<OwnerReference>>,
    resource_version: Option<String>,
    uid: Option<String>,
}

/// Decodes metadata, except for members that no actor uses: `managedFields` would take longer than
/// all others.
pub(super) fn deserialize<'de, D>(deserializer: D) -> Result<ObjectMeta, D::Error>
where
    D: Deserializer<'de>,
{
    let used = UsedMembers::deserialize(deserializer)?;
    Ok(ObjectMeta {
        annotations: used.annotations,
        creation_timestamp: used.creation_timestamp,
        deletion_grace_period_seconds: used.deletion_grace_period_seconds,
        deletion_timestamp: used.deletion_timestamp,
        finalizers: used.finalizers,
        name: used.name,
        namespace: used.namespace,
        owner_references: used.owner_references,
        resource_version: used.resource_version,
        uid: used.uid,
        ..ObjectMeta::default()
    })
}
