//! The conditions of a definition.

use serde_json::{Value, json};

use crate::fields::{Fields, read_path};

/// A condition without its time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Condition {
    kind: &'static str,
    status: &'static str,
    reason: String,
    message: String,
}

// === impl Condition ===

impl Condition {
    pub(crate) fn new(kind: &'static str, status: &'static str, reason: &str) -> Self {
        Self { kind, status, reason: reason.to_owned(), message: String::new() }
    }

    pub(crate) fn with_message(mut self, message: impl Into<String>) -> Self {
        self.message = message.into();
        self
    }

    /// Returns true if the definition has this condition, at whatever time.
    pub(super) fn is_set(&self, definition: &Fields) -> bool {
        find(definition, self.kind).is_some_and(|known| {
            known["status"] == self.status
                && known["reason"] == self.reason
                && known["message"] == self.message
        })
    }
}

/// Sets a condition. Its time changes with its status.
pub(crate) fn set(definition: &mut Fields, condition: &Condition, now: &str) {
    let Condition { kind, status, reason, message } = condition;
    let known = find(definition, kind);
    let since = known.filter(|known| known["status"] == *status);
    let since = since.and_then(|known| known.get("lastTransitionTime")).cloned();
    let new = json!({
        "type": kind, "status": status, "reason": reason, "message": message,
        "lastTransitionTime": since.unwrap_or_else(|| json!(now)),
    });
    let Some(status) = definition.get_mut("status").and_then(Value::as_object_mut) else { return };
    let list = status.entry("conditions").or_insert_with(|| json!([]));
    if !list.is_array() {
        *list = json!([]);
    }
    let Value::Array(list) = list else { return };
    match list.iter_mut().find(|known| known["type"] == *kind) {
        Some(known) => *known = new,
        None => list.push(new),
    }
}

/// Returns a condition of a definition.
pub(super) fn find<'a>(definition: &'a Fields, kind: &str) -> Option<&'a Value> {
    let list = read_path(definition, "status.conditions")?.as_array()?;
    list.iter().find(|condition| condition["type"] == *kind)
}

/// Returns true if a condition is true.
pub(crate) fn is_true(definition: &Fields, kind: &str) -> bool {
    find(definition, kind).is_some_and(|condition| condition["status"] == "True")
}

/// Returns the definition with a condition that it does not have yet.
pub(crate) fn with_condition(
    definition: &Fields,
    condition: &Condition,
    now: &str,
) -> Option<Fields> {
    if condition.is_set(definition) {
        return None;
    }
    let mut new = definition.clone();
    set(&mut new, condition, now);
    Some(new)
}
