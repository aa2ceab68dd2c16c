//! The controller: two caches, a queue, and one pass over one Greeting.

use homeostat::informer::Scope;
use homeostat::kube_client::api::{Patch, PatchParams, PostParams};
use homeostat::kube_client::{Api, Client};
use homeostat::owner::{controller_of, controller_reference};
use homeostat::{
    Action, Controller, EventRecorder, Lister, Manager, Object as _, ReadYourWrites, Reconciler,
    Request, SharedInformerFactory,
};
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::json;

use crate::greeting::{Greeting, GreetingStatus};

/// The name of the controller: in its metrics, its events, and the label of its objects.
const NAME: &str = "greeting-controller";

/// The label that each written object has. The cache holds these objects, and no others.
const MANAGED_BY: &str = "app.kubernetes.io/managed-by";

/// The options of the controller.
#[derive(Clone, Debug)]
pub struct Options {
    /// The number of Greetings that are reconciled concurrently (default 2).
    pub workers: usize,
    /// The seed of jitter for a reproducible run. `None` (the default) takes a random seed.
    pub seed: Option<u64>,
}

/// The error of a pass. The key is retried with a back-off.
#[derive(Debug, thiserror::Error)]
enum SyncError {
    #[error("ConfigMap {0:?} exists and belongs to another owner")]
    Taken(String),
    #[error(transparent)]
    Request(#[from] homeostat::kube_client::Error),
}

struct GreetingReconciler {
    client: Client,
    greetings: Lister<Greeting>,
    maps: Lister<ConfigMap>,
    events: EventRecorder,
}

/// Returns the controller with its caches. `run_until` runs it; add leader election and probes
/// before.
///
/// # Panics
///
/// Panics outside of a tokio runtime.
pub fn manager(client: Client, options: &Options) -> Manager {
    let mut factory = SharedInformerFactory::builder(client.clone());
    let mut recorder = EventRecorder::builder(client.clone(), NAME);
    if let Some(seed) = options.seed {
        factory = factory.seed(seed);
        recorder = recorder.seed(seed);
    }
    let (informers, events) = (factory.build(), recorder.build());
    let greetings = informers.informer::<Greeting>();
    let managed = Scope::all().labels(format!("{MANAGED_BY}={NAME}"));
    let maps = informers.informer_in::<ConfigMap>(&managed);

    // No pass starts on a cache that does not show what the last pass has written.
    let writes = ReadYourWrites::new(NAME).cache(&greetings).cache(&maps);
    let reconciler = GreetingReconciler {
        client: writes.client(client),
        greetings: greetings.lister(),
        maps: maps.lister(),
        events: events.clone(),
    };
    let controller = Controller::builder(NAME, &greetings)
        .owns(&maps)
        .read_your_writes(&writes)
        .workers(options.workers)
        .build(reconciler);
    Manager::new(informers).with(controller).recorder(&events)
}

/// Returns the object that `greeting` asks for.
fn config_map(greeting: &Greeting) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta {
            name: greeting.metadata.name.clone(),
            namespace: greeting.metadata.namespace.clone(),
            labels: Some([(MANAGED_BY.to_owned(), NAME.to_owned())].into()),
            owner_references: controller_reference(greeting).map(|owner| vec![owner]),
            ..ObjectMeta::default()
        },
        data: Some([("text".to_owned(), greeting.spec.text.clone())].into()),
        ..ConfigMap::default()
    }
}

// === impl Options ===

impl Default for Options {
    fn default() -> Self {
        Self { workers: 2, seed: None }
    }
}

// === impl GreetingReconciler ===

impl Reconciler<Greeting> for GreetingReconciler {
    type Error = SyncError;

    async fn reconcile(&self, request: &Request<Greeting>) -> Result<Action, SyncError> {
        let Some(greeting) = self.greetings.get(request.key()) else {
            return Ok(Action::AwaitChange);
        };
        if greeting.metadata.deletion_timestamp.is_some() {
            return Ok(Action::AwaitChange); // the garbage collector deletes the ConfigMap
        }
        if self.publish(&greeting).await? {
            self.events.normal(&greeting, "Published", "ConfigMap written");
        }
        self.write_status(&greeting).await?;
        Ok(Action::AwaitChange)
    }
}

impl GreetingReconciler {
    /// Creates or corrects the `ConfigMap`. Returns true if it was written.
    async fn publish(&self, greeting: &Greeting) -> Result<bool, SyncError> {
        let wanted = config_map(greeting);
        let key = greeting.key();
        let (namespace, name) = (key.namespace().unwrap_or_default(), key.name());
        let maps = Api::<ConfigMap>::namespaced(self.client.clone(), namespace);
        let Some(found) = self.maps.get((namespace, name)) else {
            maps.create(&PostParams::default(), &wanted).await?;
            return Ok(true);
        };
        let owner = controller_of(&found.metadata).map(|owner| &owner.uid);
        if owner != greeting.metadata.uid.as_ref() {
            return Err(SyncError::Taken(name.to_owned()));
        }
        if found.data == wanted.data {
            return Ok(false);
        }
        // The version makes the write fail with 409 if the cache is late.
        let version = &found.metadata.resource_version;
        let patch = json!({ "metadata": { "resourceVersion": version }, "data": wanted.data });
        maps.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await?;
        Ok(true)
    }

    /// Writes the status, unless the Greeting has it.
    async fn write_status(&self, greeting: &Greeting) -> Result<(), SyncError> {
        let observed_generation = greeting.metadata.generation.unwrap_or_default();
        let status = GreetingStatus { observed_generation };
        if greeting.status.as_ref() == Some(&status) {
            return Ok(());
        }
        let key = greeting.key();
        let namespace = key.namespace().unwrap_or_default();
        let greetings = Api::<Greeting>::namespaced(self.client.clone(), namespace);
        let patch = json!({ "metadata": { "uid": greeting.metadata.uid }, "status": status });
        let params = PatchParams::default();
        greetings.patch_status(key.name(), &params, &Patch::Merge(patch)).await?;
        Ok(())
    }
}
