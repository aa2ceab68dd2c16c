//! Removes fields that a schema does not name, fills in defaults, and removes nulls.

use serde_json::Value;

use crate::node::{Object, Shape, UnknownFields};
use crate::path::Path;
use crate::schema::{NodeRef, Schema};

/// The fields of every Kubernetes object, which no schema of a custom kind can remove.
const META_FIELDS: [&str; 3] = ["apiVersion", "kind", "metadata"];

impl Schema {
    /// Removes the fields that the schema does not name, and returns their paths, sorted.
    ///
    /// `apiVersion`, `kind` and `metadata` of the root and of embedded objects stay.
    ///
    /// # Examples
    ///
    /// ```
    /// use homeostat_schema::Schema;
    /// use serde_json::json;
    ///
    /// let schema = Schema::from_open_api(&json!({
    ///     "type": "object",
    ///     "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}},
    /// }));
    /// let mut object = json!({"kind": "Foo", "spec": {"size": 1, "colour": "red"}});
    /// assert_eq!(schema.prune(&mut object), ["spec.colour"]);
    /// assert_eq!(object, json!({"kind": "Foo", "spec": {"size": 1}}));
    /// ```
    pub fn prune(&self, object: &mut Value) -> Vec<String> {
        let mut pruner = Pruner::default();
        pruner.prune(self.root(), object, true);
        pruner.removed.sort();
        pruner.removed
    }

    /// Removes the fields of a part of an object that the schema does not name.
    pub(crate) fn prune_part(&self, value: &mut Value) -> Vec<String> {
        let mut pruner = Pruner::default();
        pruner.prune(self.root(), value, false);
        pruner.removed
    }

    /// Removes each `null` whose field is not nullable and has no default.
    pub fn prune_nulls(&self, object: &mut Value) {
        prune_nulls(self.root(), object);
    }

    /// Sets each absent field that has a default; also a `null` that is not nullable.
    ///
    /// # Examples
    ///
    /// ```
    /// use homeostat_schema::Schema;
    /// use serde_json::json;
    ///
    /// let schema = Schema::from_open_api(&json!({
    ///     "type": "object",
    ///     "properties": {"size": {"type": "integer", "default": 3}},
    /// }));
    /// let mut object = json!({});
    /// schema.set_defaults(&mut object);
    /// assert_eq!(object, json!({"size": 3}));
    /// ```
    pub fn set_defaults(&self, object: &mut Value) {
        set_defaults(self.root(), object);
    }
}

/// Removes the fields that a schema does not name.
#[derive(Debug, Default)]
struct Pruner {
    /// The path of the present value.
    path: Path,
    /// The paths of the removed fields.
    removed: Vec<String>,
}

// === impl Pruner ===

impl Pruner {
    fn prune(&mut self, node: NodeRef<'_>, value: &mut Value, is_root: bool) {
        match (node.shape(), value) {
            (Shape::Object(object), Value::Object(fields)) => {
                let keeps_meta = is_root || object.embedded;
                fields.retain(|name, value| {
                    let is_meta = META_FIELDS.contains(&name.as_str());
                    (keeps_meta && is_meta) || self.keeps(node, object, name, value)
                });
            }
            (Shape::Map(_), Value::Object(fields)) => {
                let Some(inner) = node.values() else { return };
                for (name, value) in fields {
                    let before = self.path.enter(name);
                    self.prune(inner, value, false);
                    self.path.leave(before);
                }
            }
            (Shape::List(_), Value::Array(list)) => {
                let Some(inner) = node.items() else { return };
                for (at, value) in list.iter_mut().enumerate() {
                    let before = self.path.enter_item(at);
                    self.prune(inner, value, false);
                    self.path.leave(before);
                }
            }
            // A value of a wrong type. Upstream removes every field of an object that is not
            // declared.
            (Shape::Scalar(_) | Shape::List(_), Value::Object(fields)) => {
                for (name, _) in std::mem::take(fields) {
                    self.remove(&name);
                }
            }
            _ => {}
        }
    }

    /// Returns true if a field of an object stays, and prunes its value.
    fn keeps(&mut self, node: NodeRef<'_>, object: &Object, name: &str, value: &mut Value) -> bool {
        if let Some(inner) = node.field(name) {
            let before = self.path.enter(name);
            self.prune(inner, value, false);
            self.path.leave(before);
            return true;
        }
        let keeps = object.unknown == UnknownFields::Preserve;
        if !keeps {
            self.remove(name);
        }
        keeps
    }

    /// Notes the removal of a field of the present value.
    fn remove(&mut self, name: &str) {
        let before = self.path.enter(name);
        self.removed.push(self.path.to_string());
        self.path.leave(before);
    }
}

fn prune_nulls(node: NodeRef<'_>, value: &mut Value) {
    match value {
        Value::Object(fields) => fields.retain(|name, value| {
            // Metadata is not of the schema: its null is an empty object.
            let inner = node.field(name).filter(|inner| inner.type_name().is_none());
            let Some(inner) = inner else { return true };
            let remove = value.is_null() && !is_nullable(inner) && inner.default().is_none();
            if !remove {
                prune_nulls(inner, value);
            }
            !remove
        }),
        Value::Array(list) => {
            let Some(inner) = node.items() else { return };
            for value in list {
                prune_nulls(inner, value);
            }
        }
        _ => {}
    }
}

/// Returns true if `null` stays: it is declared nullable, or nothing is declared.
fn is_nullable(node: NodeRef<'_>) -> bool {
    node.node().nullable
}

fn set_defaults(node: NodeRef<'_>, value: &mut Value) {
    match (node.shape(), value) {
        (Shape::Object(object), Value::Object(fields)) => {
            add_defaults(node, object, fields);
            for (name, value) in fields {
                // The API server fills in metadata itself.
                let Some(inner) = node.field(name).filter(|inner| inner.type_name().is_none())
                else {
                    continue;
                };
                set_defaults(inner, value);
            }
        }
        (Shape::Map(_), Value::Object(fields)) => {
            let Some(inner) = node.values() else { return };
            for value in fields.values_mut() {
                set_element(inner, value);
            }
        }
        (Shape::List(_), Value::Array(list)) => {
            let Some(inner) = node.items() else { return };
            for value in list {
                set_element(inner, value);
            }
        }
        _ => {}
    }
}

fn add_defaults(node: NodeRef<'_>, object: &Object, fields: &mut serde_json::Map<String, Value>) {
    for field in object.fields() {
        let Some(inner) = node.field(&field.name) else { continue };
        let Some(default) = inner.default().filter(|_| inner.type_name().is_none()) else {
            continue;
        };
        let present = fields.get(field.name.as_ref());
        if present.is_none_or(|value| value.is_null() && !is_nullable(inner)) {
            fields.insert(field.name.to_string(), default.clone());
        }
    }
}

fn set_element(node: NodeRef<'_>, value: &mut Value) {
    if value.is_null()
        && !is_nullable(node)
        && let Some(default) = node.default()
    {
        *value = default.clone();
    }
    set_defaults(node, value);
}
