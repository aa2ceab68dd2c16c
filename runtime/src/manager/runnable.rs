//! Parts of a program that are no controllers: tasks that a manager starts, watches and stops.
//!
//! A part is a future that ends when its token is cancelled. It fails with an error or a panic,
//! which ends the manager; a part that returns `Ok` early is no failure.

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use homeostat_core::user_future;
use parking_lot::Mutex;
use tokio::task::{AbortHandle, JoinSet};
use tokio_util::sync::CancellationToken;
use tower::BoxError;

use crate::client::describe_chain;
use crate::run_error::RunError;

/// A part that a manager runs, with its name.
///
/// It runs once.
pub(super) struct Runnable {
    pub(super) name: Arc<str>,
    /// The lock makes the manager `Sync`, and is never taken.
    run: Mutex<Run>,
}

type Run = Box<dyn FnOnce(CancellationToken) -> BoxFuture<'static, Result<(), String>> + Send>;

/// The tokens and names of running parts.
///
/// Dropping it stops nothing: the tasks belong to a `JoinSet` of the manager.
#[derive(Default)]
pub(super) struct Running {
    /// Cancelled when the parts must end.
    pub(super) stop: CancellationToken,
    /// The names of the parts that have not ended.
    names: Arc<Mutex<BTreeSet<Arc<str>>>>,
}

/// Removes its name from the running parts.
///
/// It is dropped when the part ends, is aborted or panics, so that the names are right in each
/// case.
struct Ended {
    name: Arc<str>,
    names: Arc<Mutex<BTreeSet<Arc<str>>>>,
}

// === impl Runnable ===

impl Runnable {
    /// The error becomes text inside the boundary for panics, because `Display` is the author's
    /// code.
    pub(super) fn new<F, Fut, E>(name: Arc<str>, run: F) -> Self
    where
        F: FnOnce(CancellationToken) -> Fut + Send + 'static,
        Fut: Future<Output = Result<(), E>> + Send + 'static,
        E: Into<BoxError>,
    {
        let run = |stop| {
            let boundary = user_future("runnable", async move {
                run(stop).await.map_err(|error| describe_chain(error.into().as_ref()))
            });
            let flat = |result: Result<_, homeostat_core::Panicked>| {
                result.unwrap_or_else(|panicked| Err(panicked.to_string()))
            };
            boundary.map(flat).boxed()
        };
        Self { name, run: Mutex::new(Box::new(run)) }
    }
}

// === impl Running ===

impl Running {
    /// Starts `runnable` as a task of `tasks`.
    ///
    /// The part gets a child token: it may cancel its own without stopping the others.
    pub(super) fn start(
        &self,
        runnable: Runnable,
        tasks: &mut JoinSet<Result<(), RunError>>,
    ) -> AbortHandle {
        let Runnable { name, run } = runnable;
        self.names.lock().insert(Arc::clone(&name));
        let ended = Ended { name: Arc::clone(&name), names: Arc::clone(&self.names) };
        let stop = self.stop.child_token();
        tasks.spawn(async move {
            let result = run.into_inner()(stop).await;
            drop(ended);
            result.map_err(|error| RunError::RunnableFailed { name, error })
        })
    }

    /// Returns the names of the parts that have not ended.
    pub(super) fn names(&self) -> Vec<String> {
        self.names.lock().iter().map(ToString::to_string).collect()
    }
}

impl Drop for Ended {
    fn drop(&mut self) {
        self.names.lock().remove(&self.name);
    }
}
