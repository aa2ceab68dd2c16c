//! The members of every built-in kind and their types: what the real server's decoder and encoder know.
//!
//! The table is text, one line per type (an indented line goes on with the one before):
//!
//! ```text
//! [core]                        the package of what follows; another's types are named with it: meta.ObjectMeta
//! RestartPolicy = string        another name for a type
//! Probe periodSeconds?:int32    a type and its members
//! PullPolicy = string Always IfNotPresent Never    a text that is one of these; `""` stands for the empty one
//!
//! name?:T   left out when it is empty     name?~:T  the same, also where T is an object
//! name?+:T  required, though the encoder leaves it out     name-:T  optional, though the encoder writes it
//! *T        empty is something else than absent        []T  a list     {}T  a map
//! T@key     a strategic merge patch merges the list by the member `key`; T@ as a set
//! ```

mod parse;
mod read;
mod tidy;
mod wrong;

use std::collections::BTreeMap;
use std::sync::LazyLock;

pub(crate) use read::{Body, Expected, quote, read_json, unknown_members};
pub(crate) use tidy::tidy_kind;
pub(crate) use wrong::{Wrong, wrong_member};

/// All types, from the table.
#[derive(Debug)]
pub(crate) struct Types {
    list: Vec<Type>,
    /// Package and name, like `core` and `Pod` → its place in the list.
    by_name: BTreeMap<(&'static str, &'static str), TypeId>,
}

/// One type of the API: an object with known members.
#[derive(Debug)]
pub(crate) struct Type {
    pub(crate) package: &'static str,
    /// Without its package.
    pub(crate) name: &'static str,
    pub(crate) members: Vec<Member>,
}

#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) name: &'static str,
    pub(crate) shape: Shape,
    /// What messages call the type.
    pub(crate) go_type: String,
    pub(crate) empty: Empty,
    pub(crate) merge: Merge,
    /// Whether the schema that is published asks for it.
    pub(crate) required: bool,
    /// The texts that the schema allows; none for any.
    pub(crate) values: Vec<&'static str>,
}

/// What becomes of a member that is empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Empty {
    /// It is written, as what is empty for its type.
    Written,
    /// It is left out, except for an object, which cannot be empty.
    LeftOut,
    /// It is left out, an object too.
    Zero,
}

/// How a strategic merge patch changes a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Merge {
    Replace,
    Set,
    ByKey(&'static str),
}

/// What a value is.
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
    /// The same: which members a manager owns.
    FieldsV1,
    Object(TypeId),
    List(Box<Self>),
    Map(Box<Self>),
    Pointer(Box<Self>),
}

/// A type's place in the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TypeId(usize);

// === impl Types ===

impl Types {
    /// The table, read once.
    pub(crate) fn all() -> &'static Self {
        static ALL: LazyLock<Types> =
            LazyLock::new(|| parse::parse(include_str!("types/table.txt")));
        &ALL
    }

    pub(crate) fn get(&self, id: TypeId) -> &Type {
        &self.list[id.0]
    }

    /// The type of a kind, if it is in the table.
    pub(crate) fn of_kind(&self, group: &str, kind: &str) -> Option<&Type> {
        let package = match group.split('.').next() {
            None | Some("") => "core",
            Some(first) => first,
        };
        self.by_name.get(&(package, kind)).map(|id| self.get(*id))
    }

    /// The metadata that every kind has.
    pub(crate) fn metadata(&self) -> &Type {
        self.named("meta.ObjectMeta").expect("the table has metadata")
    }

    /// The type of this name, after that of its package: `autoscaling.Scale`.
    pub(crate) fn named(&self, name: &str) -> Option<&Type> {
        self.by_name.get(&name.split_once('.')?).map(|id| self.get(*id))
    }
}

// === impl Type ===

impl Type {
    pub(crate) fn member(&self, name: &str) -> Option<&Member> {
        self.members.iter().find(|member| member.name == name)
    }
}

// === impl Shape ===

impl Shape {
    /// The object at this place, or in the list or map at this place.
    pub(crate) fn object(&self) -> Option<&'static Type> {
        match self {
            Self::Object(id) => Some(Types::all().get(*id)),
            Self::Pointer(inner) | Self::List(inner) | Self::Map(inner) => inner.object(),
            _ => None,
        }
    }
}
