//! A violation of a schema, in the words of `field.Error` of apimachinery.

use std::collections::HashSet;
use std::fmt;
use std::fmt::Write;

use homeostat_core::go_quote;
use serde_json::Value;

/// A violation of a schema at one field.
///
/// # Examples
///
/// ```
/// use homeostat_schema::{FieldError, FieldErrorReason};
/// use serde_json::json;
///
/// let error = FieldError::invalid("spec.size", &json!(-1), "must not be negative");
/// assert_eq!(error.reason, FieldErrorReason::Invalid);
/// assert_eq!(error.to_string(), "spec.size: Invalid value: -1: must not be negative");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FieldError {
    /// The kind of violation.
    pub reason: FieldErrorReason,
    /// The path of the field, such as `spec.ports[0].name`; `<nil>` for the object as a whole.
    pub field: String,
    /// The text without the path.
    pub message: String,
}

/// The kind of a violation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FieldErrorReason {
    /// `FieldValueRequired`
    Required,
    /// `FieldValueInvalid`
    Invalid,
    /// `FieldValueTypeInvalid`
    TypeInvalid,
    /// `FieldValueNotSupported`
    NotSupported,
    /// `FieldValueDuplicate`
    Duplicate,
    /// `FieldValueForbidden`
    Forbidden,
    /// `FieldValueTooLong`
    TooLong,
    /// `FieldValueTooMany`
    TooMany,
    /// `InternalError`
    Internal,
}

/// Joins errors as Go's aggregate errors do: a single one as it is, several in brackets and without
/// duplicates.
///
/// # Examples
///
/// ```
/// use homeostat_schema::aggregate;
///
/// assert_eq!(aggregate(["a", "b", "a"].map(str::to_owned)), "[a, b]");
/// assert_eq!(aggregate(["a", "a"].map(str::to_owned)), "a");
/// ```
pub fn aggregate(errors: impl IntoIterator<Item = String>) -> String {
    let mut known = HashSet::new();
    let mut texts: Vec<String> = Vec::new();
    for text in errors {
        if known.insert(text.clone()) {
            texts.push(text);
        }
    }
    match texts.as_slice() {
        [one] => one.clone(),
        several => format!("[{}]", several.join(", ")),
    }
}

// === impl FieldError ===

impl FieldError {
    /// Returns the error of a part as that of the value at a path.
    pub(crate) fn below(self, at: &str) -> Self {
        let field = match self.field.as_str() {
            "" | "<nil>" => at.to_owned(),
            inner => format!("{at}.{inner}"),
        };
        Self { field, ..self }
    }

    /// Creates an error for an absent field.
    pub fn required(field: impl Into<String>, detail: &str) -> Self {
        Self::new(FieldErrorReason::Required, field, with_detail("Required value", detail))
    }

    /// Creates an error for a field that must be absent.
    pub fn forbidden(field: impl Into<String>, detail: &str) -> Self {
        Self::new(FieldErrorReason::Forbidden, field, with_detail("Forbidden", detail))
    }

    /// Creates an error for a value.
    pub fn invalid(field: impl Into<String>, value: &Value, detail: &str) -> Self {
        let text = format!("Invalid value: {}", shown(value));
        Self::new(FieldErrorReason::Invalid, field, with_detail(&text, detail))
    }

    /// Creates an error for a value that the text shows only if there is one.
    pub(crate) fn invalid_of(
        field: impl Into<String>,
        value: Option<&Value>,
        detail: &str,
    ) -> Self {
        match value {
            Some(value) => Self::invalid(field, value, detail),
            None => {
                Self::new(FieldErrorReason::Invalid, field, with_detail("Invalid value", detail))
            }
        }
    }

    /// Creates an error for a value that occurs twice, which the text shows only if there is one.
    pub(crate) fn duplicate_of(field: impl Into<String>, value: Option<&Value>) -> Self {
        match value {
            Some(value) => Self::duplicate(field, value),
            None => Self::new(FieldErrorReason::Duplicate, field, "Duplicate value".to_owned()),
        }
    }

    /// Creates an error for a value that the server cannot use for a reason of its own.
    pub fn internal(field: impl Into<String>, detail: &str) -> Self {
        Self::new(FieldErrorReason::Internal, field, with_detail("Internal error", detail))
    }

    /// Creates an error for a value of a wrong type.
    pub fn type_invalid(field: impl Into<String>, value: &Value, detail: &str) -> Self {
        Self { reason: FieldErrorReason::TypeInvalid, ..Self::invalid(field, value, detail) }
    }

    /// Creates an error for a value that is not in a list.
    pub fn not_supported(field: impl Into<String>, value: &Value, allowed: &[Value]) -> Self {
        let texts = allowed.iter().map(|value| match value {
            Value::String(text) => go_quote(text),
            other => go_quote(&other.to_string()),
        });
        let texts: Vec<String> = texts.collect();
        let mut text = format!("Unsupported value: {}", shown(value));
        if !texts.is_empty() {
            let _ = write!(text, ": supported values: {}", texts.join(", "));
        }
        Self::new(FieldErrorReason::NotSupported, field, text)
    }

    /// Creates an error for a value that occurs twice.
    pub fn duplicate(field: impl Into<String>, value: &Value) -> Self {
        let text = format!("Duplicate value: {}", shown(value));
        Self::new(FieldErrorReason::Duplicate, field, text)
    }

    /// Creates an error for a text that is too long.
    pub fn too_long(field: impl Into<String>, most: u64) -> Self {
        let unit = if most == 1 { "byte" } else { "bytes" };
        let text = format!("Too long: may not be more than {most} {unit}");
        Self::new(FieldErrorReason::TooLong, field, text)
    }

    /// Creates an error for a list with too many items.
    pub fn too_many(field: impl Into<String>, found: usize, most: u64) -> Self {
        let unit = if most == 1 { "item" } else { "items" };
        let text = format!("Too many: {found}: must have at most {most} {unit}");
        Self::new(FieldErrorReason::TooMany, field, text)
    }

    fn new(reason: FieldErrorReason, field: impl Into<String>, message: String) -> Self {
        Self { reason, field: field.into(), message }
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.message)
    }
}

impl std::error::Error for FieldError {}

// === impl FieldErrorReason ===

impl FieldErrorReason {
    /// Returns the reason's name in the causes of a `Status`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Required => "FieldValueRequired",
            Self::Invalid => "FieldValueInvalid",
            Self::TypeInvalid => "FieldValueTypeInvalid",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Duplicate => "FieldValueDuplicate",
            Self::Forbidden => "FieldValueForbidden",
            Self::TooLong => "FieldValueTooLong",
            Self::TooMany => "FieldValueTooMany",
            Self::Internal => "InternalError",
        }
    }
}

fn with_detail(text: &str, detail: &str) -> String {
    if detail.is_empty() { text.to_owned() } else { format!("{text}: {detail}") }
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => go_quote(text),
        Value::Number(number) if number.is_f64() => go_float(number.as_f64().unwrap_or_default()),
        other => other.to_string(),
    }
}

/// Writes a number as Go's `%v` does: with an exponent below 1e-4 and from 1e21.
pub(crate) fn go_float(number: f64) -> String {
    let magnitude = number.abs();
    if magnitude != 0.0 && !(1e-4..1e21).contains(&magnitude) {
        let text = format!("{number:e}");
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (sign, digits) = match exponent.strip_prefix('-') {
            Some(digits) => ('-', digits),
            None => ('+', exponent),
        };
        return format!("{mantissa}e{sign}{digits:0>2}");
    }
    number.to_string()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn texts_are_those_of_apimachinery() {
        let shown = |error: FieldError| error.to_string();
        assert_eq!(shown(FieldError::required("a.b", "")), "a.b: Required value");
        assert_eq!(
            shown(FieldError::not_supported("a", &json!("x"), &[json!("y"), json!(1)])),
            r#"a: Unsupported value: "x": supported values: "y", "1""#
        );
        let list = FieldError::duplicate("a[1]", &json!({"name": "x"}));
        assert_eq!(shown(list), r#"a[1]: Duplicate value: {"name":"x"}"#);
        assert_eq!(
            shown(FieldError::too_long("a", 5)),
            "a: Too long: may not be more than 5 bytes"
        );
        let many = FieldError::too_many("a", 3, 1);
        assert_eq!(shown(many), "a: Too many: 3: must have at most 1 item");
    }

    #[test]
    fn numbers_are_written_as_go_writes_them() {
        for (number, text) in [(10.0, "10"), (0.5, "0.5"), (1e21, "1e+21"), (1e-5, "1e-05")] {
            assert_eq!(go_float(number), text);
        }
    }

    #[test]
    fn names_are_quoted_as_go_quotes_them() {
        assert_eq!(go_quote("a\"b\\c\td\u{1}é\u{a0}"), "\"a\\\"b\\\\c\\td\\x01é\\u00a0\"");
    }
}
