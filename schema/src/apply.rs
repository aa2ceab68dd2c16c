//! Values with the types of a schema: which fields they have, how two of them differ, and the merge
//! of one into the other.
//!
//! These are the operations of upstream's `structured-merge-diff/typed`. A value is a
//! [`serde_json::Value`], a type a [`Type`].

mod atom;
mod compare;
mod configuration;
mod errors;
mod fields;
mod go_format;
mod items;
mod members;
mod merge;
mod reconcile;
mod remove;
mod validate;

pub(crate) use self::atom::Type;
pub(crate) use self::compare::{Comparison, compare, compare_checked};
pub use self::configuration::merge_configuration;
pub use self::errors::{TypeError, TypeErrors};
pub(crate) use self::fields::{field_set, named_fields_as_members, object_fields};
pub use self::go_format::go_type;
pub(crate) use self::merge::merge;
pub(crate) use self::reconcile::{is_atomic, reconcile, type_below};
pub(crate) use self::remove::remove;
pub(crate) use self::validate::{Duplicates, validate_object};

#[cfg(test)]
mod tests;
