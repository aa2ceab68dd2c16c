//! Checks the Kubernetes objects inside of an object (`x-kubernetes-embedded-resource`).

use serde_json::{Map as JsonMap, Value};

use crate::field_error::FieldError;
use crate::names;
use crate::node::Shape;
use crate::path::Path;
use crate::schema::{NodeRef, Schema};

/// The fields of an object.
type Fields = JsonMap<String, Value>;

impl Schema {
    /// Calls `visit` with the path and the fields of each object that the schema declares as
    /// embedded (`x-kubernetes-embedded-resource`), the outer one first.
    ///
    /// # Errors
    ///
    /// Fails with the first error of `visit`.
    ///
    /// # Examples
    ///
    /// ```
    /// use homeostat_schema::Schema;
    /// use serde_json::json;
    ///
    /// let schema = Schema::from_open_api(&json!({"type": "object", "properties": {
    ///     "pod": {"type": "object", "x-kubernetes-embedded-resource": true},
    /// }}));
    /// let mut object = json!({"pod": {"kind": "Pod"}});
    /// let mut paths = Vec::new();
    /// let visited: Result<(), ()> = schema.visit_embedded(&mut object, &mut |path, _| {
    ///     paths.push(path.to_owned());
    ///     Ok(())
    /// });
    /// assert_eq!((visited, paths), (Ok(()), vec!["pod".to_owned()]));
    /// ```
    pub fn visit_embedded<E>(
        &self,
        object: &mut Value,
        visit: &mut impl FnMut(&str, &mut Fields) -> Result<(), E>,
    ) -> Result<(), E> {
        self::visit(self.root(), object, &mut Path::default(), visit)
    }
}

fn visit<E>(
    node: NodeRef<'_>,
    value: &mut Value,
    path: &mut Path,
    call: &mut impl FnMut(&str, &mut Fields) -> Result<(), E>,
) -> Result<(), E> {
    match (node.shape(), value) {
        (Shape::Object(object), Value::Object(fields)) => {
            if object.embedded {
                call(path.as_str(), fields)?;
            }
            for (name, value) in fields {
                let inner = node.field(name).filter(|inner| inner.type_name().is_none());
                let Some(inner) = inner else { continue };
                let before = path.enter(name);
                visit(inner, value, path, call)?;
                path.leave(before);
            }
        }
        (Shape::Map(_), Value::Object(fields)) => {
            let Some(inner) = node.values() else { return Ok(()) };
            for (name, value) in fields {
                let before = path.enter_key(name);
                visit(inner, value, path, call)?;
                path.leave(before);
            }
        }
        (Shape::List(_), Value::Array(items)) => {
            let Some(inner) = node.items() else { return Ok(()) };
            for (at, item) in items.iter_mut().enumerate() {
                let before = path.enter_item(at);
                visit(inner, item, path, call)?;
                path.leave(before);
            }
        }
        _ => {}
    }
    Ok(())
}

/// Reports embedded objects without `apiVersion` or `kind`, or with invalid ones.
pub(crate) fn check(
    node: NodeRef<'_>,
    value: &Value,
    path: &mut Path,
    errors: &mut Vec<FieldError>,
) {
    match (node.shape(), value) {
        (Shape::Object(object), Value::Object(fields)) => {
            if object.embedded {
                check_type(fields, path, errors);
            }
            for (name, value) in fields {
                let Some(inner) = node.field(name).filter(|inner| inner.type_name().is_none())
                else {
                    continue;
                };
                let before = path.enter(name);
                check(inner, value, path, errors);
                path.leave(before);
            }
        }
        (Shape::Map(_), Value::Object(fields)) => {
            let Some(inner) = node.values() else { return };
            for (name, value) in fields {
                let before = path.enter_key(name);
                check(inner, value, path, errors);
                path.leave(before);
            }
        }
        (Shape::List(_), Value::Array(items)) => {
            let Some(inner) = node.items() else { return };
            for (at, item) in items.iter().enumerate() {
                let before = path.enter_item(at);
                check(inner, item, path, errors);
                path.leave(before);
            }
        }
        _ => {}
    }
}

/// Checks a part of an object that stands at a path. A root is an object itself.
pub(crate) fn check_part(
    node: NodeRef<'_>,
    is_root: bool,
    value: &Value,
    at: &str,
) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if let (true, Value::Object(fields)) = (is_root, value) {
        check_type(fields, &mut Path::default(), &mut errors);
    }
    check(node, value, &mut Path::default(), &mut errors);
    errors.into_iter().map(|error| error.below(at)).collect()
}

/// Reports a type that an object does not state, or an invalid one.
pub(crate) fn check_type(
    fields: &JsonMap<String, Value>,
    path: &mut Path,
    errors: &mut Vec<FieldError>,
) {
    for name in ["apiVersion", "kind"] {
        let before = path.enter(name);
        match fields.get(name) {
            None => errors.push(FieldError::required(path.as_str(), "")),
            Some(Value::String(text)) if text.is_empty() => {
                let empty = Value::from("");
                errors.push(FieldError::invalid(path.as_str(), &empty, "must not be empty"));
            }
            Some(Value::String(text)) => {
                if let Some(detail) = problem(name, text) {
                    let shown = Value::from(text.as_str());
                    errors.push(FieldError::invalid(path.as_str(), &shown, &detail));
                }
            }
            Some(other) => {
                errors.push(FieldError::invalid(path.as_str(), other, "must be a string"));
            }
        }
        path.leave(before);
    }
}

/// Returns the reason why a text is no `apiVersion` or no `kind`.
fn problem(name: &str, text: &str) -> Option<String> {
    if name == "apiVersion" {
        let is_valid = text.matches('/').count() < 2;
        return (!is_valid).then(|| format!("unexpected GroupVersion string: {text}"));
    }
    let found = names::rfc_1035_label(&text.to_lowercase());
    let mixed = "may have mixed case, but should otherwise match: ";
    (!found.is_empty()).then(|| format!("{mixed}{}", found.join(",")))
}
