//! [`Workers`]: the tasks that a manager supervises, from their start to their results.

use homeostat_core::Panicked;
use tokio::task::{JoinError, JoinSet};

use super::leader::Leader;
use crate::any_controller::AnyController;
use crate::run_error::RunError;

/// The workers of all controllers, and the runnables.
pub(super) type Workers = JoinSet<Result<(), RunError>>;

/// Starts the workers and timers of `controller`. They are aborted if leadership is lost.
pub(super) fn start_workers(
    controller: &dyn AnyController,
    leader: &Leader,
    workers: &mut Workers,
) {
    let started = controller.start().into_iter().map(|worker| {
        workers.spawn(async move {
            worker.await;
            Ok(())
        })
    });
    leader.abort_on_loss(started.collect());
}

/// Waits for the first task that fails. Never ready if none does.
pub(super) async fn first_failure(tasks: &mut Workers) -> RunError {
    while let Some(ended) = tasks.join_next().await {
        if let Err(failed) = task_ended(ended) {
            tracing::error!(error = %failed, "shutting down after a failure");
            return failed;
        }
    }
    std::future::pending().await
}

/// Waits until every task has ended. Returns the first error.
pub(super) async fn join(tasks: &mut Workers) -> Result<(), RunError> {
    let mut result = Ok(());
    while let Some(ended) = tasks.join_next().await {
        let ended = task_ended(ended);
        result = result.and(ended);
    }
    result
}

/// Returns the error of a task, or its panic as an error. An aborted task is no error: the manager
/// aborts it.
fn task_ended(ended: Result<Result<(), RunError>, JoinError>) -> Result<(), RunError> {
    match ended.map_err(JoinError::try_into_panic) {
        Ok(result) => result,
        Err(Ok(panic)) => {
            let message = Panicked::from_panic(panic.as_ref()).message().to_owned();
            Err(RunError::WorkerPanicked { message })
        }
        Err(Err(_)) => Ok(()),
    }
}
