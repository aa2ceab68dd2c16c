//! The selector that is a member of an object (`metav1.LabelSelector`), as validation needs it.

use std::collections::BTreeMap;

use serde_json::Value;

/// Requirements on labels, all of which must hold.
#[derive(Debug, Default)]
pub(super) struct LabelSelector {
    requirements: Vec<(String, Test)>,
}

#[derive(Debug)]
enum Test {
    Exists,
    Missing,
    In(Vec<String>),
    NotIn(Vec<String>),
}

/// An operator that there is not, or that has too many or too few values.
#[derive(Debug)]
pub(super) struct BadSelector;

// === impl LabelSelector ===

impl LabelSelector {
    pub(super) fn read(selector: &Value) -> Result<Self, BadSelector> {
        let mut requirements = Vec::new();
        let labels = selector.get("matchLabels").and_then(Value::as_object);
        for (key, value) in labels.into_iter().flatten() {
            let value = value.as_str().ok_or(BadSelector)?;
            requirements.push((key.clone(), Test::In(vec![value.to_owned()])));
        }
        let expressions = selector.get("matchExpressions").and_then(Value::as_array);
        for expression in expressions.into_iter().flatten() {
            requirements.push(read_expression(expression)?);
        }
        Ok(Self { requirements })
    }

    pub(super) fn is_everything(&self) -> bool {
        self.requirements.is_empty()
    }

    pub(super) fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        self.requirements.iter().all(|(key, test)| test.holds(labels.get(key)))
    }
}

/// The selector as one text, as `kubectl get --selector` takes it: of labels and expressions, or of labels alone.
pub(super) fn show(selector: &Value) -> String {
    let labels_alone = selector.as_object().is_some_and(|all| all.values().all(Value::is_string));
    let labels = if labels_alone { Some(selector) } else { selector.get("matchLabels") };
    let labels = labels.and_then(Value::as_object).into_iter().flatten();
    let mut parts: Vec<(&str, String)> = labels
        .map(|(key, value)| (key.as_str(), format!("{key}={}", value.as_str().unwrap_or(""))))
        .collect();
    let expressions = selector.get("matchExpressions").and_then(Value::as_array);
    parts.extend(expressions.into_iter().flatten().filter_map(show_expression));
    parts.sort_by(|one, other| one.0.cmp(other.0));
    let parts: Vec<String> = parts.into_iter().map(|(_, part)| part).collect();
    parts.join(",")
}

fn show_expression(expression: &Value) -> Option<(&str, String)> {
    let key = expression.get("key")?.as_str()?;
    let mut values: Vec<&str> = expression
        .get("values")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    values.sort_unstable();
    let values = values.join(",");
    Some((
        key,
        match expression.get("operator")?.as_str()? {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "Exists" => key.to_owned(),
            "DoesNotExist" => format!("!{key}"),
            _ => return None,
        },
    ))
}

fn read_expression(expression: &Value) -> Result<(String, Test), BadSelector> {
    let member = |key: &str| expression.get(key).and_then(Value::as_str).unwrap_or("");
    let values = expression.get("values").and_then(Value::as_array).into_iter().flatten();
    let values: Vec<String> = values.filter_map(Value::as_str).map(ToOwned::to_owned).collect();
    let test = match (member("operator"), values.is_empty()) {
        ("In", false) => Test::In(values),
        ("NotIn", false) => Test::NotIn(values),
        ("Exists", true) => Test::Exists,
        ("DoesNotExist", true) => Test::Missing,
        _ => return Err(BadSelector),
    };
    Ok((member("key").to_owned(), test))
}

impl Test {
    fn holds(&self, value: Option<&String>) -> bool {
        match self {
            Self::Exists => value.is_some(),
            Self::Missing => value.is_none(),
            Self::In(values) => value.is_some_and(|value| values.contains(value)),
            Self::NotIn(values) => value.is_none_or(|value| !values.contains(value)),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn labels_and_expressions_must_all_hold() {
        let expression = |key, operator, values: &[&str]| json!({"key": key, "operator": operator, "values": values});
        let selector = json!({
            "matchLabels": {"app": "a"},
            "matchExpressions": [expression("tier", "NotIn", &["db"]), expression("app", "Exists", &[])],
        });
        let selector = LabelSelector::read(&selector).unwrap();
        let labels = |tier: &str| {
            [("app".to_owned(), "a".to_owned()), ("tier".to_owned(), tier.to_owned())].into()
        };
        assert!(selector.matches(&labels("web")));
        assert!(!selector.matches(&labels("db")));
        assert!(
            LabelSelector::read(&json!({"matchExpressions": [expression("a", "In", &[])]}))
                .is_err()
        );
    }
}
