//! Managers that end for a reason of their own: a failed informer, a task that blocks its thread, a
//! future that is dropped.

use std::future::{pending, ready};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use bytes::Bytes;
use homeostat::kube_client::Client;
use homeostat::kube_client::client::Body;
use homeostat::{
    Action, Controller, Event, EventRecorder, LeaderElector, Manager, ManagerPhase, RunError,
};
use http::Response;
use http_body_util::Full;
use k8s_openapi::jiff::Timestamp;
use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, timeout};
use tower::BoxError;

use super::explode_if;
use super::support::{Foo, Script, Zone, foo, no_factory, recorder, zone};

/// Returns a candidate that never leads: its server does not answer.
fn candidate() -> LeaderElector {
    let silent = tower::service_fn(|_| pending::<Result<Response<Full<Bytes>>, BoxError>>());
    let builder = LeaderElector::builder(Client::new(silent, "default"), "shop", "lease");
    builder.in_virtual_time(Timestamp::UNIX_EPOCH, 7).build().unwrap()
}

fn idle(name: &'static str, foos: &Script<Foo>) -> Controller {
    let (reconciler, _) = recorder(|_| ready(Ok(Action::AwaitChange)));
    Controller::builder(name, &foos.informer).build(reconciler)
}

/// Breaks the informer with an event of this name.
fn broken_by(foos: &Script<Foo>, name: &'static str) -> homeostat::Subscription {
    foos.informer.add_handler("broken", move |event: Event<Foo>| {
        explode_if(event.metadata().name.as_deref() == Some(name));
    })
}

#[tokio::test(start_paused = true)]
async fn failed_informer_ends_a_manager_that_does_not_lead() {
    let foos = Script::new([foo("web", "1")]);
    let _broken = broken_by(&foos, "db");
    let manager = Manager::new(no_factory()).with(idle("foo", &foos)).leader_election(candidate());
    let handle = manager.handle();
    let story = async {
        assert!(handle.wait_until_ready().await);
        sleep(Duration::from_secs(60)).await;
        assert_eq!(handle.phase(), ManagerPhase::Standby);
        foos.apply(foo("db", "2"));
        pending::<()>().await;
    };
    let ended = timeout(Duration::from_secs(120), manager.run_until(story)).await;
    let error = ended.expect("it waits for leadership with a dead cache").unwrap_err();
    assert!(matches!(error, RunError::InformerFailed(_)), "{error}");
}

#[tokio::test(start_paused = true)]
async fn failed_informer_ends_a_manager_whose_other_caches_are_not_complete() {
    let (foos, zones) = (Script::new([foo("web", "1")]), Script::<Zone>::new([]));
    zones.hold_lists();
    let _broken = broken_by(&foos, "db");
    let (reconciler, _) = recorder(|_| ready(Ok(Action::AwaitChange)));
    let late = Controller::builder("zone", &zones.informer).build(reconciler);
    let manager = Manager::new(no_factory()).with(idle("foo", &foos)).with(late);
    let start = Instant::now();
    let story = async {
        sleep(Duration::from_secs(10)).await;
        foos.apply(foo("db", "2"));
        pending::<()>().await;
    };
    let error = manager.run_until(story).await.unwrap_err();
    assert!(matches!(error, RunError::InformerFailed(_)), "{error}");
    assert_eq!(start.elapsed().as_secs(), 10);
}

/// Returns a call that blocks its thread until the last value is dropped; the second value is ready
/// once the first call has begun.
fn blocking() -> (impl Fn() + Send + Sync + 'static, oneshot::Receiver<()>, mpsc::Sender<()>) {
    let (release, blocked) = mpsc::channel();
    let (entered, is_entered) = oneshot::channel();
    let (blocked, entered) = (Mutex::new(blocked), Mutex::new(Some(entered)));
    let block = move || {
        // An error of either channel means that the test has ended.
        if let Some(entered) = entered.lock().take() {
            entered.send(()).unwrap_or_default();
        }
        blocked.lock().recv().unwrap_or_default();
    };
    (block, is_entered, release)
}

/// A reconcile that blocks stalls its thread, so this test takes real time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn blocked_reconcile_does_not_hang_the_shutdown() {
    let foos = Script::new([foo("web", "1")]);
    let (block, is_entered, release) = blocking();
    let (reconciler, _) = recorder(move |_| {
        block();
        ready(Ok(Action::AwaitChange))
    });
    let controller = Controller::builder("foo", &foos.informer).build(reconciler);
    let manager = Manager::new(no_factory()).with(controller).drain_timeout(Duration::ZERO);
    let ended = manager.run_until(async { is_entered.await.unwrap() });
    let ended = timeout(Duration::from_secs(30), ended).await;
    drop(release);
    let error = ended.expect("the manager has ended").unwrap_err().to_string();
    assert!(error.contains("foo ns/web (in a reconcile)"), "{error}");
}

/// A timer that blocks stalls its thread, so this test takes real time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn blocked_timer_is_reported_by_the_shutdown() {
    let foos = Script::<Foo>::new([]);
    let (block, is_entered, release) = blocking();
    let (reconciler, _) = recorder(|_| ready(Ok(Action::AwaitChange)));
    let controller = Controller::builder("foo", &foos.informer)
        .every(Duration::from_millis(10), move |_| block())
        .build(reconciler);
    let manager = Manager::new(no_factory()).with(controller).drain_timeout(Duration::ZERO);
    let ended = manager.run_until(async { is_entered.await.unwrap() });
    let ended = timeout(Duration::from_secs(30), ended).await;
    drop(release);
    let error = ended.expect("the manager has ended").unwrap_err();
    assert!(matches!(error, RunError::Hung { .. }), "{error}");
    assert!(error.to_string().contains("blocks its thread"), "{error}");
}

/// A service that blocks stalls its thread, so this test takes real time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn blocked_service_does_not_hang_the_shutdown() {
    let (release, blocked) = mpsc::channel::<()>();
    let (entered, is_entered) = oneshot::channel();
    let service = async move |_| {
        entered.send(()).unwrap();
        // An error means that the test has ended.
        blocked.recv().unwrap_or_default();
        Ok::<_, std::convert::Infallible>(())
    };
    let manager = Manager::new(no_factory()).with_service("listener", service);
    let ended = manager.run_until(async { is_entered.await.unwrap() });
    let ended = timeout(Duration::from_secs(30), ended).await;
    drop(release);
    let error = ended.expect("the manager has ended").unwrap_err();
    assert_eq!(error.to_string(), "did not stop in time: listener");
}

#[tokio::test(start_paused = true)]
async fn informers_stop_with_a_manager_that_is_dropped() {
    let foos = Script::new([foo("web", "1")]);
    let informers = no_factory();
    let zones = Script::new([zone("north", "z")]);
    informers.adopt(&zones.informer);
    let manager = Manager::new(informers).with(idle("foo", &foos));
    let handle = manager.handle();
    assert!(timeout(Duration::from_secs(5), manager.run_until(pending())).await.is_err());
    assert_eq!(handle.phase(), ManagerPhase::Stopped);
    assert!(foos.informer.is_stopped(), "an informer of a controller");
    assert!(zones.informer.is_stopped(), "an informer of the factory");
}

#[tokio::test(start_paused = true)]
async fn informers_go_on_after_a_manager_that_never_ran() {
    let foos = Script::new([foo("web", "1")]);
    foos.informer.start();
    drop(Manager::new(no_factory()).with(idle("foo", &foos)));
    assert!(!foos.informer.is_stopped());
}

#[tokio::test(start_paused = true)]
async fn controller_that_is_added_to_a_stopping_manager_is_dropped_at_once() {
    let (foos, zones) = (Script::new([foo("web", "1")]), Script::<Zone>::new([]));
    let guard = Arc::new(());
    let held = Arc::downgrade(&guard);
    let (reconciler, _) = recorder(move |_| {
        drop(Arc::clone(&guard));
        ready(Ok(Action::AwaitChange))
    });
    let later = Controller::builder("zone", &zones.informer).build(reconciler);
    let manager = Manager::new(no_factory()).with(idle("foo", &foos));
    let handle = manager.handle();
    let part = async move |stop: homeostat::CancellationToken| {
        stop.cancelled().await;
        handle.add(later);
        assert!(held.upgrade().is_none(), "it waits for a manager that takes none");
        Ok::<_, std::convert::Infallible>(())
    };
    let manager = manager.with_runnable("adds", part);
    manager.run_until(sleep(Duration::from_secs(1))).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn short_sync_timeout_is_named_in_the_error() {
    let foos = Script::new([foo("web", "1")]);
    foos.hold_lists();
    let manager = Manager::new(no_factory()).with(idle("foo", &foos));
    let error = manager.sync_timeout(Duration::from_millis(500)).run_until(pending()).await;
    let error = error.unwrap_err().to_string();
    assert!(error.starts_with("failed to sync caches within 500ms: foos"), "{error}");
}

/// The writes that a server has got.
#[derive(Default)]
struct Written {
    /// The messages of events.
    messages: Vec<String>,
    /// The holders of the lease, in turn.
    holders: Vec<String>,
}

/// Returns a client whose server stores a lease, and takes events.
fn lease_and_events() -> (Client, Arc<Mutex<Written>>) {
    let written = Arc::new(Mutex::new(Written::default()));
    let seen = Arc::clone(&written);
    let service = tower::service_fn(move |request: http::Request<Body>| {
        let seen = Arc::clone(&seen);
        async move {
            let (parts, body) = request.into_parts();
            let sent = body.collect_bytes().await?;
            if parts.method == http::Method::GET {
                let missing = serde_json::json!({"kind": "Status", "status": "Failure",
                    "code": 404, "reason": "NotFound", "message": "not found"});
                let body = Full::new(Bytes::from(missing.to_string()));
                return Ok::<_, BoxError>(Response::builder().status(404).body(body)?);
            }
            let mut object: serde_json::Value = serde_json::from_slice(&sent)?;
            if let Some(message) = object["message"].as_str() {
                seen.lock().messages.push(message.to_owned());
            }
            if let Some(holder) = object["spec"]["holderIdentity"].as_str() {
                seen.lock().holders.push(holder.to_owned());
            }
            object["metadata"]["resourceVersion"] = "1".into();
            Ok(Response::new(Full::new(Bytes::from(object.to_string()))))
        }
    });
    (Client::new(service, "default"), written)
}

#[tokio::test(start_paused = true)]
async fn end_of_leadership_is_recorded_by_a_recorder_that_the_manager_shares() {
    let foos = Script::new([foo("web", "1")]);
    let (client, written) = lease_and_events();
    let events = EventRecorder::new(client.clone(), "shop");
    let elector = LeaderElector::builder(client, "shop", "lease").identity("me").events(&events);
    let elector = elector.in_virtual_time(Timestamp::UNIX_EPOCH, 7).build().unwrap();
    let manager = Manager::new(no_factory()).with(idle("foo", &foos));
    let manager = manager.recorder(&events).leader_election(elector);
    manager.run_until(sleep(Duration::from_secs(60))).await.unwrap();
    let written = written.lock();
    assert_eq!(written.messages, ["me became leader", "me stopped leading"]);
    assert_eq!(written.holders.last().unwrap(), "", "{:?}", written.holders);
}

/// A reconcile that blocks stalls its thread, so this test takes real time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lease_of_work_that_blocks_its_thread_is_not_released() {
    let foos = Script::new([foo("web", "1")]);
    let (block, is_entered, release) = blocking();
    let (reconciler, _) = recorder(move |_| {
        block();
        ready(Ok(Action::AwaitChange))
    });
    let controller = Controller::builder("foo", &foos.informer).build(reconciler);
    let (client, written) = lease_and_events();
    let elector = LeaderElector::builder(client, "shop", "lease").identity("me").build().unwrap();
    let manager = Manager::new(no_factory()).with(controller).leader_election(elector);
    let manager = manager.drain_timeout(Duration::ZERO);
    let ended = manager.run_until(async { is_entered.await.unwrap() });
    let ended = timeout(Duration::from_secs(30), ended).await;
    drop(release);
    ended.expect("the manager has ended").unwrap_err();
    let holders = &written.lock().holders;
    assert!(!holders.is_empty() && holders.iter().all(|holder| holder == "me"), "{holders:?}");
}

#[tokio::test(start_paused = true)]
async fn name_of_a_controller_that_was_dropped_is_free() {
    let foos = Script::new([foo("web", "1")]);
    let (gone, zones) = (Script::<Zone>::new([]), Script::new([zone("north", "z")]));
    gone.informer.stop().await;
    let (reconciler, seen) = recorder(|_| ready(Ok(Action::AwaitChange)));
    let dropped = Controller::builder("zone", &gone.informer);
    let dropped = dropped.build(recorder(|_| ready(Ok(Action::AwaitChange))).0);
    let again = Controller::builder("zone", &zones.informer).build(reconciler);
    let manager = Manager::new(no_factory()).with(idle("foo", &foos));
    let handle = manager.handle();
    let story = async {
        assert!(handle.wait_until_ready().await);
        handle.add(dropped);
        sleep(Duration::from_secs(1)).await;
        assert!(handle.unsynced().is_empty(), "no controller waits: {:?}", handle.unsynced());
        handle.add(again);
        sleep(Duration::from_secs(1)).await;
    };
    manager.run_until(story).await.unwrap();
    assert_eq!(seen.keys(), ["north"]);
}
