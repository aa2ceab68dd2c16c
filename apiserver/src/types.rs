//! The members of every built-in kind and their types: what the real server's decoder and encoder
//! know. They come from the table of `homeostat-schema`.

mod built_in;
mod expected;
mod go_time;
mod in_order;
mod normalize;
mod read;
mod repeated_keys;
mod repeated_members;
mod report;
mod wrap;
mod wrong;
mod yaml;

use std::collections::HashMap;
use std::sync::{LazyLock, OnceLock};

use homeostat_schema::NameIndex;

pub(crate) use expected::Expected;
pub(crate) use normalize::{normalize as normalize_type, normalize_changed, normalize_kind};
pub(crate) use read::{Decoded, read_in_order, read_json, read_yaml, yaml_value};
pub(crate) use repeated_keys::{repeated_keys, warnings_of};
pub(crate) use repeated_members::may_repeat_members;
pub(crate) use report::{unknown_below, unknown_members, unknown_metadata};
pub(crate) use wrap::{may_have_long_integers, wrap_integers};
pub(crate) use wrong::{TypeMismatch, wrong_change, wrong_in_order, wrong_member, wrong_type_meta};

use crate::fields::Fields;

/// All types of the table.
#[derive(Debug)]
pub(crate) struct Types {
    list: Vec<Type>,
    /// Package and name, such as `core` and `Pod` → index in the list.
    by_name: HashMap<(&'static str, &'static str), TypeId>,
}

/// A type of the API: an object with known members.
#[derive(Debug)]
pub(crate) struct Type {
    pub(crate) package: &'static str,
    /// The name without its package.
    pub(crate) name: &'static str,
    /// The name in `OpenAPI` documents: `io.k8s.api.core.v1.Pod`.
    pub(crate) full_name: &'static str,
    /// Sorted by name.
    pub(crate) members: Vec<Member>,
    index: NameIndex,
    /// The members that are always encoded, as an object has them that sets none. They are made
    /// when they are first needed.
    empty: OnceLock<Fields>,
}

#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) name: &'static str,
    /// The Go structs around the member that its JSON does not show: their names are part of the
    /// path in messages.
    pub(crate) embedded: Vec<&'static str>,
    pub(crate) shape: Shape,
    /// The type's name in messages.
    pub(crate) go_type: String,
    pub(crate) empty: Empty,
    pub(crate) merge: Merge,
    /// True if the published schema requires the member.
    pub(crate) required: bool,
    /// The texts that the schema allows; empty for any.
    pub(crate) values: Vec<&'static str>,
    /// True if an empty list is stored as null: protobuf does not distinguish them.
    pub(crate) forgets_empty: bool,
    /// True if the server removes the member before it stores the object: its feature is off.
    pub(crate) dropped: bool,
}

/// The encoding of an empty member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Empty {
    /// Encoded as the empty value of its type.
    Written,
    /// Omitted, except for an object, which cannot be empty.
    LeftOut,
    /// Omitted, even if it is an object (`omitzero`).
    Zero,
}

/// The effect of a strategic merge patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Merge {
    /// A list is replaced, an object is merged.
    Replace,
    /// An object is replaced.
    ReplaceObject,
    Set,
    ByKey(&'static str),
}

/// The type of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Shape {
    Text,
    Bool,
    Int32,
    Int64,
    Float,
    /// Base64.
    Bytes,
    Quantity,
    IntOrString,
    Time,
    MicroTime,
    Duration,
    /// Any JSON, kept as it is.
    Raw,
    /// Any JSON, kept as it is: the members that a manager owns.
    FieldsV1,
    Object(TypeId),
    List(Box<Self>),
    Map(Box<Self>),
    Pointer(Box<Self>),
}

/// The index of a type in the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TypeId(usize);

// === impl Types ===

impl Types {
    /// Returns the table, which is parsed once.
    pub(crate) fn all() -> &'static Self {
        static ALL: LazyLock<Types> =
            LazyLock::new(|| built_in::convert(homeostat_schema::built_in::types()));
        &ALL
    }

    pub(crate) fn get(&self, id: TypeId) -> &Type {
        &self.list[id.0]
    }

    /// Returns the type of a kind, if it is in the table.
    pub(crate) fn of_kind(&self, group: &str, version: &str, kind: &str) -> Option<&Type> {
        let package = match group.split('.').next() {
            None | Some("") => "core",
            Some(first) => first,
        };
        let id = if version == "v1" {
            self.by_name.get(&(package, kind)).copied()
        } else {
            let package = format!("{package}.{version}");
            self.by_name.get(&(package.as_str(), kind)).copied()
        };
        id.map(|id| self.get(id))
    }

    /// Returns the type `ObjectMeta`.
    pub(crate) fn metadata(&self) -> &Type {
        self.named("meta.ObjectMeta").expect("the table has metadata")
    }

    /// Returns the type of this name with its package: `autoscaling.Scale`.
    pub(crate) fn named(&self, name: &str) -> Option<&Type> {
        self.by_name.get(&name.split_once('.')?).map(|id| self.get(*id))
    }
}

// === impl Type ===

impl Type {
    pub(crate) fn member(&self, name: &str) -> Option<&Member> {
        let name_at = |at: usize| self.members.get(at).map(|member| member.name);
        self.members.get(self.index.find(name, name_at)?)
    }
}

// === impl Shape ===

impl Shape {
    /// Returns the type of an object, or of the objects in a list or a map.
    pub(crate) fn object(&self) -> Option<&'static Type> {
        match self {
            Self::Object(id) => Some(Types::all().get(*id)),
            Self::Pointer(inner) | Self::List(inner) | Self::Map(inner) => inner.object(),
            _ => None,
        }
    }
}
