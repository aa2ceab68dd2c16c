//! The rules of a schema in the Common Expression Language (`x-kubernetes-validations`).

mod budget;
mod check;
mod compile;
mod field_path;
mod run;
#[cfg(test)]
mod tests;
mod texts;

use std::sync::Arc;

use serde_json::Value;

pub(crate) use check::check_rules;
pub(crate) use texts::check_texts;

use crate::cel::{Expr, Type};
use crate::field_error::FieldError;

/// The compiled rules of a schema. A clone shares them.
///
/// # Examples
///
/// ```
/// use homeostat_schema::Rules;
/// use serde_json::json;
///
/// let rules = Rules::from_open_api(&json!({"type": "object", "properties": {"spec": {
///     "type": "object",
///     "properties": {"min": {"type": "integer"}, "max": {"type": "integer"}},
///     "x-kubernetes-validations": [
///         {"rule": "self.min <= self.max", "message": "min is above max"},
///         {"rule": "self.max >= oldSelf.max", "message": "max cannot fall"},
///     ],
/// }}}));
/// let (old, new) = (json!({"spec": {"min": 1, "max": 5}}), json!({"spec": {"min": 4, "max": 3}}));
/// assert!(rules.check(&old, None).errors.is_empty());
/// let errors = rules.check(&new, Some(&old)).errors;
/// assert_eq!(errors[0].to_string(), "spec: Invalid value: min is above max");
/// assert_eq!(errors[1].to_string(), "spec: Invalid value: max cannot fall");
/// ```
#[derive(Debug, Clone, Default)]
pub struct Rules {
    root: Option<Arc<Place>>,
}

/// The result of checking an object against the rules of its schema.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Verdict {
    /// The rules that the object breaks.
    pub errors: Vec<FieldError>,
    /// The rules that unchanged values break: a stricter schema does not block other changes.
    pub warnings: Vec<FieldError>,
}

/// A part of the schema that has rules, or has parts that have rules.
#[derive(Debug)]
struct Place {
    /// The type of the value in expressions; `None` if they cannot use it.
    kind: Option<Type>,
    /// True if rules are stated where no value is expected, as for the items of an object.
    is_untyped: bool,
    /// The type as the schema states it.
    type_name: String,
    rules: Vec<Rule>,
    fields: Vec<(String, Self)>,
    values: Option<Box<Self>>,
    items: Option<Box<Self>>,
    /// The fields that identify an item of the list; `None` if its items have no identity.
    keys: Option<Vec<String>>,
}

#[derive(Debug)]
struct Rule {
    expr: Expr,
    /// The author's message, or else the expression.
    text: String,
    has_message: bool,
    message: Option<Expr>,
    reason: Option<String>,
    /// The path of the field that is to blame, below the value.
    path: Option<String>,
    uses_old: bool,
    /// True if the rule runs without an old value, too.
    old_is_optional: bool,
}

// === impl Rules ===

impl Rules {
    /// Compiles the rules in an `openAPIV3Schema`. Rules that do not compile are left out:
    /// [`check_open_api`](crate::check_open_api) reports them.
    #[must_use]
    pub fn from_open_api(schema: &Value) -> Self {
        Self { root: compile::compile(schema).map(Arc::new) }
    }

    /// Compiles the rules of a part of an object.
    pub(crate) fn of_part(schema: &Value) -> Self {
        Self { root: compile::compile_part(schema).map(Arc::new) }
    }

    /// Returns true if there is no rule.
    pub fn is_empty(&self) -> bool {
        self.root.is_none()
    }

    /// Checks an object. `old` is the object before an update; `None` for a new one.
    ///
    /// The rules must not see values of wrong types: `errors` of
    /// [`Schema::validate`](crate::Schema::validate) come first.
    ///
    /// A rule may take 1,000,000 steps, and all rules 10,000,000, as on the real server.
    pub fn check(&self, object: &Value, old: Option<&Value>) -> Verdict {
        match &self.root {
            Some(root) => run::run(root, object, old, run::STEPS_OF_OBJECT),
            None => Verdict::default(),
        }
    }
}
