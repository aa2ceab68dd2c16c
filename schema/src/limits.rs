//! Checks the limits of one value, and the conditions that join limits.

use homeostat_core::go_quote;
use serde_json::{Map as JsonMap, Number, Value};

use crate::constraints::{Condition, Constraints};
use crate::field_error::{FieldError, go_float};
use crate::validate::{Validator, is_whole, json_type};
use crate::{format, unique};

// === impl Validator ===

impl Validator {
    /// Checks the limits that come before the parts of a value.
    pub(crate) fn check_constraints(&mut self, constraints: &Constraints, value: &Value) {
        self.check_junctors(constraints, value);
        match value {
            Value::String(text) => self.check_text(constraints, text, value),
            Value::Number(number) => self.check_number(constraints, number, value),
            Value::Array(_) => return,
            Value::Object(_) | Value::Null | Value::Bool(_) => {}
        }
        self.check_allowed(Some(constraints), value);
        if let Value::Object(fields) = value {
            self.check_count(constraints, fields);
        }
    }

    /// Checks the limits that come after the parts of a value: those of a list, and the required
    /// fields of an object.
    pub(crate) fn check_whole(&mut self, constraints: &Constraints, value: &Value) {
        match value {
            Value::Array(items) => {
                self.check_list(constraints, items);
                self.check_allowed(Some(constraints), value);
            }
            Value::Object(fields) => self.check_required(constraints, fields),
            _ => {}
        }
    }

    fn check_text(&mut self, constraints: &Constraints, text: &str, value: &Value) {
        let length = text.chars().count() as u64;
        if let Some(most) = constraints.max_length.filter(|most| length > *most) {
            self.add(FieldError::too_long(self.path.or_nil(), most));
        } else if let Some(least) = constraints.min_length.filter(|least| length < *least) {
            self.invalid(value, &format!("should be at least {least} chars long"));
        } else if let Some(pattern) = constraints.pattern.as_ref().filter(|is| !is.is_match(text)) {
            self.invalid(value, &format!("should match '{}'", pattern.as_str()));
        }
        if let Some(format) = constraints.format.as_deref()
            && !format::is_valid(format, text)
        {
            let detail =
                format!("{} in body must be of type {format}: {}", self.path, go_quote(text));
            self.add(FieldError::type_invalid(self.path.or_nil(), value, &detail));
        }
    }

    fn check_number(&mut self, constraints: &Constraints, number: &Number, value: &Value) {
        let Some(found) = number.as_f64() else { return };
        let shown = |limit: &Number| {
            let limit = limit.as_f64().unwrap_or_default();
            if number.is_f64() { go_float(limit) } else { go_float(limit.trunc()) }
        };
        if let Some(stated) = &constraints.multiple_of
            && let Some(factor) = stated.as_f64()
        {
            // As upstream, an integer has a factor without a fraction.
            let factor = if number.is_f64() { factor } else { factor.trunc() };
            if factor <= 0.0 {
                let shown = go_float(factor);
                let path = &self.path;
                let text =
                    format!("factor MultipleOf declared for {path} must be positive: {shown}");
                self.add(FieldError::invalid(self.path.or_nil(), &Value::from(0), &text));
            } else if !is_multiple(number, factor) {
                self.invalid(value, &format!("should be a multiple of {}", shown(stated)));
            }
        }
        if let Some(stated) = &constraints.maximum {
            let most = stated.as_f64().unwrap_or(f64::INFINITY);
            let text = match constraints.exclusive_maximum {
                true if found >= most => "should be less than",
                false if found > most => "should be less than or equal to",
                _ => "",
            };
            self.add_limit(value, text, &shown(stated));
        }
        if let Some(stated) = &constraints.minimum {
            let least = stated.as_f64().unwrap_or(f64::NEG_INFINITY);
            let text = match constraints.exclusive_minimum {
                true if found <= least => "should be greater than",
                false if found < least => "should be greater than or equal to",
                _ => "",
            };
            self.add_limit(value, text, &shown(stated));
        }
    }

    fn add_limit(&mut self, value: &Value, text: &str, limit: &str) {
        if !text.is_empty() {
            self.invalid(value, &format!("{text} {limit}"));
        }
    }

    fn check_list(&mut self, constraints: &Constraints, items: &[Value]) {
        let count = items.len() as u64;
        if let Some(least) = constraints.min_items.filter(|least| count < *least) {
            self.invalid(&Value::from(count), &format!("should have at least {least} items"));
        }
        if let Some(most) = constraints.max_items.filter(|most| count > *most) {
            self.add(FieldError::too_many(self.path.or_nil(), items.len(), most));
        }
        if constraints.unique_items && unique::has_duplicate(items) {
            self.invalid(&Value::from(""), "shouldn't contain duplicates");
        }
    }

    fn check_count(&mut self, constraints: &Constraints, fields: &JsonMap<String, Value>) {
        let count = fields.len() as u64;
        if let Some(least) = constraints.min_properties.filter(|least| count < *least) {
            self.invalid(&Value::from(count), &format!("should have at least {least} properties"));
        }
        if let Some(most) = constraints.max_properties.filter(|most| count > *most) {
            self.add(FieldError::too_many(self.path.or_nil(), fields.len(), most));
        }
    }

    fn check_required(&mut self, constraints: &Constraints, fields: &JsonMap<String, Value>) {
        for name in constraints.required.iter().filter(|name| !fields.contains_key(*name)) {
            let before = self.path.enter(name);
            self.add(FieldError::required(self.path.as_str(), ""));
            self.path.leave(before);
        }
    }

    pub(crate) fn check_allowed(&mut self, constraints: Option<&Constraints>, value: &Value) {
        let Some(constraints) = constraints.filter(|limits| !limits.allowed.is_empty()) else {
            return;
        };
        if constraints.allowed.contains(value) {
            self.passed += 1;
        } else {
            let path = self.path.or_nil();
            self.add(FieldError::not_supported(path, value, &constraints.allowed));
        }
    }

    fn check_junctors(&mut self, constraints: &Constraints, value: &Value) {
        let path = go_quote(self.path.as_str());
        if !constraints.any_of.is_empty() {
            self.check_any_of(&constraints.any_of, value, &path);
        }
        if !constraints.one_of.is_empty() {
            self.check_one_of(&constraints.one_of, value, &path);
        }
        if !constraints.all_of.is_empty() {
            self.check_all_of(&constraints.all_of, value, &path);
        }
        if let Some(not) = &constraints.not
            && self.try_one(not, value).is_valid()
        {
            self.add_whole(&format!("{path} must not validate the schema (not)"));
        }
    }

    fn check_any_of(&mut self, conditions: &[Condition], value: &Value, path: &str) {
        let results = self.try_all(conditions, value);
        if !results.iter().any(Self::is_valid) {
            self.add_whole(&format!("{path} must validate at least one schema (anyOf)"));
            self.merge_best(results);
        }
    }

    fn check_one_of(&mut self, conditions: &[Condition], value: &Value, path: &str) {
        let results = self.try_all(conditions, value);
        let valid = results.iter().filter(|result| result.is_valid()).count();
        let found = match valid {
            1 => return,
            0 => "Found none valid".to_owned(),
            valid => format!("Found {valid} valid alternatives"),
        };
        let text = "must validate one and only one schema (oneOf)";
        self.add_whole(&format!("{path} {text}. {found}"));
        if valid == 0 {
            self.merge_best(results);
        }
    }

    fn check_all_of(&mut self, conditions: &[Condition], value: &Value, path: &str) {
        let results = self.try_all(conditions, value);
        let valid = results.iter().filter(|result| result.is_valid()).count();
        let all = valid == results.len();
        for error in results.into_iter().flat_map(|result| result.errors) {
            self.add(error);
        }
        if !all {
            let none = if valid == 0 { ". None validated" } else { "" };
            self.add_whole(&format!("{path} must validate all the schemas (allOf){none}"));
        }
    }

    fn try_all(&self, conditions: &[Condition], value: &Value) -> Vec<Self> {
        conditions.iter().map(|condition| self.try_one(condition, value)).collect()
    }

    fn try_one(&self, condition: &Condition, value: &Value) -> Self {
        let mut inner = Self { path: self.path.clone(), ..Self::default() };
        inner.check_condition(condition, value);
        inner
    }

    fn check_condition(&mut self, condition: &Condition, value: &Value) {
        if let Some(expected) = &condition.type_name {
            let found = json_type(value);
            let whole = expected == "number" || (expected == "integer" && is_whole(value));
            if found == expected || (value.is_number() && whole) {
                self.passed += 1;
            } else {
                self.mismatch(expected, found);
            }
        }
        self.check_constraints(&condition.constraints, value);
        for (name, inner) in &condition.fields {
            let Some(value) = value.get(name) else { continue };
            let before = self.path.enter(name);
            self.check_condition(inner, value);
            self.path.leave(before);
            self.passed += 1;
        }
        if let (Some(inner), Some(items)) = (&condition.items, value.as_array()) {
            for (at, item) in items.iter().enumerate() {
                let before = self.path.enter_item(at);
                self.check_condition(inner, item);
                self.path.leave(before);
            }
        }
        self.check_whole(&condition.constraints, value);
    }

    /// Adds the errors of the alternative with the most passed checks, the first of equals.
    fn merge_best(&mut self, results: Vec<Self>) {
        let mut best: Option<Self> = None;
        for result in results {
            if best.as_ref().is_none_or(|best| result.passed > best.passed) {
                best = Some(result);
            }
        }
        for error in best.into_iter().flat_map(|best| best.errors) {
            self.add(error);
        }
    }
}
/// Returns true if a number is a multiple of a positive factor; if it is no integer, up to what is
/// lost by rounding.
#[expect(clippy::cast_possible_truncation, reason = "the factor of an integer has no fraction")]
fn is_multiple(number: &Number, factor: f64) -> bool {
    if let Some(number) = number.as_i64() {
        return number.checked_rem(factor as i64) == Some(0);
    }
    let number = number.as_f64().unwrap_or_default();
    let quotient = if factor < 1.0 { 1.0 / factor * number } else { number / factor };
    let off = (quotient - quotient.trunc()).abs();
    off == 0.0 || off / (quotient.abs() + quotient.trunc().abs()) < 1e-9
}
