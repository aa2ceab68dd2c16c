//! From events about owned objects to the keys of their owners.
//!
//! The order is fixed: expectations are lowered *before* the owner is enqueued. A worker that takes
//! the key first would find the expectation unfulfilled, and no further event would wake it.

use std::collections::HashSet;

use homeostat_expectations::UidTrackingExpectations;
use homeostat_informer::{Event, Lister, Object, ObjectKey, ObjectMeta, Uid};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

use crate::enqueue::Enqueue;
use crate::owner::OwnerKind;

/// An author's additions to the handling of owned objects, for
/// [`ControllerBuilder::owns_with`](crate::ControllerBuilder::owns_with).
///
/// `K` is the owner's type and `P` the owned object's. Every method has a default: a type without
/// any method does what [`owns`](crate::ControllerBuilder::owns) does.
///
/// Use [`owns`](crate::ControllerBuilder::owns) instead if the owner's key is all that an event
/// should enqueue, and [`watches`](crate::ControllerBuilder::watches) for objects without a
/// controller reference. A panic of a method is logged and costs the event.
///
/// # Examples
///
/// A controller that adopts orphans needs to know of objects without an owner:
///
/// ```
/// use homeostat::testing::OwnedEventsTest;
/// use homeostat::{Enqueue, Event, Object, ObjectKey, OwnedEvents};
/// # use homeostat::informer::testing::Store;
/// use k8s_openapi::api::core::v1::{ConfigMap, Secret};
///
/// /// Enqueues the ConfigMap `adopter` of the namespace for each Secret without an owner.
/// struct Orphans;
///
/// impl OwnedEvents<ConfigMap, Secret> for Orphans {
///     fn enqueue_more(
///         &mut self,
///         event: &Event<Secret>,
///         owner: Option<&ObjectKey<ConfigMap>>,
///         enqueue: &Enqueue<ConfigMap>,
///     ) {
///         let namespace = event.metadata().namespace.as_deref().unwrap_or_default();
///         if owner.is_none() {
///             enqueue.add(ObjectKey::namespaced(namespace, "adopter"));
///         }
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// # let config_maps = Store::<ConfigMap>::new();
/// # let mut secret = Secret::default();
/// # secret.metadata.namespace = Some("shop".into());
/// // `config_maps` is a store that the test fills.
/// let mut test = OwnedEventsTest::new(config_maps.lister(), None, Orphans);
/// let event = Event::Added { object: secret.into(), initial: false };
/// let enqueued = test.deliver(event);
/// assert_eq!(enqueued[0].0.to_string(), "shop/adopter");
/// # }
/// ```
pub trait OwnedEvents<K: Object, P: Object>: Send + 'static {
    /// Translates an event before it is handled; `None` ignores it. The default changes nothing.
    ///
    /// Kubernetes' `ReplicaSet` controller ignores updates without a change, and treats a pod that
    /// is being deleted as deleted.
    ///
    /// Expectations see the translated event only: an event that is ignored here lowers none.
    fn translate(&mut self, event: Event<P>) -> Option<Event<P>> {
        Some(event)
    }

    /// Returns true if the reference of an owned object names the owner's kind. The name and the
    /// UID are compared in any case.
    ///
    /// The default compares kind and group, not the version. Override it for a kind that has moved
    /// between groups.
    fn names_owner_kind(&self, reference: &OwnerReference, kind: &OwnerKind) -> bool {
        kind.is_kind_of(reference)
    }

    /// Returns true if an owner counts that is not the object's controller. The default is false:
    /// only the reference with `controller: true` counts.
    fn is_every_owner_counted(&self) -> bool {
        false
    }

    /// Enqueues further keys for an event, or the owner's key after a delay. The default does
    /// nothing.
    ///
    /// Expectations are lowered and the owner is enqueued before this is called. `owner` is the
    /// owner that the object names now (the first of several), if it is in the cache.
    fn enqueue_more(
        &mut self,
        event: &Event<P>,
        owner: Option<&ObjectKey<K::Kind>>,
        enqueue: &Enqueue<K>,
    ) {
        let _ = (event, owner, enqueue);
    }
}

/// The handler of one informer of owned objects.
///
/// It runs in the task of its subscription, one event at a time: its state needs no lock.
pub(crate) struct OwnedHandler<K: Object, H> {
    owners: Lister<K>,
    kind: OwnerKind,
    /// `None` for a controller without expectations.
    observer: Option<Observer<K::Kind>>,
    hook: H,
}

/// The [`OwnedEvents`] of [`owns`](crate::ControllerBuilder::owns): all defaults.
pub(crate) struct OwnerOnly;

/// The [`OwnedEvents`] that enqueues every owner that an object names, not only its controller.
///
/// # Examples
///
/// ```
/// use homeostat::{AnyOwner, Controller, SharedIndexInformer};
/// use k8s_openapi::api::core::v1::{ConfigMap, Secret};
///
/// # fn doc(maps: &SharedIndexInformer<ConfigMap>, secrets: &SharedIndexInformer<Secret>) {
/// let builder = Controller::builder("maps", maps).owns_with(secrets, AnyOwner);
/// # }
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct AnyOwner;

/// An owner in the cache: its key and UID.
type Owner<Kind> = (ObjectKey<Kind>, Uid);
type Owners<Kind> = Vec<Owner<Kind>>;

/// Lowers a controller's expectations by what the cache shows.
#[derive(Debug)]
struct Observer<Kind: 'static> {
    /// Shared with the reconciler, which sets them.
    expectations: UidTrackingExpectations<ObjectKey<Kind>, Uid>,
    /// Objects that did not decode when they were first seen and were counted then: a later `Added`
    /// does not count them again. Objects that are known to be deleted are removed.
    counted_while_opaque: HashSet<Uid>,
}

// === impl OwnerOnly ===

impl<K: Object, P: Object> OwnedEvents<K, P> for OwnerOnly {}

// === impl AnyOwner ===

impl<K: Object, P: Object> OwnedEvents<K, P> for AnyOwner {
    fn is_every_owner_counted(&self) -> bool {
        true
    }
}

// === impl OwnedHandler ===

impl<K: Object, H> OwnedHandler<K, H> {
    pub(crate) fn new(
        owners: Lister<K>,
        kind: OwnerKind,
        expectations: Option<UidTrackingExpectations<ObjectKey<K::Kind>, Uid>>,
        hook: H,
    ) -> Self {
        Self { owners, kind, observer: expectations.map(Observer::new), hook }
    }

    /// Lowers the expectations of the object's owners, and enqueues the owners. If a reference has
    /// moved, the former owner is enqueued too.
    pub(crate) fn handle<P: Object>(&mut self, event: Event<P>, enqueue: &Enqueue<K>)
    where
        H: OwnedEvents<K, P>,
    {
        let Some(event) = self.hook.translate(event) else { return };
        let (owners, previous) = self.owners_of_event(&event);
        if let Some(observer) = &mut self.observer {
            observer.observe(&event, &owners, &previous);
        }
        for (key, _) in previous.iter().chain(&owners) {
            enqueue.add(key.clone());
        }
        let owner = owners.first().map(|(key, _)| key);
        self.hook.enqueue_more(&event, owner, enqueue);
    }

    /// Returns the keys of the owners that `event` concerns. If a reference has moved, the former
    /// owner is the first.
    pub(crate) fn keys<P: Object>(
        &self,
        event: &Event<P>,
    ) -> impl Iterator<Item = ObjectKey<K::Kind>>
    where
        H: OwnedEvents<K, P>,
    {
        let (owners, previous) = self.owners_of_event(event);
        previous.into_iter().chain(owners).map(|(key, _)| key)
    }

    /// Returns the present owners of the event's object, and those that an update has removed.
    fn owners_of_event<P: Object>(&self, event: &Event<P>) -> (Owners<K::Kind>, Owners<K::Kind>)
    where
        H: OwnedEvents<K, P>,
    {
        let owners = self.owners_of::<P>(event.metadata());
        let mut previous = match event {
            Event::Updated { old, .. } => self.owners_of::<P>(old.metadata()),
            _ => Vec::new(),
        };
        previous.retain(|previous| !owners.contains(previous));
        (owners, previous)
    }

    /// Returns the owners of `object` that are in the cache with the UID that the reference names:
    /// an object of a deleted owner does not belong to a new owner of the same name.
    fn owners_of<P: Object>(&self, object: &ObjectMeta) -> Owners<K::Kind>
    where
        H: OwnedEvents<K, P>,
    {
        let is_every_owner_counted = self.hook.is_every_owner_counted();
        let references = object.owner_references.as_deref().unwrap_or_default();
        let counted = references
            .iter()
            .filter(|reference| is_every_owner_counted || reference.controller == Some(true))
            .filter(|reference| self.hook.names_owner_kind(reference, &self.kind));
        counted.filter_map(|reference| self.cached(object, reference)).collect()
    }

    /// Returns the owner that `reference` names, if it is in the cache.
    fn cached(&self, object: &ObjectMeta, reference: &OwnerReference) -> Option<Owner<K::Kind>> {
        // In the object's namespace, or without a namespace for a cluster-scoped owner.
        let in_namespace = object
            .namespace
            .as_deref()
            .map(|namespace| ObjectKey::namespaced(namespace, &reference.name));
        let cluster_wide = ObjectKey::cluster(&reference.name);
        [in_namespace, Some(cluster_wide)]
            .into_iter()
            .flatten()
            .find(|key| self.uid_of(key).as_deref() == Some(reference.uid.as_str()))
            .map(|key| (key, Uid::from(reference.uid.as_str())))
    }

    /// Returns the UID of a cached owner, also of one that does not decode: it owns all the same.
    fn uid_of(&self, key: &ObjectKey<K::Kind>) -> Option<String> {
        match self.owners.get(key) {
            Some(owner) => owner.metadata().uid.clone(),
            None => self.owners.opaque(key)?.uid.clone(),
        }
    }
}

// === impl Observer ===

impl<Kind: 'static> Observer<Kind> {
    fn new(expectations: UidTrackingExpectations<ObjectKey<Kind>, Uid>) -> Self {
        Self { expectations, counted_while_opaque: HashSet::new() }
    }

    /// Lowers the expectations that `event` fulfils.
    fn observe<P: Object>(
        &mut self,
        event: &Event<P>,
        owners: &[Owner<Kind>],
        previous: &[Owner<Kind>],
    ) {
        let metadata = event.metadata();
        let uid = Uid::from(metadata.uid.as_deref().unwrap_or_default());
        if self.is_new(event, &uid, !owners.is_empty()) {
            for (key, owner) in owners {
                self.expectations.creation_observed(key, owner);
            }
        }
        // An object that is being deleted counts as deleted: its controller does not delete it
        // again.
        if is_deleted(event) || metadata.deletion_timestamp.is_some() {
            for (key, owner) in owners.iter().chain(previous) {
                self.expectations.deletion_observed(key, owner, &uid);
            }
        }
    }

    /// Returns true if `event` is the first one of the object.
    fn is_new<P: Object>(&mut self, event: &Event<P>, uid: &Uid, is_owned: bool) -> bool {
        match event {
            Event::Added { .. } => !self.counted_while_opaque.remove(uid),
            Event::Opaque { last_known: None, .. } if is_owned => {
                self.counted_while_opaque.insert(uid.clone())
            }
            Event::Deleted { .. } | Event::OpaqueDeleted { .. } => {
                self.counted_while_opaque.remove(uid);
                false
            }
            _ => false,
        }
    }
}

/// Returns true if the object is gone.
fn is_deleted<P: Object>(event: &Event<P>) -> bool {
    matches!(event, Event::Deleted { .. } | Event::OpaqueDeleted { .. })
}

#[cfg(test)]
mod tests;
