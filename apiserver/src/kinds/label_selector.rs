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
