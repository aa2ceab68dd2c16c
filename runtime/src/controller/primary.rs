//! The controller's own objects, and those that they own.

use std::marker::PhantomData;

use homeostat_informer::{Object, ObjectKey, SharedIndexInformer};
use kube_client::Resource;

use crate::owned::{OwnedEvents, OwnedHandler, OwnerOnly};
use crate::owner::OwnerKind;
use crate::request::Trigger;
use crate::target::Target;
use crate::watch::Watch;
use crate::worker::IsOpaque;

use super::event_sources::Expectations;
use super::{ControllerBuilder, Enqueue, Event, Mapper, Subscriber};

/// The primary of a [`ControllerBuilder`]: the informer of the objects that are reconciled.
#[expect(missing_debug_implementations, reason = "no value of it reaches an author")]
pub struct Primary<K: Object> {
    pub(super) watch: Watch<K>,
    mapper: Mapper<K, K>,
}

/// A [`ControllerBuilder`] without a primary: made by
/// [`Controller::for_keys`](crate::Controller::for_keys).
#[derive(Debug)]
pub struct NoPrimary(pub(super) PhantomData<()>);

/// The part of a primary that [`ControllerBuilder::build`] uses.
pub(super) trait IntoSource<T: Target> {
    /// Returns the subscription, and the check for objects that do not decode.
    fn into_source(self) -> (Option<Subscriber<T>>, Option<IsOpaque<T>>);
}

// === impl Primary ===

impl<K: Object> Primary<K> {
    pub(super) fn new(watch: Watch<K>) -> Self {
        Self { watch, mapper: Box::new(|event, enqueue| enqueue.add(event.key())) }
    }
}

impl<K: Object> IntoSource<K> for Primary<K> {
    fn into_source(self) -> (Option<Subscriber<K>>, Option<IsOpaque<K>>) {
        let Self { watch, mapper } = self;
        let cache = watch.informer.lister();
        (
            Some(Box::new(move |sources| sources.events(watch, Trigger::Primary, mapper))),
            Some(Box::new(move |key| cache.opaque(key).is_some())),
        )
    }
}

// === impl NoPrimary ===

impl<T: Target> IntoSource<T> for NoPrimary {
    fn into_source(self) -> (Option<Subscriber<T>>, Option<IsOpaque<T>>) {
        (None, None)
    }
}

// === impl ControllerBuilder ===

impl<K: Object> ControllerBuilder<K> {
    /// Replaces the handler of the primary's events: `mapper` enqueues keys instead of the object's
    /// own key.
    ///
    /// # Examples
    ///
    /// Only maps with a label are reconciled:
    ///
    /// ```
    /// # use homeostat::{Controller, SharedIndexInformer};
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # fn doc(maps: &SharedIndexInformer<ConfigMap>) {
    /// let builder = Controller::builder("labelled", maps).primary(|event, enqueue| {
    ///     if event.metadata().labels.as_ref().is_some_and(|labels| labels.contains_key("copy")) {
    ///         enqueue.add(event.key());
    ///     }
    /// });
    /// # }
    /// ```
    pub fn primary(mut self, mapper: impl FnMut(&Event<K>, &Enqueue<K>) + Send + 'static) -> Self {
        self.primary.mapper = Box::new(mapper);
        self
    }

    /// Enqueues the owner of each object of `watch` that changes. `watch` is an informer, or a
    /// [`Watch`] of it.
    ///
    /// The owner is the object that the controller reference names by kind, group, name and UID, if
    /// it is in the primary's cache. If the reference moves, both owners are enqueued.
    ///
    /// An owner reference works within a namespace, and from a cluster-scoped owner to any
    /// namespace. A reference to an owner in another namespace enqueues nothing.
    ///
    /// Call it once per kind that the controller creates. An object whose owner is not in the cache
    /// yet enqueues nothing: the owner's own event does that. An object that is created and deleted
    /// while its informer has no watch has no event: the owner is reconciled at its next event or
    /// [resync](Watch::resync).
    ///
    /// # Examples
    ///
    /// ```
    /// # use homeostat::{Controller, SharedIndexInformer};
    /// # use k8s_openapi::api::{apps::v1::ReplicaSet, core::v1::Pod};
    /// # fn doc(sets: &SharedIndexInformer<ReplicaSet>, pods: &SharedIndexInformer<Pod>) {
    /// let builder = Controller::builder("replicaset", sets).owns(pods);
    /// # }
    /// ```
    #[doc(alias = "EnqueueRequestForOwner")]
    pub fn owns<P: Object>(self, watch: impl Into<Watch<P>>) -> Self
    where
        K::Kind: Resource<DynamicType = ()>,
    {
        self.owns_with(watch, OwnerOnly)
    }

    /// As [`owns`](Self::owns), with additions: `events` may ignore or translate an event, and
    /// enqueue further keys after the owner. [`OwnedEvents`] has an example. With
    /// [`AnyOwner`](crate::AnyOwner) every owner is enqueued, not only the controller.
    pub fn owns_with<P: Object>(
        self,
        watch: impl Into<Watch<P>>,
        events: impl OwnedEvents<K, P>,
    ) -> Self
    where
        K::Kind: Resource<DynamicType = ()>,
    {
        self.owns_as(OwnerKind::of::<K::Kind>(), watch, events)
    }

    /// As [`owns_with`](Self::owns_with), for owners whose kind is known only at run time.
    ///
    /// # Examples
    ///
    /// ```
    /// use homeostat::informer::Dynamic;
    /// use homeostat::owner::OwnerKind;
    /// use homeostat::{AnyOwner, Controller, SharedIndexInformer};
    /// use k8s_openapi::api::core::v1::ConfigMap;
    ///
    /// # fn doc(widgets: &SharedIndexInformer<Dynamic>, maps: &SharedIndexInformer<ConfigMap>) {
    /// let widget = OwnerKind::new("example.com", "Widget");
    /// let builder = Controller::builder("widget", widgets).owns_as(widget, maps, AnyOwner);
    /// # }
    /// ```
    pub fn owns_as<P: Object>(
        mut self,
        kind: OwnerKind,
        watch: impl Into<Watch<P>>,
        events: impl OwnedEvents<K, P>,
    ) -> Self {
        let (watch, owners) = (watch.into(), self.primary.watch.informer.lister());
        self.subscribers.push(Box::new(move |sources| {
            let expectations = sources.expectations.clone();
            sources.owned(watch, OwnedHandler::new(owners, kind, expectations, events))
        }));
        self
    }

    /// Lowers `expectations` by the events of the objects that this controller
    /// [`owns`](Self::owns). A new object lowers its owner's creations; a deleted object, and one
    /// that is being deleted, the deletions. The owner is enqueued after that.
    ///
    /// An object is often reported twice, as being deleted and as deleted. The expectations
    /// therefore track UIDs. Lower expectations of another type in a mapper of
    /// [`watches`](Self::watches).
    ///
    /// The reconciler sets the expectations before it writes, checks them with
    /// [`satisfied`](crate::UidTrackingExpectations::satisfied), and deletes them when the owner is
    /// gone. While they are not satisfied, it returns [`Action::Postpone`](crate::Action::Postpone)
    /// with five minutes: a write that was lost has no event, and its expectation expires then. The
    /// crate's README has an example.
    pub fn expecting(mut self, expectations: &Expectations<K>) -> Self {
        self.expectations = Some(expectations.clone());
        self
    }
}

impl<T: Target> ControllerBuilder<T, NoPrimary> {
    /// Enqueues the owner of each object of `watch` that changes: `key` makes the key from that of
    /// the owner, which is an object of `owners`.
    ///
    /// The owner is found as in a controller with a primary, by kind, group, name and UID of the
    /// controller reference. [Watch](Self::watches) `owners` too: an object whose owner is not in
    /// their cache yet enqueues nothing.
    ///
    /// # Examples
    ///
    /// A controller of Deployments and their `ReplicaSet`s, in one queue:
    ///
    /// ```
    /// # use std::fmt;
    /// # use homeostat::{Controller, ObjectKey, SharedIndexInformer, Target};
    /// # use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
    /// # use k8s_openapi::api::core::v1::Pod;
    /// # #[derive(Clone, Debug, PartialEq, Eq, Hash)]
    /// enum Key {
    ///     Deployment(ObjectKey<Deployment>),
    ///     ReplicaSet(ObjectKey<ReplicaSet>),
    /// }
    /// # impl fmt::Display for Key {
    /// #     fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    /// #         fmt::Debug::fmt(self, f)
    /// #     }
    /// # }
    /// # impl Target for Key {
    /// #     type Key = Self;
    /// # }
    /// # fn doc(
    /// #     deployments: &SharedIndexInformer<Deployment>,
    /// #     sets: &SharedIndexInformer<ReplicaSet>,
    /// #     pods: &SharedIndexInformer<Pod>,
    /// # ) {
    /// let builder = Controller::for_keys::<Key>("rollout")
    ///     .watches(deployments, |event, enqueue| enqueue.add(Key::Deployment(event.key())))
    ///     .watches(sets, |event, enqueue| enqueue.add(Key::ReplicaSet(event.key())))
    ///     .owns(deployments, sets, Key::Deployment)
    ///     .owns(sets, pods, Key::ReplicaSet);
    /// # }
    /// ```
    #[doc(alias = "EnqueueRequestForOwner")]
    pub fn owns<K: Object, P: Object>(
        self,
        owners: &SharedIndexInformer<K>,
        watch: impl Into<Watch<P>>,
        key: impl Fn(ObjectKey<K::Kind>) -> T::Key + Send + 'static,
    ) -> Self
    where
        K::Kind: Resource<DynamicType = ()>,
    {
        let kind = OwnerKind::of::<K::Kind>();
        let owned = OwnedHandler::new(owners.lister(), kind, None, OwnerOnly);
        self.watches(watch, move |event, enqueue| {
            owned.keys(event).for_each(|owner| enqueue.add(key(owner)));
        })
    }
}
