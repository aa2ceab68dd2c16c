//! Checks an object against compiled rules.

use serde_json::{Map as JsonMap, Value};

use super::{Place, Rule, Verdict};
use crate::cel::{self, EvalError, Evaluator};
use crate::field_error::FieldError;
use crate::path::Path;

/// The steps that one rule may take.
const STEPS_OF_RULE: usize = 1_000_000;
/// The steps that all rules for one object may take.
pub(super) const STEPS_OF_OBJECT: usize = 10_000_000;
/// The longest message that an expression may make.
const MAX_MESSAGE: usize = 5 * 1024;

/// The error of rules that have no value.
const UNTYPED: &str = "rule compiler initialization error: failed to convert to declType for CEL \
    validation rules";

/// Checks an object with at most `steps` steps.
pub(super) fn run(root: &Place, object: &Value, old: Option<&Value>, steps: usize) -> Verdict {
    let mut runner =
        Runner { path: Path::default(), left: steps, stopped: false, verdict: Verdict::default() };
    let same = old.map(|old| old == object);
    runner.check(root, object, old, Same { own: same, around: false });
    runner.verdict
}

/// The relation of a value to the old object.
#[derive(Debug, Clone, Copy)]
struct Same {
    /// True if the value is equal to its old one; `None` if it has no counterpart.
    own: Option<bool>,
    /// True if the closest value around it that has a counterpart is unchanged.
    around: bool,
}

#[derive(Debug)]
struct Runner {
    path: Path,
    left: usize,
    stopped: bool,
    verdict: Verdict,
}

// === impl Same ===

impl Same {
    fn is_unchanged(self) -> bool {
        self.own.unwrap_or(self.around)
    }

    /// Returns the relation of a part.
    fn inner(self, place: &Place, value: &Value, old: Option<&Value>) -> Self {
        match self.own {
            None => self,
            Some(true) => Self { own: Some(true), around: true },
            Some(false) => {
                let is_same = old.is_some_and(|old| is_unchanged(place, value, old));
                Self { own: Some(is_same), around: false }
            }
        }
    }
}

/// Returns true if a value is as it was, apart from the order of a list map.
fn is_unchanged(place: &Place, value: &Value, old: &Value) -> bool {
    if value == old {
        return true;
    }
    let (Some(keys), Value::Array(items), Value::Array(before)) = (&place.keys, value, old) else {
        return false;
    };
    let index = Index::of(Some(keys), Some(old));
    items.len() == before.len() && items.iter().all(|item| index.find(item) == Some(item))
}

// === impl Runner ===

impl Runner {
    fn check(&mut self, place: &Place, value: &Value, old: Option<&Value>, same: Same) {
        if value.is_null() || self.stopped {
            return;
        }
        self.check_rules(place, value, old.filter(|old| !old.is_null()), same);
        match value {
            Value::Object(fields) => self.check_fields(place, fields, old, same),
            Value::Array(items) => self.check_items(place, items, old, same),
            _ => {}
        }
    }

    fn check_fields(
        &mut self,
        place: &Place,
        fields: &JsonMap<String, Value>,
        old: Option<&Value>,
        same: Same,
    ) {
        let old_of = |name: &str| old.and_then(|old| old.get(name));
        for (name, inner) in &place.fields {
            let Some(value) = fields.get(name) else { continue };
            let before = self.path.enter(name);
            let mut same = same.inner(inner, value, old_of(name));
            // A change of these two does not show: both objects have the same version.
            if before == 0 && matches!(name.as_str(), "apiVersion" | "kind") {
                same.own = Some(false);
            }
            self.check(inner, value, old_of(name), same);
            self.path.leave(before);
        }
        let Some(inner) = &place.values else { return };
        for (name, value) in fields {
            let before = self.path.enter_key(name);
            self.check(inner, value, old_of(name), same.inner(inner, value, old_of(name)));
            self.path.leave(before);
        }
    }

    fn check_items(&mut self, place: &Place, items: &[Value], old: Option<&Value>, same: Same) {
        let Some(inner) = &place.items else { return };
        let old_items = Index::of(place.keys.as_deref(), old);
        for (index, item) in items.iter().enumerate() {
            let before = self.path.enter_item(index);
            let old = old_items.find(item);
            let same = match place.keys {
                Some(_) => same.inner(inner, item, old),
                None => Same { own: None, around: same.is_unchanged() },
            };
            self.check(inner, item, old, same);
            self.path.leave(before);
        }
    }

    fn check_rules(&mut self, place: &Place, value: &Value, old: Option<&Value>, same: Same) {
        if place.is_untyped {
            self.add_invalid(place, UNTYPED);
        }
        let Some(kind) = &place.kind else { return };
        for rule in &place.rules {
            if rule.uses_old && old.is_none() && !rule.old_is_optional {
                continue;
            }
            let own = cel::Value::read(value, kind);
            let old = old.map(|old| cel::Value::read(old, kind));
            let old = if rule.old_is_optional { Some(cel::Value::of_optional(old)) } else { old };
            let variables = std::iter::once(("self", own)).chain(old.map(|old| ("oldSelf", old)));
            let variables: Vec<_> = variables.collect();
            let mut evaluator = Evaluator::new(variables, STEPS_OF_RULE.min(self.left));
            let result = evaluator.evaluate(&rule.expr);
            match result {
                Ok(cel::Value::Bool(true)) => {}
                Ok(_) => {
                    let detail = self.message(rule, &mut evaluator);
                    let is_plain = !matches!(place.type_name.as_str(), "object" | "array");
                    self.add_broken(rule, &detail, is_plain.then_some(value), same);
                }
                Err(error) => self.add_failed(rule, place, &error),
            }
            self.left = self.left.saturating_sub(evaluator.steps());
            if self.stopped {
                return;
            }
        }
    }

    /// Reports a rule that has no value.
    fn add_failed(&mut self, rule: &Rule, place: &Place, error: &EvalError) {
        let text = &rule.text;
        let detail = match error {
            EvalError::Limit if self.left < STEPS_OF_RULE => {
                "validation failed due to running out of cost budget, no further validation rules \
                 will be run"
                    .to_owned()
            }
            EvalError::Limit => format!(
                "'{error}': no further validation rules will be run due to call cost exceeds limit \
                 for rule: {text}"
            ),
            EvalError::Failed(reason) if reason.starts_with("no such overload") => format!(
                "'{reason}': call arguments did not match a supported operator, function or macro \
                 signature for rule: {text}"
            ),
            EvalError::Failed(reason) => format!("{reason} evaluating rule: {text}"),
        };
        self.stopped |= *error == EvalError::Limit;
        self.add_invalid(place, &detail);
    }

    /// Reports an error that shows the type of the value.
    fn add_invalid(&mut self, place: &Place, detail: &str) {
        let shown = Value::from(place.type_name.as_str());
        self.verdict.errors.push(FieldError::invalid(self.path.or_nil(), &shown, detail));
    }

    /// Returns the message of a rule that is false.
    fn message<'a>(&mut self, rule: &'a Rule, evaluator: &mut Evaluator<'a>) -> String {
        let computed = rule.message.as_ref().map(|message| evaluator.evaluate(message));
        match computed {
            Some(Ok(cel::Value::String(text))) if is_message(&text) => text.trim().to_owned(),
            Some(Err(EvalError::Limit)) => {
                self.stopped = true;
                "messageExpression evaluation failed due to running out of cost budget, no further \
                 validation rules will be run"
                    .to_owned()
            }
            _ if rule.has_message => rule.text.clone(),
            _ => format!("failed rule: {}", rule.text),
        }
    }

    /// Reports a rule that is false. The error shows a value without parts.
    fn add_broken(&mut self, rule: &Rule, detail: &str, shown: Option<&Value>, same: Same) {
        let before = rule.path.as_ref().map(|path| self.path.enter(path));
        let path = self.path.or_nil();
        let error = match rule.reason.as_deref() {
            Some("FieldValueForbidden") => FieldError::forbidden(path, detail),
            Some("FieldValueRequired") => FieldError::required(path, detail),
            Some("FieldValueDuplicate") => FieldError::duplicate_of(path, shown),
            _ => FieldError::invalid_of(path, shown, detail),
        };
        if let Some(before) = before {
            self.path.leave(before);
        }
        let is_accepted = !rule.uses_old && same.is_unchanged();
        let list = if is_accepted { &mut self.verdict.warnings } else { &mut self.verdict.errors };
        list.push(error);
    }
}

fn is_message(text: &str) -> bool {
    let text = text.trim();
    !text.is_empty() && text.len() <= MAX_MESSAGE && !text.contains('\n')
}

/// The old items of a list, by their keys.
#[derive(Debug)]
struct Index<'a> {
    keys: &'a [String],
    items: std::collections::HashMap<String, &'a Value>,
}

impl<'a> Index<'a> {
    fn of(keys: Option<&'a [String]>, old: Option<&'a Value>) -> Self {
        let keys = keys.unwrap_or_default();
        let old = old.and_then(Value::as_array).filter(|_| !keys.is_empty());
        let items = old.into_iter().flatten().map(|item| (Self::key(keys, item), item));
        Self { keys, items: items.collect() }
    }

    fn key(keys: &[String], item: &Value) -> String {
        let values: Vec<Option<&Value>> = keys.iter().map(|key| item.get(key)).collect();
        serde_json::to_string(&values).unwrap_or_default()
    }

    fn find(&self, item: &Value) -> Option<&'a Value> {
        self.items.get(&Self::key(self.keys, item)).copied()
    }
}
