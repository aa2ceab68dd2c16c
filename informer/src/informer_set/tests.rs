use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::*;
use crate::list_watch::ApiError;
use crate::object::{Metadata, ObjectMeta};
use crate::testing::{ScriptedListWatch, ScriptedWatch};
use k8s_openapi::api::core::v1::Pod;

type Thing = Metadata<Pod>;
type Server = ScriptedListWatch<Thing>;

pub(super) fn thing(name: &str, uid: &str, version: u64) -> Thing {
    Thing::from(ObjectMeta {
        name: Some(name.to_owned()),
        uid: Some(uid.to_owned()),
        resource_version: Some(version.to_string()),
        ..ObjectMeta::default()
    })
}

pub(super) fn gvr(version: &str) -> GroupVersionResource {
    GroupVersionResource::gvr("example.com", version, "things")
}

fn things() -> GroupResource {
    GroupResource::new("example.com", "things")
}

/// A set, a server per resource and version, and the lines that the handler has received.
struct Scene {
    set: InformerSet<Thing>,
    servers: Arc<Mutex<BTreeMap<String, Server>>>,
    lines: Arc<Mutex<Vec<String>>>,
}

/// Returns one line for an event.
pub(super) fn line(resource: &GroupVersionResource, event: &SetEvent<Thing>) -> String {
    let version = |it: &Thing| it.metadata().resource_version.clone().unwrap_or_default();
    let event = match event {
        SetEvent::Synced => return format!("{} synced", resource.version),
        SetEvent::Object(event) => event,
    };
    let text = match event {
        Event::Added { object, initial: true } => format!("listed at {}", version(object)),
        Event::Added { object, .. } => format!("added at {}", version(object)),
        Event::Updated { old, new } => format!("updated {} to {}", version(old), version(new)),
        Event::Deleted { last_known, certain } => {
            format!("deleted at {} ({certain})", version(last_known))
        }
        Event::Opaque { last_known, .. } => format!("opaque ({})", last_known.is_some()),
        Event::OpaqueDeleted { .. } => "opaque deleted".to_owned(),
    };
    format!("{} {} {text}", resource.version, event.key().name())
}

impl Scene {
    fn new() -> Self {
        let servers: Arc<Mutex<BTreeMap<String, Server>>> = Arc::default();
        let lines: Arc<Mutex<Vec<String>>> = Arc::default();
        let (of, log) = (Arc::clone(&servers), Arc::clone(&lines));
        let build = move |resource: &GroupVersionResource| {
            let name = format!("{}/{}", resource.resource, resource.version);
            let server = of.lock().entry(name.clone()).or_default().clone();
            (SharedIndexInformer::builder(server).name(name).seed(1).build(), ())
        };
        let set = InformerSet::new(build, move |resource: &GroupVersionResource, event| {
            log.lock().push(line(resource, &event));
        });
        Self { set, servers, lines }
    }

    fn server(&self, resource: &str, version: &str) -> Server {
        let name = format!("{resource}/{version}");
        self.servers.lock().entry(name).or_default().clone()
    }

    /// Waits until the handler has received `count` lines since the last call.
    async fn lines(&self, count: usize) -> Vec<String> {
        let enough = async {
            while self.lines.lock().len() < count {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        let in_time = timeout(Duration::from_secs(60), enough).await;
        let lines = std::mem::take(&mut *self.lines.lock());
        assert!(in_time.is_ok(), "expected {count} lines, got {lines:?}");
        lines
    }

    async fn serve(&self, version: &str, objects: Vec<Thing>, at: &str) -> ScriptedWatch<Thing> {
        self.server("things", version).expect_watch().await.serve(objects, at)
    }
}

#[tokio::test(start_paused = true)]
async fn resource_of_the_list_is_followed_and_stopped_with_its_tasks() {
    let scene = Scene::new();
    scene.set.follow([gvr("v1")]);
    assert!(scene.set.get(&things()).is_none(), "not synced yet");
    let watch = scene.serve("v1", vec![thing("a", "1", 3)], "5").await;
    assert_eq!(scene.lines(2).await, ["v1 a listed at 3", "v1 synced"]);
    let followed = scene.set.get(&things()).unwrap();
    assert_eq!(followed.informer().lister().len(), 1);
    watch.apply(thing("b", "2", 6));
    assert_eq!(scene.lines(1).await, ["v1 b added at 6"]);

    scene.set.follow([]);
    assert!(scene.set.get(&things()).is_none());
    timeout(Duration::from_secs(60), followed.informer().wait_for_stop()).await.unwrap().unwrap();
    drop(followed);
    scene.set.stop().await;
    assert!(scene.lines(0).await.is_empty(), "a resource that leaves deletes no object");
}

#[tokio::test(start_paused = true)]
async fn changed_version_keeps_the_cache_until_the_new_informer_has_synced() {
    let scene = Scene::new();
    scene.set.follow([gvr("v1")]);
    let objects = vec![thing("a", "1", 1), thing("b", "2", 2), thing("c", "3", 3)];
    let old = scene.serve("v1", objects, "5").await;
    scene.lines(4).await;
    scene.set.follow([gvr("v2")]);
    let request = scene.server("things", "v2").expect_watch().await;
    let unsynced = scene.set.unsynced();
    assert_eq!(unsynced.len(), 1);
    assert!(unsynced[0].has_former_cache && unsynced[0].resource == gvr("v2"));
    old.apply(thing("d", "4", 6));
    assert_eq!(scene.lines(1).await, ["v1 d added at 6"], "the former version still delivers");
    assert_eq!(scene.set.get(&things()).unwrap().informer().lister().len(), 4);

    // b was deleted, c changed, d is another object of this name, e is new.
    let objects = [thing("a", "1", 1), thing("c", "3", 7), thing("d", "9", 8), thing("e", "5", 9)];
    let new = request.serve(objects, "10");
    let mut lines = scene.lines(6).await;
    assert_eq!(lines.pop().unwrap(), "v2 synced");
    lines.sort();
    assert_eq!(
        lines,
        [
            "v2 b deleted at 2 (false)",
            "v2 c updated 3 to 7",
            "v2 d added at 8",
            "v2 d deleted at 6 (false)",
            "v2 e added at 9",
        ]
    );
    new.delete(thing("a", "1", 11));
    assert_eq!(scene.lines(1).await, ["v2 a deleted at 11 (true)"]);
    assert_eq!(scene.set.get(&things()).unwrap().resource().version, "v2");
    scene.set.stop().await;
}

#[tokio::test(start_paused = true)]
async fn missing_objects_are_deleted_in_the_order_of_their_keys() {
    let scene = Scene::new();
    scene.set.follow([gvr("v1")]);
    let names: Vec<_> = ('a'..='z').map(String::from).collect();
    let objects = names.iter().map(|name| thing(name, name, 1)).collect();
    let old = scene.serve("v1", objects, "5").await;
    scene.lines(27).await;
    scene.set.follow([gvr("v2")]);
    let new = scene.serve("v2", Vec::new(), "6").await;
    let mut expected: Vec<_> =
        names.iter().map(|name| format!("v2 {name} deleted at 1 (false)")).collect();
    expected.push("v2 synced".to_owned());
    assert_eq!(scene.lines(27).await, expected, "the same order in every run");
    drop((old, new));
    scene.set.stop().await;
}

#[tokio::test(start_paused = true)]
async fn version_that_changes_back_leaves_the_present_informer() {
    let scene = Scene::new();
    scene.set.follow([gvr("v1")]);
    let watch = scene.serve("v1", vec![thing("a", "1", 1)], "5").await;
    scene.lines(2).await;
    scene.set.follow([gvr("v2")]);
    let pending = scene.server("things", "v2").expect_watch().await;
    scene.set.follow([gvr("v1")]);
    watch.apply(thing("a", "1", 6));
    assert_eq!(scene.lines(1).await, ["v1 a updated 1 to 6"]);
    drop(pending);
    assert!(scene.set.unsynced().is_empty());
    scene.set.stop().await;
}

#[tokio::test(start_paused = true)]
async fn refused_resource_delays_no_other_and_is_reported_with_the_reason() {
    let scene = Scene::new();
    let other = GroupVersionResource::gvr("", "v1", "secrets");
    scene.set.follow([gvr("v1"), other.clone()]);
    let refused = scene.server("things", "v1");
    let mut refusing = JoinSet::new();
    refusing.spawn(async move {
        loop {
            let error = ApiError::new(403, "Forbidden", "things is forbidden");
            match refused.next_request().await {
                crate::testing::ScriptedRequest::List(list) => list.refuse(error),
                crate::testing::ScriptedRequest::Watch(watch) => watch.refuse(error),
            }
        }
    });
    let _watch = scene.server("secrets", "v1").expect_watch().await.serve([], "1");
    assert_eq!(scene.lines(1).await, ["v1 synced"]);
    tokio::time::sleep(Duration::from_secs(5)).await;
    let unsynced = scene.set.unsynced();
    assert_eq!(unsynced.len(), 1);
    assert!(unsynced[0].to_string().contains("things is forbidden"), "{}", unsynced[0]);
    assert!(scene.set.get(&GroupResource::new("", "secrets")).is_some());
    scene.set.stop().await;
    refusing.abort_all();
}

#[tokio::test(start_paused = true)]
async fn followed_again_resource_is_listed_again() {
    let scene = Scene::new();
    scene.set.follow([gvr("v1")]);
    let first = scene.serve("v1", vec![thing("a", "1", 1)], "5").await;
    scene.lines(2).await;
    scene.set.follow([]);
    scene.set.follow([gvr("v1")]);
    let _second = scene.serve("v1", vec![thing("a", "1", 1)], "6").await;
    assert_eq!(scene.lines(2).await, ["v1 a listed at 1", "v1 synced"]);
    drop(first);
    scene.set.stop().await;
}

#[tokio::test(start_paused = true)]
async fn dropped_set_stops_its_informers() {
    let scene = Scene::new();
    scene.set.follow([gvr("v1")]);
    let _watch = scene.serve("v1", Vec::new(), "5").await;
    scene.lines(1).await;
    let informer = scene.set.get(&things()).unwrap().informer().clone();
    drop(scene);
    timeout(Duration::from_secs(60), informer.wait_for_stop()).await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn panics_of_the_handler_cost_one_event_each() {
    let server = Server::new();
    let (of, seen) = (server.clone(), Arc::new(Mutex::new(0)));
    let count = Arc::clone(&seen);
    let set = InformerSet::new(
        move |_| (SharedIndexInformer::builder(of.clone()).build(), ()),
        move |_, event: SetEvent<Thing>| {
            *count.lock() += 1;
            assert!(matches!(event, SetEvent::Synced), "a panic of the handler");
        },
    );
    set.follow([gvr("v1")]);
    let _watch = server.expect_watch().await.serve([thing("a", "1", 1), thing("b", "2", 2)], "5");
    while *seen.lock() < 3 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    set.stop().await;
    assert_eq!(*seen.lock(), 3);
}

#[tokio::test(start_paused = true)]
async fn builder_that_panics_is_called_again() {
    let server = Server::new();
    let (of, calls) = (server.clone(), Arc::new(Mutex::new(0)));
    let count = Arc::clone(&calls);
    let set = InformerSet::new(
        move |_| {
            *count.lock() += 1;
            assert!(*count.lock() > 1, "a panic of the builder");
            (SharedIndexInformer::builder(of.clone()).build(), ())
        },
        |_, _: SetEvent<Thing>| {},
    );
    set.follow([gvr("v1")]);
    let _watch = server.expect_watch().await.serve([], "5");
    assert_eq!(*calls.lock(), 2);
    set.stop().await;
}

#[tokio::test(start_paused = true)]
async fn version_that_changes_back_during_the_first_delivery_is_synced() {
    let servers: Arc<Mutex<BTreeMap<String, Server>>> = Arc::default();
    let lines: Arc<Mutex<Vec<String>>> = Arc::default();
    let set: Arc<std::sync::OnceLock<InformerSet<Thing>>> = Arc::default();
    let (of, log, own) = (Arc::clone(&servers), Arc::clone(&lines), Arc::clone(&set));
    let build = move |resource: &GroupVersionResource| {
        let server = of.lock().entry(resource.version.clone()).or_default().clone();
        (SharedIndexInformer::builder(server).build(), ())
    };
    let handler = move |resource: &GroupVersionResource, event| {
        if log.lock().is_empty() {
            own.get().unwrap().follow([gvr("v2")]);
        }
        log.lock().push(line(resource, &event));
    };
    assert!(set.set(InformerSet::new(build, handler)).is_ok());
    let server = |version: &str| servers.lock().entry(version.to_owned()).or_default().clone();
    let set = set.get().unwrap();
    set.follow([gvr("v1")]);
    let _watch = server("v1").expect_watch().await.serve([thing("a", "1", 1)], "5");
    let pending = server("v2").expect_watch().await;
    set.follow([gvr("v1")]);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(*lines.lock(), ["v1 a listed at 1", "v1 synced"]);
    drop(pending);
    set.stop().await;
}

#[tokio::test(start_paused = true)]
async fn informer_that_stops_is_replaced() {
    let scene = Scene::new();
    scene.set.follow([gvr("v1")]);
    let first = scene.serve("v1", vec![thing("a", "1", 1), thing("b", "2", 2)], "5").await;
    scene.lines(3).await;
    scene.set.get(&things()).unwrap().informer().stop().await;
    let server = scene.server("things", "v1");
    let request = timeout(Duration::from_secs(60), server.expect_watch()).await.unwrap();
    assert_eq!(scene.set.unsynced().len(), 1);
    let second = request.serve([thing("a", "1", 7)], "8");
    let mut lines = scene.lines(3).await;
    lines.sort();
    assert_eq!(lines, ["v1 a updated 1 to 7", "v1 b deleted at 2 (false)", "v1 synced"]);
    assert!(scene.set.unsynced().is_empty());
    second.apply(thing("c", "3", 9));
    assert_eq!(scene.lines(1).await, ["v1 c added at 9"]);
    drop(first);
    scene.set.stop().await;
}

#[tokio::test(start_paused = true)]
async fn list_may_be_computed_from_the_set_that_follows_it() {
    let scene = Scene::new();
    let own = scene.set.clone();
    let list = std::iter::once_with(move || {
        assert!(own.shared.slots.try_lock().is_some(), "the list is read under a lock");
        gvr("v1")
    });
    scene.set.follow(list);
    assert_eq!(scene.set.resources(), [gvr("v1")]);
    scene.set.stop().await;
}

/// A value whose drop panics.
struct Fragile;

impl Drop for Fragile {
    fn drop(&mut self) {
        assert!(std::thread::panicking(), "a panic of the value's drop");
    }
}

#[tokio::test(start_paused = true)]
async fn value_whose_drop_panics_does_not_end_its_resource() {
    let servers: Arc<Mutex<BTreeMap<String, Server>>> = Arc::default();
    let lines: Arc<Mutex<Vec<String>>> = Arc::default();
    let (of, log) = (Arc::clone(&servers), Arc::clone(&lines));
    let build = move |resource: &GroupVersionResource| {
        let server = of.lock().entry(resource.version.clone()).or_default().clone();
        (SharedIndexInformer::builder(server).build(), Fragile)
    };
    let set = InformerSet::new(build, move |resource: &GroupVersionResource, event| {
        log.lock().push(line(resource, &event));
    });
    let server = |version: &str| servers.lock().entry(version.to_owned()).or_default().clone();
    set.follow([gvr("v1")]);
    let first = server("v1").expect_watch().await.serve([thing("a", "1", 1)], "5");
    tokio::time::sleep(Duration::from_secs(1)).await;
    set.follow([gvr("v2")]);
    let second = server("v2").expect_watch().await.serve([thing("a", "1", 1)], "5");
    tokio::time::sleep(Duration::from_secs(1)).await;
    second.apply(thing("a", "1", 7));
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(
        *lines.lock(),
        ["v1 a listed at 1", "v1 synced", "v2 synced", "v2 a updated 1 to 7"]
    );
    drop(first);
    set.follow([]);
    set.stop().await;
}
