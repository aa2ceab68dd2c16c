//! Schemas of Kubernetes objects, built-in and custom.
//!
//! | Type | Upstream |
//! | --- | --- |
//! | [`Schema`], [`NodeRef`] | `typed.ParseableType` of `structured-merge-diff` |
//! | [`Types`] | the named types of `client-go/applyconfigurations` |
//! | [`Node`], [`Shape`] | `schema.Structural` of `apiextensions-apiserver`, `schema.Atom` |
//! | [`Constraints`] | `schema.ValueValidation` |
//! | [`FieldSet`], [`PathElement`] | `fieldpath.Set`, `fieldpath.PathElement` |
//! | [`ManagedFields`], [`FieldWriter`] | `managedfields.FieldManager`, `merge.Updater` |
//!
//! One [`Schema`] serves built-in types and those of a `CustomResourceDefinition`: fields and
//! their types, list types and keys, defaults, limits, and the rules of strategic merge patches.
//!
//! **Promises.** The crate has no clock, no lock and no task. A schema is immutable; a clone shares
//! its memory. Types may contain themselves.

mod address;
mod apply;
mod authorizer;
pub mod built_in;
mod cel;
mod constraints;
mod defaults;
mod definition;
mod device_selector;
mod embedded;
mod field_error;
mod field_set;
mod format;
mod go_pattern;
mod internal;
mod limits;
mod managed_fields;
mod name_index;
pub mod names;
mod node;
mod open_api;
mod path;
mod policies;
mod protobuf;
mod prune;
mod rules;
mod schema;
mod shown;
mod structural;
mod table;
#[cfg(test)]
mod test_schema;
mod type_id;
mod types;
mod unique;
mod url;
mod validate;

pub use crate::apply::{TypeError, TypeErrors, go_type, merge_configuration};
pub use crate::authorizer::{AccessCheck, AccessDecision, Authorizer};
pub use crate::cel::is_cel_identifier;
pub use crate::constraints::{Condition, Constraints, Pattern};
pub use crate::defaults::MetadataCheck;
pub use crate::definition::{check_open_api, check_open_api_with};
pub use crate::device_selector::check_device_selector;
pub use crate::field_error::{FieldError, FieldErrorReason, aggregate};
pub use crate::field_set::{
    FieldSet, FieldsV1Error, Path, PathElement, PathElementError, compare_values, equal_values,
};
pub use crate::format::is_known_format;
pub use crate::internal::InternalValue;
pub use crate::managed_fields::{
    Applied, ApplyError, Conflict, Conflicts, ConvertVersion, FieldWriter, ManagedFields,
    ManagedFieldsError, Manager, Operation, Owned,
};
pub use crate::name_index::NameIndex;
pub use crate::node::{
    Empty, Field, List, ListType, Map, Node, Object, PatchStrategy, Scalar, Shape, UnknownFields,
};
pub use crate::policies::{Policy, PolicyFinding, PolicyInput, PolicyPatch};
pub use crate::protobuf::{Envelope, ProtobufError, ProtobufEvent};
pub use crate::rules::{Rules, Verdict};
pub use crate::schema::{NodeRef, Schema};
pub use crate::shown::show_version;
pub use crate::structural::check_structural;
pub use crate::type_id::TypeId;
pub use crate::types::Types;
pub use crate::validate::ObjectErrors;

/// Compiles the README's example.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
