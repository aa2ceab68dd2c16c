//! Predicates on the old and the new state of an object, for
//! [`Watch::updated_if`](crate::Watch::updated_if).
//!
//! Join them with `||`: `|old, new| generation_changed(old, new) || labels_changed(old, new)`.
//!
//! A predicate decides about updates only: additions, deletions and resyncs pass. It is called in
//! the task of the handler; a panic costs the event.

use homeostat_informer::Object;

/// Returns true if the object's `metadata.generation` has changed, or if its deletion has begun.
/// The server raises the generation at each change of the spec, and not for the status.
///
/// Objects without a generation, such as a `ConfigMap`, count as changed. The predicate of the same
/// name in [`informer`](crate::informer::predicate::generation_changed) ignores their updates, as
/// controller-runtime's does.
///
/// # Examples
///
/// ```
/// use homeostat::predicate::generation_changed;
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
pub fn generation_changed<P: Object>(old: &P, new: &P) -> bool {
    let (old, new) = (old.metadata(), new.metadata());
    // A deletion changes the generation of most kinds only. A finalizer needs to see each.
    old.generation.is_none()
        || old.generation != new.generation
        || old.deletion_timestamp != new.deletion_timestamp
}

/// Returns true if the object's labels have changed.
///
/// # Examples
///
/// ```
/// use homeostat::predicate::labels_changed;
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
pub fn labels_changed<P: Object>(old: &P, new: &P) -> bool {
    old.metadata().labels != new.metadata().labels
}

/// Returns true if the object's annotations have changed.
///
/// # Examples
///
/// A controller that is configured by annotations, and reconciles no other change:
///
/// ```
/// use homeostat::predicate::annotations_changed;
/// use homeostat::{SharedIndexInformer, Watch};
/// use k8s_openapi::api::core::v1::Service;
///
/// fn annotated(services: &SharedIndexInformer<Service>) -> Watch<Service> {
///     Watch::of(services).updated_if(annotations_changed)
/// }
/// ```
#[doc(alias = "AnnotationChangedPredicate")]
pub fn annotations_changed<P: Object>(old: &P, new: &P) -> bool {
    old.metadata().annotations != new.metadata().annotations
}
