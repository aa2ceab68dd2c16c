//! Checks of volumes.

use std::collections::BTreeSet;

use serde_json::Value;

use super::Violation;
use super::pod::{PodView, named, plural, sorted};
use crate::fields::text;

/// The types that each level permits.
const SAFE: [&str; 9] = [
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "image",
    "persistentVolumeClaim",
    "projected",
    "secret",
];
const HOST_PATH: &str = "hostPath";
/// The other types, in the order in which a message looks for them.
const UNSAFE: [&str; 21] = [
    HOST_PATH,
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "gitRepo",
    "nfs",
    "iscsi",
    "glusterfs",
    "rbd",
    "flexVolume",
    "cinder",
    "cephfs",
    "flocker",
    "fc",
    "azureFile",
    "vsphereVolume",
    "quobyte",
    "azureDisk",
    "photonPersistentDisk",
    "portworxVolume",
    "scaleIO",
    "storageos",
];

pub(super) fn host_paths(pod: PodView<'_>, _: i64) -> Option<Violation> {
    let bad: Vec<&str> = volumes(pod).filter(|one| has(one, HOST_PATH)).map(name).collect();
    let detail = named("volume", &bad);
    (!bad.is_empty()).then_some(Violation { reason: "hostPath volumes", detail })
}

pub(super) fn types(pod: PodView<'_>, _: i64) -> Option<Violation> {
    let is_safe = |volume: &&Value| SAFE.iter().any(|kind| has(volume, kind));
    let bad: Vec<&Value> = volumes(pod).filter(|volume| !is_safe(volume)).collect();
    let kind = |volume: &&Value| {
        let mut kinds = UNSAFE.iter();
        kinds.find(|kind| has(volume, kind)).copied().unwrap_or("unknown")
    };
    let kinds: BTreeSet<&str> = bad.iter().map(kind).collect();
    let names: Vec<&str> = bad.iter().copied().map(name).collect();
    let detail = format!(
        "{} {} {} {}",
        named("volume", &names),
        plural(names.len(), "uses", "use"),
        plural(kinds.len(), "restricted volume type", "restricted volume types"),
        sorted(&kinds)
    );
    (!bad.is_empty()).then_some(Violation { reason: "restricted volume types", detail })
}

fn volumes(pod: PodView<'_>) -> impl Iterator<Item = &Value> {
    pod.spec["volumes"].as_array().into_iter().flatten()
}

fn name(volume: &Value) -> &str {
    text(volume, "name")
}

fn has(volume: &Value, kind: &str) -> bool {
    !volume[kind].is_null()
}
