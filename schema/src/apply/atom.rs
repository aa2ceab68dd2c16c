//! [`Type`]: the part of a schema that ownership depends on.

use serde_json::Value;

use crate::node::{ListType, Scalar, Shape, UnknownFields};
use crate::schema::NodeRef;

/// The type of a value, as far as ownership depends on it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Type<'a> {
    /// A complete object: it has `apiVersion` and `kind`, even if its schema does not name them.
    Root(NodeRef<'a>),
    Node(NodeRef<'a>),
    /// A text that no schema declares: the `kind` of an object.
    Text,
    /// Follows from the value: a list is atomic, the fields of an object have separate owners.
    Deduced,
}

/// The rules for one value.
#[derive(Debug, Clone, Copy)]
pub(super) enum Atom<'a> {
    Scalar(ScalarKind),
    List(ListAtom<'a>),
    Map(MapAtom<'a>),
}

/// The JSON types that a scalar accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ScalarKind {
    Numeric,
    Text,
    Boolean,
    /// A number, a text or a boolean.
    Untyped,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct ListAtom<'a> {
    pub(super) list_type: &'a ListType,
    pub(super) item: Type<'a>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct MapAtom<'a> {
    /// The object or map; `None` if the type is deduced.
    node: Option<NodeRef<'a>>,
    is_root: bool,
    pub(super) atomic: bool,
}

/// The type of a field.
#[derive(Debug, Clone, Copy)]
pub(super) struct FieldType<'a> {
    pub(super) of: Type<'a>,
    /// False for an entry of a map and for a field that the schema does not name.
    pub(super) declared: bool,
}

// === impl Type ===

impl<'a> Type<'a> {
    /// Returns the rules for `value`; those for an object if the type allows each kind of value
    /// and there is none.
    pub(super) fn atom(self, value: Option<&Value>) -> Atom<'a> {
        let (node, is_root) = match self {
            Self::Root(node) => (node, true),
            Self::Node(node) => (node, false),
            Self::Text => return Atom::Scalar(ScalarKind::Text),
            Self::Deduced => return deduced(value),
        };
        match node.shape() {
            Shape::Scalar(scalar) if !node.node().granular => Atom::Scalar((*scalar).into()),
            Shape::Any | Shape::Named(_) | Shape::Scalar(_) => match deduced(value) {
                Atom::Map(map) => Atom::Map(MapAtom { atomic: node.is_atomic(), ..map }),
                other => other,
            },
            Shape::List(list) => {
                let item = node.items().map_or(Self::Deduced, Self::Node);
                let is_atomic = node.is_atomic();
                let list_type = if is_atomic { &ListType::Atomic } else { &list.list_type };
                Atom::List(ListAtom { list_type, item })
            }
            Shape::Map(_) | Shape::Object(_) => {
                Atom::Map(MapAtom { node: Some(node), is_root, atomic: node.is_atomic() })
            }
        }
    }

    /// Returns true if the rules follow from the value.
    pub(super) fn is_deduced(self) -> bool {
        match self {
            Self::Deduced => true,
            Self::Text => false,
            Self::Root(node) | Self::Node(node) => match node.shape() {
                Shape::Any | Shape::Named(_) => true,
                Shape::Scalar(_) => node.node().granular,
                _ => false,
            },
        }
    }

    /// Returns true if both values have the same rules.
    pub(super) fn has_same_atom(self, a: &Value, b: &Value) -> bool {
        let class = |value: &Value| match value {
            Value::Null => 0,
            Value::Array(_) => 1,
            Value::Object(_) => 2,
            _ => 3,
        };
        !self.is_deduced() || class(a) == class(b)
    }

    /// Returns the default of a field of an object.
    pub(super) fn default_of(self, field: &str) -> Option<&'a Value> {
        match self {
            Self::Root(node) | Self::Node(node) => node.field(field)?.default(),
            Self::Text | Self::Deduced => None,
        }
    }
}

fn deduced<'a>(value: Option<&Value>) -> Atom<'a> {
    match value {
        Some(Value::Bool(_) | Value::Number(_) | Value::String(_)) => {
            Atom::Scalar(ScalarKind::Untyped)
        }
        Some(Value::Array(_)) => {
            Atom::List(ListAtom { list_type: &ListType::Atomic, item: Type::Deduced })
        }
        Some(Value::Object(_) | Value::Null) | None => {
            Atom::Map(MapAtom { node: None, is_root: false, atomic: false })
        }
    }
}

// === impl ScalarKind ===

impl From<Scalar> for ScalarKind {
    fn from(scalar: Scalar) -> Self {
        match scalar {
            Scalar::Boolean => Self::Boolean,
            Scalar::String | Scalar::Bytes | Scalar::Duration => Self::Text,
            Scalar::Int32 | Scalar::Int64 | Scalar::Float => Self::Numeric,
            Scalar::IntOrString | Scalar::Quantity | Scalar::Time | Scalar::MicroTime => {
                Self::Untyped
            }
        }
    }
}

// === impl ListAtom ===

impl ListAtom<'_> {
    pub(super) fn is_atomic(&self) -> bool {
        *self.list_type == ListType::Atomic
    }
}

// === impl MapAtom ===

impl<'a> MapAtom<'a> {
    /// Returns the type of a field; `None` if the schema has no such field.
    pub(super) fn field(&self, name: &str) -> Option<FieldType<'a>> {
        let undeclared = Some(FieldType { of: Type::Deduced, declared: false });
        let Some(node) = self.node else { return undeclared };
        let Some(object) = node.object() else {
            return node.values().map(|of| FieldType { of: Type::Node(of), declared: false });
        };
        if let Some(field) = node.field(name) {
            return Some(FieldType { of: Type::Node(field), declared: true });
        }
        if self.is_root && matches!(name, "apiVersion" | "kind") {
            return Some(FieldType { of: Type::Text, declared: true });
        }
        if object.unknown == UnknownFields::Preserve { undeclared } else { None }
    }
}
