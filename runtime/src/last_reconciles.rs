//! The last reconciles of a controller and the requests that they sent, for the debug page.
//!
//! They are kept only while a manager shows them, because each costs some allocations.
//!
//! ```text
//!  worker ─ start ─▶ recording ─ task-local ─▶ client ─ call_started ─▶ line ─ answered ─▶ line
//!     └──────── ended ─▶ LastReconciles ─ all ─▶ debug page
//! ```
//!
//! A request belongs to the reconcile in whose task it is sent. Requests of tasks that a reconciler
//! spawns belong to none.

use std::collections::VecDeque;
use std::fmt::Display;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::{Method, Uri};
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::text::{Guarded, beginning};

/// The number of reconciles that are kept.
const KEPT: usize = 100;

/// The number of requests of one reconcile that are kept. The others are counted.
const CALLS: usize = 20;

/// The longest text of an outcome or a request, in characters.
const LONGEST: usize = 300;

tokio::task_local! {
    /// The requests of the reconcile that runs in this task.
    static CALLS_OF_TASK: Option<Arc<Calls>>;
}

/// The last reconciles of a controller. Its workers share them.
///
/// A reconcile that is not kept costs one load of an atomic.
#[derive(Debug, Default)]
pub(crate) struct LastReconciles {
    is_kept: AtomicBool,
    /// The latest last, at most [`KEPT`].
    kept: Mutex<VecDeque<Arc<PastReconcile>>>,
}

/// A reconcile that has ended.
#[derive(Debug)]
pub(crate) struct PastReconcile {
    pub(crate) key: String,
    pub(crate) trigger: String,
    pub(crate) attempt: u32,
    pub(crate) ended: Instant,
    pub(crate) took: Duration,
    /// At most [`LONGEST`] characters.
    pub(crate) outcome: String,
    /// At most [`CALLS`] requests, in the order in which they were sent.
    pub(crate) calls: Vec<String>,
    /// The number of all requests.
    pub(crate) call_count: usize,
}

/// A reconcile that runs.
#[derive(Debug)]
pub(crate) struct Recording {
    started: Instant,
    calls: Arc<Calls>,
}

/// A request that was sent and has no answer yet. Without an answer its line ends with the path.
#[derive(Debug)]
pub(crate) struct Call {
    calls: Arc<Calls>,
    /// `None` if the line is not kept.
    line: Option<usize>,
}

#[derive(Debug, Default)]
struct Calls(Mutex<CallLines>);

#[derive(Debug, Default)]
struct CallLines {
    kept: Vec<String>,
    count: usize,
}

// === impl LastReconciles ===

impl LastReconciles {
    /// Keeps the reconciles that start from now on.
    pub(crate) fn keep(&self) {
        self.is_kept.store(true, Ordering::Relaxed);
    }

    /// Records the start of a reconcile; `None` if it is not kept.
    pub(crate) fn start(&self) -> Option<Recording> {
        let recording = || Recording { started: Instant::now(), calls: Arc::default() };
        self.is_kept.load(Ordering::Relaxed).then(recording)
    }

    /// Adds a reconcile. The oldest of more than 100 is dropped.
    pub(crate) fn push(&self, reconcile: PastReconcile) {
        let reconcile = Arc::new(reconcile);
        let mut kept = self.kept.lock();
        let oldest = if kept.len() < KEPT { None } else { kept.pop_front() };
        kept.push_back(reconcile);
        drop(kept);
        drop(oldest);
    }

    /// Returns the reconciles, latest first.
    pub(crate) fn all(&self) -> Vec<Arc<PastReconcile>> {
        self.kept.lock().iter().rev().cloned().collect()
    }
}

// === impl Recording ===

impl Recording {
    /// Records the end of the reconcile.
    pub(crate) fn ended(
        self,
        (key, trigger, attempt): (&dyn Display, &dyn Display, u32),
        outcome: &str,
    ) -> PastReconcile {
        let ended = Instant::now();
        let CallLines { kept, count } = std::mem::take(&mut *self.calls.0.lock());
        PastReconcile {
            key: Guarded(key).to_string(),
            trigger: trigger.to_string(),
            attempt,
            ended,
            took: ended.saturating_duration_since(self.started),
            outcome: beginning(outcome, LONGEST).to_owned(),
            calls: kept,
            call_count: count,
        }
    }
}

/// Runs `reconcile`, and records its requests.
pub(crate) fn record_calls<F: Future>(
    recording: Option<&Recording>,
    reconcile: F,
) -> impl Future<Output = F::Output> + use<F> {
    let calls = recording.map(|recording| Arc::clone(&recording.calls));
    CALLS_OF_TASK.scope(calls, reconcile)
}

/// Records a request of the reconcile that runs in this task; `None` if none runs, or if it is not
/// kept.
///
/// The query of the URL is left out: it can have any length.
pub(crate) fn call_started(method: &Method, uri: &Uri) -> Option<Call> {
    let calls = CALLS_OF_TASK.try_with(Clone::clone).ok()??;
    let mut lines = calls.0.lock();
    lines.count += 1;
    let line = (lines.kept.len() < CALLS).then(|| {
        lines.kept.push(format!("{method} {}", beginning(uri.path(), LONGEST)));
        lines.kept.len() - 1
    });
    drop(lines);
    Some(Call { calls, line })
}

// === impl Call ===

impl Call {
    /// Records the status code of the answer, or the failure of the request.
    pub(crate) fn answered(self, code: Option<u16>) {
        let mut lines = self.calls.0.lock();
        // The lines are gone if the reconcile has ended meanwhile.
        if let Some(line) = self.line.and_then(|line| lines.kept.get_mut(line)) {
            let code = code.map_or_else(|| "failed".to_owned(), |code| code.to_string());
            line.push(' ');
            line.push_str(&code);
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::task::JoinSet;

    use super::*;

    fn uri(text: &'static str) -> Uri {
        Uri::from_static(text)
    }

    fn past(recording: Recording, key: &str) -> PastReconcile {
        recording.ended((&key, &"added", 1), "await change")
    }

    async fn is_unrecorded() -> bool {
        tokio::task::yield_now().await;
        call_started(&Method::GET, &uri("/other")).is_none()
    }

    #[tokio::test(start_paused = true)]
    async fn requests_of_the_task_are_recorded_with_their_answers() {
        let last = LastReconciles::default();
        assert!(last.start().is_none(), "nothing shows them");
        last.keep();
        let recording = last.start().unwrap();
        let reconcile = async {
            let created = call_started(&Method::POST, &uri("/api/v1/pods?dryRun=All")).unwrap();
            let unanswered = call_started(&Method::GET, &uri("/api/v1/pods/a")).unwrap();
            created.answered(Some(201));
            drop(unanswered);
            call_started(&Method::GET, &uri("/version")).unwrap().answered(None);
            let mut others = JoinSet::new();
            others.spawn(is_unrecorded());
            assert!(others.join_next().await.unwrap().unwrap(), "it is another task");
        };
        record_calls(Some(&recording), reconcile).await;
        tokio::time::advance(Duration::from_secs(3)).await;
        let past = past(recording, "shop/web");
        let lines = ["POST /api/v1/pods 201", "GET /api/v1/pods/a", "GET /version failed"];
        assert_eq!((past.calls, past.call_count), (lines.map(str::to_owned).to_vec(), 3));
        assert_eq!(past.took, Duration::from_secs(3));
        assert!(is_unrecorded().await);
        assert!(record_calls(None, is_unrecorded()).await);
    }

    #[tokio::test(start_paused = true)]
    async fn number_of_reconciles_and_requests_is_bounded() {
        let last = LastReconciles::default();
        last.keep();
        for n in 0..150 {
            last.push(past(last.start().unwrap(), &n.to_string()));
        }
        let all = last.all();
        assert_eq!((all.len(), &*all[0].key, &*all[99].key), (100, "149", "50"));
        let recording = last.start().unwrap();
        let call = || call_started(&Method::GET, &uri("/api/v1/pods")).unwrap();
        let reconcile = async { (0..50).for_each(|_| call().answered(Some(200))) };
        record_calls(Some(&recording), reconcile).await;
        let past = past(recording, "many");
        assert_eq!((past.calls.len(), past.call_count), (20, 50));
    }
}
