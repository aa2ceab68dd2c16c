use std::fmt::Write as _;
use std::future::pending;
use std::sync::atomic::{AtomicUsize, Ordering};

use homeostat_informer::ObjectKey;
use homeostat_workqueue::{Priorities, Queue};
use k8s_openapi::api::core::v1::ConfigMap;
use parking_lot::Mutex;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::*;
use crate::request::ChangeKind;
use crate::test_error::{Cause, Failure};
use crate::text::Textless;

type Key = ObjectKey<ConfigMap>;

/// The next reconcile's behaviour.
#[derive(Clone, Copy)]
enum Step {
    Settle,
    After(Duration),
    /// Succeeds after this time.
    Slow(Duration),
    Fail,
    Panic,
    Hang,
}

/// A call of the reconciler and its time in milliseconds.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Seen {
    at: u128,
    attempt: u32,
    trigger: String,
    /// True if the key was requested again during a slow reconcile.
    again: bool,
}

struct Scripted {
    start: Instant,
    steps: Mutex<std::vec::IntoIter<Step>>,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Reconciler<ConfigMap> for Scripted {
    type Error = Failure;

    async fn reconcile(&self, request: &Request<ConfigMap>) -> Result<Action, Failure> {
        self.seen.lock().push(Seen {
            at: self.start.elapsed().as_millis(),
            attempt: request.attempt(),
            trigger: request.trigger().to_string(),
            again: false,
        });
        let step = self.steps.lock().next().unwrap_or(Step::Settle);
        match step {
            Step::Settle => Ok(Action::AwaitChange),
            Step::After(delay) => Ok(Action::RequeueAfter(delay)),
            Step::Slow(time) => {
                sleep(time).await;
                let again = request.is_requested_again();
                self.seen.lock().last_mut().expect("it was recorded above").again = again;
                Ok(Action::AwaitChange)
            }
            Step::Fail => Err(Failure(Cause)),
            Step::Panic => panic!("out of order"),
            Step::Hang => pending().await,
        }
    }
}

fn request_queue<T: Target>() -> RequestQueue<T> {
    Queue::builder().causes(Trigger::merge).priorities(Priorities::default()).build()
}

fn worker<T: Target, R>(
    queue: &RequestQueue<T>,
    reconciler: Arc<R>,
    retry_priority: Option<i32>,
) -> Worker<T, R> {
    Worker {
        controller: Arc::from("test"),
        queue: queue.clone(),
        turns: Turns::new(false),
        options: Arc::new(WorkerOptions {
            is_opaque: None,
            timeout: Duration::from_secs(60),
            error_policy: None,
            retry_priority,
            limit: None,
            writes: None,
            metrics: ReconcileMetrics::new("test", 1),
            errors: LastErrors::new(),
            last: LastReconciles::default(),
        }),
        reconciler,
        cancellation: CancellationToken::new(),
    }
}

struct World {
    queue: RequestQueue<ConfigMap>,
    seen: Arc<Mutex<Vec<Seen>>>,
    tasks: JoinSet<()>,
}

impl World {
    fn new(steps: impl IntoIterator<Item = Step>) -> Self {
        Self::with_retry_priority(steps, None)
    }

    fn with_retry_priority(
        steps: impl IntoIterator<Item = Step>,
        retry_priority: Option<i32>,
    ) -> Self {
        let queue = request_queue::<ConfigMap>();
        let seen = Arc::<Mutex<Vec<Seen>>>::default();
        let steps: Vec<Step> = steps.into_iter().collect();
        let reconciler = Scripted {
            start: Instant::now(),
            steps: Mutex::new(steps.into_iter()),
            seen: Arc::clone(&seen),
        };
        let worker = worker(&queue, Arc::new(reconciler), retry_priority);
        let mut tasks = JoinSet::new();
        tasks.spawn(worker.run());
        Self { queue, seen, tasks }
    }

    fn changed(&self) {
        self.queue.because(Trigger::Primary(ChangeKind::Updated)).add(key());
    }

    fn seen(&self) -> Vec<(u128, u32, String)> {
        let seen = self.seen.lock();
        seen.iter().map(|seen| (seen.at, seen.attempt, seen.trigger.clone())).collect()
    }
}

fn key() -> Key {
    ObjectKey::namespaced("ns", "name")
}

fn seen(at: u128, attempt: u32, trigger: &str) -> (u128, u32, String) {
    (at, attempt, trigger.to_owned())
}

#[tokio::test(start_paused = true)]
async fn key_that_succeeds_is_forgotten() {
    let world = World::new([Step::Settle]);
    world.changed();
    sleep(Duration::from_secs(3600)).await;
    assert_eq!(world.seen(), [seen(0, 1, "updated")]);
}

#[tokio::test(start_paused = true)]
async fn change_during_a_reconcile_is_visible_to_it() {
    let slow = || Step::Slow(Duration::from_secs(2));
    let world = World::new([slow(), slow(), Step::Settle]);
    let again = || world.seen.lock().iter().map(|seen| seen.again).collect::<Vec<_>>();
    world.changed();
    sleep(Duration::from_secs(1)).await;
    world.changed();
    sleep(Duration::from_secs(9)).await;
    assert_eq!(again(), [true, false]);
}

#[tokio::test(start_paused = true)]
async fn failed_key_waits_behind_others_at_the_retry_priority() {
    let slow = Step::Slow(Duration::from_millis(20));
    for (retry_priority, last) in [(Some(-1), "retry"), (None, "updated")] {
        let world = World::with_retry_priority([Step::Fail, slow], retry_priority);
        let add = |name: &str| {
            let key = ObjectKey::namespaced("ns", name);
            world.queue.because(Trigger::Primary(ChangeKind::Updated)).add(key);
        };
        add("failing");
        sleep(Duration::from_millis(1)).await;
        // The worker is busy when the retry and a change become due.
        add("slow");
        sleep(Duration::from_millis(10)).await;
        add("changed");
        sleep(Duration::from_secs(1)).await;
        let order = world.seen();
        assert_eq!(order.len(), 4, "{order:?}");
        assert_eq!(order[3].2, last, "{retry_priority:?}: {order:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn failures_and_panics_back_off_until_a_success() {
    let world = World::new([Step::Fail, Step::Panic, Step::Fail, Step::Settle, Step::Fail]);
    world.changed();
    sleep(Duration::from_secs(1)).await;
    world.changed();
    sleep(Duration::from_secs(1)).await;
    assert_eq!(
        world.seen(),
        [
            seen(0, 1, "updated"),
            seen(5, 2, "retry"),
            seen(15, 3, "retry"),
            seen(35, 4, "retry"),
            seen(1000, 1, "updated"),
            seen(1005, 2, "retry"),
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn reconcile_that_hangs_is_dropped_and_retried() {
    let world = World::new([Step::Hang]);
    world.changed();
    sleep(Duration::from_secs(120)).await;
    assert_eq!(world.seen(), [seen(0, 1, "updated"), seen(60_005, 2, "retry")]);
}

#[tokio::test(start_paused = true)]
async fn requeue_comes_after_its_delay_and_forgets_failures() {
    let world = World::new([Step::Fail, Step::After(Duration::from_secs(10)), Step::Fail]);
    world.changed();
    sleep(Duration::from_secs(60)).await;
    assert_eq!(
        world.seen(),
        [
            seen(0, 1, "updated"),
            seen(5, 2, "retry"),
            seen(10_005, 1, "requeue after"),
            seen(10_010, 2, "retry"),
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn change_brings_a_requeue_forward_and_is_the_trigger() {
    let world = World::new([Step::After(Duration::from_secs(10))]);
    world.changed();
    sleep(Duration::from_secs(3)).await;
    world.changed();
    sleep(Duration::from_secs(60)).await;
    assert_eq!(world.seen(), [seen(0, 1, "updated"), seen(3000, 1, "updated")]);
}

#[tokio::test(start_paused = true)]
async fn longest_requeue_delay_is_accepted() {
    let world = World::new([Step::After(Duration::MAX)]);
    world.changed();
    sleep(Duration::from_secs(1)).await;
    world.changed();
    sleep(Duration::from_secs(1)).await;
    assert_eq!(world.seen().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn drain_reconciles_queued_keys_once_and_does_not_wait_for_retries() {
    let mut world = World::new([Step::Fail]);
    world.changed();
    let left = world.queue.drain(Duration::from_secs(10)).await;
    assert!(left.is_empty(), "{left:?}");
    assert!(world.tasks.join_next().await.unwrap().is_ok());
    assert_eq!(world.seen(), [seen(0, 1, "updated")]);
}

/// Keeps the fields of each span named `reconcile`.
#[derive(Clone, Default)]
struct Spans(Arc<Mutex<Vec<String>>>);

struct Fields(String);

impl tracing::field::Visit for Fields {
    fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn fmt::Debug) {
        write!(self.0, " {field}={value:?}").unwrap();
    }
}

impl tracing::Subscriber for Spans {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.is_span()
    }

    fn new_span(&self, span: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        let mut fields = Fields(span.metadata().name().to_owned());
        span.record(&mut fields);
        self.0.lock().push(fields.0);
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, _: &tracing::Event<'_>) {}

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}

#[tokio::test(start_paused = true)]
async fn each_reconcile_has_a_span_with_its_trigger() {
    let spans = Spans::default();
    let _guard = tracing::subscriber::set_default(spans.clone());
    let world = World::new([Step::Fail, Step::Settle]);
    world.changed();
    sleep(Duration::from_secs(1)).await;
    let expected = [
        "reconcile controller=test key=ns/name attempt=1 trigger=updated",
        "reconcile controller=test key=ns/name attempt=2 trigger=retry",
    ];
    assert_eq!(*spans.0.lock(), expected);
}

/// Fails once, then succeeds.
struct FailsOnce(AtomicUsize);

impl Reconciler<Textless> for FailsOnce {
    type Error = Failure;

    async fn reconcile(&self, _: &Request<Textless>) -> Result<Action, Failure> {
        match self.0.fetch_add(1, Ordering::Relaxed) {
            0 => Err(Failure(Cause)),
            _ => Ok(Action::AwaitChange),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn key_whose_display_panics_is_logged_and_retried() {
    let spans = Spans::default();
    let _guard = tracing::subscriber::set_default(spans.clone());
    let (queue, reconciler) =
        (request_queue::<Textless>(), Arc::new(FailsOnce(AtomicUsize::new(0))));
    let worker = worker(&queue, Arc::clone(&reconciler), None);
    worker.options.last.keep();
    let mut tasks = JoinSet::new();
    tasks.spawn(worker.run());
    queue.because(Trigger::Retry).add(Textless);
    sleep(Duration::from_secs(1)).await;
    assert_eq!(reconciler.0.load(Ordering::Relaxed), 2);
    assert!(tasks.try_join_next().is_none(), "the worker ended");
    assert!(spans.0.lock()[1].contains("key=(its text panicked)"), "{:?}", spans.0.lock());
}

#[test]
fn delay_is_rounded_to_milliseconds() {
    let rounded = |nanos| format!("{:?}", rounded(Duration::from_nanos(nanos)));
    assert_eq!([4_999_990_666, 1_499_999, 300_000].map(rounded), ["5s", "1ms", "300µs"]);
    assert!(super::rounded(Duration::MAX) > Duration::from_secs(1));
}
