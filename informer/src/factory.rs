//! [`SharedInformerFactory`]: one informer per type, shared by all who ask.

use std::{any::Any, fmt, sync::Arc};

use async_trait::async_trait;
use parking_lot::Mutex;
use serde::de::DeserializeOwned;

use crate::{
    list_watch::KubeListWatch, object::Object, reflector::ReflectorError,
    shared::SharedIndexInformer,
};

/// Makes one informer for each type, however often it is asked for, and starts and stops them together.
///
/// A clone is one more handle on the same informers.
#[derive(Clone)]
pub struct SharedInformerFactory {
    shared: Arc<Shared>,
}

/// Settings of a [`SharedInformerFactory`].
#[must_use = "nothing is made before `build`"]
#[derive(Clone)]
pub struct FactoryBuilder {
    client: kube_client::Client,
    namespace: Option<String>,
    seed: u64,
}

/// An informer whose cache has never been whole.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Unsynced {
    /// The informer's name.
    pub name: Arc<str>,
    /// What went wrong last, if something did.
    pub error: Option<Arc<ReflectorError>>,
}

struct Shared {
    settings: FactoryBuilder,
    /// In the order in which they were asked for.
    informers: Mutex<Vec<Arc<dyn AnyInformer>>>,
}

/// An informer of any type.
#[async_trait]
trait AnyInformer: Any + Send + Sync {
    fn start(&self);
    async fn stop(&self);
    async fn synced(&self) -> bool;
    fn unsynced(&self) -> Option<Unsynced>;
}

// === impl SharedInformerFactory ===

impl SharedInformerFactory {
    /// Informers over all namespaces.
    pub fn new(client: &kube_client::Client) -> Self {
        Self::builder(client.clone()).build()
    }

    /// Settings.
    pub fn builder(client: kube_client::Client) -> FactoryBuilder {
        FactoryBuilder { client, namespace: None, seed: 0 }
    }

    /// The informer for `K`: always the same. It runs from the next [`start`](Self::start) on.
    pub fn informer<K>(&self) -> SharedIndexInformer<K>
    where
        K: Object + DeserializeOwned,
        K::Kind: kube_core::Resource<DynamicType = ()>,
    {
        let mut informers = self.shared.informers.lock();
        let known = informers.iter().find_map(|informer| {
            let informer: &dyn Any = &**informer;
            informer.downcast_ref::<SharedIndexInformer<K>>()
        });
        if let Some(informer) = known {
            return informer.clone();
        }
        let settings = &self.shared.settings;
        let list_watch =
            KubeListWatch::<K>::new(settings.client.clone(), settings.namespace.as_deref());
        // Each informer its own random sequence, the same in every run.
        let seed = settings.seed.wrapping_add(0x9e37_79b9 * informers.len() as u64);
        let informer = SharedIndexInformer::builder(list_watch).seed(seed).build();
        informers.push(Arc::new(informer.clone()));
        informer
    }

    /// Starts all informers that have been asked for and do not run yet.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn start(&self) {
        for informer in self.all() {
            informer.start();
        }
    }

    /// Stops all informers, and waits for all their tasks.
    ///
    /// # Cancel safety
    /// Those that have not been reached go on; call it again.
    pub async fn stop(&self) {
        futures::future::join_all(self.all().iter().map(|informer| informer.stop())).await;
    }

    /// Waits until all caches have been whole once. Returns false if an informer stops before that.
    ///
    /// # Cancel safety
    /// Safe: it only waits. [`unsynced`](Self::unsynced) tells what it waits for.
    pub async fn synced(&self) -> bool {
        for informer in self.all() {
            if !informer.synced().await {
                return false;
            }
        }
        true
    }

    /// The informers whose caches have never been whole, and why.
    pub fn unsynced(&self) -> Vec<Unsynced> {
        self.all().iter().filter_map(|informer| informer.unsynced()).collect()
    }

    fn all(&self) -> Vec<Arc<dyn AnyInformer>> {
        self.shared.informers.lock().clone()
    }
}

impl fmt::Debug for SharedInformerFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedInformerFactory")
            .field("informers", &self.shared.informers.lock().len())
            .finish_non_exhaustive()
    }
}

// === impl FactoryBuilder ===

impl FactoryBuilder {
    /// Follows one namespace instead of all. Kinds that live in no namespace cannot be asked for then.
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = Some(namespace.into());
        self
    }

    /// Where random sources begin; see [`Builder::seed`](crate::Builder::seed).
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Makes the factory.
    pub fn build(self) -> SharedInformerFactory {
        SharedInformerFactory {
            shared: Arc::new(Shared { settings: self, informers: Mutex::new(Vec::new()) }),
        }
    }
}

impl fmt::Debug for FactoryBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FactoryBuilder")
            .field("namespace", &self.namespace)
            .field("seed", &self.seed)
            .finish_non_exhaustive()
    }
}

// === impl Unsynced ===

impl fmt::Display for Unsynced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.error {
            Some(error) => write!(f, "{}: {error}", self.name),
            None => write!(f, "{}: waiting for the server", self.name),
        }
    }
}

#[async_trait]
impl<K: Object> AnyInformer for SharedIndexInformer<K> {
    fn start(&self) {
        Self::start(self);
    }

    async fn stop(&self) {
        Self::stop(self).await;
    }

    async fn synced(&self) -> bool {
        Self::synced(self).await
    }

    fn unsynced(&self) -> Option<Unsynced> {
        (!self.has_synced())
            .then(|| Unsynced { name: Arc::clone(self.name()), error: self.last_error() })
    }
}
