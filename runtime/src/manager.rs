//! Starts informers, waits for their caches, runs controllers, and stops all of them in order.

mod caches;
mod handle;
mod leader;
mod life;
mod runnable;
mod stop;
mod workers;

use std::collections::BTreeSet;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use homeostat_informer::SharedInformerFactory;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tower::BoxError;

pub use self::handle::{ManagerHandle, ManagerPhase};
use self::runnable::Runnable;
use crate::any_controller::AnyController;
use crate::controller::Controller;
use crate::events::EventRecorder;
use crate::leader_election::LeaderElector;
use crate::observe::Diagnostics;
use crate::run_error::RunError;

/// Kubernetes kills a container 30 s after SIGTERM by default. controller-runtime's
/// `GracefulShutdownTimeout` is 30 s.
const DEFAULT_DRAIN_TIMEOUT: Duration = Duration::from_secs(25);

/// controller-runtime's `CacheSyncTimeout`.
const DEFAULT_SYNC_TIMEOUT: Duration = Duration::from_secs(120);

/// Runs controllers over shared informers, from the initial list to the last reconcile.
///
/// 1. The informers start. The manager waits until each cache is complete and each object of the
///    initial lists has been delivered to the handlers. After 2 s, and every 10 s, it logs the
///    caches that are missing and their last error; after the sync timeout it returns an error.
/// 2. With [`leader_election`](Self::leader_election), the manager waits until it leads. Its caches
///    stay in step meanwhile.
/// 3. The workers run. If leadership is lost, they are aborted at once.
/// 4. At shutdown the informers stop, so that no event adds a key. The queues are drained, and the
///    runnables end. When the drain timeout has passed since the shutdown, running reconciles are
///    cancelled through [`Request::cancellation`](crate::Request::cancellation), and dropped one
///    second later. Then the event recorders send what waits, the lease is released, and the
///    services end. Every step has a deadline. Every task has ended when `run_until` returns,
///    except one that blocks its thread.
///
/// Use it for every program with controllers. To test a reconciler, call it with
/// [`Request::new`](crate::Request::new) instead; to test a controller with its events, run a
/// manager against an API server in the same process.
///
/// The manager has no thread of its own. It starts one task per worker, and each informer runs its
/// own tasks. It is controller-runtime's `Manager` without the webhooks. A [`handle`](Self::handle)
/// answers probes.
///
/// # Examples
///
/// ```no_run
/// use std::time::Duration;
///
/// use homeostat::{Controller, Manager, SharedInformerFactory, shutdown_signal};
///
/// # async fn doc(informers: SharedInformerFactory, pods: Controller, nodes: Controller)
/// #     -> Result<(), homeostat::RunError> {
/// Manager::new(informers)
///     .with(pods)
///     .with(nodes)
///     .drain_timeout(Duration::from_secs(10))
///     .run_until(shutdown_signal())
///     .await
/// # }
/// ```
#[must_use = "a manager does nothing until `run_until`"]
pub struct Manager {
    /// Started by `run_until`. A factory that runs already is no error.
    informers: SharedInformerFactory,
    /// In the order of `with`. Workers start in this order.
    controllers: Vec<Box<dyn AnyController>>,
    /// The names of all parts, also of controllers that were added and have not synced yet.
    names: BTreeSet<Arc<str>>,
    /// Controllers that handles have added.
    added: mpsc::Receiver<Box<dyn AnyController>>,
    handle: ManagerHandle,
    /// Run while the controllers do.
    runnables: Vec<Runnable>,
    /// Run from the start to the end.
    services: Vec<Runnable>,
    recorders: Vec<EventRecorder>,
    /// The recorder of the election. It may be one of `recorders`.
    election_events: Option<EventRecorder>,
    sync_timeout: Duration,
    /// Holds for all controllers together: their queues drain concurrently.
    drain_timeout: Duration,
    /// Boxed, and so are its futures: most managers have none, and theirs stay small.
    election: Option<Box<LeaderElector>>,
}

// === impl Manager ===

impl Manager {
    /// Returns a manager of `informers` without controllers.
    ///
    /// Nothing starts before [`run_until`](Self::run_until), unless the caller starts the factory.
    pub fn new(informers: SharedInformerFactory) -> Self {
        let (handle, added) = ManagerHandle::new(informers.clone());
        Self {
            informers,
            controllers: Vec::new(),
            names: BTreeSet::new(),
            added,
            handle,
            runnables: Vec::new(),
            services: Vec::new(),
            recorders: Vec::new(),
            election_events: None,
            sync_timeout: DEFAULT_SYNC_TIMEOUT,
            drain_timeout: DEFAULT_DRAIN_TIMEOUT,
            election: None,
        }
    }

    /// Returns a handle for probes, and for controllers that are added later.
    pub fn handle(&self) -> ManagerHandle {
        self.handle.clone()
    }

    /// Adds `controller`. Its informers that do not come from this manager's factory are started
    /// and stopped with the others.
    ///
    /// Each controller has its own queue and workers. A worker that panics outside of its
    /// reconciler ends the manager and with it all others.
    #[doc(alias = "Add")]
    pub fn with(mut self, controller: Controller) -> Self {
        self.push(controller.into_inner());
        self
    }

    /// Adds a task that runs while the controllers do: after the caches are complete, and only
    /// while this replica leads. `name` appears in logs and errors.
    ///
    /// Its token is cancelled at shutdown; it has the drain timeout to end. If leadership is lost
    /// it is aborted. It may end early with `Ok`; an error or a panic shuts the manager down.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use std::convert::Infallible;
    /// use std::time::Duration;
    ///
    /// use homeostat::{Manager, shutdown_signal};
    ///
    /// # async fn doc(manager: Manager) -> Result<(), homeostat::RunError> {
    /// let sweep = async |stop: homeostat::CancellationToken| {
    ///     let pause = Duration::from_secs(60);
    ///     while stop.run_until_cancelled(tokio::time::sleep(pause)).await.is_some() {
    ///         // Remove what is outdated.
    ///     }
    ///     Ok::<(), Infallible>(())
    /// };
    /// manager.with_runnable("sweep", sweep).run_until(shutdown_signal()).await
    /// # }
    /// ```
    #[doc(alias = "Runnable")]
    pub fn with_runnable<F, Fut, E>(mut self, name: impl Into<Arc<str>>, run: F) -> Self
    where
        F: FnOnce(CancellationToken) -> Fut + Send + 'static,
        Fut: Future<Output = Result<(), E>> + Send + 'static,
        E: Into<BoxError> + 'static,
    {
        self.runnables.push(Runnable::new(name.into(), run));
        self
    }

    /// Adds a task that runs from the start to the end, also without leadership: a listener for
    /// metrics and probes, or a webhook.
    ///
    /// Its token is cancelled after everything else has ended. An error or a panic shuts the
    /// manager down.
    pub fn with_service<F, Fut, E>(mut self, name: impl Into<Arc<str>>, run: F) -> Self
    where
        F: FnOnce(CancellationToken) -> Fut + Send + 'static,
        Fut: Future<Output = Result<(), E>> + Send + 'static,
        E: Into<BoxError> + 'static,
    {
        self.services.push(Runnable::new(name.into(), run));
        self
    }

    /// Shuts `recorder` down when the workers have ended, so that their last events are sent.
    pub fn recorder(mut self, recorder: &EventRecorder) -> Self {
        self.recorders.push(recorder.clone());
        self
    }

    /// Shows the manager's parts in `diagnostics`: the informers, the queues with their failing
    /// keys and last reconciles, the election, and the readiness. The parts of controllers that a
    /// [`handle`](Self::handle) adds later are among them.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use homeostat::observe::{Diagnostics, serve};
    /// use homeostat::{Manager, shutdown_signal};
    ///
    /// # async fn doc(manager: Manager) -> Result<(), Box<dyn std::error::Error>> {
    /// let diagnostics = Diagnostics::new();
    /// let _server = serve(([127, 0, 0, 1], 8080).into(), &diagnostics).await?;
    /// manager.diagnostics(&diagnostics).run_until(shutdown_signal()).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn diagnostics(self, diagnostics: &Diagnostics) -> Self {
        self.handle.show_in(diagnostics);
        for controller in &self.controllers {
            controller.keep_last_reconciles();
        }
        self
    }

    /// Sets the time for the initial lists (default 2 minutes, controller-runtime's
    /// `CacheSyncTimeout`). After it [`run_until`](Self::run_until) returns
    /// [`RunError::NeverSynced`], so that a supervisor sees a program that cannot work.
    ///
    /// `Duration::MAX` waits without a limit.
    #[doc(alias = "CacheSyncTimeout")]
    pub fn sync_timeout(mut self, timeout: Duration) -> Self {
        self.sync_timeout = timeout;
        self
    }

    /// Sets the time at shutdown for keys that are queued or being reconciled (default 25 s,
    /// because Kubernetes kills a container 30 s after SIGTERM).
    ///
    /// The time counts from the shutdown. A manager needs up to 1 s more for reconciles that do not
    /// react to their cancellation, up to 5 s for events that wait, and up to the renew deadline
    /// (10 s by default) to release a lease. A candidate that is writing the lease first waits for
    /// the answer, for half of that deadline. A lease that is not released expires.
    #[doc(alias = "GracefulShutdownTimeout")]
    pub fn drain_timeout(mut self, timeout: Duration) -> Self {
        self.drain_timeout = timeout;
        self
    }

    /// Lets the controllers run only while `elector` leads.
    ///
    /// The client of the controllers should carry [`LeaderElector::fence`], so that no write of a
    /// former leader reaches the server.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use homeostat::{Controller, LeaderElector, Manager, SharedInformerFactory, shutdown_signal};
    ///
    /// # async fn doc(controller: impl Fn(&SharedInformerFactory) -> Controller)
    /// #     -> Result<(), Box<dyn std::error::Error>> {
    /// let builder = homeostat::client::builder().infer().await?;
    /// let elector =
    ///     LeaderElector::builder(builder.clone().build(), "default", "my-controller").build()?;
    /// let client = builder.layer(&elector.fence()).build();
    /// let informers = SharedInformerFactory::new(&client);
    /// let controller = controller(&informers);
    /// Manager::new(informers)
    ///     .with(controller)
    ///     .leader_election(elector)
    ///     .run_until(shutdown_signal())
    ///     .await?;
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "LeaderElection")]
    pub fn leader_election(mut self, elector: LeaderElector) -> Self {
        self.handle.elect(elector.view());
        self.election_events = elector.recorder().cloned();
        self.election = Some(Box::new(elector));
        self
    }

    fn push(&mut self, controller: Box<dyn AnyController>) {
        self.handle.record(controller.as_ref());
        self.controllers.push(controller);
    }
}

impl Drop for Manager {
    /// Handles that wait for a manager that was dropped, or never ran, must not wait forever.
    ///
    /// A manager that is dropped while it runs has left its informers running: a handle keeps them.
    /// The first poll of `stop` stops an informer.
    fn drop(&mut self) {
        let phase = self.handle.phase();
        self.handle.enter(ManagerPhase::Stopped);
        if ManagerPhase::New < phase && phase < ManagerPhase::Stopped {
            for informer in self.handle.informers() {
                informer.stop().now_or_never();
            }
            self.informers.stop().now_or_never();
        }
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
