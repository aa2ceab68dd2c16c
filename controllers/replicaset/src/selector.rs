//! Which labels a `ReplicaSet` selects: compiled once per object, never matching by accident.
//!
//! A selector that is missing or empty selects **nothing** here (elsewhere in Kubernetes the empty one selects everything):
//! a `ReplicaSet` that took every pod of its namespace for its own would be a disaster.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};

/// A compiled selector.
#[derive(Clone, Debug, Default)]
pub struct Selector {
    /// All must hold; none means that nothing is selected.
    requirements: Vec<Requirement>,
}

/// Why a selector cannot be used.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum SelectorError {
    /// An operator that Kubernetes does not have.
    #[error("{operator:?} is not a valid label selector operator")]
    Operator {
        /// What was given.
        operator: String,
    },
    /// `In` and `NotIn` need values; `Exists` and `DoesNotExist` take none.
    #[error("operator {operator} of label {key:?} {}", if *.takes_values { "needs values" } else { "takes no values" })]
    Values {
        /// The label.
        key: String,
        /// The operator.
        operator: String,
        /// Whether this operator is one that takes values.
        takes_values: bool,
    },
    /// Not the name of a label.
    #[error("{key:?} is not a valid label key")]
    Key {
        /// What was given.
        key: String,
    },
    /// Not the value of a label.
    #[error("{value:?} is not a valid value for label {key:?}")]
    Value {
        /// The label.
        key: String,
        /// What was given.
        value: String,
    },
}

#[derive(Clone, Debug)]
struct Requirement {
    key: Box<str>,
    test: Test,
}

#[derive(Clone, Debug)]
enum Test {
    Is(Box<str>),
    In(BTreeSet<Box<str>>),
    NotIn(BTreeSet<Box<str>>),
    Exists,
    DoesNotExist,
}

// === impl Selector ===

impl Selector {
    /// Compiles a selector.
    ///
    /// # Errors
    /// When Kubernetes would not take it: an unknown operator, a key or value that no label can have.
    pub fn compile(selector: Option<&LabelSelector>) -> Result<Self, SelectorError> {
        let Some(selector) = selector else { return Ok(Self::default()) };
        let labels = selector.match_labels.iter().flatten().map(|(key, value)| {
            check_value(key, value)?;
            Ok(Requirement { key: check_key(key)?.into(), test: Test::Is(value.as_str().into()) })
        });
        let expressions = selector.match_expressions.iter().flatten().map(Requirement::compile);
        Ok(Self { requirements: labels.chain(expressions).collect::<Result<_, _>>()? })
    }

    /// Whether this selects an object with these labels.
    pub fn matches(&self, labels: Option<&BTreeMap<String, String>>) -> bool {
        let value_of = |key: &str| labels.and_then(|labels| labels.get(key)).map(String::as_str);
        !self.requirements.is_empty()
            && self.requirements.iter().all(|it| it.test.holds(value_of(&it.key)))
    }
}

/// As the API server's `labelSelector` takes it.
impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, requirement) in self.requirements.iter().enumerate() {
            f.write_str(if n == 0 { "" } else { "," })?;
            let key = &requirement.key;
            let among = |values: &BTreeSet<Box<str>>| {
                values.iter().map(|value| &**value).collect::<Vec<_>>().join(",")
            };
            match &requirement.test {
                Test::Is(value) => write!(f, "{key}={value}")?,
                Test::In(values) => write!(f, "{key} in ({})", among(values))?,
                Test::NotIn(values) => write!(f, "{key} notin ({})", among(values))?,
                Test::Exists => write!(f, "{key}")?,
                Test::DoesNotExist => write!(f, "!{key}")?,
            }
        }
        Ok(())
    }
}

// === impl Requirement ===

impl Requirement {
    fn compile(requirement: &LabelSelectorRequirement) -> Result<Self, SelectorError> {
        let LabelSelectorRequirement { key, operator, values } = requirement;
        let values = values.as_deref().unwrap_or_default();
        let takes_values = match operator.as_str() {
            "In" | "NotIn" => true,
            "Exists" | "DoesNotExist" => false,
            _ => return Err(SelectorError::Operator { operator: operator.clone() }),
        };
        if takes_values == values.is_empty() {
            let (key, operator) = (key.clone(), operator.clone());
            return Err(SelectorError::Values { key, operator, takes_values });
        }
        values.iter().try_for_each(|value| check_value(key, value))?;
        let values = || values.iter().map(|value| value.as_str().into()).collect();
        let test = match operator.as_str() {
            "In" => Test::In(values()),
            "NotIn" => Test::NotIn(values()),
            "Exists" => Test::Exists,
            _ => Test::DoesNotExist,
        };
        Ok(Self { key: check_key(key)?.into(), test })
    }
}

// === impl Test ===

impl Test {
    fn holds(&self, value: Option<&str>) -> bool {
        match self {
            Self::Is(wanted) => value == Some(wanted),
            Self::In(wanted) => value.is_some_and(|value| wanted.contains(value)),
            Self::NotIn(unwanted) => value.is_none_or(|value| !unwanted.contains(value)),
            Self::Exists => value.is_some(),
            Self::DoesNotExist => value.is_none(),
        }
    }
}

/// A label's key: a name, with or without a DNS prefix before a slash.
fn check_key(key: &str) -> Result<&str, SelectorError> {
    let (prefix, name) = key.split_once('/').map_or((None, key), |(p, n)| (Some(p), n));
    let valid = !name.is_empty() && is_name(name) && prefix.is_none_or(is_dns_subdomain);
    if valid { Ok(key) } else { Err(SelectorError::Key { key: key.to_owned() }) }
}

fn check_value(key: &str, value: &str) -> Result<(), SelectorError> {
    if value.is_empty() || is_name(value) {
        return Ok(());
    }
    Err(SelectorError::Value { key: key.to_owned(), value: value.to_owned() })
}

/// At most 63 letters, digits, `-`, `_` and `.`, with a letter or digit at both ends.
fn is_name(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let bytes = text.as_bytes();
    bytes.len() <= 63
        && bytes.iter().copied().all(inner)
        && bytes.first().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.last().is_some_and(u8::is_ascii_alphanumeric)
}

/// At most 253 bytes of dot-separated lower-case labels.
pub(crate) fn is_dns_subdomain(text: &str) -> bool {
    let is_label = |label: &str| {
        let bytes = label.as_bytes();
        let edge = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        bytes.iter().all(|byte| edge(byte) || *byte == b'-')
            && bytes.first().is_some_and(edge)
            && bytes.last().is_some_and(edge)
    };
    text.len() <= 253 && text.split('.').all(is_label)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn compile(selector: &Value) -> Result<Selector, SelectorError> {
        let selector: LabelSelector = serde_json::from_value(selector.clone()).unwrap();
        Selector::compile(Some(&selector))
    }

    fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn a_missing_or_empty_selector_selects_nothing() {
        let web = labels(&[("app", "web")]);
        assert!(!Selector::compile(None).unwrap().matches(Some(&web)));
        for empty in [json!({}), json!({"matchLabels": {}}), json!({"matchExpressions": []})] {
            assert!(!compile(&empty).unwrap().matches(Some(&web)), "{empty}");
            assert!(!compile(&empty).unwrap().matches(None), "{empty}");
        }
    }

    #[test]
    fn every_requirement_must_hold() {
        let selector = compile(&json!({
            "matchLabels": {"app": "web"},
            "matchExpressions": [
                {"key": "tier", "operator": "In", "values": ["a", "b"]},
                {"key": "zone", "operator": "NotIn", "values": ["x"]},
                {"key": "example.com/owned", "operator": "Exists"},
                {"key": "retired", "operator": "DoesNotExist"},
            ],
        }))
        .unwrap();
        let good = labels(&[("app", "web"), ("tier", "b"), ("example.com/owned", "")]);
        assert!(selector.matches(Some(&good)), "an absent label is not in any set");
        for (key, value) in [("app", "db"), ("tier", "c"), ("zone", "x"), ("retired", "")] {
            let mut bad = good.clone();
            bad.insert(key.to_owned(), value.to_owned());
            assert!(!selector.matches(Some(&bad)), "{key}={value}");
        }
        assert!(!selector.matches(None));
    }

    #[test]
    fn it_is_written_as_the_server_reads_it() {
        let selector = compile(&json!({
            "matchLabels": {"app": "web"},
            "matchExpressions": [
                {"key": "tier", "operator": "In", "values": ["b", "a"]},
                {"key": "zone", "operator": "NotIn", "values": ["x"]},
                {"key": "owned", "operator": "Exists"},
                {"key": "retired", "operator": "DoesNotExist"},
            ],
        }));
        assert_eq!(
            selector.unwrap().to_string(),
            "app=web,tier in (a,b),zone notin (x),owned,!retired"
        );
    }

    #[test]
    fn what_kubernetes_refuses_is_refused_in_words() {
        let long = "x".repeat(64);
        for (selector, words) in [
            (
                json!({"matchExpressions": [{"key": "a", "operator": "Near", "values": ["b"]}]}),
                r#""Near" is not a valid label selector operator"#,
            ),
            (
                json!({"matchExpressions": [{"key": "a", "operator": "In"}]}),
                r#"operator In of label "a" needs values"#,
            ),
            (
                json!({"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["b"]}]}),
                r#"operator Exists of label "a" takes no values"#,
            ),
            (json!({"matchLabels": {"a/b/c": "d"}}), r#""a/b/c" is not a valid label key"#),
            (json!({"matchLabels": {"": "d"}}), r#""" is not a valid label key"#),
            (json!({"matchLabels": {"a": "-"}}), r#""-" is not a valid value for label "a""#),
            (
                json!({"matchLabels": {"a": long}}),
                &format!(r#"{long:?} is not a valid value for label "a""#),
            ),
        ] {
            assert_eq!(compile(&selector).unwrap_err().to_string(), words, "{selector}");
        }
    }

    #[test]
    fn dns_names_are_lower_case_labels() {
        for good in ["a", "a-b.c9", "9"] {
            assert!(is_dns_subdomain(good), "{good}");
        }
        for bad in ["", "a..b", "-a", "a-", "A", "a_b", ".", &"a".repeat(254)] {
            assert!(!is_dns_subdomain(bad), "{bad}");
        }
    }
}
