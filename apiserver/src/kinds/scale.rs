//! `/scale`: the replicas of an object, in the form that all kinds with replicas share.

use homeostat_schema::go_type;
use serde_json::{Value, json};

use super::checks::NOT_NEGATIVE;
use super::columns::Scale;
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

    /// Checks the counts and the selector of a custom object that has the scale.
    pub(crate) fn check_object(&self, object: &Fields) -> Vec<Cause> {
        let wanted = check_count(object, &self.wanted);
        wanted.into_iter().chain(self.check_status(object)).collect()
    }

    /// Checks the count and the selector in the status of a custom object that has the scale.
    pub(crate) fn check_status(&self, object: &Fields) -> Vec<Cause> {
        let selector = read_text(object, &self.selector).err().map(|detail| {
            let shown = format!(".{}", self.selector);
            let detail = accessor_error(&self.selector, &detail);
            Cause::invalid(shown, &json!(""), &detail)
        });
        check_count(object, &self.counted).into_iter().chain(selector).collect()
    }

    /// Returns the reason why a custom object has no scale: something else stands at a path.
    pub(crate) fn unreadable(&self, object: &Fields) -> Option<String> {
        let count = |path| read_count(object, path).err().map(|it| accessor_error(path, &it));
        let selector = || {
            let error = read_text(object, &self.selector).err()?;
            Some(accessor_error(&self.selector, &error))
        };
        count(&self.wanted).or_else(|| count(&self.counted)).or_else(selector)
    }

    /// Returns true if the object states how many replicas it wants.
    pub(crate) fn is_stated(&self, object: &Fields) -> bool {
        read_path(object, &self.wanted).is_some()
    }

    /// Checks a scale.
    pub(crate) fn check(scale: &Fields) -> Option<Cause> {
        let wanted = read_path(scale, "spec.replicas")?;
        let negative = wanted.as_i64().is_some_and(|wanted| wanted < 0);
        negative.then(|| Cause::invalid("spec.replicas", wanted, NOT_NEGATIVE))
    }

    /// Sets the object's replicas to those of a scale. Makes objects on the way that are missing.
    pub(crate) fn write(&self, object: &mut Fields, scale: &Fields) {
        let wanted = read_path(scale, "spec.replicas").and_then(Value::as_i64).unwrap_or(0);
        let mut parts = self.wanted.split('.');
        let last = parts.next_back().unwrap_or_default();
        let mut target = object;
        for part in parts {
            let inner = target.entry(part).or_insert_with(|| json!({}));
            if inner.is_null() {
                *inner = json!({});
            }
            let Value::Object(inner) = inner else { return };
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
        Err(detail) => (0, accessor_error(path, &detail)),
    };
    Some(Cause::invalid(shown, &json!(value), &detail))
}

fn accessor_error(path: &str, detail: &str) -> String {
    format!(".{path} accessor error: {detail}")
}

/// Reads the whole number at a path; the error names what stands in its way, as Go does.
fn read_count(object: &Fields, path: &str) -> Result<Option<i64>, String> {
    match read_value(object, path)? {
        None => Ok(None),
        Some(value) => value.as_i64().map(Some).ok_or_else(|| wrong(value, "int64")),
    }
}

/// Reads the text at a path, which may be empty: there is none.
fn read_text<'a>(object: &'a Fields, path: &str) -> Result<Option<&'a str>, String> {
    match read_value(object, path)? {
        None => Ok(None),
        Some(value) => value.as_str().map(Some).ok_or_else(|| wrong(value, "string")),
    }
}

fn wrong(value: &Value, expected: &str) -> String {
    format!("{} is of the type {}, expected {expected}", go_text(value), go_type(value))
}

fn read_value<'a>(object: &'a Fields, path: &str) -> Result<Option<&'a Value>, String> {
    let mut parts = path.split('.');
    let mut at = parts.next().and_then(|first| object.get(first));
    for part in parts {
        at = match at {
            None | Some(Value::Null) => return Ok(None),
            Some(Value::Object(fields)) => fields.get(part),
            Some(other) => return Err(wrong(other, "map[string]interface{}")),
        };
    }
    Ok(at)
}
