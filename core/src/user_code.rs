//! The boundary around code that an author wrote.
//!
//! A panic of an author's handler, filter, index function, decoder, rate limiter or reconciler
//! costs one event or one retry, never the task that called it. Every such call goes through this
//! module, so that panics are counted in one place: the counter `homeostat_user_code_panics_total`,
//! labelled with the role of the code.
//!
//! client-go's `HandleCrash` logs a panic and, by default, panics again, which ends the process:
//! the supervisor starts it again. Here the caller gets the panic as an error, because one bad
//! object must not stop the reconciles of all others.
//!
//! A program that is built with `panic = "abort"` has no such boundary: the first panic ends it.

use std::any::Any;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::Poll;

use crate::metrics::record;

/// A panic of an author's code that was caught.
///
/// It keeps the message and drops the payload, so that it can be cloned, compared and logged. The
/// place of the panic is not part of it: the panic hook prints that, before the panic is caught.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("panicked: {message}")]
pub struct Panicked {
    /// The text that `panic!` formatted; `(a payload that is no text)` for any other payload.
    message: String,
}

/// Runs an author's closure, catches its panic and counts it. `role` names the code for the metric,
/// such as `handler`.
///
/// Dropping what the closure captured happens inside the boundary as well. A value that the closure
/// returns is the caller's; if its `Drop` is an author's code, drop it inside another call.
///
/// The panic hook of the process runs as for any other panic. State that the closure was changing
/// may be left half changed: call it with state that belongs to the author's code alone, or discard
/// that state after an error.
///
/// # Errors
///
/// Returns the panic's message.
///
/// # Examples
///
/// ```
/// use homeostat_core::user_code;
///
/// assert_eq!(user_code("handler", || 1), Ok(1));
/// let panicked = user_code("handler", || -> u32 { panic!("no such pod") });
/// assert_eq!(panicked.unwrap_err().to_string(), "panicked: no such pod");
/// ```
pub fn user_code<T>(role: &'static str, code: impl FnOnce() -> T) -> Result<T, Panicked> {
    catch_unwind(AssertUnwindSafe(code)).map_err(|panic| {
        record(|| {
            metrics::counter!("homeostat_user_code_panics_total", "role" => role).increment(1);
        });
        Panicked::from_panic(&*panic)
    })
}

/// Polls an author's future to its end, catches its panic and counts it.
///
/// Each poll runs inside the boundary, so that a panic after the first `await` is caught too. A
/// future that panicked is not polled again. The future is dropped outside of the boundary: a panic
/// of its `Drop` reaches the caller.
///
/// # Errors
///
/// Returns the panic's message.
///
/// # Cancel safety
///
/// Dropping the returned future drops `future`.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// use homeostat_core::{Panicked, user_future};
///
/// assert_eq!(user_future("reconciler", async { 1 }).await, Ok(1));
/// let panicked = user_future("reconciler", async { panic!("no such pod") }).await;
/// let panicked: Panicked = panicked.map(|()| ()).unwrap_err();
/// assert_eq!(panicked.message(), "no such pod");
/// # }
/// ```
pub async fn user_future<F: Future>(role: &'static str, future: F) -> Result<F::Output, Panicked> {
    let mut future = pin!(future);
    poll_fn(|context| match user_code(role, || future.as_mut().poll(context)) {
        Ok(Poll::Ready(output)) => Poll::Ready(Ok(output)),
        Ok(Poll::Pending) => Poll::Pending,
        Err(panicked) => Poll::Ready(Err(panicked)),
    })
    .await
}

// === impl Panicked ===

impl Panicked {
    /// Returns the panic that `payload` carries, as from `JoinError::into_panic`.
    ///
    /// It counts nothing: use it for a panic that another boundary has caught, such as that of a
    /// task.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// use homeostat_core::Panicked;
    ///
    /// let ended = tokio::spawn(async { panic!("no such pod") }).await;
    /// let payload = ended.unwrap_err().into_panic();
    /// assert_eq!(Panicked::from_panic(&*payload).message(), "no such pod");
    /// # }
    /// ```
    pub fn from_panic(payload: &(dyn Any + Send)) -> Self {
        let text = payload.downcast_ref::<&str>().copied();
        let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
        Self { message: text.unwrap_or("(a payload that is no text)").to_owned() }
    }

    /// Returns the text that the panic carried; `(a payload that is no text)` if it carried another
    /// value.
    pub fn message(&self) -> &str {
        &self.message
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panic_is_caught_with_its_message() {
        let text = user_code("test", || panic!("a {}", "b")).unwrap_err();
        assert_eq!(text.message(), "a b");
        let other = user_code("test", || std::panic::panic_any(7)).unwrap_err();
        assert_eq!(other.message(), "(a payload that is no text)");
    }

    #[tokio::test]
    async fn panic_of_a_future_is_caught_after_its_first_wait() {
        let outcome = user_future("test", async {
            tokio::task::yield_now().await;
            panic!("late");
        });
        assert_eq!(
            outcome.await.map_err(|panicked| panicked.message().to_owned()),
            Err::<(), _>("late".to_owned())
        );
        assert_eq!(user_future("test", async { 1 }).await, Ok(1));
    }
}
