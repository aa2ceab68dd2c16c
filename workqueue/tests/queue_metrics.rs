//! Metrics and inspection of a queue.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use homeostat_workqueue::inspect::Operation;
use homeostat_workqueue::{Priorities, Processing, Queue, QueueBuilder};
use metrics::{
    Counter, CounterFn, Gauge, GaugeFn, Histogram, HistogramFn, Key, KeyName, Metadata,
    SharedString, Unit,
};
use parking_lot::Mutex;
use tokio::time::{Instant, sleep};

const SECOND: Duration = Duration::from_secs(1);

/// Smallest histogram value at which the recorder panics.
const TOO_LONG: Duration = Duration::from_secs(1_000_000);

/// A recorder that keeps counters, gauges and histogram values by `name{label=value,…}`.
#[derive(Clone, Default)]
struct Recorder {
    /// Queue to which the recorder adds an item when the queue registers a gauge.
    meddles_with: Arc<OnceLock<Queue<&'static str>>>,
    numbers: Arc<Mutex<BTreeMap<String, f64>>>,
    values: Arc<Mutex<BTreeMap<String, Vec<f64>>>>,
}

struct Series {
    recorder: Recorder,
    name: String,
}

// === impl Recorder ===

impl Recorder {
    /// Returns the value of `workqueue_{name}` for the queue `test`.
    fn number(&self, name: &str) -> Option<f64> {
        self.numbers.lock().get(&format!("workqueue_{name}{{name=test}}")).copied()
    }

    fn values(&self, name: &str) -> Vec<f64> {
        let name = format!("workqueue_{name}{{name=test}}");
        self.values.lock().get(&name).cloned().unwrap_or_default()
    }

    /// Returns the depth of the queue `test` by priority label.
    fn depths(&self) -> BTreeMap<String, String> {
        let numbers = self.numbers.lock();
        let depths = numbers.iter().filter_map(|(name, number)| {
            let priority = name.strip_prefix("workqueue_depth{name=test,priority=")?;
            Some((priority.trim_end_matches('}').to_owned(), number.to_string()))
        });
        depths.collect()
    }

    /// Builds the queue `test` with this recorder installed.
    fn build(&self, builder: QueueBuilder<&'static str>) -> Queue<&'static str> {
        metrics::with_local_recorder(self, || builder.name("test").build())
    }

    fn series(&self, key: &Key) -> Arc<Series> {
        let labels: Vec<_> =
            key.labels().map(|label| format!("{}={}", label.key(), label.value())).collect();
        let name = format!("{}{{{}}}", key.name(), labels.join(","));
        Arc::new(Series { recorder: self.clone(), name })
    }
}

impl Series {
    fn change(&self, change: impl FnOnce(f64) -> f64) {
        let mut numbers = self.recorder.numbers.lock();
        let number = numbers.entry(self.name.clone()).or_default();
        *number = change(*number);
        assert!(*number >= 0.0, "{} fell below zero", self.name);
    }
}

impl CounterFn for Series {
    fn increment(&self, value: u64) {
        self.change(|number| number + f64::from(u32::try_from(value).expect("fits into 32 bits")));
    }

    fn absolute(&self, _: u64) {}
}

impl GaugeFn for Series {
    fn increment(&self, value: f64) {
        self.change(|number| number + value);
    }

    fn decrement(&self, value: f64) {
        self.change(|number| number - value);
    }

    fn set(&self, value: f64) {
        self.change(|_| value);
    }
}

impl HistogramFn for Series {
    fn record(&self, value: f64) {
        assert!(value < TOO_LONG.as_secs_f64(), "this recorder panics");
        self.recorder.values.lock().entry(self.name.clone()).or_default().push(value);
    }
}

impl metrics::Recorder for Recorder {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.series(key))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        if let Some(queue) = self.meddles_with.get() {
            queue.at_priority(7).add("meddled");
        }
        Gauge::from_arc(self.series(key))
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(self.series(key))
    }
}

fn take(queue: &Queue<&'static str>) -> Processing<&'static str> {
    queue.try_get().expect("something is queued")
}

fn alive_tasks() -> usize {
    tokio::runtime::Handle::current().metrics().num_alive_tasks()
}

// === metrics ===

#[tokio::test(start_paused = true)]
async fn adds_depth_and_durations_match_client_go() {
    let recorder = Recorder::default();
    let queue = recorder.build(Queue::builder());
    queue.add("a");
    queue.add("a"); // merged: not counted
    queue.add_batch(["b", "a"]);
    assert_eq!((recorder.number("adds_total"), recorder.number("depth")), (Some(2.0), Some(2.0)));

    sleep(SECOND * 2).await;
    let item = take(&queue);
    assert_eq!(recorder.values("queue_duration_seconds"), [2.0]);
    assert_eq!(recorder.number("depth"), Some(1.0));
    queue.add("a");
    queue.add("a");
    // client-go counts an add of a held item at once.
    assert_eq!((recorder.number("adds_total"), recorder.number("depth")), (Some(3.0), Some(2.0)));

    sleep(SECOND * 3).await;
    item.done();
    assert_eq!(recorder.values("work_duration_seconds"), [3.0]);
    assert_eq!(recorder.number("depth"), Some(2.0));
    take(&queue).done();
    take(&queue).done();
    // "b" waited for 5 s; "a" for the 3 s since it was added while held.
    assert_eq!(recorder.values("queue_duration_seconds"), [2.0, 5.0, 3.0]);
    assert_eq!(recorder.number("depth"), Some(0.0));
    assert_eq!(recorder.number("retries_total"), None);
}

#[tokio::test(start_paused = true)]
async fn delayed_adds_count_as_retries_and_as_queued_only_when_due() {
    let recorder = Recorder::default();
    let queue = recorder.build(Queue::builder());
    queue.add_after("a", SECOND);
    queue.add_rate_limited("b");
    queue.add_after("c", Duration::ZERO);
    assert_eq!(recorder.number("retries_total"), Some(3.0));
    assert_eq!((recorder.number("adds_total"), recorder.number("depth")), (Some(1.0), Some(1.0)));
    sleep(SECOND * 2).await;
    assert_eq!((recorder.number("adds_total"), recorder.number("depth")), (Some(3.0), Some(3.0)));
    drop(take(&queue));
    assert_eq!((recorder.number("adds_total"), recorder.number("depth")), (Some(3.0), Some(3.0)));
    queue.shut_down();
    queue.add_after("d", SECOND);
    assert_eq!(recorder.number("retries_total"), Some(3.0), "adds after shut-down are refused");
}

#[tokio::test(start_paused = true)]
async fn gauges_of_held_items_update_every_second() {
    let recorder = Recorder::default();
    let queue = recorder.build(Queue::builder());
    queue.add_batch(["a", "b"]);
    assert_eq!(alive_tasks(), 0, "nothing is held");
    let first = take(&queue);
    assert_eq!(alive_tasks(), 1);
    sleep(SECOND).await;
    let second = take(&queue);
    assert_eq!(alive_tasks(), 1);
    sleep(Duration::from_millis(1100)).await;
    // The last tick was 2 s after the first item was taken, and 1 s after the second.
    assert_eq!(recorder.number("unfinished_work_seconds"), Some(3.0));
    assert_eq!(recorder.number("longest_running_processor_seconds"), Some(2.0));
    first.done();
    sleep(Duration::from_millis(500)).await;
    assert_eq!(recorder.number("unfinished_work_seconds"), Some(1.5));
    assert_eq!(recorder.number("longest_running_processor_seconds"), Some(1.5));
    second.done();
    sleep(SECOND).await;
    assert_eq!(recorder.number("unfinished_work_seconds"), Some(0.0));
    assert_eq!(recorder.number("longest_running_processor_seconds"), Some(0.0));
    assert_eq!(alive_tasks(), 0, "the ticker ends when nothing is held");

    queue.add("c");
    let third = take(&queue);
    assert_eq!(alive_tasks(), 1, "the ticker starts again");
    drop(queue);
    third.done();
    tokio::task::yield_now().await;
    assert_eq!(alive_tasks(), 0, "the ticker ends with the queue");
}

#[tokio::test(start_paused = true)]
async fn dropped_queue_resets_its_gauges() {
    let recorder = Recorder::default();
    let queue = recorder.build(Queue::builder());
    queue.add_batch(["a", "b", "c"]);
    let (first, second) = (take(&queue), take(&queue));
    queue.add("a");
    sleep(Duration::from_millis(1100)).await;
    assert_eq!(recorder.number("unfinished_work_seconds"), Some(2.0));
    assert_eq!(recorder.number("depth"), Some(2.0));
    first.done();
    second.done();
    drop(queue);
    let numbers = ["unfinished_work_seconds", "longest_running_processor_seconds", "depth"];
    assert_eq!(numbers.map(|name| recorder.number(name)), [Some(0.0); 3]);
}

#[test]
fn gauges_of_held_items_need_a_runtime_and_other_metrics_do_not() {
    let recorder = Recorder::default();
    let queue = recorder.build(Queue::builder());
    queue.add("a");
    take(&queue).done();
    assert_eq!(recorder.values("work_duration_seconds").len(), 1);
    assert_eq!(recorder.number("unfinished_work_seconds"), None);
}

#[tokio::test(start_paused = true)]
async fn queue_without_name_or_recorder_records_nothing() {
    let recorder = Recorder::default();
    let unnamed = metrics::with_local_recorder(&recorder, || Queue::builder().build());
    let unseen = Queue::builder().name("test").build();
    metrics::with_local_recorder(&recorder, || {
        for queue in [unnamed, unseen] {
            queue.add("a");
            let item = take(&queue);
            assert_eq!(alive_tasks(), 0);
            item.done();
        }
    });
    assert!(recorder.numbers.lock().is_empty() && recorder.values.lock().is_empty());
}

#[tokio::test(start_paused = true)]
async fn handed_back_items_do_not_count_as_depth() {
    let recorder = Recorder::default();
    // Priorities get their labels when they are first seen.
    let _guard = metrics::set_default_local_recorder(&recorder);
    let queue = recorder.build(Queue::builder().priorities(Priorities::default()));
    queue.add_batch(["held", "a"]);
    queue.at_priority(5).add("b");
    let held = [take(&queue), take(&queue)];
    queue.at_priority(7).add_batch(["b", "c"]);
    let depths = recorder.depths();
    assert_eq!(
        [&*depths["0"], &*depths["7"]],
        ["1", "2"],
        "\"b\" is held, and counted because it was added again"
    );
    assert_eq!(queue.drain(Duration::ZERO).await.len(), 4);
    assert!(recorder.depths().values().all(|depth| *depth == "0"), "{:?}", recorder.depths());
    drop(held);
    assert!(recorder.depths().values().all(|depth| *depth == "0"), "{:?}", recorder.depths());
}

#[tokio::test(start_paused = true)]
async fn depth_counts_item_added_while_held_at_its_next_priority() {
    let recorder = Recorder::default();
    // Priorities get their labels when they are first seen.
    let _guard = metrics::set_default_local_recorder(&recorder);
    let queue = recorder.build(Queue::builder().priorities(Priorities::default()));
    let depths = |[one, two, three]: [&str; 3]| {
        let depths = recorder.depths();
        let depth = |of: &str| depths.get(of).cloned().unwrap_or_else(|| "0".to_owned());
        assert_eq!([depth("1"), depth("2"), depth("3")], [one, two, three]);
    };
    queue.at_priority(2).add("a");
    depths(["0", "1", "0"]);
    let item = take(&queue);
    depths(["0", "0", "0"]);
    queue.at_priority(1).add("a");
    depths(["1", "0", "0"]);
    drop(item); // keeps its own, higher priority
    depths(["0", "1", "0"]);
    let item = take(&queue);
    queue.at_priority(1).add("a");
    queue.at_priority(3).add("a");
    depths(["0", "0", "1"]);
    item.done();
    depths(["0", "0", "1"]);
    drop(take(&queue)); // not added while held
    depths(["0", "0", "1"]);
    take(&queue).done();
    depths(["0", "0", "0"]);
}

#[tokio::test(start_paused = true)]
async fn recorder_panic_loses_one_update() {
    let recorder = Recorder::default();
    let queue = recorder.build(Queue::builder());
    queue.add("a");
    sleep(TOO_LONG).await;
    let item = take(&queue); // the recorder panics here
    assert!(queue.is_empty());
    item.done();
    assert_eq!(recorder.number("depth"), Some(0.0));
}

#[test]
fn recorder_is_called_without_the_queue_lock() {
    let recorder = Recorder::default();
    let _guard = metrics::set_default_local_recorder(&recorder);
    let queue = recorder.build(Queue::builder().priorities(Priorities::default()));
    recorder.meddles_with.set(queue.clone()).expect("set once");
    queue.at_priority(1).add("a"); // would deadlock under the lock
    assert_eq!((queue.len(), take(&queue).priority()), (2, 7));
    // The queue and its recorder hold each other, so both live until the process ends.
}

/// controller-runtime#3060, #3396 and #3419: negative depths, and one time series per priority.
#[tokio::test(start_paused = true)]
async fn depth_by_priority_is_bounded_and_never_below_zero() {
    let recorder = Recorder::default();
    // Priorities get their labels when they are first seen.
    let _guard = metrics::set_default_local_recorder(&recorder);
    let queue = recorder.build(Queue::builder().priorities(Priorities::default()));
    let names: Vec<&'static str> =
        (0..40).map(|number| &*Box::leak(format!("item {number}").into_boxed_str())).collect();
    for (&name, priority) in names.iter().zip(0..) {
        queue.at_priority(priority).add(name);
        queue.at_priority(1000).add_after(name, SECOND);
    }
    let others = "exceeded_cardinality_limit";
    let depths = recorder.depths();
    let depth = |of: &str| &*depths[of];
    assert_eq!((depths.len(), depth("24"), depth(others)), (26, "1", "15"));

    // Each increment is matched by a decrement with the same label: raised, held, added while held
    // and dropped items.
    queue.at_priority(24).add(names[0]);
    queue.at_priority(2000).add(names[1]);
    let depths = recorder.depths();
    let depth = |of: &str| &*depths[of];
    // The first item also has a delay at priority 1000.
    assert_eq!([depth("0"), depth("1"), depth("24"), depth(others)], ["0", "0", "1", "17"]);
    let held: Vec<_> = (0..20).map(|_| take(&queue)).collect();
    queue.at_priority(3).add_batch(names.iter().copied());
    drop(held);
    sleep(SECOND * 2).await;
    assert_eq!(
        recorder.depths()[others],
        "40",
        "all items were raised to 1000 when their delay ended"
    );
    while let Some(item) = queue.try_get() {
        item.done();
    }
    let depths = recorder.depths();
    assert_eq!(depths.len(), 26);
    assert!(depths.values().all(|depth| *depth == "0"), "{depths:?}");
}

/// An item whose drop panics on request.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Fragile;

thread_local! {
    static ARMED: Cell<bool> = const { Cell::new(false) };
}

impl Drop for Fragile {
    fn drop(&mut self) {
        assert!(!ARMED.replace(false), "a panic of the item's drop");
    }
}

#[tokio::test(start_paused = true)]
async fn adds_are_counted_although_the_drop_of_an_item_panics() {
    let recorder = Recorder::default();
    let queue = metrics::with_local_recorder(&recorder, || Queue::builder().name("test").build());
    let adds: [fn(&Queue<Fragile>); 2] =
        [|queue| queue.add(Fragile), |queue| queue.add_batch([Fragile])];
    for (add, adds) in adds.into_iter().zip([1.0, 2.0]) {
        queue.add_after(Fragile, SECOND); // this twin is dropped by the add
        ARMED.set(true);
        assert!(catch_unwind(AssertUnwindSafe(|| add(&queue))).is_err());
        let numbers = (recorder.number("adds_total"), recorder.number("depth"));
        assert_eq!(numbers, (Some(adds), Some(1.0)));
        queue.try_get().expect("it is queued").done();
    }
}

/// An item whose clone panics on request.
#[derive(PartialEq, Eq, Hash)]
struct Touchy(u8);

thread_local! {
    /// Number of clones that succeed before one panics.
    static CLONES: Cell<u32> = const { Cell::new(u32::MAX) };
}

impl Clone for Touchy {
    fn clone(&self) -> Self {
        let left = CLONES.get();
        assert!(left > 0, "this clone panics");
        CLONES.set(left - 1);
        Self(self.0)
    }
}

#[test]
fn depth_is_right_after_a_worker_whose_last_call_panicked() {
    let recorder = Recorder::default();
    let queue = metrics::with_local_recorder(&recorder, || Queue::builder().name("test").build());
    queue.add_batch([Touchy(1), Touchy(2)]);
    let mut worker = queue.worker();
    CLONES.set(1);
    let call = || drop(tokio_test::task::spawn(worker.next_batch(8)).poll());
    assert!(catch_unwind(AssertUnwindSafe(call)).is_err(), "the second clone panics");
    CLONES.set(u32::MAX);
    drop(worker); // queues the first item again
    assert_eq!((queue.len(), recorder.number("depth")), (2, Some(2.0)));
}

// === inspection ===

#[tokio::test(start_paused = true)]
async fn inspection_lists_items_with_operation_time_and_priority() {
    let priorities = Priorities::default().strict();
    let queue = Queue::builder().priorities(priorities).inspect().build();
    let start = Instant::now();
    queue.at_priority(9).add_batch(["held", "wanted", "dropped"]);
    sleep(SECOND).await;
    queue.add("queued");
    queue.at_priority(5).add_after("delayed", SECOND * 60);
    queue.add_rate_limited("failed");
    queue.add_after("was delayed", SECOND);
    let held = [take(&queue), take(&queue)];
    drop(take(&queue));
    sleep(SECOND).await;
    queue.add_rate_limited("wanted");
    queue.add("wanted");
    sleep(SECOND).await;

    let snapshot = queue.inspect().expect("inspection is enabled");
    let at = |seconds: u32, millis| start + SECOND * seconds + Duration::from_millis(millis);
    let queued: Vec<_> =
        snapshot.queued.iter().map(|it| (it.item, it.operation, it.since, it.priority)).collect();
    let expected = [
        ("queued", Operation::Add, at(1, 0), 0),
        ("dropped", Operation::GiveBack, at(1, 0), 9),
        ("failed", Operation::AddRateLimited, at(1, 5), 0),
        ("was delayed", Operation::AddAfter, at(2, 0), 0),
    ];
    assert_eq!(queued.len(), expected.len());
    assert!(expected.iter().all(|item| queued.contains(item)), "{queued:?}");
    assert_eq!(snapshot.queued.iter().map(|it| it.failures).max(), Some(1));

    let delayed: Vec<_> =
        snapshot.delayed.iter().map(|it| (it.item, it.operation, it.until, it.priority)).collect();
    assert_eq!(delayed, [("delayed", Operation::AddAfter, at(61, 0), 5)]);

    let seen: Vec<_> = snapshot.held.iter().map(|it| (it.item, it.since, it.again)).collect();
    assert_eq!(seen, [("held", at(1, 0), false), ("wanted", at(1, 0), true)]);
    assert_eq!((snapshot.held[1].failures, snapshot.held[1].priority), (1, 9));

    // The add ended the pending retry, so the add is the first request for the item.
    let [_, wanted] = held;
    wanted.done();
    let snapshot = queue.inspect().expect("inspection is enabled");
    let wanted = snapshot.queued.iter().find(|it| it.item == "wanted").expect("queued again");
    assert_eq!((wanted.operation, wanted.since), (Operation::Add, at(2, 0)));
}

#[test]
fn inspection_is_off_by_default() {
    let queue = Queue::new();
    queue.add("a");
    assert_eq!(queue.inspect(), None);
}

#[tokio::test(start_paused = true)]
async fn inspection_omits_handed_back_items() {
    let queue = Queue::builder().inspect().build();
    queue.add_batch(["held", "queued"]);
    queue.add_after("delayed", SECOND);
    let held = take(&queue);
    assert_eq!(queue.drain(Duration::ZERO).await.len(), 3);
    let snapshot = queue.inspect().expect("inspection is enabled");
    assert!(snapshot.queued.is_empty() && snapshot.delayed.is_empty() && snapshot.held.is_empty());
    drop(held);
}
