//! The field managers that requests and objects name.

use homeostat_core::go_quote;
use serde_json::Value;

use crate::fields::Fields;
use crate::names::is_printable;
use crate::status::Cause;

/// The longest name of a field manager, in bytes.
pub(crate) const MAX_MANAGER: usize = 128;

/// The longest name of a subresource.
const MAX_SUBRESOURCE: usize = 256;

/// The operations that make a manager the owner of fields.
const OPERATIONS: [&str; 2] = ["Apply", "Update"];

/// Checks the name of a manager, which stands at a path.
pub(crate) fn check_manager(name: &str, path: &str, causes: &mut Vec<Cause>) {
    if name.len() > MAX_MANAGER {
        causes.push(Cause::too_long(path, MAX_MANAGER));
    }
    for (at, c) in name.char_indices() {
        if !is_printable(c) {
            let detail = format!("invalid character U+{:04X} (at position {at})", u32::from(c));
            causes.push(Cause::invalid_text(path, &go_quote(name), &detail));
        }
    }
}

/// Returns the managers of an object. They are packed, except in an object inside of another one.
pub(crate) fn managers_of(object: &Fields) -> Option<&Value> {
    object.get("metadata")?.get("managedFields")
}

/// Checks managers, packed or not.
pub(crate) fn check_managers(managers: Option<&Value>, causes: &mut Vec<Cause>) {
    let entries = match managers {
        Some(Value::String(packed)) => serde_json::from_str(packed).unwrap_or_default(),
        Some(Value::Array(entries)) => entries.clone(),
        _ => return,
    };
    for (at, entry) in entries.iter().enumerate() {
        check_entry(entry, &format!("metadata.managedFields[{at}]"), causes);
    }
}

fn check_entry(entry: &Value, path: &str, causes: &mut Vec<Cause>) {
    let text = |name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default();
    let path = |name: &str| format!("{path}.{name}");
    let operation = text("operation");
    if operation.is_empty() {
        causes.push(Cause::required(path("operation"), "must not be empty"));
    } else if !OPERATIONS.contains(&operation) {
        causes.push(Cause::unsupported(path("operation"), &operation.into(), &OPERATIONS));
    }
    let fields_type = text("fieldsType");
    if !matches!(fields_type, "" | "FieldsV1") {
        let detail = "must be `FieldsV1`";
        causes.push(Cause::invalid(path("fieldsType"), &fields_type.into(), detail));
    }
    check_manager(text("manager"), &path("manager"), causes);
    if text("subresource").len() > MAX_SUBRESOURCE {
        causes.push(Cause::too_long(path("subresource"), MAX_SUBRESOURCE));
    }
}
