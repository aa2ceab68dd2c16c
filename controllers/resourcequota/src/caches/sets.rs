//! The informers of what quotas count, and what each of their events means for the quotas.

use std::collections::BTreeSet;
use std::sync::Arc;

use homeostat::informer::list_watch::KubeListWatch;
use homeostat::informer::{GroupVersionResource, InformerBuilder, InformerSet, SetEvent};
use homeostat::{Event, Object, ObjectMeta, SharedIndexInformer};
use homeostat_core::GroupResource;
use homeostat_quota::{Charge, DeviceClassMapping, Evaluator, resource_claim_charge};
use parking_lot::RwLock;
use serde::de::DeserializeOwned;

use super::{
    CacheOptions, ClaimIndices, Claims, Members, Notice, Notify, device_claims, device_classes,
};
use crate::change::Change;
use crate::charged::{CachedClass, Charged, Counted, DeviceClaim, Part};
use crate::plan::Recount;
use crate::unfit::Unfit;

/// Returns the informer of a resource in all namespaces.
fn informer<K>(
    options: &CacheOptions,
) -> impl Fn(&GroupVersionResource) -> InformerBuilder<K> + use<K>
where
    K: Object<Kind = homeostat::informer::Dynamic> + DeserializeOwned,
{
    let (client, seed) = (options.client.clone(), options.seed);
    move |resource| {
        let list_watch = KubeListWatch::of_resource(client.clone(), resource, None);
        let builder = SharedIndexInformer::builder(list_watch);
        match seed {
            Some(seed) => builder.seed(seed ^ u64::try_from(resource.resource.len()).unwrap_or(0)),
            None => builder,
        }
    }
}

fn namespace_of(metadata: &ObjectMeta) -> Option<String> {
    metadata.namespace.clone()
}

/// Follows a resource whose objects have a charge of their own. A changed pod also concerns the
/// claims that serve its extended resources.
pub(super) fn charged<P: Part>(
    options: &CacheOptions,
    evaluator: &Evaluator,
    notify: &Notify,
    claims: Option<&Claims>,
) -> Members<Charged<P>> {
    let (build, evaluator) = (informer::<Charged<P>>(options), evaluator.clone());
    let build = move |resource: &GroupVersionResource| {
        let evaluator = evaluator.clone();
        let settle = move |object: &mut Charged<P>| object.settle(&evaluator);
        let informer = build(resource).transform(settle).build();
        let index = informer.index_by_metadata(namespace_of);
        (informer, index)
    };
    let (notify, clock, claims) = (Arc::clone(notify), options.clock, claims.cloned());
    let unfit = Unfit::new();
    let handler = move |_: &GroupVersionResource, event: SetEvent<Charged<P>>| {
        let SetEvent::Object(event) = event else {
            return notify(Notice::Synced(P::resource()));
        };
        let fits_again = unfit.note(&event);
        let Some(recount) = recount_of(&event, |old, new| {
            let charges = old.charge().zip(new.charge());
            fits_again
                || charges.is_none_or(|(old, new)| old.needs_recount(new, clock.now()))
                || old.served_by() != new.served_by()
        }) else {
            return;
        };
        let namespace = event.metadata().namespace.as_deref().unwrap_or_default();
        let has_claims = claims.as_ref().is_some_and(|claims| are_in(namespace, claims));
        if recount == Recount::Full && has_claims {
            notify(changed(device_claims(), namespace, recount));
        }
        notify(changed(P::resource(), namespace, recount));
    };
    InformerSet::new(build, handler)
}

/// Returns true if there are claims to devices in this namespace.
fn are_in(namespace: &str, claims: &Claims) -> bool {
    let cache = claims.get(&device_claims());
    cache.is_some_and(|it| !it.value().by_namespace.get(namespace).is_empty())
}

/// Follows claims to devices.
pub(super) fn claims(
    options: &CacheOptions,
    mapping: Arc<RwLock<Arc<DeviceClassMapping>>>,
    notify: &Notify,
) -> Claims {
    let build = informer::<DeviceClaim>(options);
    let build = move |resource: &GroupVersionResource| {
        let informer = build(resource).build();
        let by_namespace = informer.index_by_metadata(namespace_of);
        let by_pod = informer.index(|claim: &DeviceClaim| {
            claim.claim.extended_resource_owner().map(|owner| owner.uid.to_string())
        });
        (informer, ClaimIndices { by_namespace, by_pod })
    };
    let (notify, clock) = (Arc::clone(notify), options.clock);
    let unfit = Unfit::new();
    let handler = move |_: &GroupVersionResource, event: SetEvent<DeviceClaim>| {
        let SetEvent::Object(event) = event else {
            return notify(Notice::Synced(device_claims()));
        };
        let fits_again = unfit.note(&event);
        let classes = Arc::clone(&mapping.read());
        let charge = |it: &DeviceClaim| -> Charge { resource_claim_charge(&it.claim, &*classes) };
        // The pod decides about an exemption, in the same way for both versions if its owner stays.
        let differs = |old: &DeviceClaim, new: &DeviceClaim| {
            fits_again
                || charge(old).needs_recount(&charge(new), clock.now())
                || old.claim.extended_resource_owner() != new.claim.extended_resource_owner()
        };
        if let Some(recount) = recount_of(&event, differs) {
            let namespace = event.metadata().namespace.as_deref().unwrap_or_default();
            notify(changed(device_claims(), namespace, recount));
        }
    };
    InformerSet::new(build, handler)
}

/// Follows device classes, and keeps the mapping up to date.
pub(super) fn classes(
    options: &CacheOptions,
    mapping: Arc<RwLock<Arc<DeviceClassMapping>>>,
    notify: &Notify,
) -> InformerSet<CachedClass> {
    let build = informer::<CachedClass>(options);
    let build = move |resource: &GroupVersionResource| (build(resource).build(), ());
    let notify = Arc::clone(notify);
    let handler = move |_: &GroupVersionResource, event: SetEvent<CachedClass>| {
        let SetEvent::Object(event) = event else {
            return notify(Notice::Synced(device_classes()));
        };
        let affected = {
            let mut mapping = mapping.write();
            let classes = Arc::make_mut(&mut mapping);
            match &event {
                Event::Added { object, .. } => classes.apply(&object.class),
                Event::Updated { new, .. } => classes.apply(&new.class),
                // An unreadable class keeps its last mapping.
                Event::Opaque { .. } => BTreeSet::new(),
                _ => classes.remove(event.key().name()),
            }
        };
        if !affected.is_empty() {
            notify(Notice::Mapped(affected));
        }
    };
    InformerSet::new(build, handler)
}

/// Follows resources of which only the number of objects matters.
pub(super) fn counters(options: &CacheOptions, notify: &Notify) -> Members<Counted> {
    let build = informer::<Counted>(options);
    let build = move |resource: &GroupVersionResource| {
        let informer = build(resource).build();
        let index = informer.index_by_metadata(namespace_of);
        (informer, index)
    };
    let notify = Arc::clone(notify);
    let handler = move |resource: &GroupVersionResource, event: SetEvent<Counted>| {
        let resource = GroupResource::new(resource.group.clone(), resource.resource.clone());
        let SetEvent::Object(event) = event else {
            return notify(Notice::Synced(resource));
        };
        if let Some(recount) = recount_of(&event, |_, _| false) {
            let namespace = event.metadata().namespace.as_deref().unwrap_or_default();
            notify(changed(resource, namespace, recount));
        }
    };
    InformerSet::new(build, handler)
}

fn changed(resource: GroupResource, namespace: &str, recount: Recount) -> Notice {
    Notice::Changed(Change { resource, namespace: namespace.into() }, recount)
}

/// Returns the recount that an event asks for: none for the initial list, one that only raises for
/// an addition, and a full one for a deletion and for an update by which a charge `differs`.
fn recount_of<K: Object>(
    event: &Event<K>,
    differs: impl FnOnce(&K, &K) -> bool,
) -> Option<Recount> {
    match event {
        Event::Added { initial: true, .. } => None,
        Event::Added { .. } => Some(Recount::RaiseOnly),
        Event::Updated { old, new } => differs(old, new).then_some(Recount::Full),
        _ => Some(Recount::Full),
    }
}
