//! What secrets and config maps do: data that can be frozen.

use serde_json::{Value, json};

use crate::object::Fields;
use crate::status::Cause;

/// The type of a secret stays.
pub(super) fn inherit(_secret: &mut Fields, _old: &Fields) {}

pub(super) fn validate(secret: &Fields, old: Option<&Fields>, causes: &mut Vec<Cause>) {
    validate_frozen(secret, old, &["stringData", "data"], causes);
}

pub(super) fn validate_config_map(map: &Fields, old: Option<&Fields>, causes: &mut Vec<Cause>) {
    validate_frozen(map, old, &["data", "binaryData"], causes);
}

fn validate_frozen(new: &Fields, old: Option<&Fields>, data: &[&str], causes: &mut Vec<Cause>) {
    let Some(old) = old.filter(|old| old.get("immutable") == Some(&json!(true))) else { return };
    if new.get("immutable") != Some(&json!(true)) {
        causes.push(Cause::forbidden("immutable", "field is immutable when `immutable` is set"));
    }
    let empty = |value: Option<&Value>| value.cloned().unwrap_or_else(|| json!({}));
    for key in data {
        if empty(new.get(*key)) != empty(old.get(*key)) {
            causes.push(Cause::forbidden(*key, "field is immutable when `immutable` is set"));
        }
    }
}
