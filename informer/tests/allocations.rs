//! A lookup in the cache copies no key and no object.

use std::alloc::System;
use std::collections::BTreeMap;
use std::sync::Arc;

use homeostat_informer::testing::Store;
use homeostat_informer::{ObjectKey, ObjectMeta};
use k8s_openapi::api::core::v1::Pod;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Returns the number of allocations in one `round`: the minimum of five, because other threads of
/// this process may allocate, too.
fn allocations(mut round: impl FnMut()) -> usize {
    let measured = (0..5).map(|_| {
        let region = Region::new(ALLOCATOR);
        round();
        let change = region.change();
        change.allocations + change.reallocations
    });
    measured.min().expect("five rounds")
}

fn pod(name: &str, version: u32) -> Arc<Pod> {
    let metadata = ObjectMeta {
        name: Some(name.into()),
        namespace: Some("n".into()),
        uid: Some(name.into()),
        resource_version: Some(version.to_string()),
        labels: Some(BTreeMap::from([("app".into(), "web".into())])),
        ..ObjectMeta::default()
    };
    Arc::new(Pod { metadata, ..Pod::default() })
}

#[test]
fn lookups_allocate_only_their_result() {
    let store = Store::<Pod>::new();
    let names: Vec<_> = (0..1000).map(|number| format!("pod-{number}")).collect();
    let cache = store.lister();
    let by_name = store.index_by_metadata(|metadata| metadata.name.clone());
    for name in &names {
        store.apply(pod(name, 1));
    }
    assert_eq!(cache.list_in("n").len(), 1000);
    let key = ObjectKey::<Pod>::namespaced("n", "pod-7");
    let get = allocations(|| {
        for name in &names {
            assert!(cache.get(("n", name.as_str())).is_some());
            assert!(cache.get_with(("n", name.as_str()), |pod| pod.spec.is_none()).is_some());
        }
        assert!(cache.get(&key).is_some() && cache.get("pod-7").is_none());
        assert!(cache.opaque(&key).is_none());
    });
    assert_eq!(get, 0, "by key");
    let nothing = allocations(|| assert!(by_name.get("unknown").is_empty()));
    assert_eq!(nothing, 0, "by an unknown value");
    let indexed = allocations(|| {
        for name in &names {
            assert_eq!(by_name.get(name.as_str()).len(), 1);
        }
    });
    assert_eq!(indexed, 0, "a list of one chunk");
    let scanned = allocations(|| assert_eq!(cache.list().iter().count(), 1000));
    assert_eq!(scanned, 1, "one pointer per 128 objects");
    let updates: Vec<_> = names.iter().map(|name| pod(name, 2)).collect();
    let region = Region::new(ALLOCATOR);
    for update in updates {
        store.apply(update);
    }
    let change = region.change();
    let each = (change.allocations + change.reallocations).div_ceil(names.len());
    assert!(each <= 8, "{each} allocations per update with two indices");
}
