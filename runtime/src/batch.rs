//! Calls in batches that grow: a quota or an admission rule refuses one batch, not all calls.

use std::future::Future;

use futures::StreamExt;
use futures::stream::FuturesUnordered;

/// Calls `call` for `0..count` in batches that double in size from `initial` on, and stops after
/// the first batch with an error.
///
/// The calls of a batch run concurrently, and all of them are awaited. If a quota refuses the
/// calls, it refuses few of them instead of all. An `initial` of zero counts as one. This is
/// kube-controller-manager's `slowStartBatch`.
///
/// Returns the number of calls that succeeded, including those of the failed batch, and the result.
///
/// Use it for the creates and deletes of one reconcile, with an `initial` of 1 as upstream does.
/// Use a plain `join_all` instead if a refusal of one call says nothing about the others.
///
/// The first batch of 1,000 calls is 1 call, and the tenth and last one is 489: ten round trips in
/// all.
///
/// # Errors
///
/// The result is the first error of the failed batch. Later errors of that batch are dropped.
///
/// # Cancel safety
///
/// Dropping the future drops the calls that are running; calls that have ended keep their effect.
/// Count with guards such as
/// [`expect_creations`](crate::UidTrackingExpectations::expect_creations), not with the result.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// use homeostat::slow_start_batch;
///
/// let (created, result) = slow_start_batch(1000, 1, async |n| {
///     if n < 40 { Ok(()) } else { Err("the quota is used up") }
/// })
/// .await;
/// // 1 + 2 + 4 + 8 + 16, and 9 of the next 32.
/// assert_eq!((created, result), (40, Err("the quota is used up")));
/// # }
/// ```
#[doc(alias = "slowStartBatch")]
pub async fn slow_start_batch<F, Fut, E>(
    count: usize,
    initial: usize,
    call: F,
) -> (usize, Result<(), E>)
where
    F: Fn(usize) -> Fut,
    Fut: Future<Output = Result<(), E>>,
{
    let mut succeeded = 0;
    let mut next = 0;
    let mut batch = initial.max(1);
    while next < count {
        let end = next.saturating_add(batch).min(count);
        let mut calls: FuturesUnordered<Fut> = (next..end).map(&call).collect();
        let mut first_error = None;
        while let Some(result) = calls.next().await {
            match result {
                Ok(()) => succeeded += 1,
                Err(error) => first_error = first_error.or(Some(error)),
            }
        }
        if let Some(error) = first_error {
            return (succeeded, Err(error));
        }
        next = end;
        batch = batch.saturating_mul(2);
    }
    (succeeded, Ok(()))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use parking_lot::Mutex;
    use tokio::time::Instant;

    use super::*;

    /// Returns the number of calls that start in each second, if each call takes a second.
    async fn batches(count: usize, initial: usize) -> Vec<usize> {
        let start = Instant::now();
        let started: Mutex<Vec<u64>> = Mutex::default();
        let (succeeded, result) = slow_start_batch(count, initial, async |_| {
            started.lock().push(start.elapsed().as_secs());
            tokio::time::sleep(Duration::from_secs(1)).await;
            Ok::<(), ()>(())
        })
        .await;
        assert_eq!((succeeded, result), (count, Ok(())));
        let started = started.into_inner();
        let seconds = started.last().map_or(0, |last| last + 1);
        (0..seconds).map(|second| started.iter().filter(|at| **at == second).count()).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn batches_double_and_run_concurrently() {
        assert_eq!(batches(0, 1).await, Vec::<usize>::new());
        assert_eq!(batches(1, 1).await, [1]);
        assert_eq!(batches(10, 1).await, [1, 2, 4, 3]);
        assert_eq!(batches(10, 4).await, [4, 6]);
        assert_eq!(batches(3, 0).await, [1, 2]);
        assert_eq!(batches(5, usize::MAX).await, [5]);
    }

    /// Makes 10 calls, of which all after the first `accepted` ones fail. Returns the result and
    /// the number of calls.
    async fn limited(accepted: usize) -> ((usize, Result<(), &'static str>), usize) {
        let calls = Mutex::new(0);
        let result = slow_start_batch(10, 1, async |_| {
            let mut calls = calls.lock();
            *calls += 1;
            (*calls <= accepted).then_some(()).ok_or("full")
        })
        .await;
        (result, calls.into_inner())
    }

    /// Upstream's `TestSlowStartBatch`.
    #[tokio::test(start_paused = true)]
    async fn no_batch_follows_one_with_an_error() {
        assert_eq!(limited(0).await, ((0, Err("full")), 1), "all fail");
        assert_eq!(limited(10).await, ((10, Ok(())), 10), "all succeed");
        assert_eq!(limited(5).await, ((5, Err("full")), 7), "some succeed: 1 + 2 + 4");
    }

    #[tokio::test(start_paused = true)]
    async fn batch_with_an_error_is_awaited_and_is_the_last() {
        let calls = Mutex::new(0);
        let (succeeded, result) = slow_start_batch(100, 1, async |n| {
            *calls.lock() += 1;
            // The error comes before the successes of the same batch.
            tokio::time::sleep(Duration::from_secs(u64::from(n != 4))).await;
            (n != 4).then_some(()).ok_or("full")
        })
        .await;
        assert_eq!((succeeded, result), (6, Err("full")));
        assert_eq!(calls.into_inner(), 7, "1 + 2 + 4");
    }

    #[test]
    fn future_is_send_with_an_async_closure_that_borrows() {
        fn assert_send<T: Send>(_: T) {}
        let text = String::from("borrowed");
        assert_send(slow_start_batch(3, 1, async |n| {
            tokio::task::yield_now().await;
            if text.len() > n { Ok(()) } else { Err(()) }
        }));
    }
}
