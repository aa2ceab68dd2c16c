//! The selectors of an access review. Roles do not depend on them, but the answer says which of
//! them cannot be parsed.

use homeostat_core::LabelSelector;
use serde_json::Value;

use crate::field_selector::FieldSelector;
use crate::fields::text;

/// Returns the text about selectors that cannot be parsed; `None` if all can.
pub(super) fn evaluation_error(attributes: &Value) -> Option<String> {
    let found = [
        ("fieldSelector", attributes.get("fieldSelector").and_then(ignored_fields)),
        ("labelSelector", attributes.get("labelSelector").and_then(ignored_labels)),
    ];
    let errors = found.into_iter().filter_map(|(name, ignored)| {
        let ignored = ignored?;
        Some(format!("spec.resourceAttributes.{name} {ignored} due to parse error"))
    });
    let errors: Vec<String> = errors.collect();
    (!errors.is_empty()).then(|| errors.join("; "))
}

fn ignored_fields(selector: &Value) -> Option<&'static str> {
    let is_known = |requirement: &Value| {
        matches!(text(requirement, "operator"), "In" | "NotIn")
            && requirement.get("values").and_then(Value::as_array).map(Vec::len) == Some(1)
    };
    ignored(selector, |raw| FieldSelector::parse(raw).is_ok(), is_known)
}

fn ignored_labels(selector: &Value) -> Option<&'static str> {
    // Keys and values are valid: others are refused.
    let is_known = |requirement: &Value| {
        matches!(text(requirement, "operator"), "In" | "NotIn" | "Exists" | "DoesNotExist")
    };
    ignored(selector, |raw| LabelSelector::parse(raw).is_ok(), is_known)
}

/// Returns how much of a selector is ignored, which is a text or a list of requirements; `None` if
/// nothing is.
fn ignored(
    selector: &Value,
    is_selector: impl Fn(&str) -> bool,
    is_known: impl Fn(&Value) -> bool,
) -> Option<&'static str> {
    let raw = text(selector, "rawSelector");
    if !raw.is_empty() {
        return (!is_selector(raw)).then_some("ignored");
    }
    let requirements = selector.get("requirements").and_then(Value::as_array);
    let requirements = requirements.map_or(&[][..], Vec::as_slice);
    match requirements.iter().filter(|requirement| is_known(requirement)).count() {
        known if known == requirements.len() => None,
        0 => Some("ignored"),
        _ => Some("partially ignored"),
    }
}
