//! [`Caches`]: the informers of what quotas count, and the counts in a namespace.

mod sets;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::FutureExt;
use futures::future::join_all;
use homeostat::informer::{Followed, GroupVersionResource, InformerSet, UnsyncedResource};
use homeostat::kube_client::Client;
use homeostat::{Index, Object, ObjectKey};
use homeostat_core::{GroupResource, WallClock};
use homeostat_quantity::ResourceName;
use homeostat_quota::{
    DeviceClassMapping, DeviceContext, Evaluator, Gates, OwnerPod, ScopeError, SiblingClaim, Tally,
    UnexpectedObject, resource_claim_charge,
};
use jiff::Timestamp;
use parking_lot::RwLock;

use self::sets::{charged, claims, classes, counters};
use crate::change::Change;
use crate::charged::{
    CachedClass, Charged, Counted, DeviceClaim, Part, Pods, Services, VolumeClaims,
};
use crate::plan::Recount;

/// A message of the caches.
#[derive(Debug)]
pub(crate) enum Notice {
    /// Quotas of the namespace that count the resource need a recount.
    Changed(Change, Recount),
    /// The cache of a resource is complete.
    Synced(GroupResource),
    /// The mapping of device classes changed. Quotas that name one of these need a recount.
    Mapped(BTreeSet<ResourceName>),
}

pub(crate) type Notify = Arc<dyn Fn(Notice) + Send + Sync>;

/// The objects of each namespace.
type ByNamespace<K> = Index<K, String>;
type Members<K> = InformerSet<K, ByNamespace<K>>;
type Claims = InformerSet<DeviceClaim, ClaimIndices>;

/// The informers of what quotas count, by the part of an object that they hold.
pub(crate) struct Caches {
    pods: Members<Charged<Pods>>,
    services: Members<Charged<Services>>,
    volume_claims: Members<Charged<VolumeClaims>>,
    device_claims: Claims,
    device_classes: InformerSet<CachedClass>,
    counters: Members<Counted>,
    mapping: Arc<RwLock<Arc<DeviceClassMapping>>>,
    /// True from the first time at which the mapping has all device classes. False again while no
    /// quota needs them.
    is_mapping_complete: AtomicBool,
}

/// The indices of claims to devices.
struct ClaimIndices {
    by_namespace: ByNamespace<DeviceClaim>,
    /// The claims that serve the extended resources of a pod, by its uid.
    by_pod: Index<DeviceClaim, String>,
}

/// The objects on which the charge of a claim to devices depends, as one recount sees them.
struct Context {
    mapping: Arc<DeviceClassMapping>,
    pods: Arc<Followed<Charged<Pods>, ByNamespace<Charged<Pods>>>>,
    claims: Arc<Followed<DeviceClaim, ClaimIndices>>,
    now: Timestamp,
}

/// The reason why the objects of a resource could not be counted.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CountError {
    #[error("{0} not yet synced")]
    NotSynced(GroupResource),
    #[error(
        "failed to list content: an object of {resource} in namespace {namespace} does not fit its \
         type"
    )]
    Opaque { resource: GroupResource, namespace: String },
    #[error(transparent)]
    Scope(#[from] ScopeError),
    #[error(transparent)]
    Unexpected(#[from] UnexpectedObject),
}

/// The settings of [`Caches`].
pub(crate) struct CacheOptions {
    pub(crate) client: Client,
    pub(crate) gates: Gates,
    pub(crate) clock: WallClock,
    pub(crate) seed: Option<u64>,
}

pub(crate) fn device_claims() -> GroupResource {
    GroupResource::new("resource.k8s.io", "resourceclaims")
}

pub(crate) fn device_classes() -> GroupResource {
    GroupResource::new("resource.k8s.io", "deviceclasses")
}

// === impl Caches ===

impl Caches {
    /// Returns caches that follow nothing yet. `notify` is called from the tasks of the informers.
    pub(crate) fn new(options: &CacheOptions, notify: &Notify) -> Self {
        let mapping: Arc<RwLock<Arc<DeviceClassMapping>>> = Arc::default();
        let device_claims = claims(options, Arc::clone(&mapping), notify);
        let gates = options.gates;
        let pods = charged(options, &Evaluator::pods(gates), notify, Some(&device_claims));
        Self {
            pods,
            services: charged(options, &Evaluator::services(), notify, None),
            volume_claims: charged(options, &Evaluator::persistent_volume_claims(), notify, None),
            device_claims,
            device_classes: classes(options, Arc::clone(&mapping), notify),
            counters: counters(options, notify),
            mapping,
            is_mapping_complete: AtomicBool::new(false),
        }
    }

    /// Returns the present mapping of device classes.
    pub(crate) fn mapping(&self) -> Arc<DeviceClassMapping> {
        Arc::clone(&self.mapping.read())
    }

    /// Returns true if the mapping has all device classes.
    ///
    /// Until then it is not known which extended resources claims to devices are charged for.
    pub(crate) fn has_complete_mapping(&self) -> bool {
        let is_followed = self.device_classes.get(&device_classes()).is_some();
        is_followed && self.is_mapping_complete.load(Ordering::Acquire)
    }

    /// Handles the sync of the device classes: forgets those that have been deleted while no quota
    /// needed them. Returns the names of quotas whose usage may differ.
    pub(crate) fn complete_mapping(&self) -> BTreeSet<ResourceName> {
        let Some(classes) = self.device_classes.get(&device_classes()) else {
            return BTreeSet::new();
        };
        let keys = classes.informer().lister().keys();
        let stored: BTreeSet<&str> = keys.iter().map(ObjectKey::name).collect();
        let affected = Arc::make_mut(&mut self.mapping.write()).retain(|it| stored.contains(it));
        self.is_mapping_complete.store(true, Ordering::Release);
        affected
    }

    /// Follows exactly these resources.
    pub(crate) fn follow(&self, list: Vec<GroupVersionResource>) {
        let of = |group: &str, resource: &str| {
            let is_it = |it: &&GroupVersionResource| it.group == group && it.resource == resource;
            list.iter().find(is_it).cloned()
        };
        self.pods.follow(of(Pods::GROUP, Pods::RESOURCE));
        self.services.follow(of(Services::GROUP, Services::RESOURCE));
        self.volume_claims.follow(of(VolumeClaims::GROUP, VolumeClaims::RESOURCE));
        self.device_claims.follow(of("resource.k8s.io", "resourceclaims"));
        let classes = of("resource.k8s.io", "deviceclasses");
        if classes.is_none() {
            self.is_mapping_complete.store(false, Ordering::Release);
        }
        self.device_classes.follow(classes);
        self.counters.follow(list.into_iter().filter(|it| is_counter(&it.group, &it.resource)));
    }

    /// Returns the resources that have not synced.
    pub(crate) fn unsynced(&self) -> Vec<UnsyncedResource> {
        let mut unsynced = self.pods.unsynced();
        unsynced.extend(self.services.unsynced());
        unsynced.extend(self.volume_claims.unsynced());
        unsynced.extend(self.device_claims.unsynced());
        unsynced.extend(self.device_classes.unsynced());
        unsynced.extend(self.counters.unsynced());
        unsynced
    }

    /// Stops all informers, and waits for their tasks.
    pub(crate) async fn stop(&self) {
        let stops = [
            self.pods.stop().boxed(),
            self.services.stop().boxed(),
            self.volume_claims.stop().boxed(),
            self.device_claims.stop().boxed(),
            self.device_classes.stop().boxed(),
            self.counters.stop().boxed(),
        ];
        join_all(stops).await;
    }

    /// Counts the objects of `evaluator`'s resource in a namespace.
    pub(crate) fn count(
        &self,
        evaluator: &Evaluator,
        namespace: &str,
        now: Timestamp,
        tally: &mut Tally<'_>,
    ) -> Result<(), CountError> {
        let resource = evaluator.resource();
        if evaluator.is_counter() {
            let counter = self.counters.get(resource);
            let counter = counter.ok_or_else(|| CountError::NotSynced(resource.clone()))?;
            // Every object with a name fits, so none is opaque.
            tally.add_count(counter.value().get(namespace).len());
            return Ok(());
        }
        match &*resource.resource {
            Pods::RESOURCE => sum(&self.pods, evaluator, namespace, tally),
            Services::RESOURCE => sum(&self.services, evaluator, namespace, tally),
            VolumeClaims::RESOURCE => sum(&self.volume_claims, evaluator, namespace, tally),
            _ => self.sum_claims(namespace, now, tally),
        }
    }

    fn sum_claims(
        &self,
        namespace: &str,
        now: Timestamp,
        tally: &mut Tally<'_>,
    ) -> Result<(), CountError> {
        let missing = CountError::NotSynced;
        let claims = self.device_claims.get(&device_claims());
        let claims = claims.ok_or_else(|| missing(device_claims()))?;
        let pods = self.pods.get(&Pods::resource()).ok_or_else(|| missing(Pods::resource()))?;
        if !self.has_complete_mapping() {
            return Err(missing(device_classes()));
        }
        let index = &claims.value().by_namespace;
        if index.has_opaque(namespace) {
            let (resource, namespace) = (device_claims(), namespace.to_owned());
            return Err(CountError::Opaque { resource, namespace });
        }
        let found = index.get(namespace);
        let (claims, mapping) = (Arc::clone(&claims), self.mapping());
        let context = Context { mapping, pods, claims, now };
        for claim in &found {
            tally.add(&resource_claim_charge(&claim.claim, &context))?;
        }
        Ok(())
    }
}

/// Returns true for a resource of which only the number of objects matters.
fn is_counter(group: &str, resource: &str) -> bool {
    match group {
        "" => ![Pods::RESOURCE, Services::RESOURCE, VolumeClaims::RESOURCE].contains(&resource),
        "resource.k8s.io" => !["resourceclaims", "deviceclasses"].contains(&resource),
        _ => true,
    }
}

/// Adds the charges of a namespace.
fn sum<P: Part>(
    set: &Members<Charged<P>>,
    evaluator: &Evaluator,
    namespace: &str,
    tally: &mut Tally<'_>,
) -> Result<(), CountError> {
    let resource = evaluator.resource();
    let cache = set.get(resource).ok_or_else(|| CountError::NotSynced(resource.clone()))?;
    let opaque =
        || CountError::Opaque { resource: resource.clone(), namespace: namespace.to_owned() };
    if cache.value().has_opaque(namespace) {
        return Err(opaque());
    }
    for object in &cache.value().get(namespace) {
        tally.add(object.charge().ok_or_else(opaque)?)?;
    }
    Ok(())
}

// === impl Context ===

impl DeviceContext for Context {
    fn classes(&self) -> &DeviceClassMapping {
        &self.mapping
    }

    fn pod(&self, namespace: &str, name: &str) -> Option<OwnerPod> {
        let pod = self.pods.informer().lister().get((namespace, name))?;
        Some(OwnerPod {
            uid: pod.uid().as_str().into(),
            extended_resource_claim: pod.served_by().cloned(),
            usage: pod.charge()?.usage(self.now),
        })
    }

    fn claims_of(&self, namespace: &str, pod_uid: &str) -> Vec<SiblingClaim> {
        let of_pod = self.claims.value().by_pod.get(pod_uid);
        let siblings = of_pod.iter().filter(|it| it.claim.metadata.namespace == namespace);
        let sibling = |it: &Arc<DeviceClaim>| SiblingClaim {
            created: it.claim.metadata.creation_timestamp,
            name: it.claim.metadata.name.clone(),
        };
        siblings.map(sibling).collect()
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context").finish_non_exhaustive()
    }
}
