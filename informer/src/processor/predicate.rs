//! Predicates on the old and the new state of an object, for
//! [`HandlerOptions::updates`](crate::HandlerOptions::updates) and for `homeostat::Watch`.
//!
//! Join them with `||`: `|old, new| generation_changed(old, new) || labels_changed(old, new)`.
//!
//! A predicate decides about updates only: additions, deletions and resyncs pass. It is called in
//! the task of the handler; a panic costs the event.

use std::collections::BTreeMap;

use crate::object::Object;

/// Returns true if the object's `metadata.generation` has changed, or if its deletion has begun.
/// The server raises the generation at each change of the spec, and not for the status.
///
/// Objects without a generation, such as a `ConfigMap`, count as changed: nothing shows a change.
/// controller-runtime's predicate of this name ignores all updates of such a kind.
///
/// # Examples
///
/// ```
/// use homeostat_informer::predicate::generation_changed;
/// use k8s_openapi::api::apps::v1::Deployment;
///
/// let mut old = Deployment::default();
/// old.metadata.generation = Some(1);
/// let mut new = old.clone();
/// assert!(!generation_changed(&old, &new));
/// new.metadata.generation = Some(2);
/// assert!(generation_changed(&old, &new));
/// ```
#[doc(alias = "GenerationChangedPredicate")]
pub fn generation_changed<K: Object>(old: &K, new: &K) -> bool {
    let (old, new) = (old.metadata(), new.metadata());
    // A deletion changes the generation of most kinds only. A finalizer needs to see each.
    old.generation.is_none()
        || old.generation != new.generation
        || old.deletion_timestamp != new.deletion_timestamp
}

/// Returns true if the object's labels have changed. No labels equal empty ones.
///
/// # Examples
///
/// ```
/// use homeostat_informer::predicate::labels_changed;
/// use k8s_openapi::api::core::v1::Pod;
///
/// let old = Pod::default();
/// let mut new = old.clone();
/// new.metadata.resource_version = Some("2".into());
/// assert!(!labels_changed(&old, &new));
/// new.metadata.labels = Some([("app".into(), "web".into())].into());
/// assert!(labels_changed(&old, &new));
/// ```
#[doc(alias = "LabelChangedPredicate")]
pub fn labels_changed<K: Object>(old: &K, new: &K) -> bool {
    differ(old.metadata().labels.as_ref(), new.metadata().labels.as_ref())
}

/// Returns true if the object's annotations have changed. No annotations equal empty ones.
///
/// # Examples
///
/// A handler of services that are configured by annotations, and of no other change:
///
/// ```
/// use homeostat_informer::HandlerOptions;
/// use homeostat_informer::predicate::annotations_changed;
/// use k8s_openapi::api::core::v1::Service;
///
/// fn annotated() -> HandlerOptions<Service> {
///     HandlerOptions::new("addresses").updates(annotations_changed)
/// }
/// ```
#[doc(alias = "AnnotationChangedPredicate")]
pub fn annotations_changed<K: Object>(old: &K, new: &K) -> bool {
    differ(old.metadata().annotations.as_ref(), new.metadata().annotations.as_ref())
}

/// Returns true if the resource version has changed: an update that is not a replay.
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

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

    use super::*;

    fn map(metadata: ObjectMeta) -> ConfigMap {
        ConfigMap { metadata, ..ConfigMap::default() }
    }

    #[test]
    fn object_without_a_generation_counts_as_changed() {
        let map = |generation| map(ObjectMeta { generation, ..ObjectMeta::default() });
        assert!(generation_changed(&map(None), &map(None)));
        assert!(!generation_changed(&map(Some(1)), &map(Some(1))));
    }

    #[test]
    fn missing_labels_equal_empty_ones() {
        let map = |labels| map(ObjectMeta { labels, ..ObjectMeta::default() });
        let none = map(None);
        assert!(!labels_changed(&none, &map(Some(BTreeMap::new()))));
        assert!(labels_changed(&none, &map(Some([("app".into(), "web".into())].into()))));
    }
}
