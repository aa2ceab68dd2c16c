//! [`Reloads`]: the reloads that go on without the request that began them.

use std::future::Future;

use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tower::BoxError;

/// The tasks of reloads. A task keeps the credentials until it ends, also if no client has them any
/// more.
///
/// A request has a timeout of 30 s, and a plugin may take 60 s, or wait for a person. If it were
/// stopped with its request, it would never end.
#[derive(Default)]
pub(super) struct Reloads {
    /// At most one task runs: it holds the lock of the credentials.
    tasks: Mutex<JoinSet<()>>,
}

// === impl Reloads ===

impl Reloads {
    /// Runs `reload` in a task and returns its result.
    ///
    /// # Errors
    ///
    /// If the reload fails, or if the runtime stops. An error that the caller does not wait for is
    /// logged.
    ///
    /// # Cancel safety
    ///
    /// The reload goes on if the future is dropped.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        reload: impl Future<Output = Result<T, BoxError>> + Send + 'static,
    ) -> Result<T, BoxError> {
        let (answer, answered) = oneshot::channel();
        let task = async move {
            if let Err(Err(error)) = answer.send(reload.await) {
                tracing::warn!(%error, "failed to load credentials");
            }
        };
        self.spawn(task);
        answered.await.unwrap_or_else(|error| Err(error.into()))
    }

    /// Starts a task. The lock is held to add it.
    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = self.tasks.lock();
        while tasks.try_join_next().is_some() {}
        tasks.spawn(task);
    }
}
