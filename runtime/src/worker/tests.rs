use std::future::pending;

use homeostat_informer::testing::Store;
use homeostat_workqueue::Queue;
use k8s_openapi::api::core::v1::ConfigMap;
use parking_lot::Mutex;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::*;
use crate::reconciler::Change;

type Key = ObjectKey<ConfigMap>;

/// What the next reconcile does.
#[derive(Clone, Copy)]
enum Step {
    Settle,
    After(Duration),
    Fail,
    Panic,
    Hang,
}

/// What a reconcile was told, and when (in milliseconds).
#[derive(Debug, Clone, PartialEq, Eq)]
struct Seen {
    at: u128,
    attempt: u32,
    why: String,
}

struct Scripted {
    start: Instant,
    steps: Mutex<std::vec::IntoIter<Step>>,
    seen: Arc<Mutex<Vec<Seen>>>,
}

#[derive(Debug, thiserror::Error)]
#[error("failed to do it")]
struct Failure(#[source] Cause);

#[derive(Debug, thiserror::Error)]
#[error("it is too heavy")]
struct Cause;

impl Reconciler<ConfigMap> for Scripted {
    type Error = Failure;

    async fn reconcile(&self, request: &Request<ConfigMap>) -> Result<Action, Failure> {
        self.seen.lock().push(Seen {
            at: self.start.elapsed().as_millis(),
            attempt: request.attempt(),
            why: request.why().to_string(),
        });
        let step = self.steps.lock().next().unwrap_or(Step::Settle);
        match step {
            Step::Settle => Ok(Action::AwaitChange),
            Step::After(delay) => Ok(Action::RequeueAfter(delay)),
            Step::Fail => Err(Failure(Cause)),
            Step::Panic => panic!("out of order"),
            Step::Hang => pending().await,
        }
    }
}

struct World {
    inbox: Inbox<ConfigMap>,
    seen: Arc<Mutex<Vec<Seen>>>,
    tasks: JoinSet<()>,
}

impl World {
    fn new(steps: impl IntoIterator<Item = Step>) -> Self {
        let inbox = Inbox::new(Queue::new());
        let seen = Arc::<Mutex<Vec<Seen>>>::default();
        let steps: Vec<Step> = steps.into_iter().collect();
        let reconciler = Scripted {
            start: Instant::now(),
            steps: Mutex::new(steps.into_iter()),
            seen: Arc::clone(&seen),
        };
        let worker = Worker {
            controller: Arc::from("test"),
            inbox: inbox.clone(),
            primary: Store::new().lister(),
            reconciler: Arc::new(reconciler),
            timeout: Duration::from_secs(60),
            cancellation: CancellationToken::new(),
        };
        let mut tasks = JoinSet::new();
        tasks.spawn(worker.run());
        Self { inbox, seen, tasks }
    }

    fn changed(&self) {
        self.inbox.add(key(), 0, Why::Itself(Change::Updated));
    }

    fn seen(&self) -> Vec<(u128, u32, String)> {
        let seen = self.seen.lock();
        seen.iter().map(|seen| (seen.at, seen.attempt, seen.why.clone())).collect()
    }
}

fn key() -> Key {
    ObjectKey::namespaced("ns", "name")
}

fn seen(at: u128, attempt: u32, why: &str) -> (u128, u32, String) {
    (at, attempt, why.to_owned())
}

#[tokio::test(start_paused = true)]
async fn a_key_that_succeeds_is_forgotten() {
    let world = World::new([Step::Settle]);
    world.changed();
    sleep(Duration::from_secs(3600)).await;
    assert_eq!(world.seen(), [seen(0, 1, "updated")]);
}

#[tokio::test(start_paused = true)]
async fn a_key_that_fails_or_panics_backs_off_until_it_succeeds_and_then_starts_anew() {
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
async fn a_reconcile_that_hangs_is_ended_and_tried_again() {
    let world = World::new([Step::Hang]);
    world.changed();
    sleep(Duration::from_secs(120)).await;
    assert_eq!(world.seen(), [seen(0, 1, "updated"), seen(60_005, 2, "retry")]);
}

#[tokio::test(start_paused = true)]
async fn another_look_comes_when_asked_for_and_forgets_failures() {
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
async fn a_change_brings_another_look_forward_and_is_the_reason() {
    let world = World::new([Step::After(Duration::from_secs(10))]);
    world.changed();
    sleep(Duration::from_secs(3)).await;
    world.changed();
    sleep(Duration::from_secs(60)).await;
    assert_eq!(world.seen(), [seen(0, 1, "updated"), seen(3000, 1, "updated")]);
}

#[tokio::test(start_paused = true)]
async fn a_second_look_after_ages_does_no_harm() {
    let world = World::new([Step::After(Duration::MAX)]);
    world.changed();
    sleep(Duration::from_secs(1)).await;
    world.changed();
    sleep(Duration::from_secs(1)).await;
    assert_eq!(world.seen().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_drain_does_what_is_queued_once_and_does_not_wait_for_retries() {
    let mut world = World::new([Step::Fail]);
    world.changed();
    let undone = world.inbox.drain(Duration::from_secs(10)).await;
    assert!(undone.is_empty(), "{undone:?}");
    assert!(world.tasks.join_next().await.unwrap().is_ok());
    assert_eq!(world.seen(), [seen(0, 1, "updated")]);
}

#[test]
fn an_error_is_told_with_its_causes_once_each() {
    let error = Failure(Cause);
    assert_eq!(Chain(&error).to_string(), "failed to do it: it is too heavy");
    let repeating = std::io::Error::other(Failure(Cause));
    assert_eq!(Chain(&repeating).to_string(), "failed to do it: it is too heavy");
}
