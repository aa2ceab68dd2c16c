//! `/resize`: the check against the node.

use serde_json::{Value, json};

use crate::admission::meta_text;
use crate::core::Core;
use crate::fields::{Fields, read_path};
use crate::kinds::Served;
use crate::plugin::AdmissionPlugin;
use crate::status::{Failure, Result};

/// Checks that the node of a resized object can run it with its new resources.
///
/// An object without a node, and one whose spec stays as it is, passes.
pub(super) fn check_node(core: &Core, served: &Served, old: &Fields, new: &Fields) -> Result<()> {
    const GENERATION: &str = "metadata.generation";
    let node = read_path(new, "spec.nodeName").and_then(Value::as_str).unwrap_or("");
    let Some(resize) = served.kind.resize.filter(|_| !node.is_empty()) else { return Ok(()) };
    if !core.kinds().runs(AdmissionPlugin::PodResizeValidator)
        || read_path(old, GENERATION) == read_path(new, GENERATION)
    {
        return Ok(());
    }
    let (kind, name) = (&served.kind, meta_text(new, "name"));
    let Some(stored) = core.find("nodes", "", node) else {
        return Err(Failure::forbidden(kind, name, &format!("node \"{node}\" not found")));
    };
    (resize.check_node)(new, &stored.fields()).map_err(|refusal| {
        let mut failure = Failure::forbidden(kind, name, &refusal.detail);
        if let Some(details) = &mut failure.details {
            details["causes"] = json!([{"reason": refusal.reason}]);
        }
        failure
    })
}
