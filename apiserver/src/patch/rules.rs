//! Which members of which kinds are merged in another way than "objects merge, lists are replaced".
//!
//! They are told by the [table of types](crate::types): a `ReplicaSet`'s template follows the same rules as a `Pod`.
//!
//! The strategy `retainKeys` (volumes, a Deployment's strategy, claims) is not there, since it tells clients how to make
//! patches: a server obeys the directive `$retainKeys` wherever it meets it.

use crate::types::{Member, Merge, Shape, Type, Types};

/// The rules for the members of an object at one place.
#[derive(Clone, Copy, Debug)]
pub(super) enum Rules {
    /// An object of no type in the table.
    None,
    /// A kind of which only the metadata has a type.
    Metadata,
    Type(&'static Type),
}

/// How the values of one member are merged.
#[derive(Clone, Copy, Debug)]
pub(super) enum Rule {
    /// A list is replaced, an object is merged and has no rules within.
    Plain,
    /// An object with rules of its own.
    Object(Rules),
    /// A list of objects, of which those with the same value of this member are the same one.
    ListByKey(&'static str, Rules),
    /// A list of scalars, each of which is in it once.
    Set,
}

/// The rules of a kind, whatever its version.
pub(super) fn of_kind(api_version: &str, kind: &str) -> Rules {
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    Types::all().of_kind(group, kind).map_or(Rules::Metadata, Rules::Type)
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
            // A list that is replaced has no rules within, nor has a map whose keys are anybody's.
            (Merge::Replace, Shape::List(_) | Shape::Map(_)) => Self::Plain,
            (Merge::Replace, _) => Self::Object(within()),
        }
    }

    /// The rules within an object at this place.
    pub(super) fn within(self) -> Rules {
        match self {
            Self::Object(rules) => rules,
            Self::Plain | Self::ListByKey(..) | Self::Set => Rules::None,
        }
    }
}
