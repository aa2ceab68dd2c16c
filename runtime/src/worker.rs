//! The loop: take a key, reconcile it, forget or retry.

use std::any::Any;
use std::error::Error as StdError;
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use homeostat_informer::{Lister, Object, ObjectKey};
use tokio_util::sync::CancellationToken;
use tower::BoxError;
use tracing::Instrument;

use crate::enqueue::Inbox;
use crate::reconciler::{Action, Reconciler, Request, Why};

/// What each worker of a controller works with. A clone is another worker.
pub(crate) struct Worker<K: Object, R> {
    pub(crate) controller: Arc<str>,
    pub(crate) inbox: Inbox<K>,
    pub(crate) primary: Lister<K>,
    pub(crate) reconciler: Arc<R>,
    pub(crate) timeout: Duration,
    pub(crate) cancellation: CancellationToken,
}

/// Why a reconcile did not succeed.
#[derive(Debug, thiserror::Error)]
enum ReconcileError {
    #[error("{0}")]
    Failed(String),
    #[error("it did not end within {0:?}")]
    TimedOut(Duration),
    #[error("it panicked: {0}")]
    Panicked(String),
}

/// An error and its causes, on one line.
struct Chain<'a>(&'a (dyn StdError + 'static));

// === impl Worker ===

impl<K: Object, R: Reconciler<K>> Worker<K, R> {
    /// Works until the queue is shut down and empty.
    pub(crate) async fn run(self) {
        while let Some(item) = self.inbox.queue().get().await {
            let request = self.request(&item);
            match self.reconcile(&request).instrument(self.span(&request)).await {
                Ok(Action::AwaitChange) => self.inbox.queue().forget(&item),
                Ok(Action::RequeueAfter(delay)) => {
                    self.inbox.queue().forget(&item);
                    let (key, priority) = (item.clone(), item.priority());
                    self.inbox.add_after(key, priority, delay, Why::RequeueAfter);
                }
                Err(error) => {
                    self.report(&request, &error);
                    self.inbox.add_rate_limited(item.clone(), item.priority());
                }
            }
            item.done();
        }
    }

    fn request(&self, key: &ObjectKey<K::Kind>) -> Request<K> {
        Request::new(key.clone())
            .with_attempt(self.inbox.queue().failures(key).saturating_add(1))
            .with_why(self.inbox.take_reason(key))
            .with_cancellation(self.cancellation.child_token())
    }

    /// An object that does not fit its type is not gone, but a look-up cannot tell: so its author is not asked. When it
    /// fits again, or is gone, an event asks for it.
    async fn reconcile(&self, request: &Request<K>) -> Result<Action, ReconcileError> {
        if self.primary.opaque(request.key()).is_some() {
            tracing::warn!("the object does not fit its type: left as it is until it does");
            return Ok(Action::AwaitChange);
        }
        self.ask_author(request).await
    }

    /// Everything that the author wrote runs in here, dropping and printing included: a panic of any of it is caught.
    async fn ask_author(&self, request: &Request<K>) -> Result<Action, ReconcileError> {
        let authors = async {
            match tokio::time::timeout(self.timeout, self.reconciler.reconcile(request)).await {
                Ok(Ok(action)) => {
                    tracing::debug!(?action, "reconciled");
                    Ok(action)
                }
                Ok(Err(error)) => {
                    let error: BoxError = error.into();
                    Err(ReconcileError::Failed(Chain(error.as_ref()).to_string()))
                }
                Err(_) => Err(ReconcileError::TimedOut(self.timeout)),
            }
        };
        match AssertUnwindSafe(authors).catch_unwind().await {
            Ok(outcome) => outcome,
            Err(panic) => Err(ReconcileError::Panicked(panic_message(panic.as_ref()))),
        }
    }

    fn span(&self, request: &Request<K>) -> tracing::Span {
        tracing::info_span!(
            "reconcile",
            controller = %self.controller,
            key = %request.key(),
            attempt = request.attempt(),
            why = %request.why(),
        )
    }

    fn report(&self, request: &Request<K>, error: &ReconcileError) {
        let (controller, key, attempt) = (&self.controller, request.key(), request.attempt());
        if matches!(error, ReconcileError::Panicked(_)) {
            tracing::error!(%controller, %key, attempt, "failed to reconcile: {error}; trying again later");
        } else {
            tracing::warn!(%controller, %key, attempt, "failed to reconcile: {error}; trying again later");
        }
    }
}

impl<K: Object, R> Clone for Worker<K, R> {
    fn clone(&self) -> Self {
        Self {
            controller: Arc::clone(&self.controller),
            inbox: self.inbox.clone(),
            primary: self.primary.clone(),
            reconciler: Arc::clone(&self.reconciler),
            timeout: self.timeout,
            cancellation: self.cancellation.clone(),
        }
    }
}

/// What a panic was called with, when that is a text.
pub(crate) fn panic_message(panic: &(dyn Any + Send)) -> String {
    if let Some(text) = panic.downcast_ref::<&str>() {
        (*text).to_owned()
    } else if let Some(text) = panic.downcast_ref::<String>() {
        text.clone()
    } else {
        "(not with a text)".to_owned()
    }
}

// === impl Chain ===

impl fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)?;
        let mut said = self.0.to_string();
        let mut cause = self.0.source();
        while let Some(error) = cause {
            let text = error.to_string();
            // Many errors print their cause themselves.
            if !said.contains(&text) {
                write!(f, ": {text}")?;
            }
            said = text;
            cause = error.source();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
