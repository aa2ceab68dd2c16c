//! A controller of whatever type, as a manager runs it.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::{BoxFuture, join_all};
use homeostat_informer::{Object, Subscription};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::any_informer::AnyInformer;
use crate::reconciler::Reconciler;
use crate::worker::Worker;

/// Runs a controller whose types are not known.
pub(crate) trait Run: Send + Sync {
    fn name(&self) -> &Arc<str>;
    fn informers(&self) -> &[Box<dyn AnyInformer>];
    /// Every object that was listed has asked for its keys. False if an informer was stopped before that.
    fn handlers_synced(&self) -> BoxFuture<'_, bool>;
    /// Starts the workers. They end when the queue is shut down and empty.
    fn start(&self, tasks: &mut JoinSet<Arc<str>>);
    /// Takes no more keys, and waits for those that were taken. Returns how many were left.
    fn drain(&self, deadline: Duration) -> BoxFuture<'_, usize>;
    /// Tells reconciles that nobody waits for them any longer.
    fn cancellation(&self) -> &CancellationToken;
    /// Ends the subscriptions, and waits for the mappers that still run.
    fn unsubscribe(&mut self) -> BoxFuture<'_, ()>;
}

/// A controller whose types are known.
pub(crate) struct Assembled<K: Object, R> {
    worker: Worker<K, R>,
    workers: usize,
    informers: Vec<Box<dyn AnyInformer>>,
    subscriptions: Vec<Subscription>,
}

// === impl Assembled ===

impl<K: Object, R: Reconciler<K>> Assembled<K, R> {
    pub(crate) fn new(
        worker: Worker<K, R>,
        workers: usize,
        informers: Vec<Box<dyn AnyInformer>>,
        subscriptions: Vec<Subscription>,
    ) -> Self {
        Self { worker, workers, informers, subscriptions }
    }
}

impl<K: Object, R: Reconciler<K>> Run for Assembled<K, R> {
    fn name(&self) -> &Arc<str> {
        &self.worker.controller
    }

    fn informers(&self) -> &[Box<dyn AnyInformer>] {
        &self.informers
    }

    fn handlers_synced(&self) -> BoxFuture<'_, bool> {
        let each = self.subscriptions.iter().map(Subscription::synced);
        Box::pin(join_all(each).map(|synced| synced.into_iter().all(|synced| synced)))
    }

    fn start(&self, tasks: &mut JoinSet<Arc<str>>) {
        for _ in 0..self.workers {
            let worker = self.worker.clone();
            tasks.spawn(async move {
                let name = Arc::clone(&worker.controller);
                worker.run().await;
                name
            });
        }
    }

    fn drain(&self, deadline: Duration) -> BoxFuture<'_, usize> {
        Box::pin(async move {
            let undone = self.worker.inbox.drain(deadline).await;
            // What was delayed is not work that was begun: the next process lists everything anyway.
            undone.held.len() + undone.queued.len()
        })
    }

    fn cancellation(&self) -> &CancellationToken {
        &self.worker.cancellation
    }

    fn unsubscribe(&mut self) -> BoxFuture<'_, ()> {
        let subscriptions = std::mem::take(&mut self.subscriptions);
        Box::pin(async move {
            for subscription in subscriptions {
                subscription.remove().await;
            }
        })
    }
}
