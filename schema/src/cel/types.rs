//! The types of values, and those of a schema.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde_json::Value as Json;

use super::identifier::{escape, is_taken};
use crate::open_api::{flag, members};

/// The type of a value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Type {
    /// Any value: checked during the evaluation.
    Dyn,
    /// A value that fits each type, as `Dyn` does, and is no list or map by itself.
    Any,
    /// The type of the parts of an empty list or map: that of the parts of any other one.
    Empty,
    Null,
    Bool,
    Int,
    Uint,
    Double,
    String,
    Bytes,
    Timestamp,
    Duration,
    List(Arc<Self>),
    Map(Arc<Self>, Arc<Self>),
    Object(Arc<ObjectType>),
    /// A type of the literals that have a name, such as `Object.spec`.
    Struct(Arc<str>),
    Optional(Arc<Self>),
    /// The type of a type, such as that of `int`.
    OfTypes,
    /// A type of an extension library, such as `kubernetes.Quantity`.
    Opaque(&'static str),
    /// A parameter of a signature.
    Parameter(char),
}

/// The fields of an object, by the name that expressions use.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct ObjectType {
    /// The name in messages; empty for a type of a schema.
    pub(crate) name: &'static str,
    pub(crate) fields: BTreeMap<String, Field>,
}

#[derive(Debug, PartialEq)]
pub(crate) struct Field {
    /// The name in JSON.
    pub(crate) name: String,
    pub(crate) value: Type,
}

/// Names of types, which are values of the type `type`.
pub(super) const TYPE_NAMES: [&str; 15] = [
    "bool",
    "bytes",
    "double",
    "google.protobuf.Duration",
    "google.protobuf.Timestamp",
    "int",
    "list",
    "map",
    "net.CIDR",
    "net.IP",
    "null_type",
    "optional_type",
    "string",
    "type",
    "uint",
];

/// The most parts of a type that an expression may have, such as a list of maps of lists.
const MAX_PARTS: usize = 200;

// === impl Type ===

impl Type {
    pub(crate) fn list(items: Self) -> Self {
        Self::List(Arc::new(items))
    }

    pub(crate) fn map(keys: Self, values: Self) -> Self {
        Self::Map(Arc::new(keys), Arc::new(values))
    }

    pub(crate) fn optional(value: Self) -> Self {
        Self::Optional(Arc::new(value))
    }

    /// Creates the type of an object that no schema describes.
    pub(crate) fn object(name: &'static str, fields: &[(&str, Self)]) -> Self {
        let field = |(name, value): &(&str, Self)| {
            let name = (*name).to_owned();
            (name.clone(), Field { name, value: value.clone() })
        };
        let fields = fields.iter().map(field).collect();
        Self::Object(Arc::new(ObjectType { name, fields }))
    }

    /// Returns the type of a value of its own: any, if it is that of the parts of an empty list.
    pub(super) fn or_dyn(self) -> Self {
        if self == Self::Empty { Self::Dyn } else { self }
    }

    /// Returns true if a null fits the type.
    pub(super) fn may_be_null(&self) -> bool {
        matches!(
            self,
            Self::Object(_) | Self::Struct(_) | Self::Timestamp | Self::Duration | Self::Opaque(_)
        )
    }

    /// Returns the type, or `Dyn` in place of one with many parts. Types share their parts, so that
    /// a short expression can have a type that is too large to be compared or shown.
    pub(crate) fn limited(self) -> Self {
        let mut left = MAX_PARTS;
        if self.fits(&mut left) { self } else { Self::Dyn }
    }

    fn fits(&self, left: &mut usize) -> bool {
        let Some(rest) = left.checked_sub(1) else { return false };
        *left = rest;
        match self {
            Self::List(inner) | Self::Optional(inner) => inner.fits(left),
            Self::Map(keys, values) => keys.fits(left) && values.fits(left),
            _ => true,
        }
    }

    /// Reads the type of a part of an `openAPIV3Schema`; `None` if expressions cannot use it, such
    /// as a value without a type.
    pub(crate) fn of_schema(schema: &Json, is_root: bool) -> Option<Self> {
        if flag(schema, "x-kubernetes-int-or-string") {
            return Some(Self::Dyn);
        }
        let format = schema.get("format").and_then(Json::as_str).unwrap_or_default();
        Some(match schema.get("type").and_then(Json::as_str)? {
            "array" => Self::list(Self::of_part(schema.get("items")?)?),
            "object" => {
                let values = schema.get("additionalProperties").filter(|values| values.is_object());
                match values {
                    Some(values) => Self::map(Self::String, Self::of_part(values)?),
                    None => Self::Object(Arc::new(ObjectType::of_schema(schema, is_root))),
                }
            }
            "string" => match format {
                "byte" => Self::Bytes,
                "duration" => Self::Duration,
                "date" | "date-time" => Self::Timestamp,
                _ => Self::String,
            },
            "boolean" => Self::Bool,
            "number" => Self::Double,
            "integer" => Self::Int,
            _ => return None,
        })
    }

    fn of_part(schema: &Json) -> Option<Self> {
        Self::of_schema(schema, flag(schema, "x-kubernetes-embedded-resource"))
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dyn | Self::Empty => f.write_str("dyn"),
            Self::Any => f.write_str("any"),
            Self::Null => f.write_str("null"),
            Self::Bool => f.write_str("bool"),
            Self::Int => f.write_str("int"),
            Self::Uint => f.write_str("uint"),
            Self::Double => f.write_str("double"),
            Self::String => f.write_str("string"),
            Self::Bytes => f.write_str("bytes"),
            Self::Timestamp => f.write_str("timestamp"),
            Self::Duration => f.write_str("duration"),
            Self::List(items) => write!(f, "list({items})"),
            Self::Map(keys, values) => write!(f, "map({keys}, {values})"),
            Self::Object(object) if object.name.is_empty() => f.write_str("object"),
            Self::Object(object) => f.write_str(object.name),
            Self::Struct(name) => f.write_str(name),
            Self::Optional(value) => write!(f, "optional_type({value})"),
            Self::OfTypes => f.write_str("type"),
            Self::Opaque(name) => f.write_str(name),
            Self::Parameter(name) => write!(f, "{name}"),
        }
    }
}

// === impl ObjectType ===

impl ObjectType {
    /// Returns the field that an expression selects. A reserved word, such as `namespace`, may be
    /// written without its underscores, too.
    pub(super) fn field(&self, name: &str) -> Option<&Field> {
        let reserved = || self.fields.get(&escape(name).filter(|_| is_taken(name))?);
        self.fields.get(name).or_else(reserved)
    }

    fn of_schema(schema: &Json, is_root: bool) -> Self {
        let mut fields = BTreeMap::new();
        for (name, part) in members(schema, "properties").into_iter().flatten() {
            if let (Some(escaped), Some(value)) = (escape(name), Type::of_part(part)) {
                fields.insert(escaped, Field { name: name.clone(), value });
            }
        }
        if is_root {
            let text = |name: &str| {
                (name.to_owned(), Field { name: name.to_owned(), value: Type::String })
            };
            fields.extend(["apiVersion", "kind"].map(text));
            let fields_of_metadata = ["name", "generateName"].map(text).into();
            let metadata = Self { fields: fields_of_metadata, ..Self::default() };
            let value = Type::Object(Arc::new(metadata));
            fields.insert("metadata".to_owned(), Field { name: "metadata".to_owned(), value });
        }
        Self { fields, ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::ObjectType;

    #[test]
    fn reserved_field_has_two_names() {
        let text = json!({"type": "string"});
        let schema = json!({"properties": {"namespace": text, "a-b": text}});
        let object = ObjectType::of_schema(&schema, false);
        let field = |name| object.field(name).map(|field| field.name.as_str());
        assert_eq!(field("namespace"), Some("namespace"));
        assert_eq!(field("__namespace__"), Some("namespace"));
        assert_eq!(field("a__dash__b"), Some("a-b"));
        assert_eq!(field("a-b"), None);
    }
}
