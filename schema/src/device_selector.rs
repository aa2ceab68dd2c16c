//! Selectors of devices: expressions in CEL about one device.

use std::sync::LazyLock;

use serde_json::json;

use crate::cel::{self, Bounds, Scope, Type};
use crate::field_error::FieldError;

/// The most steps that a selector may take.
const MAX_COST: u64 = 1_000_000;
/// The most attributes, and the most capacities, of a device.
const MAX_ENTRIES: u64 = 32;
/// The longest domain of a name, also of a driver.
const MAX_DOMAIN: u64 = 63;
/// The longest name within a domain.
const MAX_NAME: u64 = 32;
/// The longest text of an attribute.
const MAX_TEXT: u64 = 64;

/// Returns the error of a selector that does not compile, has another value than a boolean, or may
/// cost too much.
///
/// # Examples
///
/// ```
/// use homeostat_schema::check_device_selector;
///
/// let check = |expression: &str| {
///     check_device_selector("cel.expression", expression).map(|error| error.to_string())
/// };
/// assert_eq!(check("device.attributes['x.io'].cores == 4"), None);
/// let text = "cel.expression: Invalid value: \"device.driver\": must evaluate to bool or the \
///             unknown type, not string";
/// assert_eq!(check("device.driver").as_deref(), Some(text));
/// ```
pub fn check_device_selector(at: &str, expression: &str) -> Option<FieldError> {
    let invalid = |detail: &str| Some(FieldError::invalid(at, &json!(expression), detail));
    let failed = |issues: cel::Issues| format!("compilation failed: {}", issues.show(expression));
    let mut expr = match cel::parse_bindings(expression).map_err(failed) {
        Ok(expr) => expr,
        Err(detail) => return invalid(&detail),
    };
    let found = match cel::check(&mut expr, &SCOPE).map_err(failed) {
        Ok(found) => found,
        Err(detail) => return invalid(&detail),
    };
    if !matches!(found, Type::Bool | Type::Any) {
        let found = declared_name(&found);
        return invalid(&format!("must evaluate to bool or the unknown type, not {found}"));
    }
    if let Err(problem) = cel::instantiate(&expr) {
        return Some(FieldError::internal(at, &format!("program instantiation failed: {problem}")));
    }
    (cel::estimate(&expr, &BOUNDS) > MAX_COST)
        .then(|| FieldError::forbidden(at, "too complex, exceeds cost limit"))
}

/// Returns the name of a type with the full names of its parts.
fn declared_name(found: &Type) -> String {
    match found {
        Type::Any => "google.protobuf.Any".to_owned(),
        Type::Timestamp => "google.protobuf.Timestamp".to_owned(),
        Type::Duration => "google.protobuf.Duration".to_owned(),
        Type::Null => "null_type".to_owned(),
        Type::List(items) => format!("list({})", declared_name(items)),
        Type::Map(keys, values) => {
            format!("map({}, {})", declared_name(keys), declared_name(values))
        }
        Type::Optional(value) => format!("optional_type({})", declared_name(value)),
        other => other.to_string(),
    }
}

static SCOPE: LazyLock<Scope> = LazyLock::new(|| {
    let by_name = |values: Type| Type::map(Type::String, Type::map(Type::String, values));
    let fields = [
        ("driver", Type::String),
        ("allowMultipleAllocations", Type::Bool),
        ("attributes", by_name(Type::Any)),
        ("capacity", by_name(Type::Opaque("kubernetes.Quantity"))),
    ];
    Scope::of(&[("device", Type::object("kubernetes.DRADevice", &fields))])
});

static BOUNDS: LazyLock<Bounds> = LazyLock::new(|| {
    let by_name = |values: Bounds, has_fields: bool| {
        let inner = Bounds::of_map(MAX_ENTRIES, Bounds::of_size(MAX_NAME), values, has_fields);
        Bounds::of_map(MAX_ENTRIES, Bounds::of_size(MAX_DOMAIN), inner, false)
    };
    Bounds::of_fields([
        ("driver", Bounds::of_size(MAX_DOMAIN)),
        ("allowMultipleAllocations", Bounds::of_size(1)),
        ("attributes", by_name(Bounds::of_size(MAX_TEXT), true)),
        ("capacity", by_name(Bounds::of_size(0), false)),
    ])
});
