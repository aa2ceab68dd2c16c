//! Checks values against a schema, in the order and with the texts of kube-openapi's validator.

use homeostat_core::go_quote;
use serde_json::Value;

use crate::field_error::FieldError;
use crate::node::{ListType, Scalar, Shape};
use crate::path::Path;
use crate::schema::{NodeRef, Schema};
use crate::{embedded, format, unique};

impl Schema {
    /// Checks an object: types, required fields, limits, and duplicates in sets and maps.
    ///
    /// A value that is equal to the one in `old` is not checked (ratcheting), so that a stricter
    /// schema does not block changes of other fields. Only the items of a list map are compared
    /// with old ones: their keys identify them, whatever their order. Duplicates are not reported
    /// if `old` has some.
    ///
    /// # Examples
    ///
    /// ```
    /// use homeostat_schema::Schema;
    /// use serde_json::json;
    ///
    /// let schema = Schema::from_open_api(&json!({
    ///     "type": "object",
    ///     "properties": {"size": {"type": "integer", "maximum": 5}},
    /// }));
    /// let errors = schema.validate(&json!({"size": 9}), None);
    /// let text = "size: Invalid value: 9: size in body should be less than or equal to 5";
    /// assert_eq!(errors[0].to_string(), text);
    /// assert!(schema.validate(&json!({"size": 9}), Some(&json!({"size": 9}))).is_empty());
    /// ```
    pub fn validate(&self, object: &Value, old: Option<&Value>) -> Vec<FieldError> {
        let ObjectErrors { mut values, embedded, duplicates } = self.validate_by_kind(object, old);
        values.extend(embedded);
        values.extend(duplicates);
        values
    }

    /// Checks an object as [`validate`](Self::validate) does. The API server has checks of its own
    /// between those of the schema.
    ///
    /// # Examples
    ///
    /// ```
    /// use homeostat_schema::Schema;
    /// use serde_json::json;
    ///
    /// let schema = Schema::from_open_api(&json!({"type": "object", "properties": {
    ///     "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
    /// }}));
    /// let errors = schema.validate_by_kind(&json!({"tags": ["a", "a"]}), None);
    /// assert_eq!((errors.values.len(), errors.duplicates.len()), (0, 1));
    /// ```
    pub fn validate_by_kind(&self, object: &Value, old: Option<&Value>) -> ObjectErrors {
        let mut validator = Validator::default();
        // The metadata is never as it was, so the object as one value is always checked.
        validator.check_value(self.root(), object, old);
        let mut embedded = Vec::new();
        embedded::check(self.root(), object, &mut Path::default(), &mut embedded);
        let duplicates = unique::check(self.root(), object, old);
        ObjectErrors { values: validator.errors, embedded, duplicates }
    }

    /// Checks one field of an object as [`validate`](Self::validate) does; duplicates in sets
    /// and maps are reported in the other fields, too. A write to `/status` checks no more.
    ///
    /// # Examples
    ///
    /// ```
    /// use homeostat_schema::Schema;
    /// use serde_json::json;
    ///
    /// let schema = Schema::from_open_api(&json!({
    ///     "type": "object",
    ///     "required": ["spec"],
    ///     "properties": {"status": {"type": "object", "properties": {"n": {"type": "integer"}}}},
    /// }));
    /// assert!(schema.validate_field("status", &json!({"status": {"n": 1}}), None).is_empty());
    /// let errors = schema.validate_field("status", &json!({"status": {"n": "1"}}), None);
    /// assert_eq!(errors[0].field, "status.n");
    /// ```
    pub fn validate_field(
        &self,
        name: &str,
        object: &Value,
        old: Option<&Value>,
    ) -> Vec<FieldError> {
        let mut errors = match (self.root().field(name), object.get(name)) {
            (Some(node), Some(value)) => {
                Validator::check_part(node, value, old.and_then(|old| old.get(name)), name)
            }
            _ => Vec::new(),
        };
        errors.extend(unique::check(self.root(), object, old));
        errors
    }
}

/// The errors of an object, by their kinds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ObjectErrors {
    /// Wrong types, missing fields and exceeded limits.
    pub values: Vec<FieldError>,
    /// Wrong types of the objects inside of the object.
    pub embedded: Vec<FieldError>,
    /// Items that occur twice in sets and maps.
    pub duplicates: Vec<FieldError>,
}

/// The state of a check.
#[derive(Debug, Default)]
pub(crate) struct Validator {
    pub(crate) path: Path,
    pub(crate) errors: Vec<FieldError>,
    /// Checks that passed: the alternative with the most of them explains a failure best.
    pub(crate) passed: usize,
}

// === impl Validator ===

impl Validator {
    /// Checks the part of an object that stands at a path. The texts name only the path inside.
    pub(crate) fn check_part(
        node: NodeRef<'_>,
        value: &Value,
        old: Option<&Value>,
        at: &str,
    ) -> Vec<FieldError> {
        let mut validator = Self::default();
        validator.check(node, value, old);
        validator.errors.into_iter().map(|error| error.below(at)).collect()
    }

    fn check(&mut self, node: NodeRef<'_>, value: &Value, old: Option<&Value>) {
        if !old.is_some_and(|old| is_unchanged(node, value, old)) {
            self.check_value(node, value, old);
        }
    }

    fn check_value(&mut self, node: NodeRef<'_>, value: &Value, old: Option<&Value>) {
        let constraints = node.node().constraints.as_deref();
        self.check_type(node, value);
        if value.is_null() {
            self.check_allowed(constraints, value);
            return;
        }
        if let Some(constraints) = constraints {
            self.check_constraints(constraints, value);
        }
        self.check_parts(node, value, old);
        if let Some(constraints) = constraints {
            self.check_whole(constraints, value);
        }
    }

    fn check_parts(&mut self, node: NodeRef<'_>, value: &Value, old: Option<&Value>) {
        match (node.shape(), value) {
            (Shape::Object(_), Value::Object(_)) => self.check_fields(node, value, old),
            (Shape::Map(_), Value::Object(fields)) => {
                let Some(inner) = node.values() else { return };
                for name in fields.keys() {
                    self.check_field(inner, name, value, old);
                }
            }
            (Shape::List(list), Value::Array(items)) => {
                let Some(inner) = node.items() else { return };
                for (at, item) in items.iter().enumerate() {
                    let before = self.path.enter_item(at);
                    let old = old.and_then(|old| correlated(&list.list_type, item, old));
                    self.check(inner, item, old);
                    self.path.leave(before);
                }
            }
            _ => {}
        }
    }

    fn check_fields(&mut self, node: NodeRef<'_>, value: &Value, old: Option<&Value>) {
        for (field, inner) in node.fields() {
            let Some(value) = value.get(field.name.as_ref()) else { continue };
            let old = old.and_then(|old| old.get(field.name.as_ref()));
            let before = self.path.enter(&field.name);
            // A change of these two does not show: both objects have the same version.
            let old = old.filter(|_| before > 0 || !matches!(&*field.name, "apiVersion" | "kind"));
            if inner.type_name().is_none() {
                self.check(inner, value, old);
            }
            // Metadata: the API server checks it, except for the limits of this schema.
            for (name, restriction) in &field.restrictions {
                self.check_field(node.beside(restriction), name, value, None);
            }
            self.path.leave(before);
        }
    }

    fn check_field(&mut self, node: NodeRef<'_>, name: &str, around: &Value, old: Option<&Value>) {
        let Some(value) = around.get(name) else { return };
        let before = self.path.enter(name);
        self.check(node, value, old.and_then(|old| old.get(name)));
        self.path.leave(before);
    }

    fn check_type(&mut self, node: NodeRef<'_>, value: &Value) {
        let constraints = node.node().constraints.as_deref();
        let format = constraints.and_then(|constraints| constraints.format.as_deref());
        let Some(expected) = type_name(node.shape()) else { return };
        let found = json_type(value);
        if value.is_null() {
            if !node.node().nullable {
                self.mismatch(expected, "null");
            }
            return;
        }
        let fits = match node.shape() {
            Shape::Scalar(Scalar::IntOrString) => matches!(found, "integer" | "string"),
            Shape::Scalar(Scalar::Float) => matches!(found, "integer" | "number"),
            Shape::Scalar(Scalar::Int64) => found == "integer" || is_64_bit_integer(value),
            _ => found == expected,
        };
        match format.filter(|format| format::applies(node.shape(), format)) {
            _ if fits => self.passed += 1,
            Some(format) if !value.is_string() && !value.is_array() => {
                let found = match found {
                    "integer" => "int64",
                    "number" => "float64",
                    _ => "",
                };
                self.mismatch(format, found);
            }
            _ => self.mismatch(expected, found),
        }
        let is_fraction = !fits && found == "number";
        if expected == "integer" && (is_fraction || (fits && !is_in_range(value, format))) {
            let format = match format {
                Some(format) => format!("with format {format}"),
                None => "(default format)".to_owned(),
            };
            let path = &self.path;
            self.add_whole(&format!("Checked value must be of type integer {format} in {path}"));
        }
    }

    pub(crate) fn mismatch(&mut self, expected: &str, found: &str) {
        let detail =
            format!("{} in body must be of type {expected}: {}", self.path, go_quote(found));
        let value = Value::from(found);
        self.add(FieldError::type_invalid(self.path.or_nil(), &value, &detail));
    }

    pub(crate) fn is_valid(&self) -> bool {
        self.errors.is_empty()
    }

    pub(crate) fn invalid(&mut self, value: &Value, text: &str) {
        let detail = format!("{} in body {text}", self.path);
        self.add(FieldError::invalid(self.path.or_nil(), value, &detail));
    }

    /// Adds an error that has no field.
    pub(crate) fn add_whole(&mut self, detail: &str) {
        self.add(FieldError::invalid("<nil>", &Value::from(""), detail));
    }

    pub(crate) fn add(&mut self, error: FieldError) {
        if !self.errors.contains(&error) {
            self.errors.push(error);
        }
    }
}

/// Returns true if a value is as it was, apart from the order of list maps.
fn is_unchanged(node: NodeRef<'_>, value: &Value, old: &Value) -> bool {
    match (node.shape(), value, old) {
        (Shape::Object(_) | Shape::Map(_), Value::Object(fields), Value::Object(before)) => {
            fields.len() == before.len()
                && fields.iter().all(|(name, value)| {
                    before.get(name).is_some_and(|old| match node.field(name) {
                        Some(inner) => is_unchanged(inner, value, old),
                        None => value == old,
                    })
                })
        }
        (Shape::List(list), Value::Array(items), Value::Array(before)) => {
            let (ListType::Map(_), Some(inner)) = (&list.list_type, node.items()) else {
                return value == old;
            };
            // Most lists keep their order.
            items == before
                || (items.len() == before.len()
                    && items.iter().all(|item| {
                        correlated(&list.list_type, item, old)
                            .is_some_and(|old| is_unchanged(inner, item, old))
                    }))
        }
        _ => value == old,
    }
}

/// Returns the item of the old list that the keys of `item` identify.
pub(crate) fn correlated<'a>(
    list_type: &ListType,
    item: &Value,
    old: &'a Value,
) -> Option<&'a Value> {
    let ListType::Map(keys) = list_type else { return None };
    let same = |old: &&Value| keys.iter().all(|key| item.get(&**key) == old.get(&**key));
    old.as_array()?.iter().find(same)
}

/// Returns the type's name in messages; `None` if any value fits.
fn type_name(shape: &Shape) -> Option<&'static str> {
    Some(match shape {
        Shape::Any | Shape::Named(_) => return None,
        Shape::List(_) => "array",
        Shape::Map(_) | Shape::Object(_) => "object",
        Shape::Scalar(scalar) => match scalar {
            Scalar::Boolean => "boolean",
            Scalar::Int32 | Scalar::Int64 => "integer",
            Scalar::Float => "number",
            Scalar::IntOrString => "integer,string",
            Scalar::String
            | Scalar::Bytes
            | Scalar::Quantity
            | Scalar::Time
            | Scalar::MicroTime
            | Scalar::Duration => "string",
        },
    })
}

pub(crate) fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        // Go has no integers beyond 64 bits with a sign.
        Value::Number(number) if number.as_i64().is_none() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Returns false if the format has 32 bits, and the integer needs more.
fn is_in_range(value: &Value, format: Option<&str>) -> bool {
    format != Some("int32") || value.as_i64().is_some_and(|number| i32::try_from(number).is_ok())
}

/// Returns true if a floating-point number is an integer of 64 bits with a sign.
fn is_64_bit_integer(value: &Value) -> bool {
    const BOUND: f64 = 9_223_372_036_854_775_808.0;
    is_whole(value) && value.as_f64().is_some_and(|number| (-BOUND..BOUND).contains(&number))
}

/// Returns true if a number has no fraction.
pub(crate) fn is_whole(value: &Value) -> bool {
    value.as_f64().is_some_and(|number| number.fract() == 0.0)
}
