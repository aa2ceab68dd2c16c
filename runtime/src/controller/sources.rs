//! The sources of keys that a controller of any target can have.

use std::time::Duration;

use homeostat_informer::{Event, Object, SharedIndexInformer};
use kube_client::Resource;

use crate::enqueue::Enqueue;
use crate::key_source::KeySource;
use crate::read_your_writes::ReadYourWrites;
use crate::target::Target;
use crate::watch::Watch;

use super::event_sources::Consistency;
use super::{ControllerBuilder, group_resource};

/// The shortest and the longest period of a timer: tokio cannot express a later time.
const MINIMUM_PERIOD: Duration = Duration::from_millis(10);
const MAXIMUM_PERIOD: Duration = Duration::from_secs(30 * 365 * 24 * 3600);

impl<T: Target, P> ControllerBuilder<T, P> {
    /// Calls `mapper` for each event of another informer, or of a [`Watch`] of it; it enqueues the
    /// keys that the event concerns.
    ///
    /// A panic of the mapper is logged and costs the event.
    ///
    /// Use [`owns`](Self::owns) instead if the object names its owner by a controller reference.
    ///
    /// # Examples
    ///
    /// A Secret concerns the `ConfigMap` of the same name:
    ///
    /// ```
    /// # use homeostat::{Controller, ObjectKey, SharedIndexInformer};
    /// # use k8s_openapi::api::core::v1::{ConfigMap, Secret};
    /// # fn doc(maps: &SharedIndexInformer<ConfigMap>, secrets: &SharedIndexInformer<Secret>) {
    /// let builder = Controller::builder("copier", maps).watches(secrets, |event, enqueue| {
    ///     enqueue.add(ObjectKey::from_metadata(event.metadata()));
    /// });
    /// # }
    /// ```
    #[doc(alias = "Watches")]
    #[doc(alias = "EnqueueRequestsFromMapFunc")]
    pub fn watches<Q: Object>(
        mut self,
        watch: impl Into<Watch<Q>>,
        mapper: impl FnMut(&Event<Q>, &Enqueue<T>) + Send + 'static,
    ) -> Self {
        let watch = watch.into();
        self.subscribers.push(Box::new(move |sources| sources.related(watch, mapper)));
        self
    }

    /// Lets `source` add keys to the queue. See [`KeySource`].
    ///
    /// # Panics
    ///
    /// [`build`](Self::build) panics if another controller has the source.
    pub fn source(mut self, source: &KeySource<T>) -> Self {
        self.sources.push(source.clone());
        self
    }

    /// Calls `callback` in each `period` while the workers run. It enqueues keys.
    ///
    /// The first call comes one period after the start of the workers. A call that is late moves
    /// the next ones; it is not repeated. The shortest period is 10 ms, the longest one 30 years. A
    /// panic is logged and costs one call.
    ///
    /// Use it for a pass over all objects. Use
    /// [`Action::RequeueAfter`](crate::Action::RequeueAfter) for the next look at one object.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use homeostat::{Controller, Object, SharedIndexInformer};
    /// use k8s_openapi::api::core::v1::ResourceQuota;
    ///
    /// # fn doc(quotas: &SharedIndexInformer<ResourceQuota>) {
    /// let cache = quotas.lister();
    /// let builder = Controller::builder("resource-quota", quotas)
    ///     .every(Duration::from_secs(300), move |enqueue| {
    ///         for quota in &cache.list() {
    ///             enqueue.add(quota.key());
    ///         }
    ///     });
    /// # }
    /// ```
    pub fn every(
        mut self,
        period: Duration,
        callback: impl Fn(&Enqueue<T>) + Send + Sync + 'static,
    ) -> Self {
        let period = period.clamp(MINIMUM_PERIOD, MAXIMUM_PERIOD);
        self.timers.push((period, Box::new(callback)));
        self
    }

    /// Delays each reconcile until the caches of `writes` show the key's own writes. See
    /// [`ReadYourWrites`].
    ///
    /// # Panics
    ///
    /// [`build`](Self::build) panics if another controller has `writes`.
    pub fn read_your_writes(mut self, writes: &ReadYourWrites<T>) -> Self {
        self.writes = Some(writes.clone());
        self
    }

    /// Keeps `store` up to date with the version of `informer`'s cache, and enqueues the keys that
    /// waited for it: they are reconciled as soon as the cache shows what was written for them.
    ///
    /// Call it for each kind that the reconciler reads and writes, including the primary's. One
    /// store serves one controller: make one for each.
    ///
    /// # Panics
    ///
    /// Panics if it was called for a cache of this kind already. Of two caches, the older one would
    /// look like that of a restored server, and the writes would be forgotten.
    /// [`build`](Self::build) panics if another controller has `store`, for the same reason.
    #[track_caller]
    pub fn consistency<Q: Object>(
        mut self,
        store: &Consistency<T>,
        informer: &SharedIndexInformer<Q>,
    ) -> Self
    where
        Q::Kind: Resource<DynamicType = ()>,
    {
        let resource = group_resource::<Q::Kind>();
        let is_new = !self.consistent.contains(&resource);
        assert!(
            is_new,
            "the controller has a cache of {resource} for its ConsistencyStore already"
        );
        self.consistent.push(resource);
        let (store, informer) = (store.clone(), informer.clone());
        self.subscribers.push(Box::new(move |sources| sources.versions(store, &informer)));
        self
    }
}
