//! Starts informers, waits for their caches, runs controllers, and ends them in order.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use homeostat_informer::SharedInformerFactory;
use tokio::task::{JoinError, JoinSet};

use crate::controller::Controller;
use crate::run::Run;
use crate::worker::panic_message;

/// What controller-runtime gives; Kubernetes kills a container 30 s after SIGTERM unless told otherwise.
const DEFAULT_DRAIN_TIMEOUT: Duration = Duration::from_secs(25);

/// Between telling reconciles that nobody waits for them and dropping them.
const AFTER_CANCELLATION: Duration = Duration::from_secs(1);

/// How often it says which cache it still waits for.
const REPORT_EVERY: Duration = Duration::from_secs(10);

/// Runs controllers over shared informers, from the first list to the last reconcile.
///
/// 1. The informers start, and everything waits until each cache is complete and each object in it has asked for its
///    keys. While that takes long, a line in the log says which cache is missing, and why.
/// 2. The workers run.
/// 3. When told to end: the informers stop, so that nothing new is asked for; the queues are drained for at most the drain timeout; then
///    reconciles that are still running are told through [`Request::cancellation`](crate::Request::cancellation), and dropped a
///    second later. Every task is joined: nothing runs on when `run_until` returns.
#[must_use = "a manager does nothing until `run_until`"]
pub struct Manager {
    informers: SharedInformerFactory,
    controllers: Vec<Box<dyn Run>>,
    drain_timeout: Duration,
}

/// Why a manager did not end well.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// Somebody else stopped an informer before its cache was complete.
    #[error("an informer was stopped before its cache was complete")]
    InformerStopped,
    /// A worker panicked outside of its reconciler: in a rate limiter, or by a mistake in this library.
    #[error("a worker panicked: {message}")]
    #[non_exhaustive]
    WorkerPanicked {
        /// What it said.
        message: String,
    },
    /// Keys were left when the drain timeout had passed.
    #[error("{keys} keys were not done when the drain timeout of {timeout:?} had passed")]
    #[non_exhaustive]
    Undrained {
        /// How many.
        keys: usize,
        /// The timeout.
        timeout: Duration,
    },
}

type Workers = JoinSet<Arc<str>>;

/// How the wait for the caches ended.
enum Synced {
    Yes,
    ShutDown,
    /// An informer was stopped.
    Never,
}

// === impl Manager ===

impl Manager {
    /// A manager without controllers, over `informers`.
    pub fn new(informers: SharedInformerFactory) -> Self {
        Self { informers, controllers: Vec::new(), drain_timeout: DEFAULT_DRAIN_TIMEOUT }
    }

    /// Runs `controller` too. Informers of its that are not of this manager's factory are started and stopped with the others.
    pub fn with(mut self, controller: Controller) -> Self {
        self.controllers.push(controller.into_inner());
        self
    }

    /// Waits that long at the end for keys that are queued or being reconciled. Unless told: 25 s.
    pub fn drain_timeout(mut self, timeout: Duration) -> Self {
        self.drain_timeout = timeout;
        self
    }

    /// Runs until `shutdown` is ready, and then to the end.
    ///
    /// # Errors
    ///
    /// When not everything was done in time, or a worker panicked outside of its reconciler. Everything has ended then too.
    ///
    /// # Cancel safety
    ///
    /// Dropped, it drops the reconciles that are running and ends the informers, without waiting for either.
    pub async fn run_until(mut self, shutdown: impl Future<Output = ()>) -> Result<(), RunError> {
        let mut shutdown = pin!(shutdown);
        let mut workers = Workers::new();
        self.start_informers();
        let outcome = match self.synced_before(shutdown.as_mut()).await {
            Synced::Yes => self.work_until(shutdown, &mut workers).await,
            // Nobody took a key, so there is nothing to drain.
            Synced::ShutDown => {
                self.stop_informers().await;
                return Ok(());
            }
            Synced::Never => {
                self.stop_informers().await;
                return Err(RunError::InformerStopped);
            }
        };
        self.stop_informers().await;
        let drained = self.drain(&mut workers).await;
        outcome.and(drained)
    }

    async fn work_until(
        &self,
        shutdown: Pin<&mut impl Future<Output = ()>>,
        workers: &mut Workers,
    ) -> Result<(), RunError> {
        for controller in &self.controllers {
            controller.start(workers);
        }
        tracing::info!(controllers = self.controllers.len(), "the caches are complete: running");
        tokio::select! {
            biased;
            () = shutdown => Ok(()),
            // Without a controller there is no worker: then only the shutdown ends it.
            Some(ended) = workers.join_next() => worker_ended(ended),
        }
    }

    fn start_informers(&self) {
        self.informers.start();
        for informer in self.controllers.iter().flat_map(|controller| controller.informers()) {
            informer.start();
        }
    }

    async fn synced_before<F: Future<Output = ()>>(&self, mut shutdown: Pin<&mut F>) -> Synced {
        let mut synced = pin!(self.synced());
        loop {
            tokio::select! {
                biased;
                () = shutdown.as_mut() => return Synced::ShutDown,
                synced = synced.as_mut() => return if synced { Synced::Yes } else { Synced::Never },
                () = tokio::time::sleep(REPORT_EVERY) => self.report_unsynced(),
            }
        }
    }

    /// False if an informer was stopped instead.
    async fn synced(&self) -> bool {
        let mut all = self.informers.synced().await;
        for controller in &self.controllers {
            for informer in controller.informers() {
                all = all && informer.synced().await;
            }
            all = all && controller.handlers_synced().await;
        }
        all
    }

    fn report_unsynced(&self) {
        let own = self.controllers.iter().flat_map(|controller| controller.informers());
        let own = own
            .filter(|informer| !informer.has_synced())
            .map(|informer| (Arc::clone(informer.name()), informer.trouble()));
        let shared = self.informers.unsynced().into_iter().map(|informer| {
            let trouble = informer.error.map(|error| error.to_string());
            (informer.name, trouble)
        });
        // Most are both, and several controllers may share one.
        let unsynced: BTreeMap<Arc<str>, Option<String>> = own.chain(shared).collect();
        for (informer, trouble) in unsynced {
            let trouble = trouble.unwrap_or_else(|| "the first list has no answer yet".to_owned());
            tracing::warn!(%informer, "still waiting for the cache: {trouble}");
        }
    }

    /// Nothing new is asked for after this.
    async fn stop_informers(&mut self) {
        for controller in &mut self.controllers {
            controller.unsubscribe().await;
        }
        self.informers.stop().await;
        for controller in &self.controllers {
            join_all(controller.informers().iter().map(|informer| informer.stop())).await;
        }
    }

    async fn drain(&self, workers: &mut Workers) -> Result<(), RunError> {
        let timeout = self.drain_timeout;
        let drains = self.controllers.iter().map(|controller| controller.drain(timeout));
        let keys: usize = join_all(drains).await.into_iter().sum();
        for controller in &self.controllers {
            controller.cancellation().cancel();
        }
        let joined = tokio::time::timeout(AFTER_CANCELLATION, join(workers)).await;
        if joined.is_err() {
            workers.abort_all();
            // An error here is about a task that was told to end.
            drop(join(workers).await);
        }
        if keys == 0 {
            tracing::info!("everything is done");
            joined.unwrap_or(Ok(()))
        } else {
            Err(RunError::Undrained { keys, timeout })
        }
    }
}

/// Waits until every worker has ended; the first that panicked is the error.
async fn join(workers: &mut Workers) -> Result<(), RunError> {
    let mut result = Ok(());
    while let Some(ended) = workers.join_next().await {
        let ended = worker_ended(ended);
        result = result.and(ended);
    }
    result
}

fn worker_ended(ended: Result<Arc<str>, JoinError>) -> Result<(), RunError> {
    match ended.map_err(JoinError::try_into_panic) {
        Err(Ok(panic)) => {
            let message = panic_message(panic.as_ref());
            tracing::error!(
                "a worker panicked outside of its reconciler: {message}; shutting down"
            );
            Err(RunError::WorkerPanicked { message })
        }
        Ok(_) | Err(Err(_)) => Ok(()),
    }
}

impl fmt::Debug for Manager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.controllers.iter().map(|controller| controller.name()).collect();
        f.debug_struct("Manager")
            .field("controllers", &names)
            .field("drain_timeout", &self.drain_timeout)
            .finish_non_exhaustive()
    }
}
