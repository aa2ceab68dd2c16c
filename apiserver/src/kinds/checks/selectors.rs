//! Labels, annotations and selectors.

use serde_json::{Value, json};

use super::{check_text, is_empty, items, join, member, text};
use crate::fields::string_map;
use crate::kinds::label_selector;
use crate::names;
use crate::status::Cause;

/// The largest size of all annotations of an object, in bytes.
const MAX_ANNOTATIONS: usize = 256 * 1024;

/// Checks labels, or a selector that consists of labels only.
pub(crate) fn labels(_: &Value, labels: &Value, at: &str, causes: &mut Vec<Cause>) {
    for (key, value) in labels.as_object().into_iter().flatten() {
        check_text(&json!(key), names::qualified, at, causes);
        check_text(value, names::label_value, at, causes);
    }
}

pub(crate) fn annotations(annotations: &Value, at: &str, causes: &mut Vec<Cause>) {
    let mut size = 0;
    for (key, value) in annotations.as_object().into_iter().flatten() {
        check_text(&json!(key), names::annotation_key, at, causes);
        size += key.len() + value.as_str().map_or(0, str::len);
    }
    if size > MAX_ANNOTATIONS {
        causes.push(Cause::too_long(at, MAX_ANNOTATIONS));
    }
}

/// Checks the metadata of a template, which has labels and annotations only.
pub(crate) fn template_metadata(metadata: &Value, at: &str, causes: &mut Vec<Cause>) {
    const REFUSED: [&str; 13] = [
        "name",
        "generateName",
        "namespace",
        "selfLink",
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "ownerReferences",
        "finalizers",
        "managedFields",
    ];
    annotations(member(metadata, "annotations"), &format!("{at}.annotations"), causes);
    labels(metadata, member(metadata, "labels"), &format!("{at}.labels"), causes);
    for name in REFUSED.into_iter().filter(|name| !member(metadata, name).is_null()) {
        let shown = if name == "uid" { "uID" } else { name };
        causes.push(Cause::forbidden(format!("{at}.{shown}"), "cannot be set"));
    }
}

/// Checks a `metav1.LabelSelector`.
pub(crate) fn selector(_: &Value, selector: &Value, at: &str, causes: &mut Vec<Cause>) {
    labels(selector, member(selector, "matchLabels"), &join(at, "matchLabels"), causes);
    for (place, expression) in items(member(selector, "matchExpressions")).iter().enumerate() {
        let at = format!("{at}.matchExpressions[{place}]");
        values_of_operator(expression, &at, causes);
        let operator = text(expression, "operator");
        if !["In", "NotIn", "Exists", "DoesNotExist"].contains(&operator) {
            let detail = "not a valid selector operator";
            causes.push(Cause::invalid(format!("{at}.operator"), &json!(operator), detail));
        }
        check_text(&json!(text(expression, "key")), names::qualified, &format!("{at}.key"), causes);
        values(expression, &at, causes);
    }
}

/// Checks that an expression has values if, and only if, its operator needs them.
fn values_of_operator(expression: &Value, at: &str, causes: &mut Vec<Cause>) {
    let no_values = is_empty(member(expression, "values"));
    match text(expression, "operator") {
        "In" | "NotIn" if no_values => {
            let detail = "must be specified when `operator` is 'In' or 'NotIn'";
            causes.push(Cause::required(format!("{at}.values"), detail));
        }
        "Exists" | "DoesNotExist" if !no_values => {
            let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            causes.push(Cause::forbidden(format!("{at}.values"), detail));
        }
        _ => {}
    }
}

/// Checks the selectors of a review of access. Their operators may be unknown.
pub(crate) fn of_review(attributes: &Value, at: &str, causes: &mut Vec<Cause>) {
    for name in ["fieldSelector", "labelSelector"] {
        let (selector, at) = (member(attributes, name), join(at, name));
        if selector.is_null() {
            continue;
        }
        let raw = member(selector, "rawSelector");
        let requirements = items(member(selector, "requirements"));
        match (is_empty(raw), requirements) {
            (false, [_, ..]) => {
                let detail = "may not specified at the same time as requirements";
                causes.push(Cause::invalid(join(&at, "rawSelector"), raw, detail));
            }
            (true, []) => {
                let detail =
                    format!("when {at} is specified, requirements or rawSelector is required");
                causes.push(Cause::required(join(&at, "requirements"), &detail));
            }
            _ => {}
        }
        for (place, requirement) in requirements.iter().enumerate() {
            let at = format!("{at}.requirements[{place}]");
            let key = text(requirement, "key");
            if name == "fieldSelector" && key.is_empty() {
                causes.push(Cause::required(format!("{at}.key"), "must be specified"));
            }
            values_of_operator(requirement, &at, causes);
            if name == "labelSelector" {
                check_text(&json!(key), names::qualified, &format!("{at}.key"), causes);
                values(requirement, &at, causes);
            }
        }
    }
}

/// Checks that the values of an expression can be those of labels.
pub(super) fn values(expression: &Value, at: &str, causes: &mut Vec<Cause>) {
    for (place, value) in items(member(expression, "values")).iter().enumerate() {
        check_text(value, names::label_value, &format!("{at}.values[{place}]"), causes);
    }
}

/// Checks that the labels of the template match the selector (a `metav1.LabelSelector`).
pub(crate) fn matches(spec: &Value, causes: &mut Vec<Cause>) {
    let selector = member(spec, "selector");
    let Some(parsed) = label_selector::read(selector) else {
        causes.push(Cause::invalid("spec.selector", selector, "invalid label selector"));
        return;
    };
    let labels = member(member(member(spec, "template"), "metadata"), "labels");
    let found = labels.as_object().map(string_map).unwrap_or_default();
    // A missing selector matches nothing.
    let fits = !selector.is_null() && (parsed.matches(&found));
    if !fits {
        mismatch(labels, causes);
    }
}

pub(crate) fn mismatch(labels: &Value, causes: &mut Vec<Cause>) {
    let detail = "`selector` does not match template `labels`";
    causes.push(Cause::invalid("spec.template.metadata.labels", labels, detail));
}
