//! The type of one value, with everything that the API server knows about it.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use crate::constraints::Constraints;
use crate::name_index::NameIndex;
use crate::type_id::TypeId;

/// The type of one value: a field, an item of a list, or a value of a map.
///
/// # Examples
///
/// ```
/// use homeostat_schema::{List, ListType, Node, Scalar};
///
/// let ports = Node::from(List::new(Scalar::Int32, ListType::Set));
/// assert!(!ports.nullable);
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Node {
    /// The kind of value, and the types inside.
    pub shape: Shape,
    /// True if a field of a named type has one owner, although the type has not
    /// (`x-kubernetes-map-type` beside a `$ref`).
    pub atomic: bool,
    /// True if the parts of a field of a named type have separate owners, although the type has one
    /// owner. Of a scalar: true if server-side apply deduces the type of each value, as it does for
    /// `x-kubernetes-int-or-string`.
    pub granular: bool,
    /// True if `null` is a valid value (`nullable: true`).
    pub nullable: bool,
    /// The value of an absent field.
    pub default: Option<Value>,
    /// The text that `kubectl explain` shows.
    pub description: Option<Arc<str>>,
    /// The limits that validation checks; `None` if there are none.
    pub constraints: Option<Box<Constraints>>,
}

/// The kind of a value.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Shape {
    /// Any JSON, kept as it is. Server-side apply deduces the type of each value.
    #[default]
    Any,
    /// A value without parts.
    Scalar(Scalar),
    /// A list.
    List(List),
    /// A map from any text to values of one type.
    Map(Map),
    /// An object with named fields.
    Object(Object),
    /// A type of the table, which may contain itself.
    Named(TypeId),
}

/// A value without parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scalar {
    /// `true` or `false`.
    Boolean,
    /// A text.
    String,
    /// Bytes; a text in base64 in JSON.
    Bytes,
    /// A whole number of 32 bits.
    Int32,
    /// A whole number of 64 bits; also `OpenAPI`'s `integer`.
    Int64,
    /// A floating-point number; also `OpenAPI`'s `number`.
    Float,
    /// A number or a text (`x-kubernetes-int-or-string`).
    IntOrString,
    /// A `resource.Quantity`.
    Quantity,
    /// A time with seconds.
    Time,
    /// A time with microseconds.
    MicroTime,
    /// A Go duration, such as `1m30s`.
    Duration,
}

/// A list.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct List {
    /// The type of each item.
    pub items: Box<Node>,
    /// The unit of ownership and the rule against duplicates.
    pub list_type: ListType,
}

/// The unit of ownership in a list (`x-kubernetes-list-type`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ListType {
    /// The list has one owner and is replaced as one value.
    #[default]
    Atomic,
    /// Each item has its owners; no item occurs twice.
    Set,
    /// Each item has its owners; an item is identified by the values of these fields
    /// (`x-kubernetes-list-map-keys`).
    Map(Vec<Arc<str>>),
}

/// A map from any text to values of one type.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Map {
    /// The type of each value.
    pub values: Box<Node>,
    /// True if the map has one owner and is replaced as one value (`x-kubernetes-map-type`).
    pub atomic: bool,
}

/// An object with named fields.
#[derive(Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Object {
    /// The fields, sorted by name.
    fields: Vec<Field>,
    index: NameIndex,
    /// The rule for fields that the schema does not name.
    pub unknown: UnknownFields,
    /// True if the object has one owner and is replaced as one value (`x-kubernetes-map-type`).
    pub atomic: bool,
    /// True if the object is a Kubernetes object with `apiVersion`, `kind` and `metadata`
    /// (`x-kubernetes-embedded-resource`).
    pub embedded: bool,
}

/// The rule for fields that the schema does not name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum UnknownFields {
    /// Removed, with a warning or an error, as the request demands.
    #[default]
    Prune,
    /// Kept as they are (`x-kubernetes-preserve-unknown-fields`).
    Preserve,
}

/// A field of an object.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Field {
    /// The name in JSON.
    pub name: Arc<str>,
    /// The type of the value.
    pub node: Node,
    /// True if the schema requires the field.
    pub required: bool,
    /// The encoding of an empty value.
    pub empty: Empty,
    /// True if the field is a pointer in Go: an empty value differs from an absent one.
    pub pointer: bool,
    /// The effect of a strategic merge patch.
    pub patch: PatchStrategy,
    /// The name of the type in messages of Go's decoder, such as `[]v1.Container`.
    pub go_type: Arc<str>,
    /// The number in protobuf, after those of the messages that Go embeds around the field; empty
    /// if the field is not in protobuf.
    pub protobuf: Vec<u32>,
    /// True if the server removes the field before it stores an object: its feature is off.
    pub dropped: bool,
    /// The limits that a custom kind adds to fields of `metadata`: `name` and `generateName`.
    pub restrictions: Vec<(String, Node)>,
}

/// The encoding of an empty field.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Empty {
    /// Encoded as the empty value of its type.
    Encoded,
    /// Omitted, except for an object, which cannot be empty (`omitempty`).
    #[default]
    Omitted,
    /// Omitted, also if it is an object (`omitzero`).
    OmittedObject,
}

/// The effect of a strategic merge patch on a field.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PatchStrategy {
    /// True if items of a list are merged (`patchStrategy: merge`).
    pub merge: bool,
    /// The field that identifies an item (`patchMergeKey`); `None` for a list of scalars.
    pub key: Option<Arc<str>>,
    /// True if fields that the patch does not name are removed (`patchStrategy: retainKeys`).
    pub retain_keys: bool,
    /// True if an object is replaced, not merged (`patchStrategy: replace`).
    pub replace: bool,
}

// === impl Node ===

impl Node {
    /// Returns the node with a default.
    #[must_use]
    pub fn with_default(mut self, default: Value) -> Self {
        self.default = Some(default);
        self
    }
}

impl From<Shape> for Node {
    fn from(shape: Shape) -> Self {
        Self { shape, ..Self::default() }
    }
}

impl From<Scalar> for Node {
    fn from(scalar: Scalar) -> Self {
        Shape::Scalar(scalar).into()
    }
}

impl From<List> for Node {
    fn from(list: List) -> Self {
        Shape::List(list).into()
    }
}

impl From<Map> for Node {
    fn from(map: Map) -> Self {
        Shape::Map(map).into()
    }
}

impl From<Object> for Node {
    fn from(object: Object) -> Self {
        Shape::Object(object).into()
    }
}

impl From<TypeId> for Node {
    fn from(id: TypeId) -> Self {
        Shape::Named(id).into()
    }
}

// === impl List ===

impl List {
    /// Creates a list.
    pub fn new(items: impl Into<Node>, list_type: ListType) -> Self {
        Self { items: Box::new(items.into()), list_type }
    }
}

// === impl ListType ===

impl ListType {
    /// Creates the type of a list whose items are identified by these fields.
    ///
    /// # Examples
    ///
    /// ```
    /// use homeostat_schema::ListType;
    ///
    /// let ports = ListType::map(["containerPort", "protocol"]);
    /// assert_eq!(ports, ListType::Map(vec!["containerPort".into(), "protocol".into()]));
    /// ```
    pub fn map<'a>(keys: impl IntoIterator<Item = &'a str>) -> Self {
        Self::Map(keys.into_iter().map(Arc::from).collect())
    }
}

// === impl Map ===

impl Map {
    /// Creates a map whose values have separate owners.
    pub fn new(values: impl Into<Node>) -> Self {
        Self { values: Box::new(values.into()), atomic: false }
    }

    /// Makes the map one value for server-side apply.
    #[must_use]
    pub fn atomic(mut self) -> Self {
        self.atomic = true;
        self
    }
}

// === impl Object ===

impl Object {
    /// Creates an object with these fields; of two fields with one name the later stays.
    ///
    /// # Examples
    ///
    /// ```
    /// use homeostat_schema::{Field, Object, Scalar};
    ///
    /// let port = Object::new([
    ///     Field::new("protocol", Scalar::String),
    ///     Field::new("containerPort", Scalar::Int32),
    /// ]);
    /// assert!(port.field("protocol").is_some());
    /// assert_eq!(port.fields().next().unwrap().name.as_ref(), "containerPort");
    /// ```
    pub fn new(fields: impl IntoIterator<Item = Field>) -> Self {
        let mut fields: Vec<Field> = fields.into_iter().collect();
        fields.reverse();
        fields.sort_by(|a, b| a.name.cmp(&b.name));
        fields.dedup_by(|a, b| a.name == b.name);
        let index = NameIndex::of(fields.iter().map(|field| field.name.as_ref()));
        Self { fields, index, ..Self::default() }
    }

    /// Makes the object one value for server-side apply.
    #[must_use]
    pub fn atomic(mut self) -> Self {
        self.atomic = true;
        self
    }

    /// Keeps fields that the schema does not name.
    #[must_use]
    pub fn preserving_unknown_fields(mut self) -> Self {
        self.unknown = UnknownFields::Preserve;
        self
    }

    /// Returns the field called `name`.
    pub fn field(&self, name: &str) -> Option<&Field> {
        let name_at = |at: usize| self.fields.get(at).map(|field| field.name.as_ref());
        self.fields.get(self.index.find(name, name_at)?)
    }

    /// Returns the fields, sorted by name.
    pub fn fields(&self) -> impl ExactSizeIterator<Item = &Field> {
        self.fields.iter()
    }

    /// Adds a field, or replaces the one with its name.
    pub fn insert(&mut self, field: Field) {
        match self.fields.binary_search_by(|other| other.name.cmp(&field.name)) {
            Ok(at) => self.fields[at] = field,
            Err(at) => {
                self.index.insert(at, &field.name);
                self.fields.insert(at, field);
            }
        }
    }
}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.fields.iter().map(|field| &field.name);
        f.debug_set().entries(names).finish()
    }
}

// === impl Field ===

impl Field {
    /// Creates an optional field that is omitted when it is empty.
    pub fn new(name: impl Into<Arc<str>>, node: impl Into<Node>) -> Self {
        Self {
            name: name.into(),
            node: node.into(),
            required: false,
            empty: Empty::default(),
            pointer: false,
            patch: PatchStrategy::default(),
            go_type: "".into(),
            protobuf: Vec::new(),
            dropped: false,
            restrictions: Vec::new(),
        }
    }

    /// Requires the field.
    #[must_use]
    pub fn required(mut self) -> Self {
        self.required = true;
        self
    }
}
