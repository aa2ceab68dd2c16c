use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;
use tokio::time::timeout;

use super::*;
use crate::scripted_server::{Answer, Asked, refusal, server};

fn elector(client: kube_client::Client) -> LeaderElector {
    let builder = LeaderElector::builder(client, "shop", "lease").identity("me");
    builder.in_virtual_time(Timestamp::UNIX_EPOCH, 7).build().unwrap()
}

#[tokio::test(start_paused = true)]
async fn lease_that_cannot_be_created_is_shown_with_its_error() {
    let (client, _) = server(|asked| match asked.line.split(' ').next() {
        Some("GET") => refusal(404, "leases \"lease\" not found"),
        _ => refusal(404, "namespaces \"shop\" not found"),
    });
    let elector = elector(client);
    let view = elector.view();
    assert!(timeout(Duration::from_secs(60), elector.acquire()).await.is_err());
    let report = view.report();
    assert!(report.failures >= 10, "{report:?}");
    assert_eq!(
        report.last_error.as_deref(),
        Some(
            "error initially creating leader election record: namespaces \"shop\" not found (404 \
             NotFound)"
        )
    );
}

#[tokio::test(start_paused = true)]
async fn success_ends_a_series_of_failures() {
    let requests = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&requests);
    let (client, _) = server(move |asked| match count.fetch_add(1, Ordering::Relaxed) {
        0..5 => refusal(403, "forbidden"),
        _ if asked.line.starts_with("GET") => refusal(404, "not found"),
        _ => Answer::Said(201, json!({"metadata": {"name": "lease", "resourceVersion": "1"}})),
    });
    let elector = elector(client);
    let view = elector.view();
    let leadership = timeout(Duration::from_secs(60), elector.acquire()).await.unwrap();
    let report = view.report();
    assert_eq!((report.is_leader, report.failures, report.last_error), (true, 0, None));
    assert_eq!(requests.load(Ordering::Relaxed), 7, "five refusals, a read, a create");
    drop(leadership);
}

/// Returns the answer of a server that has stored the lease of the request's body.
fn stored(body: &str, version: usize) -> serde_json::Value {
    let mut lease: serde_json::Value = serde_json::from_str(body).unwrap();
    lease["metadata"]["resourceVersion"] = json!(version.to_string());
    lease
}

/// Returns the client of a server that stores a lease and refuses each later write of it as a
/// conflict, and the number of these writes.
fn conflicting() -> (kube_client::Client, Arc<AtomicUsize>) {
    let lease = parking_lot::Mutex::new(None);
    let writes = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&writes);
    let (client, _) = server(move |asked| match asked.line.split(' ').next() {
        Some("GET") => match &*lease.lock() {
            Some(lease) => Answer::Said(200, serde_json::Value::clone(lease)),
            None => refusal(404, "not found"),
        },
        Some("POST") => {
            let created = stored(&asked.text, 1);
            *lease.lock() = Some(created.clone());
            Answer::Said(201, created)
        }
        // Ends a loop without a pause, which would take no virtual time.
        _ if count.fetch_add(1, Ordering::Relaxed) > 1000 => Answer::Lost,
        _ => refusal(409, "the object has been modified"),
    });
    (client, writes)
}

#[tokio::test(start_paused = true)]
async fn leader_whose_writes_conflict_pauses_between_its_attempts() {
    let (client, writes) = conflicting();
    let leadership = timeout(Duration::from_secs(60), elector(client).acquire()).await.unwrap();
    assert_eq!(leadership.lost().await, LeadershipLost::DeadlinePassed);
    let writes = writes.load(Ordering::Relaxed);
    assert!(writes <= 10, "{writes} writes in 10 s");
}

#[test]
fn periods_of_any_length_are_checked_without_a_panic() {
    let service = tower::service_fn(|_: http::Request<kube_client::client::Body>| {
        pending::<Result<http::Response<http_body_util::Full<bytes::Bytes>>, Infallible>>()
    });
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let _inside = runtime.enter();
    let client = kube_client::Client::new(service, "default");
    let builder = LeaderElector::builder(client, "shop", "lease");
    let invalid = builder.clone().retry_period(Duration::MAX).build().unwrap_err();
    assert!(invalid.to_string().starts_with("the renew deadline (10s) must be"), "{invalid}");
    let invalid = builder.renew_deadline(Duration::MAX).build().unwrap_err();
    assert!(invalid.to_string().starts_with("the lease duration (15s) must be"), "{invalid}");
}

#[tokio::test(start_paused = true)]
async fn lease_is_released_after_work_that_panics_before_its_future_exists() {
    let (client, log) = server(|asked| match asked.line.split(' ').next() {
        Some("GET") => refusal(404, "not found"),
        Some("POST") => Answer::Said(201, stored(&asked.text, 1)),
        _ => Answer::Said(200, stored(&asked.text, 2)),
    });
    let work = |_| -> std::future::Ready<()> { panic!("no work") };
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(elector(client).run(pending(), work));
    assert!(tasks.join_next().await.unwrap().unwrap_err().is_panic());
    let last = log.all().pop().unwrap();
    assert!(last.text.contains(r#""holderIdentity":"""#), "{last:?}");
}

/// Runs a candidate to its shutdown, which comes with its first write. Returns the requests.
///
/// The server stores the lease. The answer to the first write is lost if `is_lost`.
async fn requests_until_shutdown_during_write(is_lost: bool) -> Vec<Asked> {
    let shutdown = CancellationToken::new();
    let (trigger, lease) = (shutdown.clone(), parking_lot::Mutex::new(None));
    let (client, log) = server(move |asked| match asked.line.split(' ').next() {
        Some("GET") => match &*lease.lock() {
            Some(lease) => Answer::Said(200, serde_json::Value::clone(lease)),
            None => refusal(404, "not found"),
        },
        Some("POST") => {
            trigger.cancel();
            let created = stored(&asked.text, 1);
            *lease.lock() = Some(created.clone());
            if is_lost { Answer::Lost } else { Answer::Said(201, created) }
        }
        _ => Answer::Said(200, stored(&asked.text, 2)),
    });
    let work = |_| async { panic!("the work started after the shutdown") };
    let ended = elector(client).run(shutdown.cancelled(), work).await;
    assert!(matches!(ended, Ok(None::<()>)), "{ended:?}");
    log.all()
}

#[tokio::test(start_paused = true)]
async fn lease_that_is_acquired_during_shutdown_is_released() {
    for is_lost in [false, true] {
        let requests = requests_until_shutdown_during_write(is_lost).await;
        let last = requests.last().unwrap();
        assert!(last.line.starts_with("PUT "), "{is_lost}: {requests:?}");
        assert!(last.text.contains(r#""holderIdentity":"""#), "{is_lost}: {last:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn candidate_that_only_reads_ends_at_shutdown_without_a_request() {
    let service = tower::service_fn(|_: http::Request<kube_client::client::Body>| {
        pending::<Result<http::Response<http_body_util::Full<bytes::Bytes>>, Infallible>>()
    });
    let client = kube_client::Client::new(service, "default");
    let start = tokio::time::Instant::now();
    let shutdown = tokio::time::sleep(Duration::from_secs(1));
    let ended = elector(client).run(shutdown, |_| async {}).await;
    assert_eq!((ended, start.elapsed()), (Ok(None), Duration::from_secs(1)));
}

/// Returns a client whose server creates the lease and answers `renewed` to each renewal.
fn creating(renewed: impl Fn(&Asked) -> Answer + Send + Sync + 'static) -> kube_client::Client {
    let (client, _) = server(move |asked| match asked.line.split(' ').next() {
        Some("GET") => refusal(404, "not found"),
        Some("POST") => Answer::Said(201, stored(&asked.text, 1)),
        _ => renewed(asked),
    });
    client
}

/// Returns a client whose renewals get no answer.
fn without_renewals(client: kube_client::Client) -> kube_client::Client {
    let send = move |request: http::Request<kube_client::client::Body>| {
        let client = client.clone();
        async move {
            match *request.method() {
                http::Method::PUT => pending().await,
                _ => client.send(request).await,
            }
        }
    };
    kube_client::Client::new(tower::service_fn(send), "default")
}

#[tokio::test(start_paused = true)]
async fn end_of_leadership_shows_in_the_metric_and_on_the_page() {
    let level = Arc::new(Level::default());
    let leads = || level.value.load(Ordering::Relaxed) == 1;
    let candidate = |client| {
        let mut elector = elector(client);
        elector.metrics.is_leader = ::metrics::Gauge::from_arc(Arc::clone(&level));
        elector
    };

    let dropped = candidate(creating(|asked| Answer::Said(200, stored(&asked.text, 2))));
    let view = dropped.view();
    let leadership = dropped.acquire().await;
    assert!(leads() && view.report().is_leader);
    drop(leadership);
    assert!(!leads() && !view.report().is_leader);

    // The renewal waits for an answer when the deadline passes.
    let lost = candidate(without_renewals(creating(|_| Answer::Lost)));
    let view = lost.view();
    let ended = lost.run(pending(), |_| pending::<()>()).await;
    assert_eq!(ended, Err(LeadershipLost::DeadlinePassed));
    assert!(!leads() && !view.report().is_leader);
}

/// Work that blocks stalls its thread, so this test takes real time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn loss_is_returned_while_the_work_blocks_its_thread() {
    let builder = LeaderElector::builder(creating(|_| refusal(500, "no")), "shop", "lease");
    let builder = builder.retry_period(Duration::from_millis(100));
    let elector = builder.renew_deadline(Duration::from_millis(500)).build().unwrap();
    let (release, blocked) = std::sync::mpsc::channel::<()>();
    // An error means that the test has ended.
    let work = |_| async move { blocked.recv().unwrap_or_default() };
    let ended = timeout(Duration::from_secs(30), elector.run(pending(), work)).await;
    drop(release);
    assert_eq!(ended, Ok(Err(LeadershipLost::DeadlinePassed)));
}

#[tokio::test]
async fn lease_without_a_name_or_a_namespace_is_refused() {
    for (namespace, name, says) in [
        ("", "lease", "the namespace of the lease must not be empty"),
        ("shop", "", "the name of the lease must not be empty"),
    ] {
        let client = creating(|_| Answer::Lost);
        let invalid = LeaderElector::builder(client, namespace, name).build().unwrap_err();
        assert_eq!(invalid.to_string(), says);
    }
}

#[test]
fn removed_holder_is_not_shown_as_an_empty_name() {
    let taken = |holder: &str| LeadershipLost::TakenBy { holder: holder.to_owned() }.to_string();
    assert_eq!(taken("other"), "leader election lost: the lease is held by other");
    assert_eq!(taken(""), "leader election lost: another party removed the holder of the lease");
}

/// The last value of a gauge.
#[derive(Default)]
struct Level {
    value: AtomicUsize,
    /// Each update panics.
    is_broken: bool,
}

impl ::metrics::GaugeFn for Level {
    fn increment(&self, by: f64) {
        self.set(by);
    }

    fn decrement(&self, by: f64) {
        self.set(-by);
    }

    fn set(&self, value: f64) {
        assert!(!self.is_broken, "the recorder is broken");
        self.value.store(usize::from(value > 0.0), Ordering::Relaxed);
    }
}

#[tokio::test(start_paused = true)]
async fn broken_recorder_does_not_end_an_election() {
    let mut elector = elector(creating(|asked| Answer::Said(200, stored(&asked.text, 2))));
    elector.metrics.is_leader =
        ::metrics::Gauge::from_arc(Arc::new(Level { is_broken: true, ..Level::default() }));
    let ended = elector.run(pending(), |_| tokio::time::sleep(Duration::from_secs(60))).await;
    assert_eq!(ended, Ok(Some(())));
}

#[tokio::test(start_paused = true)]
async fn release_whose_writes_conflict_pauses_between_its_attempts() {
    let (client, writes) = conflicting();
    elector(client).acquire().await.release().await;
    let writes = writes.load(Ordering::Relaxed);
    assert!((3..=7).contains(&writes), "{writes} writes in 10 s");
}
