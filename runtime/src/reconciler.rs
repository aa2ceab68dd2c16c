//! The author's part of a controller: [`Reconciler`].
//!
//! client-go's controllers call it `syncHandler`, controller-runtime `reconcile.Reconciler`. The
//! trait has one method, so that a unit test calls it with a [`Request`] and a cache that the test
//! fills.

use std::future::Future;
use std::time::Duration;

use tower::BoxError;

use crate::request::Request;
use crate::target::Target;

/// The author's code: brings the cluster closer to what one object asks for.
///
/// `reconcile` is called with a key whenever something about that object may have changed. It is
/// not called with the change: several changes may be merged into one call, and the object may be
/// gone. It reads the caches, compares the actual with the desired state, and acts on the
/// difference. A key is never reconciled twice at the same time.
///
/// An error, a timeout and a panic cost the key one retry after a back-off. A
/// [`TerminalError`](crate::TerminalError) is reported and not retried before something changes.
///
/// `T` is the type of the reconciled objects, or an author's key type: see [`Target`].
///
/// One value serves all workers of a controller: it is shared, and `reconcile` takes `&self`. Keep
/// state per object in the cluster, or in
/// [`UidTrackingExpectations`](crate::UidTrackingExpectations), not in the reconciler: it is lost
/// at a restart.
///
/// # Cancel safety
///
/// The controller drops the future at an `await` if the reconcile timeout passes or the process
/// ends. Keep in guards what must not be forgotten then, as
/// [`expect_creations`](crate::UidTrackingExpectations::expect_creations) does.
///
/// # Examples
///
/// ```
/// use homeostat::{Action, Reconciler, Request};
/// # use homeostat::informer::Lister;
/// # use k8s_openapi::api::core::v1::ConfigMap;
///
/// struct Printer {
///     config_maps: Lister<ConfigMap>,
/// }
///
/// impl Reconciler<ConfigMap> for Printer {
///     type Error = std::convert::Infallible;
///
///     async fn reconcile(&self, request: &Request<ConfigMap>) -> Result<Action, Self::Error> {
///         match self.config_maps.get(request.key()) {
///             Some(map) => println!("{}: {:?}", request.key(), map.data),
///             None => println!("{} is gone", request.key()),
///         }
///         Ok(Action::AwaitChange)
///     }
/// }
/// ```
#[doc(alias = "syncHandler")]
pub trait Reconciler<T: Target>: Send + Sync + 'static {
    /// The error of a failed reconcile. The key is retried after a back-off.
    type Error: Into<BoxError>;

    /// Reconciles the object that `request` names. Implementations write it as `async fn`.
    ///
    /// # Errors
    ///
    /// An error is logged with its causes, and the key is retried after a back-off that grows with
    /// each failure. [`TerminalError`](crate::TerminalError) and
    /// [`ControllerBuilder::error_policy`](crate::ControllerBuilder::error_policy) change that.
    fn reconcile(
        &self,
        request: &Request<T>,
    ) -> impl Future<Output = Result<Action, Self::Error>> + Send;
}

/// The result of a successful reconcile: when to reconcile the key next.
///
/// [`AwaitChange`](Self::AwaitChange) and [`RequeueAfter`](Self::RequeueAfter) reset the back-off
/// of the key. To retry with a back-off, return an error.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
///
/// use homeostat::Action;
///
/// let certificate_is_due_in = Some(Duration::from_secs(3600));
/// let action = certificate_is_due_in.map_or(Action::AwaitChange, Action::RequeueAfter);
/// assert_eq!(action, Action::RequeueAfter(Duration::from_secs(3600)));
/// ```
#[doc(alias = "Result")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "the action says when the key is reconciled next"]
pub enum Action {
    /// Reconcile at the next change.
    AwaitChange,
    /// Reconcile after this time, or at the next change if that is earlier.
    RequeueAfter(Duration),
    /// As [`RequeueAfter`](Self::RequeueAfter), for a pass that has tried nothing: it waits for the
    /// cache, for example. The failures of the key still count, so that the next error backs off
    /// further.
    Postpone(Duration),
}
