//! Sources of keys: predicates, resyncs, timers, handles from outside, keys of several kinds, and a
//! second queue.

use std::fmt;
use std::future::ready;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use homeostat::informer::testing::{ScriptedListWatch, Store};
use homeostat::informer::{Dynamic, SharedIndexInformer};
use homeostat::owner::OwnerKind;
use homeostat::testing::OwnedEventsTest;
use homeostat::{
    Action, AnyOwner, Controller, Event, KeySource, Manager, ObjectKey, Target, Watch, predicate,
};
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use tokio::time::sleep;

use super::support::{
    Cluster, Foo, Script, Zone, config_map, foo, no_factory, owned_by, recorder, zone,
};

/// A key of one of two kinds.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum EitherKey {
    Foo(ObjectKey<Foo>),
    Zone(ObjectKey<Zone>),
}

impl fmt::Display for EitherKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Foo(key) => write!(f, "foo:{key}"),
            Self::Zone(key) => write!(f, "zone:{key}"),
        }
    }
}

impl Target for EitherKey {
    type Key = Self;
}

fn generation(mut object: Foo, generation: i64) -> Foo {
    object.metadata.generation = Some(generation);
    object
}

#[tokio::test(start_paused = true)]
async fn update_that_fails_the_predicate_is_not_reconciled() {
    let foos = Script::new([generation(foo("web", "1"), 1)]);
    let (reconciler, seen) = recorder(|_| ready(Ok(Action::AwaitChange)));
    let watch = Watch::of(&foos.informer).updated_if(predicate::generation_changed);
    let controller = Controller::builder("foo", watch).build(reconciler);
    let story = async {
        sleep(Duration::from_secs(1)).await;
        foos.apply(generation(foo("web", "1"), 1));
        sleep(Duration::from_secs(1)).await;
        assert_eq!(seen.lines(), ["ns/web listed"]);
        foos.apply(generation(foo("web", "1"), 2));
        sleep(Duration::from_secs(1)).await;
        foos.delete("web");
        sleep(Duration::from_secs(1)).await;
    };
    Manager::new(no_factory()).with(controller).run_until(story).await.unwrap();
    assert_eq!(seen.lines(), ["ns/web listed", "ns/web updated", "ns/web deleted"]);
}

#[tokio::test(start_paused = true)]
async fn resync_passes_the_predicate_of_updates() {
    let foos = Script::new([generation(foo("web", "1"), 1)]);
    let (reconciler, seen) = recorder(|_| ready(Ok(Action::AwaitChange)));
    let watch = Watch::of(&foos.informer)
        .updated_if(predicate::generation_changed)
        .resync(Duration::from_secs(60));
    let controller = Controller::builder("foo", watch).build(reconciler);
    let manager = Manager::new(no_factory()).with(controller);
    manager.run_until(sleep(Duration::from_secs(150))).await.unwrap();
    assert_eq!(seen.lines(), ["ns/web listed", "ns/web updated", "ns/web updated"]);
}

#[tokio::test(start_paused = true)]
async fn owned_and_watched_objects_have_predicates_too() {
    let web = foo("web", "1");
    let cluster = Cluster::new([web.clone()]);
    let zones = Script::<Zone>::new([]);
    let (reconciler, seen) = recorder(|_| ready(Ok(Action::AwaitChange)));
    let named = |name: &'static str| {
        move |event: &Event<ConfigMap>| event.metadata().name.as_deref() == Some(name)
    };
    let controller = Controller::builder("foo", &cluster.foos.informer)
        .owns(Watch::of(&cluster.maps.informer).when(named("yes")))
        .watches(Watch::of(&zones.informer).when(|_| false), |_, enqueue| {
            enqueue.add(ObjectKey::namespaced("ns", "zoned"));
        })
        .build(reconciler);
    let story = async {
        sleep(Duration::from_secs(1)).await;
        cluster.maps.apply(owned_by(&web, config_map("no")));
        zones.apply(zone("north", "z"));
        sleep(Duration::from_secs(1)).await;
        assert_eq!(seen.lines(), ["ns/web listed"]);
        cluster.maps.apply(owned_by(&web, config_map("yes")));
        sleep(Duration::from_secs(1)).await;
    };
    Manager::new(no_factory()).with(controller).run_until(story).await.unwrap();
    assert_eq!(seen.lines(), ["ns/web listed", "ns/web configmaps added"]);
}

#[tokio::test(start_paused = true)]
async fn every_owner_is_enqueued_if_asked_for() {
    let foos = Store::<Foo>::new();
    foos.apply(foo("web", "1"));
    foos.apply(foo("db", "2"));
    let reference = |name: &str, uid: &str| OwnerReference {
        controller: None,
        ..homeostat::owner::controller_reference(&foo(name, uid)).unwrap()
    };
    let mut map = config_map("shared");
    map.metadata.owner_references = Some(vec![reference("web", "1"), reference("db", "2")]);
    let event = Event::Added { object: Arc::new(map), initial: false };
    let mut test = OwnedEventsTest::new(foos.lister(), None, AnyOwner);
    let keys = test.deliver(event).into_iter().map(|(key, _)| key.to_string());
    assert_eq!(keys.collect::<Vec<_>>(), ["ns/web", "ns/db"]);
}

#[tokio::test(start_paused = true)]
async fn owner_of_a_dynamic_kind_is_enqueued() {
    let server = ScriptedListWatch::<Dynamic>::new();
    let widgets = SharedIndexInformer::builder(server.clone()).name("widgets").build();
    let maps = Script::<ConfigMap>::new([]);
    let (reconciler, seen) = recorder(|_| ready(Ok(Action::AwaitChange)));
    let kind = OwnerKind::new("example.com", "Widget");
    let controller = Controller::builder("widget", &widgets)
        .owns_as(kind, &maps.informer, AnyOwner)
        .build(reconciler);
    let mut map = config_map("part");
    map.metadata.owner_references = Some(vec![OwnerReference {
        api_version: "example.com/v1".into(),
        kind: "Widget".into(),
        name: "w".into(),
        uid: "7".into(),
        ..OwnerReference::default()
    }]);
    let story = async {
        let widget =
            r#"{"metadata":{"name":"w","namespace":"ns","uid":"7","resourceVersion":"1"}}"#;
        let widget: Dynamic = serde_json::from_str(widget).unwrap();
        let _watch = server.expect_watch().await.serve([widget], "1");
        sleep(Duration::from_secs(1)).await;
        maps.apply(map);
        sleep(Duration::from_secs(1)).await;
    };
    Manager::new(no_factory()).with(controller).run_until(story).await.unwrap();
    assert_eq!(seen.lines(), ["ns/w listed", "ns/w configmaps added"]);
}

#[tokio::test(start_paused = true)]
async fn key_from_outside_is_reconciled_also_if_it_came_before_the_controller() {
    let foos = Script::<Foo>::new([]);
    let (reconciler, seen) = recorder(|_| ready(Ok(Action::AwaitChange)));
    let source = KeySource::<Foo>::new("webhook");
    source.add(ObjectKey::namespaced("ns", "early"));
    let controller = Controller::builder("foo", &foos.informer).source(&source).build(reconciler);
    let story = async {
        sleep(Duration::from_secs(1)).await;
        assert_eq!(seen.lines(), ["ns/early source webhook"]);
        source.add(ObjectKey::namespaced("ns", "now"));
        source.clone().add_after(ObjectKey::namespaced("ns", "later"), Duration::from_secs(60));
        sleep(Duration::from_secs(30)).await;
        assert_eq!(seen.keys()[1..], ["ns/now"]);
        sleep(Duration::from_secs(60)).await;
    };
    Manager::new(no_factory()).with(controller).run_until(story).await.unwrap();
    assert_eq!(seen.keys()[1..], ["ns/now", "ns/later"]);
}

#[tokio::test(start_paused = true)]
async fn timer_enqueues_in_each_period_and_survives_its_panic() {
    let foos = Script::<Foo>::new([]);
    let (reconciler, seen) = recorder(|_| ready(Ok(Action::AwaitChange)));
    let calls = AtomicUsize::new(0);
    let controller = Controller::builder("foo", &foos.informer)
        .every(Duration::from_secs(60), move |enqueue| {
            assert_ne!(calls.fetch_add(1, Ordering::Relaxed), 1, "the second call panics");
            enqueue.add(ObjectKey::namespaced("ns", "all"));
        })
        .build(reconciler);
    let manager = Manager::new(no_factory()).with(controller);
    manager.run_until(sleep(Duration::from_secs(200))).await.unwrap();
    assert_eq!(seen.lines(), ["ns/all timer", "ns/all timer"]);
}

#[tokio::test(start_paused = true)]
async fn longest_period_of_a_timer_is_accepted() {
    let foos = Script::new([foo("web", "1")]);
    let (reconciler, seen) = recorder(|_| ready(Ok(Action::AwaitChange)));
    let controller = Controller::builder("foo", &foos.informer)
        .every(Duration::MAX, |_| panic!("not in this test"))
        .build(reconciler);
    let manager = Manager::new(no_factory()).with(controller);
    manager.run_until(sleep(Duration::from_secs(200))).await.unwrap();
    assert_eq!(seen.keys(), ["ns/web"]);
}

#[tokio::test(start_paused = true)]
async fn one_queue_holds_keys_of_several_kinds() {
    let (foos, zones) = (Script::new([foo("web", "1")]), Script::new([zone("north", "z")]));
    let (reconciler, seen) = recorder(|_| ready(Ok(Action::AwaitChange)));
    let controller = Controller::for_keys::<EitherKey>("either")
        .watches(&foos.informer, |event, enqueue| enqueue.add(EitherKey::Foo(event.key())))
        .watches(&zones.informer, |event, enqueue| enqueue.add(EitherKey::Zone(event.key())))
        .workers(2)
        .build(reconciler);
    let manager = Manager::new(no_factory()).with(controller);
    manager.run_until(sleep(Duration::from_secs(1))).await.unwrap();
    assert_eq!(seen.sorted_keys(), ["foo:ns/web", "zone:north"]);
}

#[tokio::test(start_paused = true)]
async fn owner_of_a_changed_object_is_enqueued_under_its_key() {
    let (foos, maps) = (Script::new([foo("web", "1"), foo("db", "2")]), Script::new([]));
    let (reconciler, seen) = recorder(|_| ready(Ok(Action::AwaitChange)));
    let controller = Controller::for_keys::<EitherKey>("either")
        .owns(&foos.informer, &maps.informer, EitherKey::Foo)
        .watches(&foos.informer, |event, enqueue| enqueue.add(EitherKey::Foo(event.key())))
        .build(reconciler);
    let story = async {
        sleep(Duration::from_secs(1)).await;
        for (owner, keys) in [
            (foo("web", "1"), &["foo:ns/web"][..]),
            (foo("db", "2"), &["foo:ns/db", "foo:ns/web"]),
            (foo("db", "another uid"), &["foo:ns/db"]),
        ] {
            seen.clear();
            maps.apply(owned_by(&owner, config_map("a")));
            sleep(Duration::from_secs(1)).await;
            assert_eq!(seen.sorted_keys(), keys);
        }
    };
    Manager::new(no_factory()).with(controller).run_until(story).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn second_queue_has_workers_of_its_own() {
    let foos = Script::new(["a", "b", "c"].map(|name| foo(name, name)));
    let (reconciler, seen) = recorder(|_| async {
        sleep(Duration::from_secs(5)).await;
        Ok(Action::AwaitChange)
    });
    let controller = Controller::builder("foo", &foos.informer)
        .primary(|event, enqueue| match event.key().name() {
            "urgent" => enqueue.to_second_queue().add(event.key()),
            _ => enqueue.add(event.key()),
        })
        .second_queue("urgent foos", 1)
        .build(reconciler);
    let story = async {
        sleep(Duration::from_secs(1)).await;
        foos.apply(foo("urgent", "u"));
        sleep(Duration::from_secs(1)).await;
        assert_eq!(seen.keys(), ["ns/a", "ns/urgent"]);
    };
    Manager::new(no_factory()).with(controller).run_until(story).await.unwrap();
    assert_eq!(seen.keys().len(), 4, "both queues are drained");
}

#[tokio::test(start_paused = true)]
async fn key_of_two_queues_is_in_one_workers_hands() {
    // The shutdown comes after both reconciles, or during the first one.
    for seconds in [60, 5] {
        reconcile_a_key_of_two_queues(Duration::from_secs(seconds)).await;
    }
}

async fn reconcile_a_key_of_two_queues(shutdown_after: Duration) {
    let foos = Script::new([foo("web", "1")]);
    let running = Arc::new(AtomicUsize::new(0));
    let (reconciler, seen) = recorder(move |_| {
        let running = Arc::clone(&running);
        async move {
            assert_eq!(running.fetch_add(1, Ordering::SeqCst), 0, "the key has two workers");
            sleep(Duration::from_secs(10)).await;
            running.fetch_sub(1, Ordering::SeqCst);
            Ok(Action::AwaitChange)
        }
    });
    let controller = Controller::builder("foo", &foos.informer)
        .primary(|event, enqueue| {
            enqueue.add(event.key());
            enqueue.to_second_queue().add(event.key());
        })
        .second_queue("urgent foos", 1)
        .build(reconciler);
    let manager = Manager::new(no_factory()).with(controller);
    manager.run_until(sleep(shutdown_after)).await.unwrap();
    assert_eq!(seen.lines(), ["ns/web listed", "ns/web listed"]);
}

#[test]
fn controller_of_a_running_informer_is_built_outside_of_a_runtime() {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_time().start_paused(true).build().unwrap();
    let foos = runtime.block_on(async {
        let foos = Script::new([foo("web", "1")]);
        foos.informer.start();
        assert!(foos.informer.wait_for_sync().await);
        foos
    });
    let (reconciler, seen) = recorder(|_| ready(Ok(Action::AwaitChange)));
    let controller = Controller::builder("foo", &foos.informer).build(reconciler);
    runtime.block_on(async {
        let manager = Manager::new(no_factory()).with(controller);
        manager.run_until(sleep(Duration::from_secs(1))).await.unwrap();
    });
    assert_eq!(seen.lines(), ["ns/web listed"]);
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "feeds another controller already")]
async fn source_of_two_controllers_panics() {
    let foos = Script::<Foo>::new([]);
    let source = KeySource::<Foo>::new("webhook");
    for name in ["one", "two"] {
        let (reconciler, _) = recorder(|_| ready(Ok(Action::AwaitChange)));
        drop(Controller::builder(name, &foos.informer).source(&source).build(reconciler));
    }
}
