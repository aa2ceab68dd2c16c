//! [`FactoryBuilder`]: the settings of a factory, and the informers that it builds from them.

use std::fmt;
use std::sync::Arc;

use parking_lot::{Mutex, ReentrantMutex};
use serde::de::DeserializeOwned;

use super::{Shared, SharedInformerFactory};
use crate::list_watch::{KubeListWatch, ListWatch};
use crate::object::Object;
use crate::scope::Scope;
use crate::shared::SharedIndexInformer;
use crate::status::ReflectorError;

/// The settings of a [`SharedInformerFactory`].
///
/// Each setting applies to the informers that the factory builds, not to those that it
/// [adopts](SharedInformerFactory::adopt).
///
/// # Examples
///
/// ```no_run
/// # fn doc(client: kube_client::Client) {
/// use homeostat_informer::{Scope, SharedInformerFactory};
///
/// let informers = SharedInformerFactory::builder(client)
///     .scope(Scope::namespace("shop"))
///     .metrics("my-controller")
///     .build();
/// # }
/// ```
#[doc(alias = "NewSharedInformerFactoryWithOptions")]
#[doc(alias = "SharedInformerOption")]
#[must_use = "call `build`"]
#[derive(Clone)]
pub struct FactoryBuilder {
    /// Each informer gets a clone, which shares the connections.
    pub(super) client: kube_client::Client,
    /// The scope of [`SharedInformerFactory::informer`].
    pub(super) scope: Scope,
    /// `None`: the operating system seeds each informer.
    seed: Option<u64>,
    /// The label `name`; `None` records nothing.
    metrics: Option<Arc<str>>,
    error_handler: Option<ErrorHandler>,
}

/// The author's function that receives the errors of all informers, each with the informer's name.
type ErrorHandler = Arc<dyn Fn(&str, &ReflectorError) + Send + Sync>;

// === impl FactoryBuilder ===

impl FactoryBuilder {
    pub(super) fn new(client: kube_client::Client) -> Self {
        Self { client, scope: Scope::all(), seed: None, metrics: None, error_handler: None }
    }

    /// Sets the scope of the informers. The default is all namespaces. A kind without namespace
    /// cannot be listed in one; use [`SharedInformerFactory::informer_in`] for it.
    #[doc(alias = "WithNamespace")]
    pub fn scope(mut self, scope: Scope) -> Self {
        self.scope = scope;
        self
    }

    /// Sets the seed of the random sources; see
    /// [`InformerBuilder::seed`](crate::InformerBuilder::seed).
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Records metrics of all informers under `name`; see
    /// [`InformerBuilder::metrics`](crate::InformerBuilder::metrics). The label of an informer in
    /// another scope than the factory's contains that scope.
    pub fn metrics(mut self, name: impl Into<Arc<str>>) -> Self {
        self.metrics = Some(name.into());
        self
    }

    /// Calls `handler` with each failure of a list or watch of any informer, and with the
    /// informer's name; see
    /// [`InformerBuilder::error_handler`](crate::InformerBuilder::error_handler).
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # fn doc(client: kube_client::Client) {
    /// use homeostat_informer::SharedInformerFactory;
    ///
    /// let informers = SharedInformerFactory::builder(client)
    ///     .error_handler(|informer, error| eprintln!("{informer}: {error}"))
    ///     .build();
    /// # }
    /// ```
    #[doc(alias = "SetWatchErrorHandler")]
    pub fn error_handler(
        mut self,
        handler: impl Fn(&str, &ReflectorError) + Send + Sync + 'static,
    ) -> Self {
        self.error_handler = Some(Arc::new(handler));
        self
    }

    /// Builds the informer with this number.
    pub(super) fn build_informer<K>(
        &self,
        list_watch: KubeListWatch<K>,
        scope: &Scope,
        number: u64,
    ) -> SharedIndexInformer<K>
    where
        K: Object + DeserializeOwned,
    {
        let name: Arc<str> = (list_watch.target().to_string() + &scope.selector_text()).into();
        let resource = list_watch.resource().clone();
        let mut builder = SharedIndexInformer::builder(list_watch).name(Arc::clone(&name));
        if let Some(seed) = self.seed {
            // Each informer has a random sequence of its own, the same in every run.
            builder = builder.seed(seed.wrapping_add(number.wrapping_mul(0x9e37_79b9)));
        }
        if let Some(series) = &self.metrics {
            builder = builder.metrics(&self.series(series, scope), &resource);
        }
        if let Some(handler) = self.error_handler.clone() {
            builder = builder.error_handler(move |error| handler(&name, error));
        }
        builder.build()
    }

    fn series(&self, name: &str, scope: &Scope) -> String {
        if *scope == self.scope { name.to_owned() } else { format!("{name} {scope}") }
    }

    /// Builds the factory.
    pub fn build(self) -> SharedInformerFactory {
        SharedInformerFactory {
            shared: Arc::new(Shared {
                settings: self,
                building: ReentrantMutex::new(()),
                members: Mutex::default(),
            }),
        }
    }
}

impl fmt::Debug for FactoryBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FactoryBuilder")
            .field("scope", &self.scope)
            .field("seed", &self.seed)
            .finish_non_exhaustive()
    }
}
