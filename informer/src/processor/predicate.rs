//! Predicates on the old and the new state of an update, for
//! [`HandlerOptions::updates`](crate::HandlerOptions::updates).
//!
//! # Examples
//!
//! ```
//! use homeostat_informer::predicate::{generation_changed, labels_changed};
//! use k8s_openapi::api::core::v1::Pod;
//!
//! let old = Pod::default();
//! let mut new = old.clone();
//! new.metadata.generation = Some(2);
//! assert!(generation_changed(&old, &new));
//! assert!(!labels_changed(&old, &new));
//! ```

use std::collections::BTreeMap;

use crate::object::Object;

/// Returns true if the spec changed, or if the object is being deleted since.
///
/// The API server raises the generation of most kinds with each change of the spec, and with the
/// start of the deletion. Status updates and other changes of metadata do not match. Of a kind
/// without a generation, such as `ConfigMap`, only the start of the deletion matches;
/// `homeostat::predicate::generation_changed` lets all updates of such a kind pass.
#[doc(alias = "GenerationChangedPredicate")]
pub fn generation_changed<K: Object>(old: &K, new: &K) -> bool {
    let (old, new) = (old.metadata(), new.metadata());
    old.generation != new.generation
        || old.deletion_timestamp.is_none() && new.deletion_timestamp.is_some()
}

/// Returns true if the labels changed.
#[doc(alias = "LabelChangedPredicate")]
pub fn labels_changed<K: Object>(old: &K, new: &K) -> bool {
    differ(old.metadata().labels.as_ref(), new.metadata().labels.as_ref())
}

/// Returns true if the annotations changed.
#[doc(alias = "AnnotationChangedPredicate")]
pub fn annotations_changed<K: Object>(old: &K, new: &K) -> bool {
    differ(old.metadata().annotations.as_ref(), new.metadata().annotations.as_ref())
}

/// Returns true if the resource version changed: an update that is not a replay.
#[doc(alias = "ResourceVersionChangedPredicate")]
pub fn resource_version_changed<K: Object>(old: &K, new: &K) -> bool {
    old.metadata().resource_version != new.metadata().resource_version
}

/// Returns true if two maps differ. No map equals an empty one.
fn differ(old: Option<&Map>, new: Option<&Map>) -> bool {
    let is_empty = |map: Option<&Map>| map.is_none_or(BTreeMap::is_empty);
    old != new && !(is_empty(old) && is_empty(new))
}

type Map = BTreeMap<String, String>;
