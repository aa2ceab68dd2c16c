//! Checks the Kubernetes objects inside of an object (`x-kubernetes-embedded-resource`).

use serde_json::Map as JsonMap;
use serde_json::Value;

use crate::field_error::FieldError;
use crate::node::Shape;
use crate::path::Path;
use crate::schema::NodeRef;

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

fn check_type(fields: &JsonMap<String, Value>, path: &mut Path, errors: &mut Vec<FieldError>) {
    for name in ["apiVersion", "kind"] {
        let before = path.enter(name);
        match fields.get(name) {
            None => errors.push(FieldError::required(path.as_str(), "")),
            Some(Value::String(text)) if text.is_empty() => {
                let empty = Value::from("");
                errors.push(FieldError::invalid(path.as_str(), &empty, "must not be empty"));
            }
            Some(Value::String(_)) => {}
            Some(other) => {
                errors.push(FieldError::invalid(path.as_str(), other, "must be a string"));
            }
        }
        path.leave(before);
    }
}
