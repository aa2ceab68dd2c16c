//! The problem of one field of an object.

use homeostat_core::go_quote;
use homeostat_schema::FieldError;
use serde_json::{Value, json};

/// A problem of one field.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Cause {
    reason: &'static str,
    message: String,
    field: String,
}

// === impl Cause ===

impl Cause {
    /// Returns the problem of the same field of an object at a path, which ends with a point.
    pub(crate) fn below(self, path: &str) -> Self {
        Self { field: format!("{path}{}", self.field), ..self }
    }

    pub(crate) fn invalid(field: impl Into<String>, value: &Value, detail: &str) -> Self {
        let message = format!("Invalid value: {}: {detail}", shown(value));
        Self { reason: "FieldValueInvalid", message, field: field.into() }
    }

    /// An invalid value with a text of its own in place of its JSON.
    pub(crate) fn invalid_text(field: impl Into<String>, shown: &str, detail: &str) -> Self {
        let detail = if detail.is_empty() { String::new() } else { format!(": {detail}") };
        let message = format!("Invalid value: {shown}{detail}");
        Self { reason: "FieldValueInvalid", message, field: field.into() }
    }

    pub(crate) fn required(field: impl Into<String>, detail: &str) -> Self {
        let message = if detail.is_empty() {
            "Required value".to_owned()
        } else {
            format!("Required value: {detail}")
        };
        Self { reason: "FieldValueRequired", message, field: field.into() }
    }

    pub(crate) fn forbidden(field: impl Into<String>, detail: &str) -> Self {
        let detail = if detail.is_empty() { String::new() } else { format!(": {detail}") };
        let message = format!("Forbidden{detail}");
        Self { reason: "FieldValueForbidden", message, field: field.into() }
    }

    pub(crate) fn unsupported(field: impl Into<String>, value: &Value, supported: &[&str]) -> Self {
        let list: Vec<String> = supported.iter().map(|one| format!("\"{one}\"")).collect();
        let message =
            format!("Unsupported value: {}: supported values: {}", shown(value), list.join(", "));
        Self { reason: "FieldValueNotSupported", message, field: field.into() }
    }

    pub(crate) fn duplicate(field: impl Into<String>, value: &Value) -> Self {
        let message = format!("Duplicate value: {}", shown(value));
        Self { reason: "FieldValueDuplicate", message, field: field.into() }
    }

    /// A duplicate with a text of its own in place of its JSON.
    pub(crate) fn duplicate_text(field: impl Into<String>, shown: &str) -> Self {
        let message = format!("Duplicate value: {shown}");
        Self { reason: "FieldValueDuplicate", message, field: field.into() }
    }

    pub(crate) fn not_found(field: impl Into<String>, value: &Value, detail: &str) -> Self {
        let detail = if detail.is_empty() { String::new() } else { format!(": {detail}") };
        let message = format!("Not found: {}{detail}", shown(value));
        Self { reason: "FieldValueNotFound", message, field: field.into() }
    }

    /// Returns true if the rules of a custom object are not checked after this error.
    pub(crate) fn hides_rules(&self) -> bool {
        let hiding = ["NotSupported", "Required", "TooLong", "TooMany", "TypeInvalid"];
        self.reason.strip_prefix("FieldValue").is_some_and(|reason| hiding.contains(&reason))
    }

    pub(crate) fn too_long(field: impl Into<String>, most: usize) -> Self {
        let message = format!("Too long: may not be more than {most} bytes");
        Self { reason: "FieldValueTooLong", message, field: field.into() }
    }

    /// A text that is too long by the number of its characters.
    pub(crate) fn too_many_characters(field: impl Into<String>, most: usize) -> Self {
        let message = format!("Too long: may not be more than {most} characters");
        Self { reason: "FieldValueTooLong", message, field: field.into() }
    }

    pub(crate) fn too_many(field: impl Into<String>, found: usize, most: usize) -> Self {
        let message = format!("Too many: {found}: must have at most {most} items");
        Self { reason: "FieldValueTooMany", message, field: field.into() }
    }

    /// A problem of the check itself.
    pub(crate) fn internal(field: impl Into<String>, detail: &str) -> Self {
        let message = format!("Internal error: {detail}");
        Self { reason: "InternalError", message, field: field.into() }
    }

    pub(crate) fn field(&self) -> &str {
        &self.field
    }

    /// Returns the field and its problem as one text.
    pub(crate) fn text(&self) -> String {
        format!("{}: {}", self.field, self.message)
    }

    pub(super) fn to_json(&self) -> Value {
        json!({"reason": self.reason, "message": self.message, "field": self.field})
    }
}

impl From<FieldError> for Cause {
    fn from(error: FieldError) -> Self {
        let FieldError { reason, field, message, .. } = error;
        Self { reason: reason.as_str(), message, field }
    }
}

/// Shows a value as the server's messages do: texts in Go's quotes, other values in JSON.
fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), go_quote)
}
