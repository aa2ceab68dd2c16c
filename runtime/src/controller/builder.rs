//! [`ControllerBuilder::build`]: from the options to a controller.
//!
//! The order of the steps matters. Queues are made first, because handlers clone them. The
//! primary's handler is added first, because the handler of an owned object looks its owner up.
//! Sources are bound last.

use std::sync::Arc;
use std::time::Duration;

use homeostat_workqueue::{Queue, default_controller_rate_limiter};
use tokio_util::sync::CancellationToken;

use crate::any_controller::{Timer, TimerCallback, TypedController};
use crate::enqueue::{Enqueue, Queues};
use crate::key_source::KeySource;
use crate::last_errors::LastErrors;
use crate::last_reconciles::LastReconciles;
use crate::read_your_writes::ReadYourWrites;
use crate::reconcile_metrics::ReconcileMetrics;
use crate::reconciler::Reconciler;
use crate::request::{RequestQueue, Trigger};
use crate::target::Target;
use crate::turns::Turns;
use crate::worker::{Worker, WorkerOptions};

use super::event_sources::{EventSources, Subscribed};
use super::primary::IntoSource;
use super::{Controller, ControllerBuilder, Subscriber};

#[expect(private_bounds, reason = "the trait is sealed: `Primary` and `NoPrimary` implement it")]
impl<T: Target, P: IntoSource<T>> ControllerBuilder<T, P> {
    /// Subscribes to the informers and returns the controller. It reconciles nothing before a
    /// [`Manager`](crate::Manager) runs it.
    ///
    /// Events are delivered as soon as the informers run: objects of the initial lists fill the
    /// queue while the manager waits for the other caches.
    ///
    /// # Panics
    ///
    /// Panics if another controller has one of the [sources](Self::source), the record of
    /// [`read_your_writes`](Self::read_your_writes) or the store of
    /// [`consistency`](Self::consistency), and outside of a tokio runtime if a source holds a key
    /// with a delay. Apart from that it needs no runtime.
    ///
    /// # Examples
    ///
    /// ```
    /// use homeostat::{Controller, Reconciler, SharedIndexInformer};
    /// use k8s_openapi::api::core::v1::ConfigMap;
    ///
    /// fn controller(
    ///     maps: &SharedIndexInformer<ConfigMap>,
    ///     reconciler: impl Reconciler<ConfigMap>,
    /// ) -> Controller {
    ///     Controller::builder("copier", maps).workers(4).build(reconciler)
    /// }
    /// ```
    #[doc(alias = "Complete")]
    pub fn build<R: Reconciler<T>>(mut self, reconciler: R) -> Controller {
        let with_workers = |(name, workers)| (second_queue::<T>(name), workers);
        let second = self.second_queue.take().map(with_workers);
        let mut options = self.worker_options(second.as_ref().map_or(0, |(_, workers)| *workers));
        let queues = Queues {
            first: self.queue.build(),
            second: second.as_ref().map(|(queue, _)| queue.clone()),
        };
        let sources = EventSources::new(&self.name, &queues, self.expectations);
        // The primary comes first: the handler of an owned object looks its owner up in the cache.
        let (primary, is_opaque) = self.primary.into_source();
        options.is_opaque = is_opaque;
        let subscribers = primary.into_iter().chain(self.subscribers);
        let subscribed = subscribe(subscribers, options.writes.as_ref(), &sources);
        let (informers, subscriptions) = subscribed.into_iter().unzip();
        bind(self.sources, &queues);
        let controller = TypedController {
            timers: timers(self.timers, &queues),
            worker: Worker {
                controller: self.name,
                turns: Turns::new(second.is_some()),
                queue: queues.first,
                options: Arc::new(options),
                reconciler: Arc::new(reconciler),
                cancellation: CancellationToken::new(),
            },
            workers: self.workers,
            second,
            stop_timers: CancellationToken::new(),
            informers,
            subscriptions,
        };
        Controller { inner: Box::new(controller) }
    }

    /// Takes the options of the workers. The primary adds its check for opaque objects.
    fn worker_options(&mut self, of_second_queue: usize) -> WorkerOptions<T> {
        let workers = self.workers.saturating_add(of_second_queue);
        WorkerOptions {
            is_opaque: None,
            timeout: self.timeout,
            error_policy: self.error_policy.take(),
            retry_priority: self.retry_priority,
            limit: self.limit.take(),
            writes: self.writes.take(),
            metrics: ReconcileMetrics::new(&self.name, workers),
            errors: LastErrors::new(),
            last: LastReconciles::default(),
        }
    }
}

/// Subscribes to the informers, and to the versions of the caches of `writes`.
fn subscribe<T: Target>(
    subscribers: impl Iterator<Item = Subscriber<T>>,
    writes: Option<&ReadYourWrites<T>>,
    sources: &EventSources<T>,
) -> Vec<Subscribed> {
    let mut subscribed: Vec<_> = subscribers.map(|subscribe| subscribe(sources)).collect();
    if let Some(writes) = writes {
        subscribed.extend(sources.own_writes(writes));
    }
    subscribed
}

/// Lets the sources add keys to the queues.
fn bind<T: Target>(sources: Vec<KeySource<T>>, queues: &Queues<T>) {
    for source in sources {
        let trigger = Trigger::Source { name: Arc::clone(source.name()) };
        source.bind(Enqueue::new(queues, trigger));
    }
}

/// Returns the timers, which add keys to the queues.
fn timers<T: Target>(
    callbacks: Vec<(Duration, TimerCallback<T>)>,
    queues: &Queues<T>,
) -> Vec<Arc<Timer<T>>> {
    let timer = |(period, callback)| {
        Arc::new(Timer { period, callback, enqueue: Enqueue::new(queues, Trigger::Timer) })
    };
    callbacks.into_iter().map(timer).collect()
}

/// Returns a second queue: first in, first out, with the default rate limiter.
fn second_queue<T: Target>(name: Arc<str>) -> RequestQueue<T> {
    let limiter = default_controller_rate_limiter();
    Queue::builder().name(name).causes(Trigger::merge).rate_limiter(limiter).build()
}
