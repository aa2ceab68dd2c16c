//! [`ManagerHandle`]: the state of a running manager, and the way to add a controller to it.
//!
//! The handle and the manager share the phase, the channel of added controllers, and the lists of
//! informers and queues. A handle does not keep the manager running.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use homeostat_informer::SharedInformerFactory;
use homeostat_informer::status::InformerStatus;
use parking_lot::Mutex;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, watch};

use crate::any_controller::{AnyController, QueueView};
use crate::any_informer::AnyInformer;
use crate::controller::Controller;
use crate::leader_election::ElectionView;
use crate::observe::{Diagnostics, LeaderReport, QueueReport};

/// The number of controllers that may wait for the manager to take them.
const ADDED: usize = 100;

/// A handle to a manager, for probes and for controllers that are added later. Clones share it.
///
/// Take it with [`Manager::handle`](crate::Manager::handle) before
/// [`run_until`](crate::Manager::run_until).
///
/// Its methods answer from memory and send no request.
///
/// # Examples
///
/// A custom kind is reconciled as soon as it is installed:
///
/// ```no_run
/// # use homeostat::{Controller, Manager, shutdown_signal};
/// # async fn doc(manager: Manager, widgets: impl Future<Output = Controller> + Send + 'static)
/// #     -> Result<(), homeostat::RunError> {
/// let handle = manager.handle();
/// let add_later = async move |_| {
///     let controller = widgets.await;
///     handle.add(controller);
///     Ok::<(), std::convert::Infallible>(())
/// };
/// manager.with_runnable("add widgets", add_later).run_until(shutdown_signal()).await
/// # }
/// ```
#[derive(Clone)]
pub struct ManagerHandle {
    pub(super) shared: Arc<Shared>,
}

/// The part of a manager that its handles share.
pub(super) struct Shared {
    pub(super) phase: watch::Sender<ManagerPhase>,
    added: mpsc::Sender<Box<dyn AnyController>>,
    factory: SharedInformerFactory,
    /// The informers of the controllers, also those that do not come from the factory, each behind
    /// the name of its controller.
    informers: Named<Arc<dyn AnyInformer>>,
    /// The queues of the controllers, each behind the name of its controller.
    queues: Named<QueueView>,
    /// `None` without an election.
    election: Mutex<Option<ElectionView>>,
    /// True if diagnostics show the manager.
    is_shown: AtomicBool,
}

/// Parts of controllers, each behind the name of its controller.
type Named<T> = Mutex<Vec<(Arc<str>, T)>>;

/// The step of a manager's life.
///
/// The order of the variants is the order of life, so that phases can be compared: `phase >=
/// ManagerPhase::Standby`. A manager without an election has no `Standby`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum ManagerPhase {
    /// `run_until` was not called yet.
    New,
    /// The caches are not complete yet.
    Syncing,
    /// The caches are complete, and this replica does not lead yet.
    Standby,
    /// The workers run.
    Working,
    /// The manager drains its queues.
    Stopping,
    /// All tasks have ended, or the manager was dropped.
    Stopped,
}

// === impl ManagerHandle ===

impl ManagerHandle {
    pub(super) fn new(
        factory: SharedInformerFactory,
    ) -> (Self, mpsc::Receiver<Box<dyn AnyController>>) {
        let (added, receiver) = mpsc::channel(ADDED);
        let phase = watch::Sender::new(ManagerPhase::New);
        let shared = Shared {
            phase,
            added,
            factory,
            informers: Mutex::default(),
            queues: Mutex::default(),
            election: Mutex::default(),
            is_shown: AtomicBool::new(false),
        };
        (Self { shared: Arc::new(shared) }, receiver)
    }

    /// Returns the step of the manager's life.
    pub fn phase(&self) -> ManagerPhase {
        *self.shared.phase.borrow()
    }

    /// Returns true if the caches are complete and the manager is not stopping. A replica that
    /// waits for leadership is ready.
    ///
    /// Use it for a readiness probe: a rolling update then waits until the new replica has its
    /// caches.
    pub fn is_ready(&self) -> bool {
        matches!(self.phase(), ManagerPhase::Standby | ManagerPhase::Working)
    }

    /// Waits until the manager is ready. Returns false if it stops before.
    ///
    /// # Cancel safety
    ///
    /// This method is cancel safe: it only waits.
    pub async fn wait_until_ready(&self) -> bool {
        let mut phases = self.shared.phase.subscribe();
        let reached = phases.wait_for(|phase| *phase >= ManagerPhase::Standby).await;
        reached.is_ok_and(|phase| *phase < ManagerPhase::Stopping)
    }

    /// Returns the informers whose caches are not complete, by name, with their last errors.
    ///
    /// A controller that is added later appears in it until its caches are complete.
    pub fn unsynced(&self) -> BTreeMap<Arc<str>, Option<String>> {
        let informers = self.informers();
        let own = informers
            .iter()
            .filter(|informer| !informer.has_synced())
            .map(|informer| (Arc::clone(informer.name()), informer.last_error()));
        let shared = self.shared.factory.unsynced().into_iter().map(|informer| {
            let error = informer.error.map(|error| error.to_string());
            (informer.name, error)
        });
        // Most informers are in both lists, and several controllers may share one.
        own.chain(shared).collect()
    }

    /// Adds a controller to the running manager: its informers start, and its workers follow when
    /// its caches are complete. A controller that is added before the manager works waits.
    ///
    /// Its caches may take any time, as its kind may be installed later: the sync timeout is that
    /// of the start. After 2 s, and then every 10 s, the log names the caches that are missing.
    ///
    /// It is logged and dropped if a part of the manager has its name, if one of its informers
    /// stops before its cache is complete, if 100 controllers wait already, or if the manager has
    /// ended or is stopping. Its name is free then.
    pub fn add(&self, controller: Controller) {
        let refused = match self.shared.added.try_send(controller.into_inner()) {
            Ok(()) => return,
            Err(refused) => refused,
        };
        let reason = match &refused {
            TrySendError::Full(_) => "too many controllers wait for the manager",
            TrySendError::Closed(_) => "the manager has ended or is stopping",
        };
        let controller = refused.into_inner();
        tracing::error!(controller = %controller.name(), "{reason}, dropping the controller");
    }

    /// Shows the informers, the queues, the election and the readiness of the manager in
    /// `diagnostics`.
    pub(super) fn show_in(&self, diagnostics: &Diagnostics) {
        self.shared.is_shown.store(true, Ordering::Relaxed);
        let (informers, queues, readiness) = (self.clone(), self.clone(), self.clone());
        let elections = self.clone();
        diagnostics.elections(move || elections.election().into_iter().collect());
        diagnostics.informers(move || informers.informer_statuses());
        diagnostics.queues(move || queues.queue_reports());
        diagnostics.readiness("manager", move || match readiness.phase() {
            ManagerPhase::Standby | ManagerPhase::Working => Ok(()),
            ManagerPhase::New => Err("not started".to_owned()),
            ManagerPhase::Syncing => Err("waiting for the caches".to_owned()),
            ManagerPhase::Stopping => Err("stopping".to_owned()),
            ManagerPhase::Stopped => Err("stopped".to_owned()),
        });
    }

    /// Returns the informers of all controllers, also of those that were added.
    pub(super) fn informers(&self) -> Vec<Arc<dyn AnyInformer>> {
        let informers = self.shared.informers.lock();
        informers.iter().map(|(_, informer)| Arc::clone(informer)).collect()
    }

    /// One status per name, sorted by name.
    fn informer_statuses(&self) -> Vec<InformerStatus> {
        let informers = self.informers();
        let own = informers.iter().map(|informer| informer.status());
        let all = self.shared.factory.statuses().into_iter().chain(own);
        // Most informers are in both lists, and several controllers may share one.
        let by_name: BTreeMap<_, _> =
            all.map(|status| (Arc::clone(&status.name), status)).collect();
        by_name.into_values().collect()
    }

    /// Returns the state of the manager's election, if it has one.
    fn election(&self) -> Option<LeaderReport> {
        let view = self.shared.election.lock().clone();
        view.map(|view| view.report())
    }

    /// Records the election of the manager.
    pub(super) fn elect(&self, view: ElectionView) {
        *self.shared.election.lock() = Some(view);
    }

    fn queue_reports(&self) -> Vec<QueueReport> {
        let queues = self.shared.queues.lock().clone();
        queues.iter().map(|(_, report)| report()).collect()
    }

    /// Records the informers and the queues of a controller, and keeps its last reconciles if
    /// something shows them.
    ///
    /// Called once per controller: when the manager starts, or when it takes an added one.
    pub(super) fn record(&self, controller: &dyn AnyController) {
        if self.shared.is_shown.load(Ordering::Relaxed) {
            controller.keep_last_reconciles();
        }
        let name = || Arc::clone(controller.name());
        let queues = controller.queues().into_iter().map(|queue| (name(), queue));
        self.shared.queues.lock().extend(queues);
        let informers = controller.informers().iter().cloned();
        self.shared.informers.lock().extend(informers.map(|informer| (name(), informer)));
    }

    /// Forgets a controller that was added and dropped.
    pub(super) fn forget(&self, controller: &Arc<str>) {
        // Dropped after the locks: an informer's drop runs the author's code.
        let is_its = |name: &Arc<str>| name == controller;
        let _queues: Vec<_> =
            self.shared.queues.lock().extract_if(.., |(name, _)| is_its(name)).collect();
        let _informers: Vec<_> =
            self.shared.informers.lock().extract_if(.., |(name, _)| is_its(name)).collect();
    }

    /// The phases only go forward.
    pub(super) fn enter(&self, phase: ManagerPhase) {
        self.shared.phase.send_replace(phase);
    }
}

impl fmt::Debug for ManagerHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ManagerHandle").field("phase", &self.phase()).finish_non_exhaustive()
    }
}
