//! The field managers that requests and objects name.

use homeostat_core::go_quote;
use serde_json::Value;

use crate::fields::Fields;
use crate::kinds::Kind;
use crate::names::is_printable;
use crate::status::Cause;

/// The longest name of a field manager, in bytes.
pub(crate) const MAX_MANAGER: usize = 128;

/// The longest name of a subresource.
const MAX_SUBRESOURCE: usize = 256;

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

/// Checks the managers of an object, which are packed.
pub(super) fn check_managers(kind: &Kind, object: &Fields, causes: &mut Vec<Cause>) {
    let times = if kind.custom { 3 } else { 1 };
    let packed = object.get("metadata").and_then(|metadata| metadata.get("managedFields"));
    let entries = packed.and_then(Value::as_str).map(serde_json::from_str::<Vec<Value>>);
    for (at, entry) in entries.and_then(Result::ok).iter().flatten().enumerate() {
        let text = |name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default();
        let path = |name: &str| format!("metadata.managedFields[{at}].{name}");
        let mut found = Vec::new();
        check_manager(text("manager"), &path("manager"), &mut found);
        if text("subresource").len() > MAX_SUBRESOURCE {
            found.push(Cause::too_long(path("subresource"), MAX_SUBRESOURCE));
        }
        for _ in 0..times {
            causes.extend(found.iter().cloned());
        }
    }
}
