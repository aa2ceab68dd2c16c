//! [`Requirement`]: one condition of a selector.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::LabelSelectorError;
use super::validation::{check_key, check_value};
use crate::go_quote;

/// One condition on one label.
///
/// A value of this type was checked: [`Requirement::new`] is the only place that creates it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Requirement {
    key: String,
    test: Test,
}

/// An operator without its values, as both forms of a selector name it (`selection.Operator`).
///
/// [`Requirement::new`] joins it with the values to a [`Test`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    Exists,
    DoesNotExist,
    Equals,
    NotEquals,
    In,
    NotIn,
    GreaterThan,
    LessThan,
}

/// An operator with its values.
///
/// A requirement is matched for each object, so that values are stored in the form that the
/// comparison needs: sets are sorted, and the bounds of `>` and `<` are parsed.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Test {
    Exists,
    DoesNotExist,
    Equals(String),
    NotEquals(String),
    In(BTreeSet<String>),
    NotIn(BTreeSet<String>),
    GreaterThan(i64),
    LessThan(i64),
}

// === impl Requirement ===

impl Requirement {
    /// Checks a requirement as upstream's `NewRequirement` does, which reports all problems at
    /// once.
    pub(super) fn new(
        key: &str,
        operator: Operator,
        values: &[&str],
    ) -> Result<Self, LabelSelectorError> {
        let mut problems = Vec::new();
        problems.extend(check_key("key", key).err());
        problems.extend(operator.problem_of_values(values));
        for (position, value) in values.iter().enumerate() {
            problems.extend(check_value(key, position, value).err());
        }
        match problems.as_slice() {
            [] => Ok(Self { key: key.to_owned(), test: Test::new(operator, values) }),
            [problem] => Err(LabelSelectorError(problem.clone())),
            problems => Err(LabelSelectorError(format!("[{}]", problems.join(", ")))),
        }
    }

    pub(super) fn key(&self) -> &str {
        &self.key
    }

    /// Returns true if the requirement holds for an object with these labels.
    pub(super) fn holds(&self, labels: Option<&BTreeMap<String, String>>) -> bool {
        self.test.holds(labels.and_then(|labels| labels.get(&self.key)).map(String::as_str))
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, test } = self;
        let join = |values: &BTreeSet<String>| {
            values.iter().map(String::as_str).collect::<Vec<_>>().join(",")
        };
        match test {
            Test::Exists => write!(f, "{key}"),
            Test::DoesNotExist => write!(f, "!{key}"),
            Test::Equals(value) => write!(f, "{key}={value}"),
            Test::NotEquals(value) => write!(f, "{key}!={value}"),
            Test::In(values) => write!(f, "{key} in ({})", join(values)),
            Test::NotIn(values) => write!(f, "{key} notin ({})", join(values)),
            Test::GreaterThan(bound) => write!(f, "{key}>{bound}"),
            Test::LessThan(bound) => write!(f, "{key}<{bound}"),
        }
    }
}

// === impl Operator ===

impl Operator {
    /// Returns upstream's text if the operator does not take this number of values, or no such
    /// value.
    fn problem_of_values(self, values: &[&str]) -> Option<String> {
        let problem = match self {
            Self::In | Self::NotIn if values.is_empty() => {
                "for 'in', 'notin' operators, values set can't be empty"
            }
            Self::Exists | Self::DoesNotExist if !values.is_empty() => {
                "values set must be empty for exists and does not exist"
            }
            Self::GreaterThan | Self::LessThan => {
                let (position, value) =
                    values.iter().enumerate().find(|(_, value)| value.parse::<i64>().is_err())?;
                return Some(format!(
                    "values[{position}]: Invalid value: {}: \
                     for 'Gt', 'Lt' operators, the value must be an integer",
                    go_quote(value)
                ));
            }
            _ => return None,
        };
        // Upstream prints the values as JSON, where Go's nil slice is `null`.
        let shown: Vec<_> = values.iter().map(|value| format!("{value:?}")).collect();
        let shown =
            if shown.is_empty() { "null".to_owned() } else { format!("[{}]", shown.join(",")) };
        Some(format!("values: Invalid value: {shown}: {problem}"))
    }
}

// === impl Test ===

impl Test {
    /// Joins an operator and the values that were checked for it.
    fn new(operator: Operator, values: &[&str]) -> Self {
        let set = || values.iter().map(|&value| value.to_owned()).collect();
        let value = values.first().copied().unwrap_or_default();
        let bound = || value.parse().unwrap_or_default();
        match operator {
            Operator::Exists => Self::Exists,
            Operator::DoesNotExist => Self::DoesNotExist,
            Operator::Equals => Self::Equals(value.to_owned()),
            Operator::NotEquals => Self::NotEquals(value.to_owned()),
            Operator::In => Self::In(set()),
            Operator::NotIn => Self::NotIn(set()),
            Operator::GreaterThan => Self::GreaterThan(bound()),
            Operator::LessThan => Self::LessThan(bound()),
        }
    }

    /// Returns true if the test holds for the value of a label, or for `None` if there is no such
    /// label.
    fn holds(&self, value: Option<&str>) -> bool {
        let number = || value.and_then(|value| value.parse::<i64>().ok());
        match self {
            Self::Exists => value.is_some(),
            Self::DoesNotExist => value.is_none(),
            Self::Equals(wanted) => value == Some(wanted),
            Self::NotEquals(unwanted) => value != Some(unwanted),
            Self::In(wanted) => value.is_some_and(|value| wanted.contains(value)),
            Self::NotIn(unwanted) => value.is_none_or(|value| !unwanted.contains(value)),
            Self::GreaterThan(bound) => number().is_some_and(|number| number > *bound),
            Self::LessThan(bound) => number().is_some_and(|number| number < *bound),
        }
    }
}
