//! Texts that cells of several kinds share.

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::duration;
use crate::fields::text;

pub(super) fn age(since: Option<Timestamp>, now: Timestamp) -> String {
    since.map_or_else(|| "<unknown>".to_owned(), |since| duration::between(since, now))
}

/// Returns the text, or `or` if it is empty.
pub(super) fn unless_empty(text: String, or: &str) -> String {
    if text.is_empty() { or.to_owned() } else { text }
}

/// Joins one member of every item with commas.
pub(super) fn members(items: &[Value], name: &str) -> String {
    let texts: Vec<&str> = items.iter().map(|item| text(item, name)).collect();
    texts.join(",")
}

/// Formats `a=b,c=d`, or `<none>`.
pub(super) fn labels(labels: Option<&Value>) -> String {
    let Some(labels) = labels.and_then(Value::as_object) else { return "<none>".to_owned() };
    unless_empty(equalities(labels).join(","), "<none>")
}

fn equalities(labels: &Map<String, Value>) -> Vec<String> {
    labels.iter().map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or(""))).collect()
}

/// Formats a selector with `matchLabels` and `matchExpressions`, sorted by key.
pub(super) fn selector(selector: Option<&Value>) -> String {
    let mut requirements: Vec<(String, String)> = Vec::new();
    let members = selector.and_then(|selector| selector.get("matchLabels"));
    for (key, value) in members.and_then(Value::as_object).into_iter().flatten() {
        requirements.push((key.clone(), format!("{key}={}", value.as_str().unwrap_or(""))));
    }
    let expressions = selector.and_then(|selector| selector.get("matchExpressions"));
    for expression in expressions.and_then(Value::as_array).into_iter().flatten() {
        let key = text(expression, "key");
        let mut values: Vec<&str> = expression
            .get("values")
            .and_then(Value::as_array)
            .map(|values| values.iter().filter_map(Value::as_str).collect())
            .unwrap_or_default();
        values.sort_unstable();
        let values = values.join(",");
        let text = match text(expression, "operator") {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "Exists" => key.to_owned(),
            "DoesNotExist" => format!("!{key}"),
            _ => return "<error>".to_owned(),
        };
        requirements.push((key.to_owned(), text));
    }
    requirements.sort_by(|a, b| a.0.cmp(&b.0));
    let texts: Vec<String> = requirements.into_iter().map(|(_, text)| text).collect();
    unless_empty(texts.join(","), "<none>")
}
