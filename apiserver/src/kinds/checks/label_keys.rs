//! Keys of labels whose values a selector takes from the pod itself.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{check_text, items, member, text};
use crate::names;
use crate::status::Cause;

/// Checks the keys of a term or a constraint against its selector
/// (`ValidateMatchLabelKeysAndMismatchLabelKeys`).
pub(super) fn check(_: &Value, term: &Value, at: &str, causes: &mut Vec<Cause>) {
    let selector = member(term, "labelSelector");
    for list in ["matchLabelKeys", "mismatchLabelKeys"] {
        let keys = items(member(term, list));
        let at = format!("{at}.{list}");
        if !keys.is_empty() && selector.is_null() {
            let detail = "must not be specified when labelSelector is not set";
            causes.push(Cause::forbidden(at, detail));
            continue;
        }
        for (place, key) in keys.iter().enumerate() {
            check_text(key, names::qualified, &format!("{at}[{place}]"), causes);
        }
    }
    check_selector(term, selector, at, causes);
    let excluded = items(member(term, "mismatchLabelKeys"));
    for (place, key) in items(member(term, "matchLabelKeys")).iter().enumerate() {
        if excluded.contains(key) {
            let detail = "exists in both matchLabelKeys and mismatchLabelKeys";
            causes.push(Cause::invalid(format!("{at}.matchLabelKeys[{place}]"), key, detail));
        }
    }
}

/// Checks that the selector has no requirement of its own for a key. The server has added one for
/// each key, so a key that is found twice was there before.
fn check_selector(term: &Value, selector: &Value, at: &str, causes: &mut Vec<Cause>) {
    let keys = items(member(term, "matchLabelKeys")).iter().enumerate();
    let places: BTreeMap<&str, usize> =
        keys.filter_map(|(place, key)| Some((key.as_str()?, place))).collect();
    let labels = member(selector, "matchLabels").as_object();
    let mut known: Vec<&str> = labels.into_iter().flatten().map(|(key, _)| key.as_str()).collect();
    for expression in items(member(selector, "matchExpressions")) {
        let key = text(expression, "key");
        if let Some(place) = places.get(key).filter(|_| known.contains(&key)) {
            let detail = "exists in both matchLabelKeys and labelSelector";
            causes.push(Cause::invalid(format!("{at}[{place}]"), &json!(key), detail));
        }
        known.push(key);
    }
}
