//! An API server in this process, the controller beside it, and a way to break what is between
//! them.

use std::fmt::Debug;
use std::time::Duration;

use homeostat::kube_client::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use homeostat::kube_client::core::{ApiResource, NamespaceResourceScope};
use homeostat::kube_client::{Client, Resource};
use homeostat_apiserver::ApiServer;
use homeostat_apiserver::cluster::{ClaimScheduler, GarbageCollector};
use homeostat_faults::Faults;
use homeostat_resourceclaim::{Options, RunError, run};
use k8s_openapi::api::core::v1::{Event, Namespace, Pod, ResourceQuota};
use k8s_openapi::api::resource::v1::{ResourceClaim, ResourceClaimTemplate};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tower::Layer as _;

/// Longer than every back-off in these tests.
const DEADLINE: Duration = Duration::from_secs(120);

/// The name of claims in a quota.
const CLAIMS: &str = "count/resourceclaims.resource.k8s.io";

/// The finalizer that the scheduler sets.
pub(crate) const FINALIZER: &str = "resource.kubernetes.io/delete-protection";

/// A cluster with one namespace, `shop`, and a garbage collector.
pub(crate) struct World {
    /// The client of all other users, without faults between it and the server.
    pub(crate) client: Client,
    server: ApiServer,
    /// The faults between the controller and the server.
    pub(crate) faults: Faults,
    stop: CancellationToken,
    controllers: JoinSet<Result<(), RunError>>,
    pub(crate) seed: u64,
    /// True if the server enforces a quota of claims.
    is_enforcing: bool,
    /// Kept for its `Drop`.
    _collector: GarbageCollector,
}

/// A template that asks for one device.
pub(crate) fn template(name: &str) -> Value {
    let request = json!({"name": "r", "exactly": {"deviceClassName": "gpu"}});
    json!({
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {
            "metadata": {"labels": {"app": "web"}, "annotations": {"note": "kept"}},
            "spec": {"devices": {"requests": [request]}},
        },
    })
}

/// A claim that asks for one device.
pub(crate) fn claim(name: &str) -> Value {
    json!({
        "metadata": {"name": name, "namespace": "shop"},
        "spec": template("t")["spec"]["spec"],
    })
}

/// A pod with one entry per template, named `e0`, `e1` and so on.
pub(crate) fn pod(name: &str, templates: &[&str]) -> Value {
    let entry = |(n, template): (usize, &&str)| {
        let name = format!("e{n}");
        json!({"name": name, "resourceClaimTemplateName": template})
    };
    pod_with(name, &templates.iter().enumerate().map(entry).collect::<Vec<_>>().into())
}

/// A pod with these entries of `spec.resourceClaims`.
pub(crate) fn pod_with(name: &str, claims: &Value) -> Value {
    json!({
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {"resourceClaims": claims, "containers": [{"name": "c", "image": "i"}]},
    })
}

/// Returns `pod`, bound to a node.
pub(crate) fn on_node(mut pod: Value) -> Value {
    pod["spec"]["nodeName"] = json!("node-0");
    pod
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::with(Options::default()).await
    }

    pub(crate) async fn with(options: Options) -> Self {
        let mut world = Self::without_controller().await;
        world.start(options);
        world
    }

    pub(crate) async fn without_controller() -> Self {
        Self::seeded(7, false).await
    }

    /// Starts a cluster without a controller.
    pub(crate) async fn seeded(seed: u64, is_enforcing: bool) -> Self {
        let builder = ApiServer::builder().seed(seed);
        let server = if is_enforcing { builder.quota_admission() } else { builder }.build();
        let client = server.client();
        let collector = GarbageCollector::builder(server.client_as("garbage-collector"))
            .kind(ApiResource::erase::<Pod>(&()))
            .kind(ApiResource::erase::<ResourceClaim>(&()))
            .start();
        let world = Self {
            client,
            faults: Faults::seeded(seed),
            server,
            stop: CancellationToken::new(),
            controllers: JoinSet::new(),
            seed,
            is_enforcing,
            _collector: collector,
        };
        let namespaces: Api<Namespace> = Api::all(world.client.clone());
        let namespace = serde_json::from_value(json!({"metadata": {"name": "shop"}})).unwrap();
        namespaces.create(&PostParams::default(), &namespace).await.unwrap();
        world
    }

    /// Starts a controller.
    pub(crate) fn start(&mut self, options: Options) {
        self.start_with(self.faults.client(self.server.client()), options);
    }

    /// Starts a controller whose client repeats requests as that of a deployed program does.
    pub(crate) fn start_as_deployed(&mut self, options: Options) {
        let service = self.faults.layer_as("controller").layer(self.server.service());
        let client = homeostat::client::builder().qps(1000.0).burst(1000).service(service);
        self.start_with(client.build(), options);
    }

    fn start_with(&mut self, client: Client, options: Options) {
        let options = Options { epoch: Some(self.server.now()), seed: Some(self.seed), ..options };
        let stop = self.stop.clone();
        self.controllers.spawn(async move {
            run(client, options, async move { stop.cancelled().await }).await
        });
    }

    /// Ends the controller without order.
    pub(crate) fn crash(&mut self) {
        self.controllers = JoinSet::new();
    }

    /// Starts a scheduler without faults.
    pub(crate) fn scheduler(&self) -> ClaimScheduler {
        ClaimScheduler::start(self.server.client_as("scheduler"))
    }

    /// Ends all watches.
    pub(crate) fn restart_server(&self) {
        self.server.restart();
    }

    /// Forgets the history of the server.
    pub(crate) fn expire_history(&self) {
        self.server.expire_history();
    }

    /// Returns the number of open watches, and that of the tasks that run.
    pub(crate) fn at_work(&self) -> (usize, usize) {
        let tasks = tokio::runtime::Handle::current().metrics().num_alive_tasks();
        (self.server.watches(), tasks)
    }

    /// Stops the controller in order.
    pub(crate) async fn stop(&mut self) {
        self.stop.cancel();
        while let Some(ended) = self.controllers.join_next().await {
            ended.unwrap().unwrap();
        }
        self.stop = CancellationToken::new();
    }

    pub(crate) fn api<K>(&self) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.client.clone(), "shop")
    }

    pub(crate) fn pods(&self) -> Api<Pod> {
        self.api()
    }

    pub(crate) fn claims(&self) -> Api<ResourceClaim> {
        self.api()
    }

    pub(crate) async fn create<K>(&self, object: &Value) -> K
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
        K: Clone + Debug + Serialize + DeserializeOwned,
    {
        let object = serde_json::from_value(object.clone()).unwrap();
        self.api::<K>().create(&PostParams::default(), &object).await.unwrap()
    }

    pub(crate) async fn create_template(&self, name: &str) {
        self.create::<ResourceClaimTemplate>(&template(name)).await;
    }

    /// The names of the claims of each entry, as the pod's status records them.
    pub(crate) async fn recorded(&self, pod: &str) -> Vec<(String, String)> {
        let status = self.pods().get(pod).await.unwrap().status.unwrap_or_default();
        let statuses = status.resource_claim_statuses.unwrap_or_default();
        let name = |status: k8s_openapi::api::core::v1::PodResourceClaimStatus| {
            (status.name, status.resource_claim_name.unwrap_or_default())
        };
        statuses.into_iter().map(name).collect()
    }

    /// Waits until the claims of `count` entries are recorded, and returns the names.
    #[track_caller]
    pub(crate) fn wait_for_names(
        &self,
        pod: &str,
        count: usize,
    ) -> impl Future<Output = Vec<String>> {
        let until = self.until(async move || self.recorded(pod).await.len() == count);
        async move {
            until.await;
            self.recorded(pod).await.into_iter().map(|(_, claim)| claim).collect()
        }
    }

    pub(crate) async fn claim_names(&self) -> Vec<String> {
        let claims = self.claims().list(&ListParams::default()).await.unwrap();
        claims.items.into_iter().filter_map(|claim| claim.metadata.name).collect()
    }

    /// The names of the pods that have reserved the claim.
    pub(crate) async fn consumers(&self, claim: &str) -> Vec<String> {
        let claim = self.claims().get(claim).await.unwrap();
        let consumers = claim.status.and_then(|status| status.reserved_for).unwrap_or_default();
        consumers.into_iter().map(|consumer| consumer.name).collect()
    }

    pub(crate) async fn patch_claim_status(&self, name: &str, status: &Value) {
        let patch = Patch::Merge(json!({"status": status}));
        self.claims().patch_status(name, &PatchParams::default(), &patch).await.unwrap();
    }

    /// Plays the scheduler: sets the finalizer and allocates a device.
    pub(crate) async fn allocate(&self, name: &str) {
        let finalizer = Patch::Merge(json!({"metadata": {"finalizers": [FINALIZER]}}));
        self.claims().patch(name, &PatchParams::default(), &finalizer).await.unwrap();
        let device = json!({"request": "r", "driver": "d", "pool": "p", "device": "x"});
        let allocation = json!({"devices": {"results": [device]}});
        self.patch_claim_status(name, &json!({"allocation": allocation})).await;
    }

    /// Plays the driver: reports about the allocated device.
    pub(crate) async fn report_device(&self, name: &str) {
        let device = json!({"driver": "d", "pool": "p", "device": "x"});
        self.patch_claim_status(name, &json!({"devices": [device]})).await;
    }

    pub(crate) async fn is_allocated(&self, name: &str) -> bool {
        let claim = self.claims().get(name).await.unwrap();
        claim.status.is_some_and(|status| status.allocation.is_some())
    }

    /// Creates a quota with this limit of claims, if the server enforces quotas.
    pub(crate) async fn limit_claims(&self, limit: u32) {
        if self.is_enforcing {
            let spec = json!({"hard": {CLAIMS: limit.to_string()}});
            let quota = json!({"metadata": {"name": "q", "namespace": "shop"}, "spec": spec});
            self.create::<ResourceQuota>(&quota).await;
            self.set_limit(limit).await;
        }
    }

    /// Plays the quota controller: writes the limit and the present number of claims.
    pub(crate) async fn set_limit(&self, limit: u32) {
        if self.is_enforcing {
            let (hard, used) = (limit.to_string(), self.claim_names().await.len().to_string());
            let status = json!({"hard": {CLAIMS: hard}, "used": {CLAIMS: used}});
            let (patch, params) = (json!({"status": status}), PatchParams::default());
            let quotas = self.api::<ResourceQuota>();
            quotas.patch_status("q", &params, &Patch::Merge(patch)).await.unwrap();
        }
    }

    pub(crate) async fn set_phase(&self, pod: &str, phase: &str) {
        let patch = Patch::Merge(json!({"status": {"phase": phase}}));
        self.pods().patch_status(pod, &PatchParams::default(), &patch).await.unwrap();
    }

    /// Deletes the pod at once.
    pub(crate) async fn kill(&self, pod: &str) {
        let now = DeleteParams::default().grace_period(0);
        drop(self.pods().delete(pod, &now).await.unwrap());
    }

    /// The messages of the events with this reason.
    pub(crate) async fn events(&self, reason: &str) -> Vec<String> {
        let events = self.api::<Event>().list(&ListParams::default()).await.unwrap();
        let events = events.items.into_iter().filter(|it| it.reason.as_deref() == Some(reason));
        events.filter_map(|event| event.message).collect()
    }

    /// Waits until `check` holds.
    #[track_caller]
    pub(crate) fn until(&self, check: impl AsyncFn() -> bool) -> impl Future<Output = ()> {
        let caller = std::panic::Location::caller();
        async move {
            let deadline = self.server.now() + DEADLINE;
            while !check().await {
                assert!(self.server.now() < deadline, "{caller}: it did not happen");
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    }

    /// Waits longer than a retry takes.
    pub(crate) async fn rest(&self) {
        assert!(!self.controllers.is_empty(), "a controller runs");
        tokio::time::sleep(Duration::from_secs(30)).await;
    }
}
