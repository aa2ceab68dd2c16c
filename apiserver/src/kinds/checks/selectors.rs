//! Labels, annotations and selectors.

use serde_json::{Value, json};

use super::{is_empty, items, join, judge, member, text};
use crate::kinds::label_selector::LabelSelector;
use crate::names;
use crate::object::string_map;
use crate::status::Cause;

/// All annotations of one object together.
const MOST_ANNOTATIONS: usize = 256 * 1024;

/// Labels, or a selector that is nothing but labels.
pub(crate) fn labels(_: &Value, labels: &Value, at: &str, causes: &mut Vec<Cause>) {
    for (key, value) in labels.as_object().into_iter().flatten() {
        judge(&json!(key), names::qualified, at, causes);
        judge(value, names::label_value, at, causes);
    }
}

pub(crate) fn annotations(annotations: &Value, at: &str, causes: &mut Vec<Cause>) {
    let mut size = 0;
    for (key, value) in annotations.as_object().into_iter().flatten() {
        judge(&json!(key), names::annotation_key, at, causes);
        size += key.len() + value.as_str().map_or(0, str::len);
    }
    if size > MOST_ANNOTATIONS {
        causes.push(Cause::too_long(at, MOST_ANNOTATIONS));
    }
}

/// A `metav1.LabelSelector`.
pub(crate) fn selector(_: &Value, selector: &Value, at: &str, causes: &mut Vec<Cause>) {
    labels(selector, member(selector, "matchLabels"), &join(at, "matchLabels"), causes);
    for (place, expression) in items(member(selector, "matchExpressions")).iter().enumerate() {
        let at = format!("{at}.matchExpressions[{place}]");
        let no_values = is_empty(member(expression, "values"));
        match text(expression, "operator") {
            "In" | "NotIn" if no_values => {
                let why = "must be specified when `operator` is 'In' or 'NotIn'";
                causes.push(Cause::required(format!("{at}.values"), why));
            }
            "Exists" | "DoesNotExist" if !no_values => {
                let why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                causes.push(Cause::forbidden(format!("{at}.values"), why));
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            other => {
                let why = "not a valid selector operator";
                causes.push(Cause::invalid(format!("{at}.operator"), &json!(other), why));
            }
        }
        judge(&json!(text(expression, "key")), names::qualified, &format!("{at}.key"), causes);
    }
}

/// Whether the template carries what the selector (a `metav1.LabelSelector`) asks for.
pub(crate) fn matches(spec: &Value, causes: &mut Vec<Cause>) {
    let selector = member(spec, "selector");
    let Ok(parsed) = LabelSelector::read(selector) else {
        causes.push(Cause::invalid("spec.selector", selector, "invalid label selector"));
        return;
    };
    let labels = member(member(member(spec, "template"), "metadata"), "labels");
    let found = labels.as_object().map(string_map).unwrap_or_default();
    // No selector at all selects nothing.
    let fits = !selector.is_null() && (parsed.is_everything() || parsed.matches(&found));
    if !fits {
        mismatch(labels, causes);
    }
}

pub(crate) fn mismatch(labels: &Value, causes: &mut Vec<Cause>) {
    let why = "`selector` does not match template `labels`";
    causes.push(Cause::invalid("spec.template.metadata.labels", labels, why));
}
