//! [`SharedInformerFactory`]: one informer per type and scope, shared by all callers.
//!
//! The factory promises that two callers that ask for the same type, collection and scope get the
//! same informer while it is not stopped, so that a process has one watch and one copy of it. The
//! types differ, so each informer is kept as an [`AnyInformer`] and found again by a downcast. The
//! list is searched from the front: a process has some dozens of informers, and asks for them
//! when it starts.

mod any_informer;
mod builder;
#[cfg(test)]
mod tests;
mod waiting;

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use kube_core::Resource;
use parking_lot::{Mutex, ReentrantMutex};
use serde::de::DeserializeOwned;

use self::any_informer::AnyInformer;
pub use self::builder::FactoryBuilder;
pub use self::waiting::NotSynced;
use crate::list_watch::KubeListWatch;
use crate::object::Object;
use crate::scope::Scope;
use crate::shared::SharedIndexInformer;
use crate::status::InformerStatus;

/// Builds one informer for each type and scope, shares it between all callers, and starts and stops
/// all of them together.
///
/// Each informer can also be started and stopped by itself. A stopped informer is forgotten: the
/// next caller gets a new one. A clone of the factory is another handle on the same informers.
///
/// Use it in a process with several controllers, so that two controllers that read pods share one
/// watch and one cache. Use [`SharedIndexInformer::builder`] instead for one informer, or for
/// settings that a factory does not have, and [`adopt`](Self::adopt) the result.
///
/// Dropping the last handle of the factory drops its handles of the informers. An informer ends
/// when its other handles are gone as well.
///
/// # Examples
///
/// ```no_run
/// # async fn doc(client: kube_client::Client) {
/// use homeostat_informer::SharedInformerFactory;
/// use k8s_openapi::api::core::v1::{Node, Pod};
///
/// let informers = SharedInformerFactory::new(&client);
/// let pods = informers.informer::<Pod>().lister();
/// let nodes = informers.informer::<Node>().lister();
/// informers.start();
/// if informers.wait_for_sync().await {
///     println!("{} pods on {} nodes", pods.len(), nodes.len());
/// }
/// informers.stop().await;
/// # }
/// ```
#[doc(alias = "NewSharedInformerFactory")]
#[derive(Clone)]
pub struct SharedInformerFactory {
    shared: Arc<Shared>,
}

/// The state that the clones of a factory share.
struct Shared {
    settings: FactoryBuilder,
    /// Held while an informer is looked up and built, so that each is built once: of two that are
    /// built at the same time, only one gets the labels of the metrics, and the other one could
    /// stay. Reentrant, because the recorder that a build calls may ask for another informer.
    building: ReentrantMutex<()>,
    /// Never held across an await, or while an informer is built or dropped: both run the author's
    /// code.
    members: Mutex<Members>,
}

/// The informers of a factory, those that have stopped included until the next call of
/// `informer_of`.
#[derive(Default)]
struct Members {
    /// In the order in which they were added.
    informers: Vec<Member>,
    /// Informers that were ever added.
    ///
    /// Adopted ones count as well. It makes the seed of each informer different, and never
    /// decreases.
    made: u64,
}

/// An informer, and where it is found.
struct Member {
    /// The path of the collection and the scope; `None` for an adopted informer.
    place: Option<(String, Scope)>,
    informer: Arc<dyn AnyInformer>,
}

// === impl SharedInformerFactory ===

impl SharedInformerFactory {
    /// Builds a factory of informers over all namespaces.
    ///
    /// The client is cloned; informers share its connections. For other settings use
    /// [`builder`](Self::builder).
    pub fn new(client: &kube_client::Client) -> Self {
        Self::builder(client.clone()).build()
    }

    /// Returns the settings of a factory.
    ///
    /// The defaults are all namespaces, a seed from the operating system, and no metrics.
    pub fn builder(client: kube_client::Client) -> FactoryBuilder {
        FactoryBuilder::new(client)
    }

    /// Returns the informer for `K` in the factory's own scope: the same one for each caller. Call
    /// [`start`](Self::start) to run it.
    ///
    /// The informer watches at the kind's own API version. If the factory has started already, the
    /// new informer still must be started: call [`start`](Self::start) again, which starts only
    /// those that do not run.
    #[doc(alias = "InformerFor")]
    pub fn informer<K>(&self) -> SharedIndexInformer<K>
    where
        K: Object + DeserializeOwned,
        K::Kind: Resource<DynamicType = ()>,
    {
        self.informer_in(&self.shared.settings.scope)
    }

    /// Returns the informer for `K` in `scope`: the same one for equal scopes. Call
    /// [`start`](Self::start) to run it.
    ///
    /// # Examples
    ///
    /// Nodes have no namespace, so a factory for one namespace asks for them in another scope:
    ///
    /// ```no_run
    /// # fn doc(client: kube_client::Client) {
    /// use homeostat_informer::{Scope, SharedInformerFactory};
    /// use k8s_openapi::api::core::v1::{Node, Pod};
    ///
    /// let shop = Scope::namespace("shop");
    /// let factory = SharedInformerFactory::builder(client).scope(shop).build();
    /// let pods = factory.informer::<Pod>();
    /// let nodes = factory.informer_in::<Node>(&Scope::all());
    /// factory.start();
    /// # }
    /// ```
    pub fn informer_in<K>(&self, scope: &Scope) -> SharedIndexInformer<K>
    where
        K: Object + DeserializeOwned,
        K::Kind: Resource<DynamicType = ()>,
    {
        self.informer_of(list_watch(self.shared.settings.client.clone(), scope))
    }

    /// Returns the informer for `list_watch`: the same one for the same resource and scope. Call
    /// [`start`](Self::start) to run it.
    ///
    /// Use it for kinds that are known only at run time, and for other settings of a
    /// [`KubeListWatch`]. The settings of the first caller apply; [`informer`](Self::informer) and
    /// [`informer_in`](Self::informer_in) use the defaults.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # fn doc(client: kube_client::Client) {
    /// # use homeostat_informer::{Dynamic, SharedInformerFactory};
    /// # use homeostat_informer::list_watch::KubeListWatch;
    /// # use k8s_openapi::api::core::v1::Pod;
    /// # use kube_core::GroupVersionResource;
    /// let factory = SharedInformerFactory::new(&client);
    /// let lean = KubeListWatch::<Pod>::new(client.clone(), None).prune(["spec.volumes"]);
    /// let lean = factory.informer_of(lean);
    /// let pods = factory.informer::<Pod>(); // the same informer
    ///
    /// let backups = GroupVersionResource::gvr("stable.example.com", "v1", "backups");
    /// let backups = KubeListWatch::<Dynamic>::of_resource(client, &backups, Some("shop"));
    /// let backups = factory.informer_of(backups);
    /// # }
    /// ```
    pub fn informer_of<K>(&self, list_watch: KubeListWatch<K>) -> SharedIndexInformer<K>
    where
        K: Object + DeserializeOwned,
    {
        let place = (list_watch.path().to_owned(), list_watch.scope().clone());
        let _building = self.shared.building.lock();
        let number = match self.find(&place) {
            Ok(informer) => return informer,
            Err(number) => number,
        };
        // Built without the lock of the members: the metrics recorder is the author's code. If it
        // has asked for the same informer meanwhile, this one is dropped.
        let informer = self.shared.settings.build_informer(list_watch, &place.1, number);
        let mut members = self.shared.members.lock();
        let found = members.find(&place);
        if found.is_none() {
            members.add(Some(place), &informer);
        }
        drop(members);
        found.unwrap_or(informer)
    }

    /// Returns the informer at `place`, or the number of the next one. Forgets the informers that
    /// have stopped.
    fn find<K: Object>(&self, place: &(String, Scope)) -> Result<SharedIndexInformer<K>, u64> {
        // Declared first, so that they are dropped when the lock is released.
        let _stopped: Vec<Member>;
        let mut members = self.shared.members.lock();
        _stopped =
            members.informers.extract_if(.., |member| member.informer.is_stopped()).collect();
        members.find(place).ok_or(members.made)
    }

    /// Adds an informer that the caller has built, to be started, waited for and stopped with the
    /// others.
    ///
    /// An adopted informer is never returned by [`informer`](Self::informer) or its variants. Use
    /// it for an informer with a transform, another queue or a
    /// [`ListWatch`](crate::list_watch::ListWatch) of the caller.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn doc(client: kube_client::Client) {
    /// use homeostat_informer::list_watch::KubeListWatch;
    /// use homeostat_informer::{SharedIndexInformer, SharedInformerFactory};
    /// use k8s_openapi::api::core::v1::Pod;
    ///
    /// let factory = SharedInformerFactory::new(&client);
    /// let pods = SharedIndexInformer::builder(KubeListWatch::<Pod>::new(client, None))
    ///     .transform(|pod: &mut Pod| pod.metadata.managed_fields = None)
    ///     .build();
    /// factory.adopt(&pods);
    /// factory.start();
    /// assert!(factory.wait_for_sync().await);
    /// # }
    /// ```
    pub fn adopt<K: Object>(&self, informer: &SharedIndexInformer<K>) {
        self.shared.members.lock().add(None, informer);
    }

    /// Starts every informer that does not run yet.
    ///
    /// Can be called again after more informers were added. An informer that was stopped does not
    /// start again.
    ///
    /// # Panics
    ///
    /// Panics outside of a tokio runtime.
    pub fn start(&self) {
        for informer in self.all() {
            informer.start();
        }
    }

    /// Stops every informer, and waits for all their tasks.
    ///
    /// Informers that are added later are not stopped. Called from a handler it does not wait: see
    /// [`SharedIndexInformer::stop`].
    ///
    /// # Cancel safety
    ///
    /// All informers stop once this future was polled; only the wait ends.
    pub async fn stop(&self) {
        futures::future::join_all(self.all().iter().map(|informer| informer.stop())).await;
    }

    /// Returns the status of each informer, in the order in which they were added.
    pub fn statuses(&self) -> Vec<InformerStatus> {
        self.all().iter().map(|informer| informer.status()).collect()
    }

    /// Copies the handles, so that no lock is held while an informer is called.
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

/// Returns a list-watch of the objects in `scope`.
fn list_watch<K>(client: kube_client::Client, scope: &Scope) -> KubeListWatch<K>
where
    K: Object + DeserializeOwned,
    K::Kind: Resource<DynamicType = ()>,
{
    let mut list_watch = KubeListWatch::new(client, scope.namespace_name());
    for (parameter, selector) in scope.selectors() {
        list_watch = match parameter {
            "labelSelector" => list_watch.label_selector(selector),
            _ => list_watch.field_selector(selector),
        };
    }
    list_watch
}

// === impl Members ===

impl Members {
    /// Returns the informer of this place whose objects have the type `K`. Two types of one place,
    /// such as `Pod` and `Metadata<Pod>`, are two informers.
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
