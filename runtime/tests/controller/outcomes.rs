//! Outcomes of a reconcile: terminal errors, policies, postponed keys, limits on work and retries.

use std::future::ready;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use homeostat::{Action, Controller, Manager, OnError, TerminalError, WorkLimit};
use tokio::time::{Instant, sleep};

use super::support::{Foo, Script, foo, no_factory, recorder, zone};

#[tokio::test(start_paused = true)]
async fn terminal_error_is_not_retried_before_a_change() {
    let foos = Script::new([foo("web", "1")]);
    let (reconciler, seen) =
        recorder(|_| ready(Err(std::io::Error::other(TerminalError::new("invalid")).into())));
    let controller = Controller::builder("foo", &foos.informer).build(reconciler);
    let story = async {
        sleep(Duration::from_secs(3600)).await;
        assert_eq!(seen.lines(), ["ns/web listed"]);
        foos.apply(foo("web", "1"));
        sleep(Duration::from_secs(3600)).await;
        assert_eq!(seen.lines(), ["ns/web listed", "ns/web updated"]);
    };
    Manager::new(no_factory()).with(controller).run_until(story).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn policy_decides_for_each_error() {
    let foos = Script::new([foo("web", "1")]);
    let (reconciler, seen) = recorder(|seen| ready(Err(seen.keys().len().to_string().into())));
    let controller = Controller::builder("foo", &foos.informer)
        .error_policy(|_, error| match error.to_string().as_str() {
            "1" => OnError::RetryAfter(Duration::from_secs(60)),
            _ => OnError::AwaitChange,
        })
        .build(reconciler);
    let story = async {
        sleep(Duration::from_secs(59)).await;
        assert_eq!(seen.keys().len(), 1);
        sleep(Duration::from_secs(3600)).await;
        assert_eq!(seen.lines(), ["ns/web listed", "ns/web retry"]);
    };
    Manager::new(no_factory()).with(controller).run_until(story).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn postponed_key_keeps_its_failures() {
    let foos = Script::new([foo("web", "1")]);
    let start = Instant::now();
    let (reconciler, seen) = recorder(|seen| {
        // Fails, and waits 1 s for its cache in the pass after each failure.
        let is_failing = seen.keys().len() % 2 == 1;
        ready(if is_failing {
            Err("refused".into())
        } else {
            Ok(Action::Postpone(Duration::from_secs(1)))
        })
    });
    let controller = Controller::builder("foo", &foos.informer).build(reconciler);
    let story = async {
        while seen.keys().len() < 30 {
            sleep(Duration::from_millis(1)).await;
        }
    };
    Manager::new(no_factory()).with(controller).run_until(story).await.unwrap();
    // 15 failures: the last back-off alone is 5 ms × 2^14.
    assert!(start.elapsed() > Duration::from_secs(80), "{:?}", start.elapsed());
}

/// The number of reconciles that run, and the highest number so far.
#[derive(Default)]
struct Running {
    now: AtomicUsize,
    most: AtomicUsize,
}

/// Reconciles for 1 s.
async fn work(running: Arc<Running>) -> Result<Action, tower::BoxError> {
    let now = running.now.fetch_add(1, Ordering::SeqCst) + 1;
    running.most.fetch_max(now, Ordering::SeqCst);
    sleep(Duration::from_secs(1)).await;
    running.now.fetch_sub(1, Ordering::SeqCst);
    Ok(Action::AwaitChange)
}

#[tokio::test(start_paused = true)]
async fn controllers_share_a_work_limit() {
    let foos = Script::new(["a", "b", "c"].map(|name| foo(name, name)));
    let zones = Script::new(["x", "y", "z"].map(|name| zone(name, name)));
    let running = Arc::<Running>::default();
    let limit = WorkLimit::new(2);
    let (first, second) = (Arc::clone(&running), Arc::clone(&running));
    let (of_foos, seen_foos) = recorder(move |_| work(Arc::clone(&first)));
    let (of_zones, seen_zones) = recorder(move |_| work(Arc::clone(&second)));
    let first = Controller::builder("foo", &foos.informer).workers(3).work_limit(&limit);
    let second = Controller::builder("zone", &zones.informer).workers(3).work_limit(&limit);
    let manager =
        Manager::new(no_factory()).with(first.build(of_foos)).with(second.build(of_zones));
    manager.run_until(sleep(Duration::from_secs(10))).await.unwrap();
    assert_eq!(seen_foos.keys().len() + seen_zones.keys().len(), 6);
    assert_eq!(running.most.load(Ordering::SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn retries_of_all_keys_share_a_bucket_by_default() {
    let foos = Script::<Foo>::new((0..200).map(|n| foo(&format!("f{n}"), &format!("u{n}"))));
    let (reconciler, seen) = recorder(|_| ready(Err("down".into())));
    let controller = Controller::builder("foo", &foos.informer).workers(10).build(reconciler);
    let manager = Manager::new(no_factory()).with(controller);
    manager.run_until(sleep(Duration::from_secs(60))).await.unwrap();
    // 200 first tries, a burst of 100 retries, and 10 per second.
    let tries = seen.keys().len();
    assert!((600..=910).contains(&tries), "{tries}");
}
