//! Whole controllers under a paused clock, over scripted servers: what asks for which keys, in
//! which order, and how it ends.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod endings;
mod manager;
mod outcomes;
mod own_writes;
mod sources;
mod support;

use std::future::{pending, ready};
use std::time::Duration;

use homeostat::expectations::UidTrackingExpectations;
use homeostat::workqueue::{FALLBACK_DELAY, RateLimiter};
use homeostat::{
    Action, ConsistencyStore, Controller, ControllerBuilder, Event, Manager, ObjectKey, Priorities,
    Readiness, RunError, Uid, group_resource,
};
use k8s_openapi::api::core::v1::ConfigMap;
use tokio::time::{Instant, sleep};

use self::support::{
    Cluster, Foo, Script, Seen, Zone, config_map, foo, no_factory, owned_by, recorder, zone,
};

/// Runs `controller` for `duration`, and then to the end.
async fn run_for(duration: Duration, controller: Controller) -> Result<(), RunError> {
    Manager::new(no_factory()).with(controller).run_until(sleep(duration)).await
}

#[tokio::test(start_paused = true)]
async fn custom_resource_is_reconciled_when_listed_changed_and_deleted() {
    let foos = Script::new([foo("web", "1")]);
    let (reconciler, seen) = recorder(|_| ready(Ok(Action::AwaitChange)));
    let controller = Controller::builder("foo", &foos.informer).build(reconciler);
    let story = async {
        sleep(Duration::from_secs(1)).await;
        foos.apply(foo("db", "2"));
        sleep(Duration::from_secs(1)).await;
        foos.apply(foo("web", "1"));
        sleep(Duration::from_secs(1)).await;
        foos.delete("web");
        sleep(Duration::from_secs(1)).await;
    };
    Manager::new(no_factory()).with(controller).run_until(story).await.unwrap();
    assert_eq!(seen.lines(), ["ns/web listed", "ns/db added", "ns/web updated", "ns/web deleted"]);
}

#[tokio::test(start_paused = true)]
async fn object_that_does_not_decode_is_not_reconciled_until_it_does_or_is_deleted() {
    let web = foo("web", "1");
    let cluster = Cluster::new([web.clone()]);
    let (reconciler, seen) = recorder(|_| ready(Ok(Action::AwaitChange)));
    let controller = cluster.controller().build(reconciler);
    let story = async {
        sleep(Duration::from_secs(1)).await;
        seen.clear();
        cluster.foos.spoil("web");
        sleep(Duration::from_secs(1)).await;
        cluster.maps.apply(owned_by(&web, config_map("a")));
        sleep(Duration::from_secs(1)).await;
        assert_eq!(seen.lines(), [""; 0]);
        cluster.foos.apply(web.clone());
        sleep(Duration::from_secs(1)).await;
        assert_eq!(seen.keys(), ["ns/web"]);
        cluster.foos.spoil("web");
        sleep(Duration::from_secs(1)).await;
        cluster.foos.delete("web");
        sleep(Duration::from_secs(1)).await;
        assert_eq!(seen.keys(), ["ns/web", "ns/web"]);
    };
    Manager::new(no_factory()).with(controller).run_until(story).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn cluster_scoped_primary_owns_namespaced_objects() {
    let zones = Script::new([zone("north", "z1")]);
    let maps = Script::new([]);
    let (reconciler, seen) = recorder(|_| ready(Ok(Action::AwaitChange)));
    let controller =
        Controller::builder("zone", &zones.informer).owns(&maps.informer).build(reconciler);
    let story = async {
        sleep(Duration::from_secs(1)).await;
        maps.apply(owned_by(&zone("north", "z1"), config_map("a")));
        sleep(Duration::from_secs(1)).await;
    };
    Manager::new(no_factory()).with(controller).run_until(story).await.unwrap();
    assert_eq!(seen.lines(), ["north listed", &format!("north {} added", maps.name())]);
}

#[tokio::test(start_paused = true)]
async fn owner_is_found_by_kind_group_name_and_uid() {
    let cluster = Cluster::new([foo("web", "1"), foo("db", "2")]);
    let (reconciler, seen) = recorder(|_| ready(Ok(Action::AwaitChange)));
    let controller = cluster.controller().build(reconciler);
    let story = async {
        sleep(Duration::from_secs(1)).await;
        seen.clear();
        cluster.maps.apply(config_map("nobody's"));
        cluster.maps.apply(owned_by(&foo("web", "an older one"), config_map("a-dead-owners")));
        cluster.maps.apply(owned_by(&zone("web", "1"), config_map("another-kinds")));
        let mut other_group = owned_by(&foo("web", "1"), config_map("another-groups"));
        let references = other_group.metadata.owner_references.as_mut().unwrap();
        references[0].api_version = "another.group/v1alpha1".into();
        cluster.maps.apply(other_group);
        let mut not_controlled = owned_by(&foo("web", "1"), config_map("not-controlled"));
        not_controlled.metadata.owner_references.as_mut().unwrap()[0].controller = Some(false);
        cluster.maps.apply(not_controlled);
        sleep(Duration::from_secs(1)).await;
        assert_eq!(seen.lines(), [""; 0]);

        let mut other_version = owned_by(&foo("web", "1"), config_map("another-version"));
        let references = other_version.metadata.owner_references.as_mut().unwrap();
        references[0].api_version = "samplecontroller.k8s.io/v1".into();
        cluster.maps.apply(other_version);
        sleep(Duration::from_secs(1)).await;
        assert_eq!(seen.keys(), ["ns/web"]);
    };
    Manager::new(no_factory()).with(controller).run_until(story).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn moved_reference_enqueues_both_owners() {
    let (web, db) = (foo("web", "1"), foo("db", "2"));
    let cluster = Cluster::new([web.clone(), db.clone()]);
    let (reconciler, seen) = recorder(|_| ready(Ok(Action::AwaitChange)));
    let controller = cluster.controller().build(reconciler);
    let story = async {
        cluster.maps.apply(owned_by(&web, config_map("a")));
        sleep(Duration::from_secs(1)).await;
        seen.clear();
        cluster.maps.apply(owned_by(&db, config_map("a")));
        sleep(Duration::from_secs(1)).await;
        assert_eq!(seen.keys(), ["ns/web", "ns/db"]);
        seen.clear();
        cluster.maps.apply(config_map("a"));
        sleep(Duration::from_secs(1)).await;
        assert_eq!(seen.keys(), ["ns/db"]);
    };
    Manager::new(no_factory()).with(controller).run_until(story).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn expectations_are_lowered_before_the_owner_is_enqueued() {
    let web = foo("web", "1");
    let (key, uid) = (ObjectKey::<Foo>::namespaced("ns", "web"), Uid::from("1"));
    let cluster = Cluster::new([web.clone()]);
    let expectations = UidTrackingExpectations::default();
    let expected = expectations.expect_creations(&key, &uid, 2);
    let tokens = (expected.start(), expected.start());
    tokens.0.sent();
    tokens.1.sent();
    drop(expected);
    let (reconciler, seen) = recorder({
        let (expectations, key, uid) = (expectations.clone(), key.clone(), uid.clone());
        move |seen| {
            seen.note(["awaiting", "satisfied"][usize::from(expectations.satisfied(&key, &uid))]);
            ready(Ok(Action::AwaitChange))
        }
    });
    let controller = cluster.controller().expecting(&expectations).build(reconciler);
    let story = async {
        for name in ["a", "b"] {
            sleep(Duration::from_secs(1)).await;
            cluster.maps.apply(owned_by(&web, config_map(name)));
        }
        sleep(Duration::from_secs(1)).await;
        assert_eq!(seen.notes(), ["awaiting", "awaiting", "satisfied"]);

        // One that is going counts as gone; one that is gone at once too.
        let uids = ["uid of a", "uid of b"].map(Uid::from);
        let expected = expectations.expect_deletions(&key, &uid, uids.clone());
        for uid in &uids {
            expected.start(uid).sent();
        }
        drop(expected);
        let mut going = owned_by(&web, config_map("a"));
        going.metadata.deletion_timestamp = Some(support::long_ago());
        cluster.maps.apply(going);
        sleep(Duration::from_secs(1)).await;
        cluster.maps.delete("b");
        sleep(Duration::from_secs(1)).await;
        assert_eq!(seen.notes()[3..], ["awaiting", "satisfied"]);
    };
    Manager::new(no_factory()).with(controller).run_until(story).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn key_that_waits_for_its_own_write_is_enqueued_when_the_cache_shows_it() {
    let web = foo("web", "1");
    let (key, uid) = (ObjectKey::<Foo>::namespaced("ns", "web"), Uid::from("1"));
    let cluster = Cluster::new([web.clone()]);
    cluster.maps.apply(config_map("first"));
    let resource = group_resource::<ConfigMap>();
    let written = ConsistencyStore::new("test", [resource.clone()]);
    let (reconciler, seen) = recorder({
        let (written, key, uid) = (written.clone(), key.clone(), uid.clone());
        move |seen| {
            let is_ready = written.ready(&key, &uid) == Readiness::Ready;
            seen.note(["waiting", "ready"][usize::from(is_ready)]);
            ready(Ok(Action::AwaitChange))
        }
    });
    let controller = Controller::builder("foo", &cluster.foos.informer)
        .consistency(&written, &cluster.maps.informer)
        .build(reconciler);
    let story = async {
        sleep(Duration::from_secs(1)).await;
        written.wrote_at(&key, &uid, &resource, "4");
        cluster.foos.apply(web);
        sleep(Duration::from_secs(1)).await;
        assert_eq!(seen.notes(), ["ready", "waiting"]);
        cluster.maps.apply(config_map("second"));
        sleep(Duration::from_secs(60)).await;
        assert_eq!(seen.notes().len(), 2, "it is not polled, nor asked for too early");
        cluster.maps.apply(config_map("third"));
        sleep(Duration::from_millis(1)).await;
        assert_eq!(seen.notes()[2..], ["ready"]);
        assert_eq!(seen.lines()[2], "ns/web configmaps caught up");
        cluster.maps.delete("third");
        sleep(Duration::from_secs(1)).await;
        assert_eq!(seen.notes().len(), 3, "once");
    };
    Manager::new(no_factory()).with(controller).run_until(story).await.unwrap();
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "has a cache of configmaps for its ConsistencyStore already")]
async fn second_cache_of_a_kind_in_a_consistency_store_panics() {
    let (one, two) = (Cluster::new([]), Cluster::new([]));
    let written = ConsistencyStore::new("test", [group_resource::<ConfigMap>()]);
    let builder = one.controller().consistency(&written, &one.maps.informer);
    drop(builder.consistency(&written, &two.maps.informer));
}

#[tokio::test(start_paused = true)]
async fn consistency_store_serves_several_kinds_of_one_controller() {
    let cluster = Cluster::new([]);
    let written = ConsistencyStore::new("test", [group_resource::<ConfigMap>()]);
    let builder = cluster.controller().consistency(&written, &cluster.maps.informer);
    let (reconciler, _) = recorder(|_| ready(Ok(Action::AwaitChange)));
    drop(builder.consistency(&written, &cluster.foos.informer).build(reconciler));
}

#[tokio::test(start_paused = true)]
#[should_panic(
    expected = "another controller has this ConsistencyStore already: make one for each"
)]
async fn consistency_store_of_another_controller_panics() {
    let cluster = Cluster::new([]);
    let written = ConsistencyStore::new("test", [group_resource::<ConfigMap>()]);
    for _ in 0..2 {
        let (reconciler, _) = recorder(|_| ready(Ok(Action::AwaitChange)));
        let builder = cluster.controller().consistency(&written, &cluster.maps.informer);
        drop(builder.build(reconciler));
    }
}

#[tokio::test(start_paused = true)]
async fn mapper_enqueues_keys_at_once_or_after_a_delay() {
    let cluster = Cluster::new([foo("web", "1")]);
    let (reconciler, seen) = recorder(|_| ready(Ok(Action::AwaitChange)));
    let start = Instant::now();
    let controller = Controller::builder("foo", &cluster.foos.informer)
        .watches(&cluster.maps.informer, |event: &Event<ConfigMap>, enqueue| {
            let key = ObjectKey::namespaced("ns", event.key().name());
            enqueue.add(key.clone());
            enqueue.add_after(key, Duration::from_secs(60));
        })
        .build(reconciler);
    let story = async {
        sleep(Duration::from_secs(1)).await;
        seen.clear();
        cluster.maps.apply(config_map("db"));
        sleep(Duration::from_secs(30)).await;
        assert_eq!(seen.keys(), ["ns/db"]);
        sleep(Duration::from_secs(60)).await;
        assert_eq!(seen.keys(), ["ns/db", "ns/db"]);
    };
    Manager::new(no_factory()).with(controller).run_until(story).await.unwrap();
    assert!(start.elapsed() < Duration::from_secs(92));
}

#[tokio::test(start_paused = true)]
async fn primary_can_have_its_own_mapper() {
    let foos = Script::new([foo("web", "1")]);
    let (reconciler, seen) = recorder(|_| ready(Ok(Action::AwaitChange)));
    let controller = Controller::builder("foo", &foos.informer)
        .primary(|_, enqueue| enqueue.add(ObjectKey::namespaced("ns", "all")))
        .build(reconciler);
    run_for(Duration::from_secs(1), controller).await.unwrap();
    assert_eq!(seen.keys(), ["ns/all"]);
}

#[tokio::test(start_paused = true)]
async fn no_key_is_reconciled_before_every_cache_is_complete() {
    let cluster = Cluster::new([foo("web", "1")]);
    cluster.maps.hold_lists();
    let (reconciler, seen) = recorder(|_| ready(Ok(Action::AwaitChange)));
    let controller = cluster.controller().build(reconciler);
    let story = async {
        sleep(Duration::from_secs(30)).await;
        assert_eq!(seen.keys(), [""; 0]);
        cluster.maps.release_lists();
        sleep(Duration::from_secs(60)).await;
        assert_eq!(seen.keys(), ["ns/web"]);
    };
    Manager::new(no_factory()).with(controller).run_until(story).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn shutdown_before_the_caches_are_complete_ends_at_once() {
    let cluster = Cluster::new([foo("web", "1")]);
    cluster.maps.hold_lists();
    let (reconciler, seen) = recorder(|_| ready(Ok(Action::AwaitChange)));
    let controller = cluster.controller().build(reconciler);
    let start = Instant::now();
    run_for(Duration::from_secs(5), controller).await.unwrap();
    assert!(start.elapsed() < Duration::from_secs(6));
    assert_eq!(seen.keys(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn shutdown_finishes_running_reconciles_and_ends_all_tasks() {
    let foos = Script::new(["a", "b", "c"].map(|name| foo(name, name)));
    let (reconciler, seen) = recorder(|seen: Seen| async move {
        sleep(Duration::from_secs(2)).await;
        seen.note("finished");
        Ok(Action::RequeueAfter(Duration::from_secs(60)))
    });
    let controller = Controller::builder("foo", &foos.informer).workers(2).build(reconciler);
    let start = Instant::now();
    run_for(Duration::from_secs(1), controller).await.unwrap();
    assert_eq!(seen.notes(), ["finished"; 3]);
    assert_eq!(start.elapsed().as_secs(), 4);
    drop(foos);
    tokio::task::yield_now().await;
    let tasks = tokio::runtime::Handle::current().metrics().num_alive_tasks();
    // The dummy client of the factory has one worker that ends with the client.
    assert!(tasks <= 1, "{tasks} tasks are still there");
}

#[tokio::test(start_paused = true)]
async fn reconcile_that_does_not_end_is_cancelled_and_then_dropped() {
    let foos = Script::new([foo("web", "1")]);
    let (reconciler, seen) = recorder(|seen: Seen| async move {
        seen.cancellation().cancelled().await;
        seen.note("told");
        pending().await
    });
    let controller = Controller::builder("foo", &foos.informer).build(reconciler);
    let manager = Manager::new(no_factory()).with(controller);
    let manager = manager.drain_timeout(Duration::from_secs(10));
    let start = Instant::now();
    let result = manager.run_until(sleep(Duration::from_secs(1))).await;
    assert!(matches!(result, Err(RunError::Undrained { keys: 1, .. })), "{result:?}");
    assert_eq!(seen.notes(), ["told"]);
    assert_eq!(start.elapsed().as_secs(), 12);
}

#[tokio::test(start_paused = true)]
async fn failing_key_does_not_delay_the_shutdown() {
    let foos = Script::new([foo("web", "1")]);
    let (reconciler, seen) = recorder(|_| ready(Err("never".into())));
    let controller = Controller::builder("foo", &foos.informer).build(reconciler);
    let start = Instant::now();
    run_for(Duration::from_secs(60), controller).await.unwrap();
    assert!(start.elapsed() < Duration::from_secs(61));
    assert!(seen.keys().len() > 10);
}

#[tokio::test(start_paused = true)]
async fn panic_of_a_rate_limiter_costs_a_fixed_delay() {
    struct Broken;
    impl RateLimiter<ObjectKey<Foo>> for Broken {
        fn when(&mut self, _: &ObjectKey<Foo>, _: Instant) -> Duration {
            panic!("no idea")
        }
        fn forget(&mut self, _: &ObjectKey<Foo>) {}
        fn failures(&self, _: &ObjectKey<Foo>) -> u32 {
            0
        }
    }
    let foos = Script::new([foo("web", "1")]);
    let (reconciler, seen) = recorder(|_| ready(Err("failed".into())));
    let controller = Controller::builder("foo", &foos.informer)
        .workers(2)
        .rate_limiter(Broken)
        .build(reconciler);
    run_for(FALLBACK_DELAY * 10 + FALLBACK_DELAY / 2, controller).await.unwrap();
    assert_eq!(seen.keys(), ["ns/web"; 11]);
}

#[tokio::test(start_paused = true)]
async fn several_controllers_share_informers_and_end_together() {
    let cluster = Cluster::new([foo("web", "1")]);
    let zones = Script::<Zone>::new([zone("north", "z")]);
    let (first, seen_first) = recorder(|_| ready(Ok(Action::AwaitChange)));
    let (second, seen_second) = recorder(|_| ready(Ok(Action::AwaitChange)));
    let of_foos: ControllerBuilder<Foo> = cluster.controller();
    let of_zones = Controller::builder("zone", &zones.informer).watches(
        &cluster.foos.informer,
        |_: &Event<Foo>, enqueue| {
            enqueue.add(ObjectKey::cluster("all"));
        },
    );
    let manager =
        Manager::new(no_factory()).with(of_foos.build(first)).with(of_zones.build(second));
    manager.run_until(sleep(Duration::from_secs(1))).await.unwrap();
    assert_eq!(seen_first.keys(), ["ns/web"]);
    assert_eq!(seen_second.sorted_keys(), ["all", "north"]);
}

#[tokio::test(start_paused = true)]
async fn change_is_reconciled_before_the_initial_list() {
    for (priorities, expected) in [
        (true, ["ns/a listed", "ns/new added", "ns/d listed", "ns/b listed", "ns/c listed"]),
        (false, ["ns/a listed", "ns/b listed", "ns/c listed", "ns/d listed", "ns/new added"]),
    ] {
        let foos = Script::new(["a", "b", "c", "d"].map(|name| foo(name, name)));
        let (reconciler, seen) = recorder(async |_| {
            sleep(Duration::from_secs(1)).await;
            Ok(Action::AwaitChange)
        });
        let mut controller = Controller::builder("foo", &foos.informer);
        if priorities {
            controller = controller.priorities(Priorities::default());
        }
        let controller = controller.build(reconciler);
        let story = async {
            sleep(Duration::from_millis(500)).await;
            foos.apply(foo("new", "new"));
            foos.apply(foo("d", "d"));
            sleep(Duration::from_secs(10)).await;
        };
        Manager::new(no_factory()).with(controller).run_until(story).await.unwrap();
        assert_eq!(seen.lines(), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn retry_keeps_the_priority_of_its_key() {
    let foos = Script::new(["a", "b"].map(|name| foo(name, name)));
    let (reconciler, seen) = recorder(async |seen: Seen| {
        sleep(Duration::from_secs(1)).await;
        match seen.keys().len() {
            1 => Err("not yet".into()),
            2 => Ok(Action::RequeueAfter(Duration::from_millis(1))),
            _ => Ok(Action::AwaitChange),
        }
    });
    let controller = Controller::builder("foo", &foos.informer)
        .priorities(Priorities::default().strict())
        .build(reconciler);
    let story = async {
        // While `b` is reconciled, and after the retry of `a` has fallen due.
        sleep(Duration::from_millis(1500)).await;
        foos.apply(foo("new", "new"));
        sleep(Duration::from_secs(1)).await;
        foos.apply(foo("newer", "newer"));
        sleep(Duration::from_secs(10)).await;
    };
    Manager::new(no_factory()).with(controller).run_until(story).await.unwrap();
    assert_eq!(seen.keys(), ["ns/a", "ns/b", "ns/new", "ns/newer", "ns/a", "ns/b"]);
}

#[tokio::test(start_paused = true)]
async fn keys_take_turns_by_the_authors_dimension() {
    let foos = Script::new(["a1", "a2", "a3", "b1"].map(|name| foo(name, name)));
    let (reconciler, seen) = recorder(|_| ready(Ok(Action::AwaitChange)));
    let controller = Controller::builder("foo", &foos.informer)
        .fair_by(|key| key.name().as_bytes()[0])
        .build(reconciler);
    run_for(Duration::from_secs(1), controller).await.unwrap();
    assert_eq!(seen.keys(), ["ns/a1", "ns/b1", "ns/a2", "ns/a3"]);
}

/// A panic payload whose destructor panics, so that it ends the task that catches it.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        assert!(std::thread::panicking(), "destructor of a payload");
    }
}

fn explode_if(is_due: bool) {
    if is_due {
        std::panic::panic_any(Bomb);
    }
}

#[tokio::test(start_paused = true)]
async fn failed_informer_ends_the_manager_with_its_cause() {
    for name in ["web", "db"] {
        let foos = Script::new([foo("web", "1")]);
        let subscription = foos.informer.add_handler("broken", move |event: Event<Foo>| {
            explode_if(event.metadata().name.as_deref() == Some(name));
        });
        let (reconciler, _seen) = recorder(|_| ready(Ok(Action::AwaitChange)));
        let controller = Controller::builder("foo", &foos.informer).build(reconciler);
        let manager = Manager::new(no_factory()).with(controller);
        let story = async {
            sleep(Duration::from_secs(1)).await;
            foos.apply(foo("db", "2"));
            pending::<()>().await;
        };
        let error = manager.run_until(story).await.unwrap_err();
        let RunError::InformerFailed(failure) = &error else { panic!("{error}") };
        assert!(failure.to_string().contains("handler broken panicked"), "{failure}");
        drop(subscription);
    }
}
