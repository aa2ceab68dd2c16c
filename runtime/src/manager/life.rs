//! The life of a running manager: its phases, from the start of the services to their end.
//!
//! Each step has a method. A step that waits also ends when the manager has to end: at the
//! shutdown, or if a service or an informer has failed.

use std::future::Future;
use std::ops::ControlFlow;
use std::pin::{Pin, pin};
use std::sync::Arc;

use tokio::task::JoinSet;

use super::caches::Syncing;
use super::leader::Leader;
use super::runnable::Running;
use super::workers::{Workers, first_failure, start_workers};
use super::{Manager, ManagerPhase, stop};
use crate::run_error::RunError;

impl Manager {
    /// Runs until `shutdown` is ready, then stops in order.
    ///
    /// # Errors
    ///
    /// Returns an error if caches are not complete within the sync timeout, if keys were left after
    /// the drain timeout, if a worker panicked outside of its reconciler, if a runnable or a
    /// service failed, if an informer failed, if one was stopped from outside before its cache was
    /// complete, if a part did not stop, if two parts have one name, or if leadership was lost. All
    /// tasks have ended in these cases too, except those that block their threads.
    ///
    /// Do not stop an informer while the manager runs: after the initial list it is no error, and
    /// the controllers go on with a cache that stands still.
    ///
    /// # Panics
    ///
    /// Panics outside of a tokio runtime.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the running reconciles and stops the informers without waiting for
    /// them. A lease is not released: it expires. The phase is then [`ManagerPhase::Stopped`].
    ///
    /// # Examples
    ///
    /// A manager in a test ends when the test says so:
    ///
    /// ```no_run
    /// # async fn doc(manager: homeostat::Manager) -> Result<(), Box<dyn std::error::Error>> {
    /// let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    /// let running = tokio::spawn(manager.run_until(async { drop(stopped.await) }));
    /// // Create objects, and wait for what the controller makes of them.
    /// drop(stop);
    /// running.await??;
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "Start")]
    pub async fn run_until(mut self, shutdown: impl Future<Output = ()>) -> Result<(), RunError> {
        self.check_names()?;
        let (running, mut tasks) = (Running::default(), JoinSet::new());
        for service in std::mem::take(&mut self.services) {
            running.start(service, &mut tasks);
        }
        let ended = {
            let end = async {
                tokio::select! {
                    biased;
                    () = shutdown => Ok(()),
                    failed = first_failure(&mut tasks) => Err(failed),
                }
            };
            self.run_controllers(pin!(end)).await
        };
        let stopped = stop::end_services(&running, &mut tasks).await;
        self.handle.enter(ManagerPhase::Stopped);
        ended.and(stopped)
    }

    /// Runs the controllers until `end` is ready, then stops them in order.
    async fn run_controllers<F>(&mut self, mut end: Pin<&mut F>) -> Result<(), RunError>
    where
        F: Future<Output = Result<(), RunError>>,
    {
        self.handle.enter(ManagerPhase::Syncing);
        self.start_informers();
        let leader = match self.lead_before(end.as_mut()).await {
            ControlFlow::Continue(leader) => leader,
            ControlFlow::Break(ended) => {
                // No worker has started, so there is nothing to drain.
                self.handle.enter(ManagerPhase::Stopping);
                self.refuse_added();
                let stopped = self.stop_informers().await;
                self.flush_events().await;
                self.flush_election_events().await;
                return ended.and(stopped);
            }
        };
        let (mut workers, running) = (Workers::new(), Running::default());
        let outcome = self.work_until(end, &leader, &running, &mut workers).await;
        self.handle.enter(ManagerPhase::Stopping);
        self.refuse_added();
        let deadline = stop::deadline_after(self.drain_timeout);
        let stopped = self.stop_informers().await;
        let drained = tokio::select! {
            biased;
            lost = leader.lost() => {
                stop::abort(&mut workers).await;
                Err(lost.into())
            }
            drained = self.drain(deadline, &running, &mut workers) => drained,
        };
        self.flush_events().await;
        // A task that blocks its thread may go on with its work: the lease expires then.
        if workers.is_empty() {
            leader.release().await;
        }
        self.flush_election_events().await;
        outcome.and(drained).and(stopped)
    }

    /// Waits for the caches and for leadership. Breaks with the result of `end` if that is ready
    /// before, or with the failure of an informer: a replica may wait for leadership for days, and
    /// must not lead with a cache that stands still.
    async fn lead_before<F>(
        &mut self,
        end: Pin<&mut F>,
    ) -> ControlFlow<Result<(), RunError>, Leader>
    where
        F: Future<Output = Result<(), RunError>>,
    {
        let failed_informer = self.wait_for_informer_failure();
        let mut end = pin!(async {
            tokio::select! {
                biased;
                ended = end => ended,
                failure = failed_informer => Err(failure.into()),
            }
        });
        self.sync_before(end.as_mut()).await?;
        let Some(elector) = self.election.take() else {
            return ControlFlow::Continue(Leader::without_election());
        };
        self.handle.enter(ManagerPhase::Standby);
        match Box::pin(elector.acquire_before(end)).await {
            Ok(leadership) => ControlFlow::Continue(Leader::elected(leadership)),
            Err(ended) => ControlFlow::Break(ended),
        }
    }

    /// Starts the workers and waits for the end, a loss of leadership, or a failure of a task.
    /// Workers do not end by themselves before the queues are shut down.
    async fn work_until(
        &mut self,
        mut end: Pin<&mut impl Future<Output = Result<(), RunError>>>,
        leader: &Leader,
        running: &Running,
        workers: &mut Workers,
    ) -> Result<(), RunError> {
        let controllers = self.controllers.len();
        tracing::info!(controllers, "caches are synced, starting workers");
        for controller in &self.controllers {
            start_workers(controller.as_ref(), leader, workers);
        }
        for runnable in std::mem::take(&mut self.runnables) {
            leader.abort_on_loss(vec![running.start(runnable, workers)]);
        }
        self.handle.enter(ManagerPhase::Working);
        let mut syncing = Syncing::new();
        let mut failed_informer = self.wait_for_informer_failure();
        loop {
            tokio::select! {
                biased;
                lost = leader.lost() => return Err(lost.into()),
                failure = failed_informer.as_mut() => return Err(failure.into()),
                ended = end.as_mut() => return ended,
                failed = first_failure(workers) => return Err(failed),
                Some(controller) = self.added.recv() => self.sync_added(controller, &mut syncing),
                // A narrower pattern would switch the branch off with the first controller that
                // never synced.
                Some(synced) = syncing.join_next() => {
                    match synced {
                        Ok(Ok(controller)) => {
                            start_workers(controller.as_ref(), leader, workers);
                            self.controllers.push(controller);
                            failed_informer = self.wait_for_informer_failure();
                        }
                        Ok(Err(dropped)) => {
                            self.names.remove(&dropped);
                            self.handle.forget(&dropped);
                        }
                        Err(_) => {}
                    }
                }
            }
        }
    }

    /// Takes the names of all parts. Returns an error if two parts have one name.
    fn check_names(&mut self) -> Result<(), RunError> {
        let runnables = self.runnables.iter().chain(&self.services).map(|it| &it.name);
        for name in self.controllers.iter().map(|it| it.name()).chain(runnables) {
            if !self.names.insert(Arc::clone(name)) {
                return Err(RunError::NameTaken { name: Arc::clone(name) });
            }
        }
        Ok(())
    }
}
