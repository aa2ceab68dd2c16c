//! Workers, queues and the treatment of failures.

use std::error::Error as StdError;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use homeostat_workqueue::{Priorities, RateLimiter};

use crate::request::Request;
use crate::target::Target;
use crate::terminal::OnError;
use crate::work_limit::WorkLimit;

use super::ControllerBuilder;

/// A worker is a task. More than these would cost memory alone: a client has 128 requests in flight
/// by default.
const MAXIMUM_WORKERS: usize = 65_536;

impl<T: Target, P> ControllerBuilder<T, P> {
    /// Sets the number of keys that are reconciled concurrently (default 1, at least 1, at most
    /// 65,536).
    ///
    /// Each worker is a task. Two workers never reconcile the same key at the same time. More
    /// workers help while reconciles wait for the server, up to the client's limits.
    #[doc(alias = "MaxConcurrentReconciles")]
    pub fn workers(mut self, n: usize) -> Self {
        self.workers = n.clamp(1, MAXIMUM_WORKERS);
        self
    }

    /// Sets the rate limiter that decides the back-off of failed keys.
    ///
    /// The default is that of Kubernetes' own controllers: the longer of a back-off per key (5 ms,
    /// doubled with each failure, up to 1,000 s) and a bucket for all keys (10 retries per second,
    /// bursts of 100). 1,000 keys that keep failing then cost at most 10 retries per second.
    pub fn rate_limiter(mut self, limiter: impl RateLimiter<T::Key>) -> Self {
        self.queue = self.queue.rate_limiter(limiter);
        self
    }

    /// Reconciles keys of changed objects before keys of the initial list and of resyncs, without
    /// starving the latter. A retry keeps the key's priority. Mappers may choose other priorities
    /// with [`Enqueue::at_priority`](crate::Enqueue::at_priority).
    #[doc(alias = "UsePriorityQueue")]
    pub fn priorities(mut self, priorities: Priorities) -> Self {
        self.queue = self.queue.priorities(priorities);
        self
    }

    /// Retries keys at this priority after an error, unless they had a lower one: keys that keep
    /// failing do not delay the others. The key keeps the priority until an event raises it.
    ///
    /// Without [`priorities`](Self::priorities) it has no effect.
    ///
    /// # Examples
    ///
    /// ```
    /// use homeostat::{Controller, LOW_PRIORITY, Priorities, SharedIndexInformer};
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    ///
    /// # fn doc(maps: &SharedIndexInformer<ConfigMap>) {
    /// let builder = Controller::builder("maps", maps)
    ///     .priorities(Priorities::default())
    ///     .retry_priority(LOW_PRIORITY);
    /// # }
    /// ```
    pub fn retry_priority(mut self, priority: i32) -> Self {
        self.retry_priority = Some(priority);
        self
    }

    /// Reconciles keys of one priority in turns by `dimension`, for example by namespace: the keys
    /// of one namespace do not wait for all keys of another. Dimensions are compared by their hash.
    ///
    /// # Examples
    ///
    /// ```
    /// # use homeostat::{Controller, SharedIndexInformer};
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # fn doc(maps: &SharedIndexInformer<ConfigMap>) {
    /// let builder =
    ///     Controller::builder("maps", maps).fair_by(|key| key.namespace().map(str::to_owned));
    /// # }
    /// ```
    pub fn fair_by<D: Hash>(
        mut self,
        dimension: impl Fn(&T::Key) -> D + Send + Sync + 'static,
    ) -> Self {
        self.queue = self.queue.fair_by(dimension);
        self
    }

    /// Adds a second queue with workers of its own (1 to 65,536), for keys that must not wait
    /// behind the others. [`Enqueue::to_second_queue`](crate::Enqueue::to_second_queue) adds to it.
    ///
    /// A key is never reconciled by two workers at once, whichever queue it came from. A retry
    /// returns to the queue that the key came from. The second queue has the default rate limiter;
    /// its order is first in, first out. `name` is its name in metrics.
    ///
    /// kube-controller-manager's quota controller has such a queue for quotas without a status. Use
    /// [`priorities`](Self::priorities) instead if the order alone matters.
    pub fn second_queue(mut self, name: impl Into<Arc<str>>, workers: usize) -> Self {
        self.second_queue = Some((name.into(), workers.clamp(1, MAXIMUM_WORKERS)));
        self
    }

    /// Decides for each error of the reconciler when its key is retried. The default is
    /// [`OnError::BackOff`]. A [`TerminalError`](crate::TerminalError) is not retried in any case;
    /// a panic and a timeout back off in any case. A panic of `policy` counts as a panic of the
    /// reconciler.
    ///
    /// # Examples
    ///
    /// A quota that is exceeded is tried once a minute:
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use homeostat::kube_client::Error;
    /// use homeostat::{Controller, OnError, SharedIndexInformer};
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    ///
    /// # fn doc(maps: &SharedIndexInformer<ConfigMap>) {
    /// let builder = Controller::builder("maps", maps).error_policy(|_, error| {
    ///     match error.downcast_ref::<Error>() {
    ///         Some(Error::Api(status)) if status.code == 403 => {
    ///             OnError::RetryAfter(Duration::from_secs(60))
    ///         }
    ///         _ => OnError::BackOff,
    ///     }
    /// });
    /// # }
    /// ```
    pub fn error_policy(
        mut self,
        policy: impl Fn(&Request<T>, &(dyn StdError + 'static)) -> OnError + Send + Sync + 'static,
    ) -> Self {
        self.error_policy = Some(Box::new(policy));
        self
    }

    /// Bounds the concurrent reconciles of all controllers that share `limit`. The default is no
    /// bound but the number of workers.
    pub fn work_limit(mut self, limit: &WorkLimit) -> Self {
        self.limit = Some(limit.clone());
        self
    }

    /// Sets the time after which a reconcile is dropped and counted as failed (default 10 minutes:
    /// 500 creates at 5 per second take less than two).
    ///
    /// The server may carry out a request that the reconcile was waiting for.
    ///
    /// It has no counterpart in client-go. In controller-runtime the timeout cancels the
    /// reconcile's context; here the future is dropped at its next `await`, and code that never
    /// awaits is not stopped.
    #[doc(alias = "ReconciliationTimeout")]
    pub fn reconcile_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::Controller;
    use crate::text::Textless;

    #[test]
    fn number_of_workers_is_bounded() {
        for (number, expected) in [(0, 1), (7, 7), (usize::MAX, MAXIMUM_WORKERS)] {
            let builder = Controller::for_keys::<Textless>("keys").workers(number);
            let builder = builder.second_queue("urgent", number);
            assert_eq!(builder.workers, expected);
            assert_eq!(builder.second_queue, Some(("urgent".into(), expected)));
        }
    }
}
