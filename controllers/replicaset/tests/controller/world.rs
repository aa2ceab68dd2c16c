//! An API server in this process, the controller beside it, and a way to break what is between
//! them.

use std::time::Duration;

use homeostat::client;
use homeostat::kube_client::Client;
use homeostat::kube_client::api::{Api, ListParams, Patch, PatchParams, PostParams};
use homeostat_apiserver::ApiServer;
use homeostat_faults::Faults;
use homeostat_replicaset::{Options, RunError, run};
use homeostat_testing::RequestedPermissions;
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{ReplicaSet, ReplicaSetStatus};
use k8s_openapi::api::core::v1::{Event, Namespace, Pod};
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tower::Layer as _;

/// Longer than every back-off and every check of an unknown write in these tests.
const DEADLINE: Duration = Duration::from_secs(120);

/// A cluster with one namespace, `shop`.
pub(crate) struct World {
    /// The client of all other users, without faults between it and the server.
    client: Client,
    /// The faults between the controller and the server.
    pub(crate) faults: Faults,
    /// The permissions that the controller requested.
    pub(crate) requested: RequestedPermissions,
    controller: JoinSet<Result<(), RunError>>,
    stop: oneshot::Sender<()>,
    began: tokio::time::Instant,
}

/// A pod, in short.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) name: String,
    pub(crate) uid: String,
    pub(crate) owner: Option<String>,
    pub(crate) active: bool,
}

pub(crate) fn epoch() -> Timestamp {
    "2026-06-01T12:00:00Z".parse().expect("a time")
}

/// Returns `web` with `replicas` replicas, which selects `app=web`.
pub(crate) fn web(replicas: i32) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {
            "replicas": replicas, "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}, "annotations": {"note": "kept"}},
                "spec": {"containers": [{"name": "c", "image": "i"}]},
            },
        },
    })
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::with(Options::default()).await
    }

    pub(crate) async fn with(options: Options) -> Self {
        let began = tokio::time::Instant::now();
        let server = ApiServer::builder().seed(7).epoch(epoch()).build();
        let client = server.client();
        let faults = Faults::new();
        let namespaces: Api<Namespace> = Api::all(client.clone());
        let namespace = json!({"metadata": {"name": "shop"}});
        let namespace = serde_json::from_value(namespace).expect("a namespace");
        namespaces.create(&PostParams::default(), &namespace).await.expect("the namespace is new");
        let options = Options { epoch: Some(epoch()), seed: Some(7), ..options };
        let (stop, stopped) = oneshot::channel();
        let mut controller = JoinSet::new();
        let requested = RequestedPermissions::default();
        // The client of a deployed controller, above the faults. Its rate would delay large steps.
        let service = faults.layer().layer(server.service());
        let service = client::builder().qps(1000.0).burst(2000).service(service);
        let service = service.layer(&requested.layer()).build();
        controller.spawn(async move {
            let shutdown = async { drop(stopped.await) };
            run(service, options, shutdown).await
        });
        Self { client, faults, requested, controller, stop, began }
    }

    /// Returns the time on the clocks of the server and the controller.
    pub(crate) fn now(&self) -> Timestamp {
        epoch() + jiff::SignedDuration::try_from(self.began.elapsed()).expect("a short while")
    }

    pub(crate) fn sets(&self) -> Api<ReplicaSet> {
        Api::namespaced(self.client.clone(), "shop")
    }

    pub(crate) fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.client.clone(), "shop")
    }

    pub(crate) async fn create(&self, set: &Value) {
        let set = serde_json::from_value(set.clone()).expect("a ReplicaSet");
        self.sets().create(&PostParams::default(), &set).await.expect("it is new");
    }

    pub(crate) async fn scale(&self, replicas: i32) {
        self.patch_set(&json!({"spec": {"replicas": replicas}})).await;
    }

    pub(crate) async fn patch_set(&self, patch: &Value) {
        let patched = self.sets().patch("web", &PatchParams::default(), &Patch::Merge(patch)).await;
        patched.expect("the ReplicaSet is there");
    }

    pub(crate) async fn create_pod(&self, pod: &Value) {
        let pod = serde_json::from_value(pod.clone()).expect("a pod");
        self.pods().create(&PostParams::default(), &pod).await.expect("it is new");
    }

    pub(crate) async fn patch_pod(&self, name: &str, patch: &Value) {
        let patched = self.pods().patch(name, &PatchParams::default(), &Patch::Merge(patch)).await;
        patched.expect("the pod is there");
    }

    pub(crate) async fn patch_pod_status(&self, name: &str, status: &Value) {
        let patch = Patch::Merge(json!({"status": status}));
        let patched = self.pods().patch_status(name, &PatchParams::default(), &patch).await;
        patched.expect("the pod is there");
    }

    pub(crate) async fn make_ready(&self, name: &str, since: Timestamp) {
        let condition = json!({"type": "Ready", "status": "True",
                               "lastTransitionTime": since.to_string()});
        let status = json!({"phase": "Running", "conditions": [condition]});
        self.patch_pod_status(name, &status).await;
    }

    /// All pods of the namespace, in order of their names.
    pub(crate) async fn seen(&self) -> Vec<Seen> {
        let list = self.pods().list(&ListParams::default()).await.expect("pods can be listed");
        list.items.into_iter().map(Seen::of).collect()
    }

    /// The active pods that `web` owns.
    pub(crate) async fn owned(&self) -> Vec<Seen> {
        let mut pods = self.seen().await;
        pods.retain(|pod| pod.active && pod.owner.as_deref() == Some("web"));
        pods
    }

    pub(crate) async fn status(&self) -> ReplicaSetStatus {
        let set = self.sets().get("web").await.expect("the ReplicaSet is there");
        set.status.unwrap_or_default()
    }

    /// Reason and message of each event, in the order in which they were made.
    pub(crate) async fn events(&self) -> Vec<(String, String)> {
        let events: Api<Event> = Api::namespaced(self.client.clone(), "shop");
        let events = events.list(&ListParams::default()).await.expect("events can be listed");
        let text = |text: Option<String>| text.unwrap_or_default();
        events.items.into_iter().map(|event| (text(event.reason), text(event.message))).collect()
    }

    /// Waits until exactly `count` pods are owned and active and reported, and then some, to see
    /// that it stays so.
    #[track_caller]
    pub(crate) fn settles_at(&self, count: usize) -> impl Future<Output = Vec<Seen>> {
        let caller = std::panic::Location::caller();
        async move {
            let wanted = i32::try_from(count).expect("few pods");
            let reached = async || {
                self.owned().await.len() == count && self.status().await.replicas == wanted
            };
            if !self.within_deadline(&reached).await {
                let (owned, status) = (self.owned().await.len(), self.status().await);
                panic!("{caller}: not at {count} but at {owned}, {status:?}");
            }
            self.pass(Duration::from_secs(30)).await;
            assert!(reached().await, "{caller}: it did not stay at {count}");
            self.owned().await
        }
    }

    /// Waits until `count` pods are owned and active, and sees to it that there are never more than
    /// `most`.
    #[track_caller]
    pub(crate) fn reaches(&self, count: usize, most: usize) -> impl Future<Output = ()> {
        let caller = std::panic::Location::caller();
        self.until(async move || {
            let now = self.owned().await.len();
            assert!(now <= most, "{caller}: {now} pods instead of {count}");
            now == count
        })
    }

    /// Waits until `check` holds.
    #[track_caller]
    pub(crate) fn until(&self, check: impl AsyncFn() -> bool) -> impl Future<Output = ()> {
        let caller = std::panic::Location::caller();
        async move {
            assert!(self.within_deadline(&check).await, "{caller}: it did not happen");
        }
    }

    async fn within_deadline(&self, check: &impl AsyncFn() -> bool) -> bool {
        let deadline = tokio::time::Instant::now() + DEADLINE;
        while tokio::time::Instant::now() < deadline {
            if check().await {
                return true;
            }
            self.pass(Duration::from_millis(50)).await;
        }
        false
    }

    /// Lets virtual time pass.
    pub(crate) async fn pass(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }

    /// Ends the controller in order, and says how long that took.
    pub(crate) async fn stop(mut self) -> Duration {
        let asked = tokio::time::Instant::now();
        self.stop.send(()).expect("the controller runs");
        let ended = self.controller.join_next().await.expect("there is one");
        ended.expect("it did not panic").expect("it ended in order");
        asked.elapsed()
    }
}

impl Seen {
    fn of(pod: Pod) -> Self {
        let phase = pod.status.and_then(|status| status.phase).unwrap_or_default();
        let leaving = pod.metadata.deletion_timestamp.is_some();
        let owners = pod.metadata.owner_references.unwrap_or_default();
        let owner = owners.into_iter().find(|owner| owner.controller == Some(true));
        Self {
            name: pod.metadata.name.unwrap_or_default(),
            uid: pod.metadata.uid.unwrap_or_default(),
            owner: owner.map(|owner| owner.name),
            active: !leaving && phase != "Failed" && phase != "Succeeded",
        }
    }
}
