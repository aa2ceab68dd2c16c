//! Merge rules: the members that differ from "objects merge, lists are replaced".
//!
//! They come from the [table of types](crate::types): a `ReplicaSet`'s template follows the same
//! rules as a `Pod`.
//!
//! The strategy `retainKeys` (volumes, a Deployment's strategy, claims) is missing, since it only
//! describes how clients build patches: a server obeys the directive `$retainKeys` wherever it
//! occurs.

use crate::types::{Member, Merge, Shape, Type, Types};

/// The rules for the members of an object.
#[derive(Clone, Copy, Debug)]
pub(super) enum Rules {
    /// An object without a type in the table.
    None,
    /// A kind that has a type only for its metadata.
    Metadata,
    Type(&'static Type),
}

/// The rule for the value of one member.
#[derive(Clone, Copy, Debug)]
pub(super) enum Rule {
    /// A list is replaced; an object is merged and has no rules within.
    Plain,
    /// An object with rules of its own.
    Object(Rules),
    /// An object that is replaced.
    Whole,
    /// A list of objects that are merged by the value of this member.
    ListByKey(&'static str, Rules),
    /// A list of unique scalars.
    Set,
}

/// Returns the rules of a kind.
pub(super) fn of_kind(api_version: &str, kind: &str) -> Rules {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    Types::all().of_kind(group, version, kind).map_or(Rules::Metadata, Rules::Type)
}

// === impl Rules ===

impl Rules {
    pub(super) fn of(self, member: &str) -> Rule {
        match self {
            Self::Metadata if member == "metadata" => {
                Rule::Object(Self::Type(Types::all().metadata()))
            }
            Self::None | Self::Metadata => Rule::Plain,
            Self::Type(known) => known.member(member).map_or(Rule::Plain, Rule::of),
        }
    }
}

// === impl Rule ===

impl Rule {
    fn of(member: &Member) -> Self {
        let within = || member.shape.object().map_or(Rules::None, Rules::Type);
        match (member.merge, &member.shape) {
            (Merge::ByKey(key), _) => Self::ListByKey(key, within()),
            (Merge::Set, _) => Self::Set,
            (Merge::ReplaceObject, _) => Self::Whole,
            // A list that is replaced has no rules within, nor has a map.
            (Merge::Replace, Shape::List(_) | Shape::Map(_)) => Self::Plain,
            (Merge::Replace, _) => Self::Object(within()),
        }
    }

    /// Returns the rules within an object at this place.
    pub(super) fn within(self) -> Rules {
        match self {
            Self::Object(rules) => rules,
            Self::Plain | Self::Whole | Self::ListByKey(..) | Self::Set => Rules::None,
        }
    }
}
