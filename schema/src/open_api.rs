//! Reads the schema of a `CustomResourceDefinition`.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map as JsonMap, Value};

use crate::built_in;
use crate::constraints::{Condition, Constraints, Pattern};
use crate::node::{Field, List, ListType, Map, Node, Object, Scalar, Shape};
use crate::schema::Schema;

/// Levels of nesting that a schema may have.
///
/// JSON itself allows 128 levels in most readers, and a level of a schema takes two of them.
const MAX_DEPTH: usize = 100;

impl Schema {
    /// Reads `openAPIV3Schema`. The root gets `apiVersion`, `kind` and `metadata`.
    ///
    /// The schema is read as it is: [`check_structural`](crate::check_structural) reports what
    /// makes it invalid.
    ///
    /// # Examples
    ///
    /// ```
    /// use homeostat_schema::Schema;
    /// use serde_json::json;
    ///
    /// let schema = Schema::from_open_api(&json!({
    ///     "type": "object",
    ///     "properties": {"spec": {"type": "object", "properties": {
    ///         "size": {"type": "integer", "minimum": 1},
    ///     }}},
    /// }));
    /// assert!(schema.root().field("spec").unwrap().field("size").is_some());
    /// assert!(schema.root().field("metadata").is_some());
    /// ```
    #[must_use]
    pub fn from_open_api(schema: &Value) -> Self {
        let mut root = read_node(schema, MAX_DEPTH);
        let object = match root.shape {
            Shape::Object(object) => object,
            _ => Object::default().preserving_unknown_fields(),
        };
        root.shape = Shape::Object(object.with_type_and_metadata());
        Self::new(Arc::clone(built_in::types()), root)
    }
}

impl Schema {
    /// Creates the schema of a part of an object.
    pub(crate) fn of_part(part: Node) -> Self {
        Self::new(Arc::clone(built_in::types()), part)
    }
}

impl Object {
    /// Adds the fields of every Kubernetes object.
    fn with_type_and_metadata(mut self) -> Self {
        let metadata = built_in::types().find("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta");
        let metadata = metadata.expect("the table has ObjectMeta");
        for name in ["apiVersion", "kind"] {
            if self.field(name).is_none() {
                self.insert(Field::new(name, Scalar::String));
            }
        }
        let mut field = Field::new("metadata", metadata);
        if let Some(declared) = self.field("metadata") {
            field.node.constraints.clone_from(&declared.node.constraints);
            field.restrictions = restrictions(&declared.node);
        }
        self.insert(field);
        self
    }
}

/// Returns the limits of `metadata.name` and `metadata.generateName`.
fn restrictions(metadata: &Node) -> Vec<(String, Node)> {
    let Shape::Object(object) = &metadata.shape else { return Vec::new() };
    object.fields().map(|field| (field.name.to_string(), field.node.clone())).collect()
}

/// Reads the schema of a part of an object.
pub(crate) fn read_part(schema: &Value) -> Node {
    read_node(schema, MAX_DEPTH)
}

fn read_node(schema: &Value, depth: usize) -> Node {
    let Some(depth) = depth.checked_sub(1) else { return Node::default() };
    let constraints = read_constraints(schema, depth);
    Node {
        shape: read_shape(schema, depth),
        atomic: false,
        // Without a type, an apply deduces that of each value.
        granular: flag(schema, "x-kubernetes-int-or-string"),
        nullable: flag(schema, "nullable"),
        default: schema.get("default").cloned(),
        description: schema.get("description").and_then(Value::as_str).map(Arc::from),
        constraints: (!constraints.is_empty()).then(|| Box::new(constraints)),
    }
}

fn read_shape(schema: &Value, depth: usize) -> Shape {
    if flag(schema, "x-kubernetes-int-or-string") {
        return Shape::Scalar(Scalar::IntOrString);
    }
    match schema.get("type").and_then(Value::as_str) {
        Some("object") => read_object(schema, depth),
        Some("array") => {
            let items = schema.get("items").map(|items| read_node(items, depth));
            Shape::List(List::new(items.unwrap_or_default(), read_list_type(schema)))
        }
        Some("string") => Shape::Scalar(Scalar::String),
        Some("boolean") => Shape::Scalar(Scalar::Boolean),
        Some("integer") => Shape::Scalar(Scalar::Int64),
        Some("number") => Shape::Scalar(Scalar::Float),
        _ => Shape::Any,
    }
}

fn read_object(schema: &Value, depth: usize) -> Shape {
    let atomic = schema.get("x-kubernetes-map-type").and_then(Value::as_str) == Some("atomic");
    let properties = schema.get("properties").and_then(Value::as_object);
    if let (None, Some(values)) = (properties, schema.get("additionalProperties"))
        && *values != Value::Bool(false)
    {
        let map = Map::new(read_node(values, depth));
        return Shape::Map(if atomic { map.atomic() } else { map });
    }
    let fields = properties.into_iter().flatten();
    let required: Vec<&str> = texts(schema.get("required")).collect();
    let mut object = Object::new(fields.map(|(name, schema)| {
        let mut field = Field::new(name.as_str(), read_node(schema, depth));
        field.required = required.contains(&name.as_str());
        field
    }));
    if flag(schema, "x-kubernetes-preserve-unknown-fields") {
        object = object.preserving_unknown_fields();
    }
    if flag(schema, "x-kubernetes-embedded-resource") {
        object.embedded = true;
        object = object.with_type_and_metadata();
    }
    object.atomic = atomic;
    Shape::Object(object)
}

fn read_list_type(schema: &Value) -> ListType {
    match schema.get("x-kubernetes-list-type").and_then(Value::as_str) {
        Some("set") => ListType::Set,
        Some("map") => ListType::map(texts(schema.get("x-kubernetes-list-map-keys"))),
        _ => ListType::Atomic,
    }
}

fn read_constraints(schema: &Value, depth: usize) -> Constraints {
    let number = |name: &str| schema.get(name).and_then(Value::as_number).cloned();
    let count = |name: &str| schema.get(name).and_then(Value::as_u64);
    let text = |name: &str| schema.get(name).and_then(Value::as_str);
    let conditions = |name: &str| {
        let list = schema.get(name).and_then(Value::as_array).into_iter().flatten();
        list.map(|condition| read_condition(condition, depth)).collect()
    };
    Constraints {
        format: text("format").filter(|format| !format.is_empty()).map(str::to_owned),
        allowed: schema.get("enum").and_then(Value::as_array).cloned().unwrap_or_default(),
        minimum: number("minimum"),
        exclusive_minimum: flag(schema, "exclusiveMinimum"),
        maximum: number("maximum"),
        exclusive_maximum: flag(schema, "exclusiveMaximum"),
        multiple_of: number("multipleOf"),
        min_length: count("minLength"),
        max_length: count("maxLength"),
        pattern: text("pattern").and_then(|pattern| Pattern::new(pattern).ok()),
        min_items: count("minItems"),
        max_items: count("maxItems"),
        unique_items: flag(schema, "uniqueItems"),
        min_properties: count("minProperties"),
        max_properties: count("maxProperties"),
        required: texts(schema.get("required")).map(str::to_owned).collect(),
        all_of: conditions("allOf"),
        any_of: conditions("anyOf"),
        one_of: conditions("oneOf"),
        not: schema.get("not").map(|not| Box::new(read_condition(not, depth))),
    }
}

fn read_condition(schema: &Value, depth: usize) -> Condition {
    let Some(depth) = depth.checked_sub(1) else { return Condition::default() };
    let inner = |name: &str| {
        let found = schema.get(name).filter(|inner| inner.is_object());
        found.map(|inner| Box::new(read_condition(inner, depth)))
    };
    let fields = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    let sorted: BTreeMap<&String, &Value> = fields.collect();
    let field = |(name, schema): (&String, &Value)| (name.clone(), read_condition(schema, depth));
    Condition {
        type_name: schema.get("type").and_then(Value::as_str).map(str::to_owned),
        constraints: read_constraints(schema, depth),
        fields: sorted.into_iter().map(field).collect(),
        values: inner("additionalProperties"),
        items: inner("items"),
    }
}

/// Returns the type that a schema states, or an empty text.
pub(crate) fn type_of(schema: &Value) -> &str {
    schema.get("type").and_then(Value::as_str).unwrap_or_default()
}

pub(crate) fn flag(schema: &Value, name: &str) -> bool {
    schema.get(name).and_then(Value::as_bool).unwrap_or(false)
}

pub(crate) fn texts(list: Option<&Value>) -> impl Iterator<Item = &str> {
    list.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

/// The object of a schema, or an empty one.
pub(crate) fn members<'a>(schema: &'a Value, name: &str) -> Option<&'a JsonMap<String, Value>> {
    schema.get(name).and_then(Value::as_object)
}
