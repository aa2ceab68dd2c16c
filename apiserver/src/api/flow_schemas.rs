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
use crate::flow_control::FlowControl;
use crate::kinds::Served;
use crate::object::Stored;

/// The name under which flow control writes.
const MANAGER: &str = "api-priority-and-fairness-config-consumer-v1";

const DANGLING: &str = "Dangling";

/// Sets the condition of each flow schema whose priority level has appeared or is gone.
///
/// It does nothing in a server without users, which has no priority levels of its own.
pub(super) fn report(core: &Core) {
    let Some(control) = core.flow_control() else { return };
    let [schemas, _] = core.kinds().flow_kinds();
    let stored = core.read(|storage| storage.objects(schemas.resource).clone());
    for (key, stored) in &stored {
        if let Some(new) = with_condition(core, &schemas, stored, &control) {
            // A client that writes in between reports, too.
            drop(core.put(schemas.resource, key, Some(stored.revision), schemas.encode(new)));
        }
    }
}

/// Returns the flow schema with its condition, which the server applies; `None` if it has it.
fn with_condition(
    core: &Core,
    schemas: &Served,
    stored: &Stored,
    control: &FlowControl,
) -> Option<Fields> {
    let old = &stored.packed_fields();
    let level = read_path(old, "spec.priorityLevelConfiguration.name")?.as_str()?;
    let (status, reason, found) = if control.has_level(level) {
        ("False", "Found", "and it exists")
    } else {
        ("True", "NotFound", "but there is no such object")
    };
    let message = format!(
        "This FlowSchema references the PriorityLevelConfiguration object named \"{level}\" {found}"
    );
    let now = rfc3339(core.clock.now());
    let wanted = json!({"type": DANGLING, "status": status, "reason": reason, "message": message,
        "lastTransitionTime": now});
    if condition(old).is_some_and(|known| is_same(known, &wanted)) {
        return None;
    }
    let config = json!({
        "apiVersion": schemas.kind.api_version(), "kind": schemas.kind.kind,
        "metadata": {"name": stored.selectable.name},
        "status": {"conditions": [wanted]},
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

fn condition(schema: &Fields) -> Option<&Value> {
    let conditions = read_path(schema, "status.conditions")?.as_array()?;
    conditions.iter().find(|condition| condition["type"] == DANGLING)
}

/// Returns true if two conditions are equal apart from their times.
fn is_same(known: &Value, wanted: &Value) -> bool {
    ["status", "reason", "message"].iter().all(|member| known[member] == wanted[member])
}
