//! [`Watch`]: an informer as a source of a controller's events, with its predicates.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use homeostat_informer::{Event, HandlerOptions, Object, SharedIndexInformer};

/// An informer as a source of events: which of them the controller handles, and how often it gets
/// unchanged objects again.
///
/// [`Controller::builder`](crate::Controller::builder), [`owns`](crate::ControllerBuilder::owns)
/// and [`watches`](crate::ControllerBuilder::watches) take an informer, or a `Watch` of it.
///
/// # Examples
///
/// A controller that ignores updates of the status, and sees each object every ten minutes:
///
/// ```
/// use std::time::Duration;
///
/// use homeostat::{Controller, SharedIndexInformer, Watch, predicate};
/// use k8s_openapi::api::apps::v1::Deployment;
///
/// # fn doc(deployments: &SharedIndexInformer<Deployment>) {
/// let deployments = Watch::of(deployments)
///     .updated_if(predicate::generation_changed)
///     .resync(Duration::from_secs(600));
/// let builder = Controller::builder("scaler", deployments);
/// # }
/// ```
#[doc(alias = "WithPredicates")]
#[must_use = "pass it to a controller's builder"]
pub struct Watch<P: Object> {
    pub(crate) informer: SharedIndexInformer<P>,
    /// An event must pass all of them.
    predicates: Vec<Predicate<P>>,
    filter: Option<Filter<P>>,
    resync: Option<Duration>,
    coalesce: bool,
}

type Filter<P> = Box<dyn Fn(&P) -> bool + Send>;
pub(crate) type Predicate<P> = Box<dyn FnMut(&Event<P>) -> bool + Send>;

// === impl Watch ===

impl<P: Object> Watch<P> {
    /// Returns a watch of every event of `informer`.
    pub fn of(informer: &SharedIndexInformer<P>) -> Self {
        let informer = informer.clone();
        Self { informer, predicates: Vec::new(), filter: None, resync: None, coalesce: false }
    }

    /// Ignores events for which `predicate` returns false. Several predicates must all return true.
    ///
    /// Expectations do not see an event that is ignored. A panic of the predicate is logged and
    /// costs the event.
    pub fn when(mut self, predicate: impl FnMut(&Event<P>) -> bool + Send + 'static) -> Self {
        self.predicates.push(Box::new(predicate));
        self
    }

    /// Ignores updates for which `changed(old, new)` returns false. All other events pass.
    ///
    /// A [resync](Self::resync) passes too: its object is unchanged by definition.
    /// [`predicate`](crate::predicate) has the usual functions.
    ///
    /// # Examples
    ///
    /// Only nodes that become ready or unready:
    ///
    /// ```
    /// use homeostat::{SharedIndexInformer, Watch};
    /// use k8s_openapi::api::core::v1::Node;
    ///
    /// fn is_ready(node: &Node) -> bool {
    ///     let conditions = node.status.as_ref().and_then(|status| status.conditions.as_ref());
    ///     conditions.into_iter().flatten().any(|it| it.type_ == "Ready" && it.status == "True")
    /// }
    ///
    /// # fn doc(nodes: &SharedIndexInformer<Node>) {
    /// let watch = Watch::of(nodes).updated_if(|old, new| is_ready(old) != is_ready(new));
    /// # }
    /// ```
    pub fn updated_if(self, mut changed: impl FnMut(&P, &P) -> bool + Send + 'static) -> Self {
        self.when(move |event| match event {
            Event::Updated { old, new } => is_resync(&**old, &**new) || changed(old, new),
            _ => true,
        })
    }

    /// Handles only objects that `accepts` accepts. An object that is no longer accepted is handled
    /// as deleted, and one that becomes accepted as added.
    ///
    /// A controller's primary should be filtered by [`when`](Self::when) instead, if the reconciler
    /// finds the object in the cache in any case. So should owned objects of a controller with
    /// [expectations](crate::ControllerBuilder::expecting): one that becomes accepted would count
    /// as created.
    pub fn filter(mut self, accepts: impl Fn(&P) -> bool + Send + 'static) -> Self {
        self.filter = Some(Box::new(accepts));
        self
    }

    /// Handles each object again every `period`, as an update without a change (default: never; the
    /// shortest period is 1 s).
    ///
    /// kube-controller-manager resyncs every 12 to 24 hours. A resync repairs what a bug in the
    /// author's mapper has missed. Use [`Action::RequeueAfter`](crate::Action::RequeueAfter) for an
    /// object that depends on the time or on something outside of the cluster.
    #[doc(alias = "SyncPeriod")]
    pub fn resync(mut self, period: Duration) -> Self {
        self.resync = Some(period);
        self
    }

    /// Skips states of an object that have been replaced before the mapper gets to them. Objects
    /// that are added and deleted are still reported.
    pub fn coalesce(mut self) -> Self {
        self.coalesce = true;
        self
    }

    /// Returns the options of the handler, and the predicates that it applies to each event.
    pub(crate) fn into_options(self, name: Arc<str>) -> (HandlerOptions<P>, Vec<Predicate<P>>) {
        let mut options = HandlerOptions::new(name);
        if let Some(accepts) = self.filter {
            options = options.filter(accepts);
        }
        if let Some(period) = self.resync {
            options = options.resync(period);
        }
        if self.coalesce {
            options = options.coalesce();
        }
        (options, self.predicates)
    }
}

impl<P: Object> From<&SharedIndexInformer<P>> for Watch<P> {
    fn from(informer: &SharedIndexInformer<P>) -> Self {
        Self::of(informer)
    }
}

impl<P: Object> fmt::Debug for Watch<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch")
            .field("informer", self.informer.name())
            .field("predicates", &self.predicates.len())
            .field("resync", &self.resync)
            .field("coalesce", &self.coalesce)
            .finish_non_exhaustive()
    }
}

/// Returns true if a resync delivers an object that has not changed.
fn is_resync<P: Object>(old: &P, new: &P) -> bool {
    let (old, new) = (&old.metadata().resource_version, &new.metadata().resource_version);
    new.is_some() && old == new
}
