//! `/scale`: the replicas of an object, in the form that all kinds with replicas share.

use serde_json::{Value, json};

use super::checks::NOT_NEGATIVE;
use super::kind::Scale;
use super::label_selector;
use crate::fields::{Fields, read_path};
use crate::go_json::go_text;
use crate::status::Cause;

// === impl Scale ===

impl Scale {
    /// Returns the scale of an object.
    pub(crate) fn read(&self, object: &Fields) -> Fields {
        let count = |path: &str| read_path(object, path).and_then(Value::as_i64).unwrap_or(0);
        let metadata = object.get("metadata").and_then(Value::as_object);
        let shown = ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"];
        let metadata: Fields = shown
            .iter()
            .filter_map(|key| Some(((*key).to_owned(), metadata?.get(*key)?.clone())))
            .collect();
        let mut spec = json!({});
        if count(&self.wanted) != 0 {
            spec["replicas"] = json!(count(&self.wanted));
        }
        let mut status = json!({"replicas": count(&self.counted)});
        match read_path(object, &self.selector) {
            // The text of a custom resource is sent as it is.
            Some(Value::String(text)) if !text.is_empty() => status["selector"] = json!(text),
            Some(selector) => {
                let selector = label_selector::read(selector);
                if let Some(selector) = selector.filter(|selector| !selector.is_empty()) {
                    status["selector"] = json!(selector.to_string());
                }
            }
            None => {}
        }
        let scale = json!({
            "kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": metadata, "spec": spec,
            "status": status,
        });
        match scale {
            Value::Object(scale) => scale,
            _ => Fields::new(),
        }
    }

    /// Checks the counts of an object that has the scale.
    pub(crate) fn check_object(&self, object: &Fields) -> Vec<Cause> {
        self.check_wanted(object).into_iter().chain(self.check_counted(object)).collect()
    }

    fn check_wanted(&self, object: &Fields) -> Option<Cause> {
        check_count(object, &self.wanted)
    }

    /// Checks the counts in the status of an object that has the scale.
    pub(crate) fn check_counted(&self, object: &Fields) -> Option<Cause> {
        check_count(object, &self.counted)
    }

    /// Returns whether the object states how many replicas it wants.
    pub(crate) fn is_stated(&self, object: &Fields) -> bool {
        read_path(object, &self.wanted).is_some()
    }

    /// Checks a scale.
    pub(crate) fn check(scale: &Fields) -> Option<Cause> {
        let wanted = read_path(scale, "spec.replicas")?;
        let negative = wanted.as_i64().is_some_and(|wanted| wanted < 0);
        negative.then(|| Cause::invalid("spec.replicas", wanted, NOT_NEGATIVE))
    }

    /// Sets the object's replicas to those of a scale.
    pub(crate) fn write(&self, object: &mut Fields, scale: &Fields) {
        let wanted = read_path(scale, "spec.replicas").and_then(Value::as_i64).unwrap_or(0);
        let mut parts = self.wanted.split('.');
        let last = parts.next_back().unwrap_or_default();
        let mut target = object;
        for part in parts {
            let Some(Value::Object(inner)) = target.get_mut(part) else { return };
            target = inner;
        }
        target.insert(last.to_owned(), json!(wanted));
    }
}

fn check_count(object: &Fields, path: &str) -> Option<Cause> {
    let shown = format!(".{path}");
    let most = i64::from(i32::MAX);
    let (value, detail) = match read_count(object, path) {
        Ok(Some(count)) if count < 0 => (count, "should be a non-negative integer".to_owned()),
        Ok(Some(count)) if count > most => {
            (count, format!("should be less than or equal to {most}"))
        }
        Ok(None | Some(_)) => return None,
        Err(detail) => (0, format!("{shown} accessor error: {detail}")),
    };
    Some(Cause::invalid(shown, &json!(value), &detail))
}

/// Reads the whole number at a path; the error names what stands in its way, as Go does.
fn read_count(object: &Fields, path: &str) -> Result<Option<i64>, String> {
    let wrong = |value: &Value, expected: &str| {
        let found = match value {
            Value::Null => "<nil>",
            Value::Bool(_) => "bool",
            Value::Number(number) if number.is_f64() => "float64",
            Value::Number(_) => "int64",
            Value::String(_) => "string",
            Value::Array(_) => "[]interface {}",
            Value::Object(_) => "map[string]interface {}",
        };
        format!("{} is of the type {found}, expected {expected}", go_text(value))
    };
    let mut parts = path.split('.');
    let mut at = parts.next().and_then(|first| object.get(first));
    for part in parts {
        at = match at {
            None | Some(Value::Null) => return Ok(None),
            Some(Value::Object(fields)) => fields.get(part),
            Some(other) => return Err(wrong(other, "map[string]interface{}")),
        };
    }
    match at {
        None => Ok(None),
        Some(value) => value.as_i64().map(Some).ok_or_else(|| wrong(value, "int64")),
    }
}
