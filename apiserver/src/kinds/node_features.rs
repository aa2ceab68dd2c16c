//! The features that a node declares, and the updates of a pod that need one (the plugin
//! `NodeDeclaredFeatureValidator`).

use serde_json::Value;

use super::columns::{Guard, GuardedWrite};
use crate::fields::{Fields, read_path, text};
use crate::plugin::AdmissionPlugin;

/// The check of a write to a pod.
pub(super) const OF_POD: Guard = guard("");
/// The check of a resize.
pub(super) const OF_RESIZE: Guard = guard("resize");

const fn guard(subresource: &'static str) -> Guard {
    let plugin = AdmissionPlugin::NodeDeclaredFeatureValidator;
    Guard { plugin, subresource, check }
}

/// Returns true if an update to the first state, from the second one, needs the feature.
type IsNeeded = fn(&Fields, &Fields) -> bool;

/// The features, in the order of messages.
const FEATURES: [(&str, IsNeeded); 2] = [
    ("InPlacePodLevelResourcesVerticalScaling", resizes_pod),
    ("InPlacePodVerticalScalingInitContainers", resizes_init_container),
];

fn check(write: &GuardedWrite<'_>) -> Result<(), String> {
    const GENERATION: &str = "metadata.generation";
    let Some(old) = write.old else { return Ok(()) };
    let name = read_path(write.new, "spec.nodeName").and_then(Value::as_str).unwrap_or_default();
    if name.is_empty() || read_path(write.new, GENERATION) == read_path(old, GENERATION) {
        return Ok(());
    }
    let needed = FEATURES.iter().filter(|(_, is_needed)| is_needed(write.new, old));
    let mut needed: Vec<&str> = needed.map(|(feature, _)| *feature).collect();
    if needed.is_empty() {
        return Ok(());
    }
    let node = (write.find)("", "nodes", name);
    let node = node.ok_or_else(|| format!("node \"{name}\" not found"))?;
    let declared = read_path(&node, "status.declaredFeatures").and_then(Value::as_array);
    let has = |feature: &&str| declared.is_some_and(|all| all.iter().any(|one| one == feature));
    needed.retain(|feature| !has(feature));
    if needed.is_empty() {
        return Ok(());
    }
    let needed = needed.join(", ");
    Err(format!("pod update requires features {needed} which are not available on node \"{name}\""))
}

fn resizes_pod(new: &Fields, old: &Fields) -> bool {
    read_path(new, "spec.resources") != read_path(old, "spec.resources")
}

/// Returns true if an init container that ends has other resources.
fn resizes_init_container(new: &Fields, old: &Fields) -> bool {
    let list = |pod| read_path(pod, "spec.initContainers").and_then(Value::as_array);
    let pairs = list(old).into_iter().flatten().zip(list(new).into_iter().flatten());
    let ending = pairs.filter(|(old, _)| text(old, "restartPolicy") != "Always");
    ending.into_iter().any(|(old, new)| old["resources"] != new["resources"])
}
