//! The start of the informers, and the wait for their caches.
//!
//! Order: start all informers at once, then wait for each. The caches sync in parallel, so that the
//! start takes as long as the slowest of them. No worker starts before all caches of all
//! controllers have synced, as in controller-runtime: a reconciler may read caches of other
//! controllers.

use std::future::Future;
use std::ops::ControlFlow;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use homeostat_informer::status::InformerFailure;
use tokio::task::JoinSet;

use super::{AnyController, Manager, RunError};

/// The time after which the caches that are missing are logged for the first time: an operator may
/// be watching the start.
const FIRST_REPORT_AFTER: Duration = Duration::from_secs(2);

/// The period of the further log lines.
const REPORT_EVERY: Duration = Duration::from_secs(10);

/// The added controllers whose caches are not complete. A task ends with the controller, or with
/// the name of one that was dropped.
pub(super) type Syncing = JoinSet<Result<Box<dyn AnyController>, Arc<str>>>;

impl Manager {
    /// Starts the factory's informers, then those of controllers from elsewhere. A second start of
    /// an informer has no effect.
    ///
    /// The factory's informers start together, so that one log line names them.
    pub(super) fn start_informers(&self) {
        self.informers.start();
        for informer in self.controllers.iter().flat_map(|controller| controller.informers()) {
            informer.start();
        }
    }

    /// Waits for the caches. Breaks if `end` is ready or the sync timeout passes before, or if an
    /// informer is stopped.
    ///
    /// The first line about missing caches comes after 2 s, further ones every 10 s, each with the
    /// last error of its informer.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future stops the wait only. The informers run on.
    pub(super) async fn sync_before<F>(
        &self,
        mut end: Pin<&mut F>,
    ) -> ControlFlow<Result<(), RunError>>
    where
        F: Future<Output = Result<(), RunError>>,
    {
        tokio::select! {
            biased;
            ended = end.as_mut() => ControlFlow::Break(ended),
            synced = with_reports(self.wait_for_sync(), || self.report_unsynced()) => synced,
            () = tokio::time::sleep(self.sync_timeout) => {
                ControlFlow::Break(Err(self.never_synced()))
            }
        }
    }

    /// Starts the informers of a controller that was added, and waits for its caches in a task of
    /// `syncing`. If an informer is stopped, the task logs that and returns the controller's name.
    ///
    /// The wait has no end but that of the manager: the kind may be installed days later. The log
    /// says what is missing, like that of the start.
    ///
    /// A controller whose name exists already is dropped with an error in the log: its metrics and
    /// its queue would mix with those of the other.
    pub(super) fn sync_added(&mut self, controller: Box<dyn AnyController>, syncing: &mut Syncing) {
        let name = controller.name();
        if !self.names.insert(Arc::clone(name)) {
            tracing::error!(controller = %name, "a part has this name, dropping the controller");
            return;
        }
        self.handle.record(controller.as_ref());
        self.informers.start();
        for informer in controller.informers() {
            informer.start();
        }
        syncing.spawn(async move {
            let synced = wait_for(controller.as_ref());
            if with_reports(synced, || report_waiting(controller.as_ref())).await {
                return Ok(controller);
            }
            let failures = controller.informers().iter().filter_map(|informer| informer.failure());
            let error = failures.map(RunError::from).next().unwrap_or(RunError::InformerStopped);
            tracing::error!(controller = %controller.name(), %error, "dropping the controller");
            Err(Arc::clone(controller.name()))
        });
    }

    /// Waits for all caches and handlers. Breaks if an informer is stopped before.
    ///
    /// The handlers count too: a controller starts when its queue holds the keys of all initial
    /// objects, so that priorities decide about the first reconciles, and not the order of arrival.
    async fn wait_for_sync(&self) -> ControlFlow<Result<(), RunError>> {
        let mut all = self.informers.wait_for_sync().await;
        for controller in &self.controllers {
            all = all && wait_for(controller.as_ref()).await;
        }
        if all {
            ControlFlow::Continue(())
        } else {
            let failure = self.informer_failure();
            ControlFlow::Break(Err(failure.map_or(RunError::InformerStopped, Into::into)))
        }
    }

    /// Returns the panic that has stopped an informer, if there was one.
    fn informer_failure(&self) -> Option<InformerFailure> {
        let mut own = self.controllers.iter().flat_map(|controller| controller.informers());
        let failure = self.informers.failure();
        failure.or_else(|| own.find_map(|informer| informer.failure()))
    }

    /// Returns a future that waits until a task of an informer panics. Informers that are added
    /// later are not among them.
    ///
    /// The future owns handles of the informers and borrows nothing, so that the manager can add
    /// controllers while it waits.
    pub(super) fn wait_for_informer_failure(&self) -> BoxFuture<'static, InformerFailure> {
        let shared = self.informers.clone();
        let own = self.controllers.iter().flat_map(|controller| controller.informers());
        let own: Vec<_> = own.cloned().collect();
        Box::pin(async move {
            let ends: FuturesUnordered<_> =
                own.iter().map(|informer| informer.wait_for_stop()).collect();
            let mut failures = pin!(ends.filter_map(|end| std::future::ready(end.err())));
            tokio::select! {
                biased;
                failure = shared.wait_for_failure() => failure,
                Some(failure) = failures.next() => failure,
            }
        })
    }

    /// Returns the error after the sync timeout.
    fn never_synced(&self) -> RunError {
        let unsynced = self.handle.unsynced().into_iter().map(|(informer, error)| {
            format!("{informer}: {}", error.unwrap_or_else(|| NO_ANSWER.to_owned()))
        });
        let late =
            self.late_controllers().map(|name| format!("controller {name}: {NOT_DELIVERED}"));
        let unsynced = unsynced.chain(late).collect();
        RunError::NeverSynced { timeout: self.sync_timeout, unsynced }
    }

    /// Returns the controllers that are [late](is_late).
    fn late_controllers(&self) -> impl Iterator<Item = &Arc<str>> {
        let late = self.controllers.iter().filter(|controller| is_late(controller.as_ref()));
        late.map(|controller| controller.name())
    }

    /// Logs each cache that has no initial list yet, once per informer, and each controller whose
    /// handlers have not got it.
    fn report_unsynced(&self) {
        for (informer, error) in self.handle.unsynced() {
            warn_of_cache(&informer, error);
        }
        for controller in self.late_controllers() {
            warn_of_handlers(controller);
        }
    }
}

const NO_ANSWER: &str = "the initial list has no answer yet";
const NOT_DELIVERED: &str = "a mapper has not got the initial list";

/// Waits for the caches and handlers of one controller.
///
/// Returns false if one of the informers is stopped before it has synced.
async fn wait_for(controller: &dyn AnyController) -> bool {
    for informer in controller.informers() {
        if !informer.wait_for_sync().await {
            return false;
        }
    }
    controller.wait_for_handlers().await
}

/// Returns true if the caches of a controller are complete and its handlers have not got all of the
/// initial lists: a mapper blocks.
fn is_late(controller: &dyn AnyController) -> bool {
    let is_complete = controller.informers().iter().all(|informer| informer.has_synced());
    is_complete && controller.wait_for_handlers().now_or_never().is_none()
}

/// Waits for `synced`. Calls `report` after [`FIRST_REPORT_AFTER`], then every [`REPORT_EVERY`].
async fn with_reports<T>(synced: impl Future<Output = T>, report: impl Fn()) -> T {
    let mut synced = pin!(synced);
    let mut next_report = FIRST_REPORT_AFTER;
    loop {
        tokio::select! {
            biased;
            synced = synced.as_mut() => return synced,
            () = tokio::time::sleep(next_report) => report(),
        }
        next_report = REPORT_EVERY;
    }
}

/// Logs each cache of a controller that has no initial list yet, and handlers that have not got it.
fn report_waiting(controller: &dyn AnyController) {
    for informer in controller.informers().iter().filter(|informer| !informer.has_synced()) {
        warn_of_cache(informer.name(), informer.last_error());
    }
    if is_late(controller) {
        warn_of_handlers(controller.name());
    }
}

fn warn_of_cache(informer: &str, error: Option<String>) {
    let error = error.unwrap_or_else(|| NO_ANSWER.to_owned());
    tracing::warn!(%informer, %error, "still waiting for the cache to sync");
}

fn warn_of_handlers(controller: &str) {
    tracing::warn!(%controller, "still waiting for the controller: {NOT_DELIVERED}");
}
