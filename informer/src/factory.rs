//! [`SharedInformerFactory`]: one informer per type and scope, shared by all who ask.

use std::{any::Any, fmt, sync::Arc};

use async_trait::async_trait;
use kube_core::Resource;
use parking_lot::Mutex;
use serde::de::DeserializeOwned;

use crate::{
    list_watch::{KubeListWatch, ListWatch},
    object::Object,
    shared::{SharedIndexInformer, Unsynced},
};

/// Makes one informer for each type and scope, however often it is asked for, and starts and stops them together.
///
/// Each of them can be started and stopped by itself, too. One that was stopped is forgotten: who asks again gets a new
/// one. A clone of the factory is one more handle on the same informers.
#[derive(Clone)]
pub struct SharedInformerFactory {
    shared: Arc<Shared>,
}

/// Settings of a [`SharedInformerFactory`].
#[must_use = "nothing is made before `build`"]
#[derive(Clone)]
pub struct FactoryBuilder {
    client: kube_client::Client,
    scope: Scope,
    seed: u64,
    metrics: Option<Arc<str>>,
}

/// Which objects of a kind an informer follows.
///
/// ```
/// # use homeostat_informer::Scope;
/// let web = Scope::namespace("shop").labels("app=web").fields("status.phase!=Failed");
/// assert_eq!(web.to_string(), "in namespace shop with labels app=web with fields status.phase!=Failed");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Scope {
    namespace: Option<String>,
    labels: Option<String>,
    fields: Option<String>,
}

struct Shared {
    settings: FactoryBuilder,
    members: Mutex<Members>,
}

#[derive(Default)]
struct Members {
    /// In the order in which they were asked for.
    informers: Vec<Member>,
    /// How many there have ever been.
    made: u64,
}

struct Member {
    /// The path of what it follows, and how much of that; `None` if the informer was made by somebody else.
    place: Option<(String, Scope)>,
    informer: Arc<dyn AnyInformer>,
}

/// An informer of any type.
#[async_trait]
trait AnyInformer: Any + Send + Sync {
    fn start(&self);
    async fn stop(&self);
    async fn synced(&self) -> bool;
    fn unsynced(&self) -> Option<Unsynced>;
    fn is_stopped(&self) -> bool;
}

// === impl SharedInformerFactory ===

impl SharedInformerFactory {
    /// Informers over all namespaces.
    pub fn new(client: &kube_client::Client) -> Self {
        Self::builder(client.clone()).build()
    }

    /// Settings.
    pub fn builder(client: kube_client::Client) -> FactoryBuilder {
        FactoryBuilder { client, scope: Scope::all(), seed: 0, metrics: None }
    }

    /// The informer for `K` in the factory's own scope: always the same. It runs from the next [`start`](Self::start)
    /// on.
    pub fn informer<K>(&self) -> SharedIndexInformer<K>
    where
        K: Object + DeserializeOwned,
        K::Kind: Resource<DynamicType = ()>,
    {
        self.informer_in(&self.shared.settings.scope)
    }

    /// The informer for `K` in this scope: always the same for the same scope. It runs from the next
    /// [`start`](Self::start) on.
    pub fn informer_in<K>(&self, scope: &Scope) -> SharedIndexInformer<K>
    where
        K: Object + DeserializeOwned,
        K::Kind: Resource<DynamicType = ()>,
    {
        self.informer_of(scope.list_watch(self.shared.settings.client.clone()))
    }

    /// The informer for what this asks: always the same for the same resource and scope. It runs from the next
    /// [`start`](Self::start) on.
    ///
    /// This is for kinds that are known only at run time, and for what else a [`KubeListWatch`] can be told. The first one
    /// that asks says so for all; [`informer`](Self::informer) and [`informer_in`](Self::informer_in) ask plainly.
    ///
    /// ```no_run
    /// # fn doc(client: kube_client::Client) {
    /// # use homeostat_informer::{Dynamic, KubeListWatch, SharedInformerFactory};
    /// # use k8s_openapi::api::core::v1::Pod;
    /// # use kube_core::GroupVersionResource;
    /// let factory = SharedInformerFactory::new(&client);
    /// let lean = factory.informer_of(KubeListWatch::<Pod>::new(client.clone(), None).compact().decoders(2));
    /// let pods = factory.informer::<Pod>(); // the same informer
    ///
    /// let backups = GroupVersionResource::gvr("stable.example.com", "v1", "backups");
    /// let backups = factory.informer_of(KubeListWatch::<Dynamic>::of_resource(client, &backups, Some("shop")));
    /// # }
    /// ```
    pub fn informer_of<K>(&self, list_watch: KubeListWatch<K>) -> SharedIndexInformer<K>
    where
        K: Object + DeserializeOwned,
    {
        let place = (list_watch.path().to_owned(), list_watch.scope().clone());
        // Declared first, so that they are dropped when the lock is released.
        let _stopped: Vec<Member>;
        let mut members = self.shared.members.lock();
        _stopped =
            members.informers.extract_if(.., |member| member.informer.is_stopped()).collect();
        if let Some(informer) = members.find(&place) {
            return informer;
        }
        let settings = &self.shared.settings;
        // Each informer its own random sequence, the same in every run.
        let seed = settings.seed.wrapping_add(0x9e37_79b9_u64.wrapping_mul(members.made));
        let name = list_watch.target().to_string() + &place.1.told_selectors();
        let resource = list_watch.resource().clone();
        let mut builder = SharedIndexInformer::builder(list_watch).name(name).seed(seed);
        if let Some(name) = &settings.metrics {
            builder = builder.metrics(&settings.series(name, &place.1), &resource);
        }
        let informer = builder.build();
        members.add(Some(place), &informer);
        informer
    }

    /// Starts, waits for and stops this informer with the others: one with a [`ListWatch`] or with settings of its own.
    pub fn adopt<K: Object>(&self, informer: &SharedIndexInformer<K>) {
        self.shared.members.lock().add(None, informer);
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
        let members = self.shared.members.lock();
        members.informers.iter().map(|member| Arc::clone(&member.informer)).collect()
    }
}

impl fmt::Debug for SharedInformerFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedInformerFactory")
            .field("informers", &self.shared.members.lock().informers.len())
            .finish_non_exhaustive()
    }
}

// === impl FactoryBuilder ===

impl FactoryBuilder {
    /// Follows this scope instead of everything, unless an informer is asked for in another one. Kinds that live in no
    /// namespace cannot be asked for in one.
    pub fn scope(mut self, scope: Scope) -> Self {
        self.scope = scope;
        self
    }

    /// Where random sources begin; see [`Builder::seed`](crate::Builder::seed).
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Records metrics of all informers, with this name; see [`Builder::metrics`](crate::Builder::metrics). An informer
    /// in another scope than the factory's has the scope in its name.
    pub fn metrics(mut self, name: impl Into<Arc<str>>) -> Self {
        self.metrics = Some(name.into());
        self
    }

    fn series(&self, name: &str, scope: &Scope) -> String {
        if *scope == self.scope { name.to_owned() } else { format!("{name} {scope}") }
    }

    /// Makes the factory.
    pub fn build(self) -> SharedInformerFactory {
        SharedInformerFactory {
            shared: Arc::new(Shared { settings: self, members: Mutex::default() }),
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

// === impl Scope ===

impl Scope {
    /// All objects of the kind.
    pub fn all() -> Self {
        Self::default()
    }

    /// The objects in one namespace.
    pub fn namespace(namespace: impl Into<String>) -> Self {
        Self { namespace: Some(namespace.into()), ..Self::default() }
    }

    /// Of those, the ones whose labels match, in the API server's syntax: `app=web,tier!=cache`.
    #[must_use]
    pub fn labels(mut self, selector: impl Into<String>) -> Self {
        self.labels = Some(selector.into());
        self
    }

    /// Of those, the ones whose fields match, in the API server's syntax: `status.phase!=Failed`.
    #[must_use]
    pub fn fields(mut self, selector: impl Into<String>) -> Self {
        self.fields = Some(selector.into());
        self
    }

    fn list_watch<K>(&self, client: kube_client::Client) -> KubeListWatch<K>
    where
        K: Object + DeserializeOwned,
        K::Kind: Resource<DynamicType = ()>,
    {
        let mut list_watch = KubeListWatch::new(client, self.namespace.as_deref());
        if let Some(labels) = &self.labels {
            list_watch = list_watch.label_selector(labels);
        }
        if let Some(fields) = &self.fields {
            list_watch = list_watch.field_selector(fields);
        }
        list_watch
    }

    /// The selectors, under their names in a query.
    pub(crate) fn selectors(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let labels = self.labels.as_deref().map(|labels| ("labelSelector", labels));
        let fields = self.fields.as_deref().map(|fields| ("fieldSelector", fields));
        labels.into_iter().chain(fields)
    }

    fn told_selectors(&self) -> String {
        let labels = self.labels.iter().map(|labels| format!(" with labels {labels}"));
        labels.chain(self.fields.iter().map(|fields| format!(" with fields {fields}"))).collect()
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "in namespace {namespace}")?,
            None => f.write_str("everywhere")?,
        }
        f.write_str(&self.told_selectors())
    }
}

// === impl Members ===

impl Members {
    fn find<K: Object>(&self, place: &(String, Scope)) -> Option<SharedIndexInformer<K>> {
        self.informers.iter().filter(|member| member.place.as_ref() == Some(place)).find_map(
            |member| {
                let informer: &dyn Any = &*member.informer;
                informer.downcast_ref::<SharedIndexInformer<K>>().cloned()
            },
        )
    }

    fn add<K: Object>(
        &mut self,
        place: Option<(String, Scope)>,
        informer: &SharedIndexInformer<K>,
    ) {
        self.made += 1;
        self.informers.push(Member { place, informer: Arc::new(informer.clone()) });
    }
}

// === impl AnyInformer ===

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
        Self::unsynced(self)
    }

    fn is_stopped(&self) -> bool {
        Self::is_stopped(self)
    }
}
