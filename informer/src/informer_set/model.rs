//! Compares an [`InformerSet`] with a model: random changes of a served collection and of the list.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use homeostat_core::{Random, user_code};
use parking_lot::Mutex;
use tokio::task::JoinSet;

use super::tests::{gvr, thing};
use super::*;
use crate::object::Metadata;
use crate::testing::{ScriptedListWatch, ScriptedRequest, ScriptedWatch};
use k8s_openapi::api::core::v1::Pod;

type Thing = Metadata<Pod>;

/// The collection: name to uid and version. All API versions serve the same objects.
#[derive(Default)]
struct Collection {
    objects: BTreeMap<String, (String, u64)>,
    version: u64,
    watches: Vec<ScriptedWatch<Thing>>,
}

/// The objects as the handler knows them.
type Known = BTreeMap<String, (String, u64)>;

impl Collection {
    fn all(&self) -> Vec<Thing> {
        self.objects.iter().map(|(name, (uid, version))| thing(name, uid, *version)).collect()
    }

    fn change(&mut self, random: &mut Random) {
        self.version += 1;
        let name = format!("n{}", random.below(6));
        let version = self.version;
        match self.objects.get_mut(&name) {
            Some(_) if random.below(3) == 0 => {
                let (uid, _) = self.objects.remove(&name).unwrap_or_default();
                self.watches.iter().for_each(|it| it.delete(thing(&name, &uid, version)));
            }
            Some(object) => {
                object.1 = version;
                let uid = object.0.clone();
                self.watches.iter().for_each(|it| it.apply(thing(&name, &uid, version)));
            }
            None => {
                let uid = format!("u{version}");
                self.objects.insert(name.clone(), (uid.clone(), version));
                self.watches.iter().for_each(|it| it.apply(thing(&name, &uid, version)));
            }
        }
    }
}

async fn serve(server: ScriptedListWatch<Thing>, collection: Arc<Mutex<Collection>>) {
    loop {
        let request = server.next_request().await;
        tokio::time::sleep(Duration::from_millis(20)).await;
        let mut now = collection.lock();
        let version = now.version.to_string();
        match request {
            ScriptedRequest::List(list) => list.serve(now.all(), &version),
            ScriptedRequest::Watch(watch) => {
                // A torn watch resumes with a fresh list: the model has no history.
                if watch.request().resource_version.is_some() {
                    watch.refuse(crate::list_watch::ApiError::new(410, "Expired", "too old"));
                } else {
                    let watch = watch.serve(now.all(), &version);
                    now.watches.push(watch);
                }
            }
        }
    }
}

/// Applies an event to the known objects, and checks that it is valid after them.
fn record(known: &mut Known, event: &Event<Thing>) {
    let key = event.key().name().to_owned();
    let state = |it: &Thing| {
        let metadata = it.metadata();
        let version = metadata.resource_version.as_deref().unwrap_or_default();
        (metadata.uid.clone().unwrap_or_default(), version.parse().unwrap_or_default())
    };
    match event {
        Event::Added { object, .. } => {
            assert_eq!(known.insert(key, state(object)), None, "added twice");
        }
        Event::Updated { old, new } => {
            let (old, new) = (state(old), state(new));
            assert_eq!(old.0, new.0, "another object");
            assert_eq!(known.insert(key, new), Some(old), "updates what the handler knows");
        }
        Event::Deleted { last_known, .. } => {
            let former = known.remove(&key).map(|it| it.0);
            assert_eq!(former, Some(state(last_known).0), "deletes what the handler knows");
        }
        Event::Opaque { .. } | Event::OpaqueDeleted { .. } => panic!("every object fits"),
    }
}

async fn run(seed: u64) -> (usize, usize) {
    let mut random = Random::new(Some(seed));
    let collection: Arc<Mutex<Collection>> = Arc::default();
    collection.lock().version = 1;
    let (known, faults): (Arc<Mutex<Known>>, Arc<Mutex<Vec<String>>>) = Default::default();
    let servers: Vec<_> = (0..3).map(|_| ScriptedListWatch::<Thing>::new()).collect();
    let mut serving = JoinSet::new();
    for server in &servers {
        serving.spawn(serve(server.clone(), Arc::clone(&collection)));
    }
    let (view, log) = (Arc::clone(&known), Arc::clone(&faults));
    let set = InformerSet::new(
        move |resource: &GroupVersionResource| {
            let number: usize = resource.version[1..].parse().unwrap_or_default();
            (SharedIndexInformer::builder(servers[number].clone()).seed(seed).build(), ())
        },
        move |_, event: SetEvent<Thing>| {
            let SetEvent::Object(event) = event else { return };
            let valid = user_code("check", || record(&mut view.lock(), &event))
                .map_err(|it| it.to_string());
            log.lock().extend(valid.err());
        },
    );
    set.follow([gvr("v0")]);
    let (mut switches, mut restarts) = (0, 0);
    for _ in 0..60 {
        match random.below(10) {
            0 | 1 => {
                switches += 1;
                set.follow([gvr(&format!("v{}", random.below(3)))]);
            }
            2 if random.below(3) == 0 => {
                restarts += 1;
                set.follow([]);
                // The end of a resource is no deletion: the next informer lists it again.
                tokio::time::sleep(Duration::from_secs(1)).await;
                known.lock().clear();
                set.follow([gvr("v0")]);
            }
            3 => {
                let torn = collection.lock().watches.pop();
                drop(torn);
            }
            _ => collection.lock().change(&mut random),
        }
        tokio::time::sleep(Duration::from_millis(random.below(60))).await;
    }
    tokio::time::sleep(Duration::from_secs(120)).await;
    assert_eq!(*faults.lock(), Vec::<String>::new(), "seed {seed}");
    assert_eq!(*known.lock(), collection.lock().objects, "seed {seed}: the handler's view");
    let present = set.get(&GroupResource::new("example.com", "things")).expect("it has synced");
    assert_eq!(present.informer().lister().len(), known.lock().len(), "seed {seed}: the cache");
    assert!(set.unsynced().is_empty(), "seed {seed}");
    set.stop().await;
    serving.abort_all();
    (switches, restarts)
}

#[test]
fn handler_and_cache_agree_with_the_model_after_any_changes() {
    let (mut switches, mut restarts) = (0, 0);
    for seed in 0..40 {
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.enable_time().start_paused(true).build().expect("a runtime");
        let (more_switches, more_restarts) = runtime.block_on(run(seed));
        switches += more_switches;
        restarts += more_restarts;
    }
    assert!(switches > 200 && restarts > 20, "{switches} switches, {restarts} restarts");
}
