//! The status of flow schemas: the condition `Dangling`, which the real server's flow control sets.

use homeostat_schema::Applied;
use serde_json::{Value, json};

use crate::admission::field_manager::FieldManager;
use crate::admission::owners::Ownership;
use crate::admission::target::Target;
use crate::admission::update::{self, Change, Outcome};
use crate::clock::rfc3339;
use crate::core::Core;
use crate::fields::{Fields, read_path};
use crate::kinds::Served;
use crate::object::Stored;

/// The name under which flow control writes.
const MANAGER: &str = "api-priority-and-fairness-config-consumer-v1";

/// Sets the condition of a new flow schema whose priority level exists.
pub(super) fn report_found(core: &Core, schemas: &Served, name: &str) {
    let Some(stored) = core.get(schemas.resource, name) else { return };
    let old = stored.packed_fields();
    if read_path(&old, "status.conditions").is_some() {
        return;
    }
    if let Some(new) = with_condition(core, schemas, &stored, &old) {
        drop(core.put(schemas.resource, name, Some(stored.revision), schemas.encode(new)));
    }
}

/// Returns the flow schema with its condition, which the server applies.
fn with_condition(core: &Core, schemas: &Served, stored: &Stored, old: &Fields) -> Option<Fields> {
    let now = rfc3339(core.clock.now());
    let level = read_path(old, "spec.priorityLevelConfiguration.name")?.as_str()?;
    let message = format!(
        "This FlowSchema references the PriorityLevelConfiguration object named \"{level}\" and it \
         exists"
    );
    let config = json!({
        "apiVersion": schemas.kind.api_version(), "kind": schemas.kind.kind,
        "metadata": {"name": stored.selectable.name},
        "status": {"conditions": [{"type": "Dangling", "status": "False", "reason": "Found",
            "message": message, "lastTransitionTime": now}]},
    });
    let Value::Object(config) = config else { return None };
    let (target, subresource) = (Target::Status, "status".to_owned());
    let name = MANAGER.to_owned();
    let manager = FieldManager { name, subresource, target, now, converter: None };
    let applied = manager.apply(&schemas.kind, Some(old), &config, true).ok()?;
    let Applied { object, owners, .. } = applied;
    let change = Change { old, new: object?, target, owners: &Ownership::Known(owners) };
    match update::prepare(&schemas.home, &schemas.kind, change, None, None) {
        Ok((Outcome::Store(new), _)) => Some(new),
        _ => None,
    }
}
