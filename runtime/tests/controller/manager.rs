//! The manager: deadlines, names, runnables, services, readiness and controllers that come later.

use std::convert::Infallible;
use std::future::{pending, ready};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use bytes::Bytes;
use homeostat::kube_client::{Api, Client};
use homeostat::observe::Diagnostics;
use homeostat::{
    Action, CancellationToken, Controller, Manager, ManagerPhase, RunError, TerminalError,
};
use http::Response;
use http_body_util::Full;
use k8s_openapi::api::core::v1::ConfigMap;
use parking_lot::Mutex;
use tokio::time::{Instant, sleep};
use tower::BoxError;

use super::explode_if;
use super::support::{Foo, Script, Seen, Zone, foo, no_factory, recorder, zone};

type Log = Arc<Mutex<Vec<&'static str>>>;

/// Returns a part that notes its start, and its end when it is cancelled.
fn part(
    log: &Log,
    start: &'static str,
    end: &'static str,
) -> impl FnOnce(CancellationToken) -> futures::future::BoxFuture<'static, Result<(), Infallible>>
+ Send
+ 'static {
    let log = Arc::clone(log);
    move |stop| {
        Box::pin(async move {
            log.lock().push(start);
            stop.cancelled().await;
            log.lock().push(end);
            Ok(())
        })
    }
}

fn idle(foos: &Script<Foo>, name: &'static str) -> Controller {
    let (reconciler, _) = recorder(|_| ready(Ok(Action::AwaitChange)));
    Controller::builder(name, &foos.informer).build(reconciler)
}

#[tokio::test(start_paused = true)]
async fn cache_that_never_syncs_ends_the_manager_with_its_name() {
    let foos = Script::new([foo("web", "1")]);
    foos.hold_lists();
    let manager = Manager::new(no_factory()).with(idle(&foos, "foo"));
    let start = Instant::now();
    let error = manager.sync_timeout(Duration::from_secs(30)).run_until(pending()).await;
    let error = error.unwrap_err();
    assert_eq!(
        error.to_string(),
        "failed to sync caches within 30s: foos: the initial list has no answer yet"
    );
    assert_eq!(start.elapsed().as_secs(), 30);
}

/// A mapper that blocks stalls its thread, so this test takes real time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mapper_that_does_not_get_the_initial_list_is_named() {
    let (foos, zones) = (Script::new([foo("web", "1")]), Script::new([zone("north", "z")]));
    let (_release, blocked) = mpsc::channel::<()>();
    let (reconciler, _) = recorder(|_| ready(Ok(Action::AwaitChange)));
    let controller = Controller::builder("foo", &foos.informer)
        .watches(&zones.informer, move |_, _| {
            // An error is the timeout: the test sends nothing.
            blocked.recv_timeout(Duration::from_secs(2)).unwrap_or_default();
        })
        .build(reconciler);
    let manager = Manager::new(no_factory()).with(controller);
    let error = manager.sync_timeout(Duration::from_secs(1)).run_until(pending()).await;
    assert_eq!(
        error.unwrap_err().to_string(),
        "failed to sync caches within 1s: controller foo: a mapper has not got the initial list"
    );
}

#[tokio::test(start_paused = true)]
async fn two_controllers_of_one_name_are_refused() {
    let foos = Script::new([foo("web", "1")]);
    let manager = Manager::new(no_factory()).with(idle(&foos, "foo")).with(idle(&foos, "foo"));
    let error = manager.run_until(sleep(Duration::from_secs(1))).await.unwrap_err();
    assert!(matches!(&error, RunError::NameTaken { name, .. } if &**name == "foo"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn manager_that_is_dropped_is_stopped_for_its_handles() {
    let foos = Script::new([foo("web", "1")]);
    let manager = Manager::new(no_factory()).with(idle(&foos, "foo"));
    let handle = manager.handle();
    let running = manager.run_until(pending());
    assert!(tokio::time::timeout(Duration::from_secs(5), running).await.is_err());
    assert_eq!((handle.phase(), handle.is_ready()), (ManagerPhase::Stopped, false));

    let other = Script::new([foo("web", "1")]);
    let twice = Manager::new(no_factory()).with(idle(&other, "foo")).with(idle(&other, "foo"));
    let handle = twice.handle();
    twice.run_until(pending()).await.unwrap_err();
    let waited = tokio::time::timeout(Duration::from_secs(60), handle.wait_until_ready()).await;
    assert_eq!(waited, Ok(false));
}

#[tokio::test(start_paused = true)]
async fn parts_start_and_end_in_order() {
    let foos = Script::new([foo("web", "1")]);
    foos.hold_lists();
    let log = Log::default();
    let manager = Manager::new(no_factory())
        .with(idle(&foos, "foo"))
        .with_runnable("sweep", part(&log, "sweep starts", "sweep ends"))
        .with_service("listener", part(&log, "listener starts", "listener ends"));
    let handle = manager.handle();
    assert_eq!(handle.phase(), ManagerPhase::New);
    let story = async {
        sleep(Duration::from_secs(1)).await;
        assert_eq!(*log.lock(), ["listener starts"], "the caches are not complete");
        assert!(!handle.is_ready());
        assert_eq!(handle.unsynced().keys().map(|name| &**name).collect::<Vec<_>>(), ["foos"]);
        foos.release_lists();
        assert!(handle.wait_until_ready().await);
        sleep(Duration::from_secs(1)).await;
        assert_eq!(handle.phase(), ManagerPhase::Working);
        assert!(handle.unsynced().is_empty());
    };
    manager.run_until(story).await.unwrap();
    assert_eq!(*log.lock(), ["listener starts", "sweep starts", "sweep ends", "listener ends"]);
    assert_eq!(handle.phase(), ManagerPhase::Stopped);
}

#[tokio::test(start_paused = true)]
async fn diagnostics_show_the_informers_and_queues_of_a_manager() {
    let foos = Script::new([foo("web", "1")]);
    foos.hold_lists();
    let diagnostics = Diagnostics::new();
    let manager = Manager::new(no_factory()).with(idle(&foos, "foo")).diagnostics(&diagnostics);
    let unready = |diagnostics: &Diagnostics| {
        let unready = diagnostics.unready().into_iter().map(|part| (part.name, part.reason));
        unready.collect::<Vec<_>>()
    };
    let part = |name: &str, reason: &str| (name.to_owned(), reason.to_owned());
    assert_eq!(
        unready(&diagnostics),
        [part("informer foos", "not started"), part("manager", "not started")]
    );
    let story = async {
        sleep(Duration::from_secs(1)).await;
        assert_eq!(unready(&diagnostics).last().unwrap().1, "waiting for the caches");
        foos.release_lists();
        sleep(Duration::from_secs(1)).await;
        assert_eq!(unready(&diagnostics), []);
        let report = diagnostics.report();
        assert_eq!((&*report.informers[0].name, report.informers[0].objects), ("foos", 1));
        assert_eq!((&*report.queues[0].name, report.queues[0].depth), ("foo", 0));
    };
    manager.run_until(story).await.unwrap();
    assert_eq!(unready(&diagnostics).last().unwrap(), &part("manager", "stopped"));
}

/// Fails after 5 s.
#[tokio::test(start_paused = true)]
async fn debug_page_shows_failing_keys_with_their_errors() {
    let foos = Script::new([foo("web", "1"), foo("invalid", "2"), foo("fine", "3")]);
    let (reconciler, _) = recorder(|seen| {
        let key = seen.keys().pop().unwrap_or_default();
        ready(match key.as_str() {
            "ns/web" => Err("quota <exceeded>".into()),
            "ns/invalid" => Err(TerminalError::new("no such zone").into()),
            _ => Ok(Action::AwaitChange),
        })
    });
    let controller = Controller::builder("foo", &foos.informer).build(reconciler);
    let diagnostics = Diagnostics::new();
    let manager = Manager::new(no_factory()).with(controller).diagnostics(&diagnostics);
    let story = async {
        let report = || diagnostics.report().queues.remove(0);
        while report().failing.iter().all(|key| key.failures < 5) {
            sleep(Duration::from_millis(1)).await;
        }
        let failing = report().failing;
        let errors: Vec<_> = failing.iter().map(|key| (&*key.key, key.error.as_deref())).collect();
        let expected = [("ns/web", Some("quota <exceeded>")), ("ns/invalid", Some("no such zone"))];
        assert_eq!(errors, expected);
        assert!(failing[0].failed.is_some_and(|time| time <= Duration::from_secs(1)));
        assert_eq!((failing[1].failures, failing[1].next_try), (0, None));
    };
    manager.run_until(story).await.unwrap();
}

/// Returns a client whose server has no config map.
fn empty_server() -> Client {
    let service = tower::service_fn(|_| async {
        let body = r#"{"kind":"Status","status":"Failure","code":404,"reason":"NotFound"}"#;
        let answer = Response::builder().status(404).body(Full::new(Bytes::from(body)));
        Ok::<_, Infallible>(answer.expect("the answer is valid"))
    });
    homeostat::client::builder().service(service).build()
}

/// Fails at the first attempt, and reads a config map at each.
async fn read_and_fail_once(client: Client, seen: Seen) -> Result<Action, BoxError> {
    let maps = Api::<ConfigMap>::namespaced(client, "ns");
    maps.get_opt("settings").await?;
    sleep(Duration::from_millis(7)).await;
    if seen.keys().len() == 1 {
        return Err("no quota".into());
    }
    Ok(Action::RequeueAfter(Duration::from_secs(60)))
}

#[tokio::test(start_paused = true)]
async fn debug_page_shows_the_last_reconciles_with_their_requests() {
    let foos = Script::new([foo("web", "1")]);
    let client = empty_server();
    let (reconciler, _) = recorder(move |seen| read_and_fail_once(client.clone(), seen));
    let controller = Controller::builder("foo", &foos.informer).build(reconciler);
    let diagnostics = Diagnostics::new();
    let manager = Manager::new(no_factory()).with(controller).diagnostics(&diagnostics);
    let story = async {
        sleep(Duration::from_secs(3)).await;
        let queue = diagnostics.report().queues.remove(0);
        let shown: Vec<_> = queue
            .reconciles
            .iter()
            .map(|it| (&*it.key, &*it.trigger, it.attempt, &*it.outcome, &*it.calls))
            .collect();
        let calls = ["GET /api/v1/namespaces/ns/configmaps/settings 404".to_owned()];
        let expected = [
            ("ns/web", "retry", 2, "requeue after 60s", &calls[..]),
            ("ns/web", "listed", 1, "no quota", &calls[..]),
        ];
        assert_eq!(shown, expected);
        let took = queue.reconciles[0].took;
        assert!(took >= Duration::from_millis(7) && took < Duration::from_secs(1), "{took:?}");
    };
    manager.run_until(story).await.unwrap();
}

async fn fail(_: CancellationToken) -> Result<(), std::io::Error> {
    sleep(Duration::from_secs(5)).await;
    Err(std::io::Error::other("port taken"))
}

/// Panics after 5 s.
async fn panic(_: CancellationToken) -> Result<(), Infallible> {
    sleep(Duration::from_secs(5)).await;
    panic!("out of order")
}

#[tokio::test(start_paused = true)]
async fn failure_of_a_part_ends_the_manager_with_its_name() {
    let manager = || Manager::new(no_factory());
    for (manager, expected) in [
        (manager().with_service("listener", fail), "listener failed: port taken"),
        (manager().with_runnable("sweep", fail), "sweep failed: port taken"),
        (manager().with_service("listener", panic), "listener failed: panicked: out of order"),
        (manager().with_runnable("sweep", panic), "sweep failed: panicked: out of order"),
    ] {
        let error = manager.run_until(pending()).await.unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn part_that_does_not_end_is_named() {
    let stubborn = |_| pending::<Result<(), Infallible>>();
    let manager = Manager::new(no_factory())
        .with_runnable("sweep", stubborn)
        .drain_timeout(Duration::from_secs(10));
    let start = Instant::now();
    let error = manager.run_until(sleep(Duration::from_secs(1))).await.unwrap_err();
    assert_eq!(error.to_string(), "did not stop in time: sweep");
    assert_eq!(start.elapsed().as_secs(), 11);
    let manager = Manager::new(no_factory()).with_service("listener", stubborn);
    let error = manager.run_until(sleep(Duration::from_secs(1))).await.unwrap_err();
    assert_eq!(error.to_string(), "did not stop in time: listener");
}

#[tokio::test(start_paused = true)]
async fn keys_that_are_left_are_named() {
    let foos = Script::new([foo("a", "1"), foo("b", "2")]);
    let (reconciler, _) = recorder(|_| pending());
    let controller = Controller::builder("foo", &foos.informer).build(reconciler);
    let manager = Manager::new(no_factory()).with(controller);
    let manager = manager.drain_timeout(Duration::from_secs(10));
    let error = manager.run_until(sleep(Duration::from_secs(1))).await.unwrap_err();
    let RunError::Undrained { left, .. } = error else { panic!("{error}") };
    assert_eq!(left, ["foo ns/a (in a reconcile)", "foo ns/b (queued)"]);
}

#[tokio::test(start_paused = true)]
async fn controller_that_is_added_later_works_after_its_caches_are_complete() {
    let (foos, zones) = (Script::new([foo("web", "1")]), Script::new([zone("north", "z")]));
    zones.hold_lists();
    let manager = Manager::new(no_factory()).with(idle(&foos, "foo"));
    let handle = manager.handle();
    let (reconciler, seen) = recorder(|_| ready(Ok(Action::AwaitChange)));
    let later = Controller::builder("zone", &zones.informer).build(reconciler);
    let story = async {
        sleep(Duration::from_secs(1)).await;
        handle.add(later);
        handle.add(idle(&foos, "foo"));
        sleep(Duration::from_secs(1)).await;
        assert_eq!(seen.keys(), [""; 0]);
        zones.release_lists();
        sleep(Duration::from_secs(60)).await;
        assert_eq!(seen.keys(), ["north"]);
        zones.apply(zone("south", "y"));
        sleep(Duration::from_secs(1)).await;
    };
    manager.run_until(story).await.unwrap();
    assert_eq!(seen.keys(), ["north", "south"]);
    assert!(zones.informer.is_stopped());
}

#[tokio::test(start_paused = true)]
async fn name_of_a_controller_that_has_not_synced_is_taken() {
    let (foos, zones) = (Script::new([foo("web", "1")]), Script::new([zone("north", "z")]));
    zones.hold_lists();
    let log = Log::default();
    let manager = Manager::new(no_factory())
        .with(idle(&foos, "foo"))
        .with_runnable("sweep", part(&log, "sweep starts", "sweep ends"));
    let handle = manager.handle();
    let zone_controller = |name: &'static str| {
        let (reconciler, seen) = recorder(|_| ready(Ok(Action::AwaitChange)));
        (Controller::builder(name, &zones.informer).build(reconciler), seen)
    };
    let [first, second, third] = ["zone", "zone", "sweep"].map(zone_controller);
    let story = async {
        sleep(Duration::from_secs(1)).await;
        handle.add(first.0);
        handle.add(second.0);
        handle.add(third.0);
        sleep(Duration::from_secs(1)).await;
        zones.release_lists();
        sleep(Duration::from_secs(60)).await;
    };
    manager.run_until(story).await.unwrap();
    let reconciled = [first.1, second.1, third.1].map(|seen| seen.keys().len());
    assert_eq!(reconciled, [1, 0, 0]);
}

#[tokio::test(start_paused = true)]
async fn controller_that_never_syncs_does_not_hold_up_another_that_is_added() {
    let foos = Script::new([foo("web", "1")]);
    let (gone, zones) = (Script::<Zone>::new([]), Script::new([zone("north", "z")]));
    gone.hold_lists();
    zones.hold_lists();
    let manager = Manager::new(no_factory()).with(idle(&foos, "foo"));
    let handle = manager.handle();
    let controller = |name, of: &Script<Zone>| {
        let (reconciler, seen) = recorder(|_| ready(Ok(Action::AwaitChange)));
        (Controller::builder(name, &of.informer).build(reconciler), seen)
    };
    let ((first, _), (later, seen)) = (controller("gone", &gone), controller("zone", &zones));
    let story = async {
        handle.add(first);
        handle.add(later);
        sleep(Duration::from_secs(1)).await;
        gone.informer.stop().await;
        sleep(Duration::from_secs(1)).await;
        zones.release_lists();
        sleep(Duration::from_secs(60)).await;
    };
    manager.run_until(story).await.unwrap();
    assert_eq!(seen.keys(), ["north"]);
}

#[tokio::test(start_paused = true)]
async fn missing_cache_of_an_added_controller_is_logged_until_it_is_there() {
    let log = tempfile::NamedTempFile::new().unwrap();
    let writer = Arc::new(log.reopen().unwrap());
    let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(writer).finish();
    let _logging = tracing::subscriber::set_default(subscriber);
    let (foos, zones) = (Script::new([foo("web", "1")]), Script::new([zone("north", "z")]));
    zones.hold_lists();
    let manager = Manager::new(no_factory()).with(idle(&foos, "foo"));
    let (handle, (reconciler, seen)) =
        (manager.handle(), recorder(|_| ready(Ok(Action::AwaitChange))));
    let story = async {
        handle.add(Controller::builder("zone", &zones.informer).build(reconciler));
        // The lines come after 2, 12 and 22 s.
        sleep(Duration::from_secs(25)).await;
        zones.release_lists();
        sleep(Duration::from_secs(60)).await;
    };
    manager.run_until(story).await.unwrap();
    assert_eq!(seen.keys(), ["north"]);
    let log = std::fs::read_to_string(log.path()).unwrap();
    let waiting = log.lines().filter(|line| {
        line.contains("still waiting for the cache to sync")
            && line.contains("informer=zones")
            && line.contains("error=the initial list has no answer yet")
    });
    assert_eq!(waiting.count(), 3, "{log}");
}

#[tokio::test(start_paused = true)]
async fn informer_of_an_added_controller_is_supervised() {
    let (foos, zones) = (Script::new([foo("web", "1")]), Script::<Zone>::new([]));
    let _broken = zones.informer.add_handler("broken", |_| explode_if(true));
    let manager = Manager::new(no_factory()).with(idle(&foos, "foo"));
    let handle = manager.handle();
    let (reconciler, _) = recorder(|_| ready(Ok(Action::AwaitChange)));
    let later = Controller::builder("zone", &zones.informer).build(reconciler);
    let story = async {
        sleep(Duration::from_secs(1)).await;
        handle.add(later);
        sleep(Duration::from_secs(60)).await;
        zones.apply(zone("north", "z"));
        pending::<()>().await;
    };
    let error = manager.run_until(story).await.unwrap_err();
    assert!(matches!(error, RunError::InformerFailed(_)), "{error}");
}

#[tokio::test(start_paused = true)]
async fn informer_of_a_controller_that_has_not_synced_is_stopped_with_the_others() {
    let (foos, zones) = (Script::new([foo("web", "1")]), Script::<Zone>::new([]));
    zones.hold_lists();
    let manager = Manager::new(no_factory()).with(idle(&foos, "foo"));
    let handle = manager.handle();
    let (reconciler, _) = recorder(|_| ready(Ok(Action::AwaitChange)));
    let later = Controller::builder("zone", &zones.informer).build(reconciler);
    let story = async {
        sleep(Duration::from_secs(1)).await;
        handle.add(later);
        sleep(Duration::from_secs(1)).await;
    };
    manager.run_until(story).await.unwrap();
    assert!(zones.informer.is_stopped());
}

/// A blocked mapper stalls its thread, so this test takes real time: 3 s, the manager's own limit.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn blocked_mapper_does_not_hang_the_shutdown() {
    let (foos, zones) = (Script::new([foo("web", "1")]), Script::<Zone>::new([]));
    let (release, blocked) = mpsc::channel::<()>();
    let (entered, is_entered) = mpsc::channel();
    let (reconciler, _) = recorder(|_| ready(Ok(Action::AwaitChange)));
    let controller = Controller::builder("foo", &foos.informer)
        .watches(&zones.informer, move |_, _| {
            // An error means that the test has ended.
            entered.send(()).unwrap_or_default();
            blocked.recv().unwrap_or_default();
        })
        .build(reconciler);
    let story = async {
        zones.apply(zone("north", "z"));
        while is_entered.try_recv().is_err() {
            sleep(Duration::from_millis(10)).await;
        }
    };
    let manager = Manager::new(no_factory()).with(controller);
    let ended = tokio::time::timeout(
        Duration::from_secs(60),
        manager.run_until(async {
            sleep(Duration::from_millis(100)).await;
            story.await;
        }),
    );
    let error = ended.await.unwrap().unwrap_err().to_string();
    assert!(error.contains("a mapper of controller foo"), "{error}");
    drop(release);
}
