//! The label selector that is a member of an object.

use homeostat_core::LabelSelector;
use serde_json::Value;

/// Reads a `metav1.LabelSelector`, or the map of labels that a Service or a
/// `ReplicationController` has in its place.
///
/// Returns `None` where upstream's conversion fails: for an unknown operator, a wrong number of
/// values, or a key or value that no label can have.
pub(crate) fn read(selector: &Value) -> Option<LabelSelector> {
    let labels_alone = selector.as_object().is_some_and(|all| all.values().all(Value::is_string));
    let labels = if labels_alone { Some(selector) } else { selector.get("matchLabels") };
    let mut parsed = LabelSelector::default();
    for (key, value) in labels.and_then(Value::as_object).into_iter().flatten() {
        parsed = parsed.with_label(key, value.as_str()?).ok()?;
    }
    let expressions = selector.get("matchExpressions").and_then(Value::as_array);
    for expression in expressions.into_iter().flatten() {
        let text = |key: &str| expression.get(key).and_then(Value::as_str).unwrap_or("");
        let values = expression.get("values").and_then(Value::as_array).into_iter().flatten();
        let values: Vec<&str> = values.filter_map(Value::as_str).collect();
        parsed = parsed.with_expression(text("key"), text("operator"), &values).ok()?;
    }
    Some(parsed)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shown(selector: &Value) -> Option<String> {
        read(selector).map(|selector| selector.to_string())
    }

    #[test]
    fn both_forms_are_read() {
        let selector = json!({
            "matchLabels": {"app": "a"},
            "matchExpressions": [
                {"key": "tier", "operator": "NotIn", "values": ["web", "db"]},
                {"key": "app", "operator": "Exists"},
            ],
        });
        assert_eq!(shown(&selector).unwrap(), "app=a,app,tier notin (db,web)");
        assert_eq!(shown(&json!({"b": "1", "a": "2"})).unwrap(), "a=2,b=1");
        assert_eq!(shown(&json!({})).unwrap(), "");
        assert_eq!(shown(&json!(null)).unwrap(), "");
    }

    #[test]
    fn invalid_selector_is_none() {
        let without_values = json!({"matchExpressions": [{"key": "a", "operator": "In"}]});
        assert_eq!(shown(&without_values), None);
        assert_eq!(shown(&json!({"matchLabels": {"-": "a"}})), None);
    }
}
