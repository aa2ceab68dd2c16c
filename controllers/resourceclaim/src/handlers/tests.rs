//! Events to keys and counts, by the informers of an API server in this process. The cases are
//! those of upstream's `TestEventHandlers` that need no `PodGroup`.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::time::Duration;

use homeostat::informer::list_watch::ApiError;
use homeostat::informer::testing::ScriptedListWatch;
use homeostat::kube_client::api::{
    Api, ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams,
};
use homeostat::kube_client::{Client, Resource};
use homeostat::{
    Action, CancellationToken, Controller, Manager, Reconciler, Request, RunError,
    SharedIndexInformer, SharedInformerFactory,
};
use homeostat_apiserver::ApiServer;
use k8s_openapi::api::core::v1 as core;
use k8s_openapi::api::resource::v1;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::*;
use crate::claim::{EXTENDED_RESOURCE, POD_CLAIM_NAME};
use crate::metrics::MetricNames;
use crate::metrics::recorded::Recorded;
use crate::pods_with_claims::PodsWithClaims;

/// The keys that a pass was started for.
#[derive(Clone, Default)]
struct Keys(Arc<Mutex<BTreeSet<String>>>);

impl Reconciler<Key> for Keys {
    type Error = Infallible;

    async fn reconcile(&self, request: &Request<Key>) -> Result<Action, Infallible> {
        self.0.lock().insert(request.key().to_string());
        Ok(Action::AwaitChange)
    }
}

/// A server, and the handlers with the informers that feed them.
struct World {
    client: Client,
    keys: Keys,
    templates: Lister,
    stop: CancellationToken,
    manager: JoinSet<Result<(), RunError>>,
}

type Lister = homeostat::Index<Pod, Box<str>>;

impl World {
    /// Starts the handlers on a server without objects.
    async fn new() -> Self {
        let server = ApiServer::builder().seed(7).build();
        let informers = SharedInformerFactory::new(&server.client());
        let pods = informers.informer::<Pod>();
        let claims = informers.informer::<Claim>();
        let templates = informers.informer::<Template>();
        let caches = Caches::new(&pods, &claims, &templates);
        let by_template = caches.pods_by_template.clone();
        let handlers = Handlers { caches, deleted: Arc::new(DeletedUids::default()) };
        let [of_pods, of_claims, of_templates] = [handlers.clone(), handlers.clone(), handlers];
        let mut counts = ClaimCounts::new(MetricNames::default());
        let keys = Keys::default();
        let controller = Controller::for_keys::<Key>("handlers")
            .watches(&pods, move |event, enqueue| of_pods.pod(event, enqueue))
            .watches(&claims, move |event, enqueue| of_claims.claim(event, &mut counts, enqueue))
            .watches(&templates, move |event, enqueue| of_templates.template(event, enqueue))
            .build(keys.clone());
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        let mut manager = JoinSet::new();
        manager.spawn(async move {
            let manager = Manager::new(informers).with(controller);
            manager.run_until(async move { stopped.cancelled().await }).await
        });
        let world = Self { client: server.client(), keys, templates: by_template, stop, manager };
        world.create(&json!({"kind": "Namespace", "metadata": {"name": "other"}})).await;
        world.keys().await;
        world
    }

    fn api(&self, object: &Value) -> Api<DynamicObject> {
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or("default");
        let (client, namespaced) = (self.client.clone(), |kind: &ApiResource| {
            Api::namespaced_with(self.client.clone(), namespace, kind)
        });
        match object["kind"].as_str().unwrap() {
            "Pod" => namespaced(&erased::<core::Pod>()),
            "ResourceClaim" => namespaced(&erased::<v1::ResourceClaim>()),
            "ResourceClaimTemplate" => namespaced(&erased::<v1::ResourceClaimTemplate>()),
            _ => Api::all_with(client, &erased::<core::Namespace>()),
        }
    }

    /// Creates an object, and then its status.
    async fn create(&self, object: &Value) {
        let typed = serde_json::from_value(object.clone()).unwrap();
        self.api(object).create(&PostParams::default(), &typed).await.unwrap();
        if object.get("status").is_some() {
            self.update(object).await;
        }
    }

    /// Writes the labels and the status of an object.
    async fn update(&self, object: &Value) {
        let (api, name) = (self.api(object), object["metadata"]["name"].as_str().unwrap());
        let params = PatchParams::default();
        if let Some(labels) = object["metadata"].get("labels") {
            let patch = Patch::Merge(json!({"metadata": {"labels": labels}}));
            api.patch(name, &params, &patch).await.unwrap();
        }
        let patch = Patch::Merge(json!({"status": object["status"]}));
        api.patch_status(name, &params, &patch).await.unwrap();
    }

    /// Labels the namespace, so that the server accepts claims with admin access.
    async fn permit_admin_access(&self) {
        let labels = json!({"resource.kubernetes.io/admin-access": "true"});
        let patch = Patch::Merge(json!({"metadata": {"labels": labels}}));
        let namespaces = self.api(&json!({"kind": "Namespace", "metadata": {}}));
        namespaces.patch("default", &PatchParams::default(), &patch).await.unwrap();
    }

    async fn delete(&self, object: &Value) {
        let name = object["metadata"]["name"].as_str().unwrap();
        let now = DeleteParams::default().grace_period(0);
        drop(self.api(object).delete(name, &now).await.unwrap());
    }

    /// Returns the keys that were enqueued since the last call.
    async fn keys(&self) -> Vec<String> {
        sleep(Duration::from_secs(5)).await;
        std::mem::take(&mut *self.keys.0.lock()).into_iter().collect()
    }

    async fn finish(mut self) {
        self.stop.cancel();
        self.manager.join_next().await.unwrap().unwrap().unwrap();
    }
}

fn erased<K: Resource<DynamicType = ()>>() -> ApiResource {
    ApiResource::erase::<K>(&())
}

fn pod() -> Value {
    let spec = json!({"containers": [{"name": "c", "image": "i"}]});
    json!({"kind": "Pod", "metadata": {"name": "web", "uid": "u"}, "spec": spec})
}

fn pod_with(entries: Value) -> Value {
    let mut pod = pod();
    pod["spec"]["resourceClaims"] = entries;
    pod
}

fn from_template() -> Value {
    json!([{"name": "e", "resourceClaimTemplateName": "t"}])
}

/// A pod for whose extended resources the scheduler made the claim `extra`.
fn extended(mut pod: Value, phase: &str) -> Value {
    let mapping = json!({"containerName": "c", "resourceName": "example.com/gpu",
                         "requestName": "r"});
    let status = json!({"resourceClaimName": "extra", "requestMappings": [mapping]});
    let amounts = json!({"example.com/gpu": "1"});
    pod["spec"]["containers"][0]["resources"] = json!({"requests": amounts, "limits": amounts});
    pod["status"] = json!({"phase": phase, "extendedResourceClaimStatus": status});
    pod
}

fn spec(admin_access: Option<bool>) -> Value {
    let exactly = json!({"deviceClassName": "g", "adminAccess": admin_access});
    json!({"devices": {"requests": [{"name": "r", "exactly": exactly}]}})
}

fn template() -> Value {
    json!({"kind": "ResourceClaimTemplate", "metadata": {"name": "t"},
           "spec": {"spec": spec(None)}})
}

fn in_other_namespace(mut object: Value) -> Value {
    object["metadata"]["namespace"] = json!("other");
    object
}

/// The claims that upstream counts separately, with the labels `admin_access` and `source`.
fn kinds_of_claims() -> [(Value, &'static str); 4] {
    let claim = |annotations: Value, spec: Value| {
        json!({"kind": "ResourceClaim", "spec": spec,
               "metadata": {"name": "c", "annotations": annotations}})
    };
    [
        (claim(json!({}), spec(None)), "admin_access=false|source="),
        (
            claim(json!({POD_CLAIM_NAME: "e"}), spec(None)),
            "admin_access=false|source=resource_claim_template",
        ),
        (
            claim(json!({POD_CLAIM_NAME: "e"}), spec(Some(true))),
            "admin_access=true|source=resource_claim_template",
        ),
        (
            claim(json!({EXTENDED_RESOURCE: "true"}), spec(None)),
            "admin_access=false|source=extended_resource",
        ),
    ]
}

fn named(mut claim: Value, name: &str) -> Value {
    claim["metadata"]["name"] = json!(name);
    claim
}

fn allocated(mut claim: Value) -> Value {
    let device = json!({"request": "r", "driver": "d", "pool": "p", "device": "x"});
    claim["status"] = json!({"allocation": {"devices": {"results": [device]}}});
    claim
}

fn deallocated(mut claim: Value) -> Value {
    claim["status"] = json!({"allocation": null});
    claim
}

fn counts(labels: &str, allocated: u64, unallocated: u64) -> Vec<String> {
    let (admin_access, source) = labels.split_once('|').unwrap();
    let shown = |is_allocated: bool, count: u64| {
        let name = format!("resource_claims{{{admin_access},allocated={is_allocated},{source}}}");
        (count > 0).then(|| format!("{name} {count}"))
    };
    [shown(false, unallocated), shown(true, allocated)].into_iter().flatten().collect()
}

#[tokio::test(start_paused = true)]
async fn each_change_of_a_claim_enqueues_it_except_its_deletion() {
    for (claim, labels) in kinds_of_claims() {
        let recorded = Recorded::default();
        let _guard = metrics::set_default_local_recorder(&recorded);
        let world = World::new().await;
        world.permit_admin_access().await;
        let other = named(claim.clone(), "d");
        let check = async |keys: &[&str], allocated, unallocated, case: &str| {
            assert_eq!(world.keys().await, keys, "{case} of {labels}");
            assert_eq!(recorded.gauges(), counts(labels, allocated, unallocated), "{case}");
        };
        world.create(&claim).await;
        check(&["claim:default/c"], 0, 1, "new claim").await;
        let mut labelled = claim.clone();
        labelled["metadata"]["labels"] = json!({"foo": "bar"});
        world.update(&labelled).await;
        check(&["claim:default/c"], 0, 1, "update").await;
        world.update(&allocated(claim.clone())).await;
        check(&["claim:default/c"], 1, 0, "allocation").await;
        world.create(&allocated(other.clone())).await;
        check(&["claim:default/d"], 2, 0, "another allocated claim").await;
        world.update(&deallocated(claim.clone())).await;
        check(&["claim:default/c"], 1, 1, "deallocation").await;
        world.delete(&claim).await;
        check(&[], 1, 0, "deletion of a deallocated claim").await;
        world.delete(&other).await;
        check(&[], 0, 0, "deletion of an allocated claim").await;
        world.finish().await;
    }
}

#[tokio::test(start_paused = true)]
async fn new_pods_are_enqueued_and_indexed_by_their_template() {
    let world = World::new().await;
    world.create(&pod_with(from_template())).await;
    world.create(&in_other_namespace(pod_with(from_template()))).await;
    assert_eq!(world.keys().await, ["pod:default/web", "pod:other/web"]);
    for namespace in ["default", "other"] {
        assert_eq!(world.templates.get(&*index_key(namespace, "t")).len(), 1, "{namespace}");
    }
    world.create(&template()).await;
    assert_eq!(world.keys().await, ["pod:default/web"], "the template of one namespace");
    world.create(&in_other_namespace(template())).await;
    assert_eq!(world.keys().await, ["pod:other/web"]);
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn pod_without_claims_is_not_enqueued() {
    let world = World::new().await;
    world.create(&pod()).await;
    assert!(world.keys().await.is_empty());
    world.delete(&pod()).await;
    assert!(world.keys().await.is_empty());
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn claim_for_extended_resources_is_enqueued_when_its_pod_ends() {
    for (phase, keys) in [
        ("Running", &[][..]),
        ("Succeeded", &["claim:default/extra"][..]),
        ("Failed", &["claim:default/extra"][..]),
    ] {
        let world = World::new().await;
        world.create(&extended(pod(), phase)).await;
        assert_eq!(world.keys().await, keys, "{phase}");
        world.delete(&pod()).await;
        assert_eq!(world.keys().await, ["claim:default/extra"], "{phase}, then deleted");
        world.finish().await;
    }
}

#[tokio::test(start_paused = true)]
async fn ended_pod_enqueues_its_claims_and_not_itself() {
    let world = World::new().await;
    let entries = json!([{"name": "e", "resourceClaimName": "mine"}]);
    world.create(&extended(pod_with(entries), "Succeeded")).await;
    // Upstream also enqueues a pod that has ended if one of its entries has no claim.
    assert_eq!(world.keys().await, ["claim:default/extra", "claim:default/mine"]);
    world.finish().await;
}

#[tokio::test(start_paused = true)]
async fn ended_pod_enqueues_a_claim_that_its_status_does_not_name() {
    let world = World::new().await;
    let mut pod = pod_with(from_template());
    world.create(&pod).await;
    let uid = world.api(&pod).get("web").await.unwrap().metadata.uid;
    let owner = json!({"apiVersion": "v1", "kind": "Pod", "name": "web", "uid": uid,
                       "controller": true});
    let metadata = json!({"name": "c", "annotations": {POD_CLAIM_NAME: "e"},
                          "ownerReferences": [owner]});
    world.create(&json!({"kind": "ResourceClaim", "spec": spec(None), "metadata": metadata})).await;
    world.keys().await;
    // The controller crashed before it recorded the claim.
    pod["status"] = json!({"phase": "Succeeded"});
    world.update(&pod).await;
    assert_eq!(world.keys().await, ["claim:default/c"]);
    world.finish().await;
}

/// A scripted server of pods, the UIDs that the handlers remember, and the keys that they enqueue.
struct Script {
    server: ScriptedListWatch<Pod>,
    deleted: Arc<DeletedUids>,
    keys: Keys,
}

impl Script {
    /// Plays `story` beside the handlers.
    async fn play(story: impl AsyncFnOnce(&Self)) {
        let server = ScriptedListWatch::<Pod>::new();
        let pods = SharedIndexInformer::builder(PodsWithClaims::new(server.clone())).build();
        let informers = SharedInformerFactory::new(&ApiServer::builder().seed(7).build().client());
        informers.adopt(&pods);
        let caches = Caches::new(&pods, &informers.informer(), &informers.informer());
        let (deleted, keys) = (Arc::new(DeletedUids::default()), Keys::default());
        let handlers = Handlers { caches, deleted: Arc::clone(&deleted) };
        let controller = Controller::for_keys::<Key>("handlers")
            .watches(&pods, move |event, enqueue| handlers.pod(event, enqueue))
            .build(keys.clone());
        let run = Manager::new(informers).with(controller).run_until(std::future::pending());
        let script = Self { server, deleted, keys };
        tokio::select! { _ = run => unreachable!(), () = story(&script) => {} }
    }

    /// Returns the pod of the script with this status.
    fn pod(status: &Value, version: &str) -> Pod {
        let metadata = json!({"namespace": "default", "name": "web", "uid": "u",
                              "resourceVersion": version});
        serde_json::from_value(json!({"metadata": metadata, "status": status})).unwrap()
    }
}

#[tokio::test(start_paused = true)]
async fn pod_that_a_relist_lacks_is_not_known_to_be_deleted() {
    Script::play(async |script| {
        let extra = &json!({"extendedResourceClaimStatus": {"resourceClaimName": "extra"}});
        let served = [Script::pod(extra, "5")];
        let watch = script.server.expect_watch().await.serve(served, "5");
        // A client of an older server drops the member that it does not know.
        watch.apply(Script::pod(&json!({}), "6"));
        sleep(Duration::from_secs(1)).await;
        let is_deleted = || script.deleted.contains("u");
        assert!(!is_deleted(), "its reservation would be removed while it runs");
        watch.apply(Script::pod(extra, "7"));
        sleep(Duration::from_secs(1)).await;
        watch.end_with(ApiError::new(410, "Expired", "too old resource version"));
        let served = [Script::pod(&json!({}), "8")];
        let _watch = script.server.expect_watch().await.serve(served, "9");
        sleep(Duration::from_secs(1)).await;
        assert_eq!(*script.keys.0.lock(), BTreeSet::from(["claim:default/extra".to_owned()]));
        assert!(!is_deleted(), "its reservation would be removed while it runs");
    })
    .await;
}

/// The server was restored from a backup that has the pod.
#[tokio::test(start_paused = true)]
async fn deleted_pod_that_comes_back_is_not_known_to_be_deleted() {
    Script::play(async |script| {
        let pod = |version| {
            let extra = json!({"extendedResourceClaimStatus": {"resourceClaimName": "extra"}});
            Script::pod(&extra, version)
        };
        let watch = script.server.expect_watch().await.serve([pod("5")], "5");
        watch.delete(pod("6"));
        sleep(Duration::from_secs(1)).await;
        assert!(script.deleted.contains("u"));
        watch.end_with(ApiError::new(410, "Expired", "too old resource version"));
        let _watch = script.server.expect_watch().await.serve([pod("5")], "9");
        sleep(Duration::from_secs(1)).await;
        assert!(!script.deleted.contains("u"), "its reservations would be removed while it runs");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn pod_that_decodes_again_without_its_claim_is_not_known_to_be_deleted() {
    Script::play(async |script| {
        let extra = json!({"extendedResourceClaimStatus": {"resourceClaimName": "extra"}});
        let watch = script.server.expect_watch().await.serve([Script::pod(&extra, "5")], "5");
        let odd = Script::pod(&json!({}), "6");
        watch.apply_opaque(odd.metadata);
        watch.apply(Script::pod(&json!({}), "7"));
        sleep(Duration::from_secs(1)).await;
        assert!(!script.deleted.contains("u"), "its reservation would be removed while it runs");
    })
    .await;
}
