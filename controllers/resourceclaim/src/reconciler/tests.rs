//! Single passes, with caches that the test fills and an API server in this process. The cases are
//! those of upstream's `TestSyncHandler` that need no `PodGroup`, and those of stale caches and
//! objects that do not decode.

use std::time::Duration;

use homeostat::informer::testing::Store;
use homeostat::kube_client::api::{
    ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams,
};
use homeostat::kube_client::{Api, Client};
use homeostat::{EventRecorder, ObjectKey, TerminalError};
use homeostat_apiserver::ApiServer;
use homeostat_faults::{ApiError, Calls, Faults, Verb};
use k8s_openapi::api::core::v1 as core;
use k8s_openapi::api::resource::v1;
use serde_json::{Value, json};

use super::*;
use crate::claim::{Claim, FINALIZER, POD_CLAIM_NAME};
use crate::metrics::MetricNames;
use crate::metrics::recorded::Recorded;
use crate::pod::Pod;
use crate::template::Template;

const PODS: &str = "pods";
const CLAIMS: &str = "resourceclaims";
const STATUS: &str = "resourceclaims/status";

/// A server, caches that the test fills, and a controller between them.
struct World {
    client: Client,
    faults: Faults,
    pods: Store<Pod>,
    claims: Store<Claim>,
    templates: Store<Template>,
    controller: ClaimController,
}

impl World {
    fn new() -> Self {
        Self::with("")
    }

    fn with(gates: &str) -> Self {
        let server = ApiServer::builder().seed(7).build();
        let faults = Faults::new();
        let (pods, claims, templates) = (Store::new(), Store::new(), Store::new());
        let caches = Caches::of_stores(&pods, &claims, &templates);
        let client = faults.client(server.client());
        let requests = Requests::new(client.clone());
        let controller = ClaimController {
            writer: StatusWriter::new(requests.clone(), caches.clone()),
            caches,
            requests,
            deleted: Arc::default(),
            events: Events::new(EventRecorder::new(client, "resource_claim")),
            gates: gates.parse().unwrap(),
            creates: Creates { names: MetricNames::default() },
        };
        Self { client: server.client(), faults, pods, claims, templates, controller }
    }

    fn api(&self, kind: &str) -> Api<DynamicObject> {
        let kind = match kind {
            PODS => ApiResource::erase::<core::Pod>(&()),
            CLAIMS => ApiResource::erase::<v1::ResourceClaim>(&()),
            _ => ApiResource::erase::<v1::ResourceClaimTemplate>(&()),
        };
        Api::namespaced_with(self.client.clone(), "default", &kind)
    }

    /// Creates an object, with its status, and returns it as stored.
    async fn create(&self, kind: &str, object: Value) -> Value {
        let status = object.get("status").cloned();
        let api = self.api(kind);
        let name = object["metadata"]["name"].as_str().unwrap().to_owned();
        let object = serde_json::from_value(object).unwrap();
        api.create(&PostParams::default(), &object).await.unwrap();
        if let Some(status) = status {
            self.patch_status(kind, &name, &status).await;
        }
        self.get(kind, &name).await.unwrap()
    }

    async fn patch_status(&self, kind: &str, name: &str, status: &Value) {
        let patch = Patch::Merge(json!({ "status": status }));
        self.api(kind).patch_status(name, &PatchParams::default(), &patch).await.unwrap();
    }

    async fn get(&self, kind: &str, name: &str) -> Option<Value> {
        let found = self.api(kind).get_opt(name).await.unwrap();
        found.map(|found| serde_json::to_value(found).unwrap())
    }

    async fn delete(&self, kind: &str, name: &str) {
        let params = DeleteParams::default().grace_period(0);
        drop(self.api(kind).delete(name, &params).await.unwrap());
    }

    /// Creates the template `t` and shows it in the cache.
    async fn template(&self) {
        let spec =
            json!({"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "g"}}]}});
        let template = json!({"metadata": {"name": "t"}, "spec": {"spec": spec}});
        let template = self.create("templates", template).await;
        self.templates.apply(serde_json::from_value::<Template>(template).unwrap());
    }

    /// Shows a template with this request in the cache.
    fn cache_template(&self, request: &Value) {
        let spec = json!({"devices": {"requests": [request]}});
        let metadata = json!({"name": "t", "namespace": "default"});
        let template = json!({"metadata": metadata, "spec": {"spec": spec}});
        self.templates.apply(serde_json::from_value::<Template>(template).unwrap());
    }

    /// Labels the namespace, so that the server accepts claims with admin access.
    async fn permit_admin_access(&self) {
        let labels = json!({"resource.kubernetes.io/admin-access": "true"});
        let patch = Patch::Merge(json!({"metadata": {"labels": labels}}));
        let namespaces = Api::<core::Namespace>::all(self.client.clone());
        namespaces.patch("default", &PatchParams::default(), &patch).await.unwrap();
    }

    /// Creates the pod `web` with these entries, and shows it in the cache.
    async fn pod(&self, entries: Value, status: Value) -> Value {
        self.pod_on("", entries, status).await
    }

    async fn pod_on(&self, node: &str, entries: Value, status: Value) -> Value {
        let containers = json!([{"name": "c", "image": "i"}]);
        let spec = json!({"resourceClaims": entries, "containers": containers, "nodeName": node});
        let pod = json!({"metadata": {"name": "web"}, "spec": spec, "status": status});
        let pod = self.create(PODS, pod).await;
        self.cache_pod(&pod);
        pod
    }

    fn cache_pod(&self, pod: &Value) {
        self.pods.apply(serde_json::from_value::<Pod>(pod.clone()).unwrap());
    }

    fn cache_claim(&self, claim: &Value) {
        self.claims.apply(serde_json::from_value::<Claim>(claim.clone()).unwrap());
    }

    /// Creates a claim of the entry `e` of the pod, and shows it in the cache.
    async fn claim_of(&self, pod: &Value, name: &str) -> Value {
        let claim = self.create(CLAIMS, claim_for(pod, name)).await;
        self.cache_claim(&claim);
        claim
    }

    /// Creates an allocated and protected claim with these consumers, and shows it in the cache.
    async fn allocated(&self, metadata: Value, consumers: Value) -> Value {
        let mut claim = json!({"metadata": metadata, "spec": spec(), "status": {
            "allocation": {"devices": {"results": [
                {"request": "r", "driver": "d", "pool": "p", "device": "x"},
            ]}},
            "reservedFor": consumers,
        }});
        claim["metadata"]["finalizers"] = json!([FINALIZER]);
        let claim = self.create(CLAIMS, claim).await;
        self.cache_claim(&claim);
        claim
    }

    async fn pod_pass(&self) -> Result<(), Error> {
        self.next_after_pod_pass().await.map(drop)
    }

    async fn next_after_pod_pass(&self) -> Result<Action, Error> {
        let key = Key::Pod(ObjectKey::namespaced("default", "web"));
        self.controller.reconcile(&Request::new(key)).await
    }

    async fn claim_pass(&self) -> Result<(), Error> {
        let key = Key::Claim(ObjectKey::namespaced("default", "c"));
        self.controller.reconcile(&Request::new(key)).await.map(drop)
    }

    async fn claim_names(&self) -> Vec<String> {
        let claims =
            self.api(CLAIMS).list(&homeostat::kube_client::api::ListParams::default()).await;
        claims.unwrap().items.into_iter().filter_map(|claim| claim.metadata.name).collect()
    }

    /// The claims that the pod's status records.
    async fn recorded(&self) -> Value {
        self.get(PODS, "web").await.unwrap()["status"]["resourceClaimStatuses"].clone()
    }

    fn writes(&self) -> u64 {
        let verbs = [Verb::Create, Verb::Update, Verb::Patch, Verb::Delete];
        let resources = [CLAIMS, STATUS, "pods/status", PODS];
        let count =
            |verb| resources.iter().map(|resource| self.faults.count(verb, resource)).sum::<u64>();
        verbs.into_iter().map(count).sum()
    }
}

fn spec() -> Value {
    json!({"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "g"}}]}})
}

fn admin_request(admin_access: bool) -> Value {
    json!({"name": "r", "exactly": {"deviceClassName": "g", "adminAccess": admin_access}})
}

fn from_template() -> Value {
    json!([{"name": "e", "resourceClaimTemplateName": "t"}])
}

fn recorded(name: &str) -> Value {
    json!({"resourceClaimStatuses": [{"name": "e", "resourceClaimName": name}]})
}

fn owner(pod: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "name": pod["metadata"]["name"],
           "uid": pod["metadata"]["uid"], "controller": true})
}

fn claim_for(pod: &Value, name: &str) -> Value {
    let annotations = json!({POD_CLAIM_NAME: "e"});
    json!({"spec": spec(), "metadata": {
        "name": name, "annotations": annotations, "ownerReferences": [owner(pod)],
    }})
}

fn consumer(pod: &Value) -> Value {
    json!({"resource": "pods", "name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]})
}

// === the pass over a pod ===

#[tokio::test(start_paused = true)]
async fn claim_is_created_and_recorded() {
    let world = World::new();
    world.template().await;
    let pod = world.pod(from_template(), json!({})).await;
    world.pod_pass().await.unwrap();
    let names = world.claim_names().await;
    assert_eq!(world.recorded().await, json!([{"name": "e", "resourceClaimName": names[0]}]));
    let claim = world.get(CLAIMS, &names[0]).await.unwrap();
    assert_eq!(claim["metadata"]["ownerReferences"], json!([owner(&pod)]));
    assert_eq!(claim["metadata"]["annotations"], json!({POD_CLAIM_NAME: "e"}));
    assert_eq!(world.writes(), 2, "one create, one apply");
}

#[tokio::test(start_paused = true)]
async fn recorded_claim_is_left_alone() {
    let world = World::new();
    world.template().await;
    let pod = world.pod(from_template(), recorded("c")).await;
    world.claim_of(&pod, "c").await;
    world.pod_pass().await.unwrap();
    assert_eq!(world.writes(), 0);
    assert_eq!(world.faults.count(Verb::Get, CLAIMS), 0);
}

#[tokio::test(start_paused = true)]
async fn claim_that_the_informer_never_saw_is_created_again() {
    let world = World::new();
    world.template().await;
    world.pod(from_template(), json!({})).await;
    let unseen = Action::RequeueAfter(Duration::from_secs(60));
    assert_eq!(world.next_after_pod_pass().await.unwrap(), unseen);
    world.cache_pod(&world.get(PODS, "web").await.unwrap());
    assert_eq!(world.next_after_pod_pass().await.unwrap(), unseen, "it is not seen yet");
    assert_eq!(world.writes(), 2);
    // It goes before the informer has it. The informer is newer after that.
    let [name] = <[String; 1]>::try_from(world.claim_names().await).unwrap();
    world.api(CLAIMS).delete(&name, &DeleteParams::default()).await.unwrap();
    let other = json!({"metadata": {"name": "other"}, "spec": spec()});
    world.cache_claim(&world.create(CLAIMS, other).await);
    assert_eq!(world.next_after_pod_pass().await.unwrap(), unseen);
    assert_eq!(world.claim_names().await.len(), 2, "it is created again");
    world.cache_pod(&world.get(PODS, "web").await.unwrap());
    let recorded = world.recorded().await[0]["resourceClaimName"].clone();
    world.cache_claim(&world.get(CLAIMS, recorded.as_str().unwrap()).await.unwrap());
    assert_eq!(world.next_after_pod_pass().await.unwrap(), Action::AwaitChange);
}

#[tokio::test(start_paused = true)]
async fn claim_that_only_the_own_writes_show_is_found() {
    let world = World::new();
    world.template().await;
    world.pod(from_template(), json!({})).await;
    world.faults.refuse(Calls::patch(PODS).subresource("status"), ApiError::internal_error());
    let error = world.pod_pass().await.unwrap_err().to_string();
    assert!(error.starts_with("update pod default/web ResourceClaimStatuses: "), "{error}");
    // The informer shows neither the claim nor the status.
    world.pod_pass().await.unwrap();
    assert_eq!(world.faults.count(Verb::Create, CLAIMS), 1);
    assert_eq!(world.recorded().await[0]["resourceClaimName"], world.claim_names().await[0]);
}

#[tokio::test(start_paused = true)]
async fn recorded_claim_that_only_the_server_has_is_not_created_again() {
    let world = World::new();
    world.template().await;
    let pod = world.pod(from_template(), recorded("c")).await;
    world.create(CLAIMS, claim_for(&pod, "c")).await;
    world.pod_pass().await.unwrap();
    assert_eq!((world.writes(), world.faults.count(Verb::Get, CLAIMS)), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn recorded_claim_that_is_gone_is_created_again() {
    let world = World::new();
    world.template().await;
    world.pod(from_template(), recorded("c")).await;
    world.pod_pass().await.unwrap();
    let names = world.claim_names().await;
    assert_eq!(world.recorded().await, json!([{"name": "e", "resourceClaimName": names[0]}]));
    assert_eq!(names.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn recorded_claim_of_another_owner_is_replaced() {
    let world = World::new();
    world.template().await;
    world.pod(from_template(), recorded("c")).await;
    let other = json!({"metadata": {"name": "web", "uid": "other"}});
    world.claim_of(&other, "c").await;
    world.pod_pass().await.unwrap();
    assert_eq!(world.claim_names().await.len(), 2);
    assert_ne!(world.recorded().await[0]["resourceClaimName"], "c");
}

#[tokio::test(start_paused = true)]
async fn missing_template_is_an_error() {
    let world = World::new();
    world.pod(from_template(), json!({})).await;
    let error = world.pod_pass().await.unwrap_err().to_string();
    assert_eq!(
        error,
        "pod default/web, PodResourceClaim e: resource claim template \"t\": \
         resourceclaimtemplate.resource.k8s.io \"t\" not found"
    );
    assert_eq!(world.writes(), 0);
}

#[tokio::test(start_paused = true)]
async fn claim_of_an_earlier_pass_is_found_by_owner_and_annotation() {
    let world = World::new();
    let pod = world.pod(from_template(), json!({})).await;
    world.claim_of(&pod, "c").await;
    world.pod_pass().await.unwrap();
    assert_eq!(world.recorded().await, json!([{"name": "e", "resourceClaimName": "c"}]));
    assert_eq!(world.writes(), 1, "it needs no template");
}

#[tokio::test(start_paused = true)]
async fn claim_of_another_pod_or_entry_is_not_taken() {
    let world = World::new();
    let pod = world.pod(from_template(), json!({})).await;
    world.claim_of(&json!({"metadata": {"name": "web", "uid": "other"}}), "a").await;
    let mut other = claim_for(&pod, "b");
    other["metadata"]["annotations"] = json!({POD_CLAIM_NAME: "other"});
    let other = world.create(CLAIMS, other).await;
    world.cache_claim(&other);
    let mut unnamed = claim_for(&pod, "d");
    unnamed["metadata"]["annotations"] = json!({});
    let unnamed = world.create(CLAIMS, unnamed).await;
    world.cache_claim(&unnamed);
    assert!(world.pod_pass().await.unwrap_err().to_string().contains("not found"));
    world.template().await;
    world.pod_pass().await.unwrap();
    assert_eq!(world.claim_names().await.len(), 4);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_done_for_pods_that_need_nothing() {
    let world = World::new();
    world.template().await;
    world.pod_pass().await.unwrap();
    world.pod(json!([]), json!({})).await;
    world.pod_pass().await.unwrap();
    let mut pod = world.get(PODS, "web").await.unwrap();
    pod["spec"]["resourceClaims"] = from_template();
    pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    pod["metadata"]["resourceVersion"] = json!("900");
    world.cache_pod(&pod);
    world.pod_pass().await.unwrap();
    pod["metadata"]["deletionTimestamp"] = Value::Null;
    pod["status"]["phase"] = json!("Failed");
    pod["metadata"]["resourceVersion"] = json!("901");
    world.cache_pod(&pod);
    world.pod_pass().await.unwrap();
    assert_eq!(world.writes(), 0);
}

#[tokio::test(start_paused = true)]
async fn refused_create_is_an_error_with_upstreams_text() {
    let world = World::new();
    world.template().await;
    world.pod(from_template(), json!({})).await;
    world.faults.refuse(Calls::create(CLAIMS), ApiError::conflict());
    let error = world.pod_pass().await.unwrap_err().to_string();
    let start = "pod default/web, PodResourceClaim e: create ResourceClaim : ";
    assert!(error.starts_with(start), "{error}");
    assert!(world.claim_names().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn gates_refuse_admin_access() {
    for (gates, is_created) in [("DRAAdminAccess=false", false), ("", true)] {
        let world = World::with(gates);
        let mut spec = spec();
        spec["devices"]["requests"][0]["exactly"]["adminAccess"] = json!(true);
        let template = json!({"metadata": {"name": "t", "namespace": "default"},
                              "spec": {"spec": spec}});
        world.templates.apply(serde_json::from_value::<Template>(template).unwrap());
        world.pod(from_template(), json!({})).await;
        let error = world.pod_pass().await.unwrap_err().to_string();
        // The namespace lacks the label: the server refuses what the gate permits.
        let expected = if is_created {
            "admin access to devices requires"
        } else {
            "PodResourceClaim e: admin access is requested, but the feature is disabled"
        };
        assert!(error.contains(expected), "{error}");
        assert_eq!(world.faults.count(Verb::Create, CLAIMS), u64::from(is_created));
    }
}

#[tokio::test(start_paused = true)]
async fn apply_has_all_entries_and_keeps_them() {
    let world = World::new();
    world.template().await;
    let entries = json!([{"name": "d", "resourceClaimTemplateName": "t"},
                         {"name": "e", "resourceClaimTemplateName": "t"}]);
    world.pod(entries, json!({})).await;
    world.pod_pass().await.unwrap();
    let both = world.recorded().await;
    assert_eq!(both.as_array().unwrap().len(), 2);
    // One of the claims is deleted: the other entry stays recorded.
    world.delete(CLAIMS, both[0]["resourceClaimName"].as_str().unwrap()).await;
    let kept = both[1]["resourceClaimName"].as_str().unwrap();
    world.cache_claim(&world.get(CLAIMS, kept).await.unwrap());
    world.cache_pod(&world.get(PODS, "web").await.unwrap());
    world.claims.bookmark("500");
    world.pod_pass().await.unwrap();
    assert_eq!(world.recorded().await, both);
    assert_eq!(world.claim_names().await.len(), 2);
}

/// Upstream's `flapping-resourceclaim-statuses`: an apply with one entry removes the other one.
#[tokio::test(start_paused = true)]
async fn apply_for_a_new_claim_has_the_entry_that_was_recorded_before() {
    let world = World::new();
    world.template().await;
    let entries = json!([{"name": "e", "resourceClaimTemplateName": "t"},
                         {"name": "f", "resourceClaimTemplateName": "t"}]);
    let pod = world.pod(entries, json!({})).await;
    world.claim_of(&pod, "c").await;
    world.patch_status(PODS, "web", &recorded("c")).await;
    world.cache_pod(&world.get(PODS, "web").await.unwrap());
    world.pod_pass().await.unwrap();
    let names = world.claim_names().await;
    let created = names.iter().find(|name| *name != "c").unwrap();
    let both = json!([{"name": "e", "resourceClaimName": "c"},
                      {"name": "f", "resourceClaimName": created}]);
    assert_eq!((world.recorded().await, world.writes()), (both, 2), "one create, one apply");
}

#[tokio::test(start_paused = true)]
async fn lost_reply_to_the_create_makes_no_second_claim() {
    let world = World::new();
    world.template().await;
    world.pod(from_template(), json!({})).await;
    world.faults.lose_reply(Calls::create(CLAIMS));
    drop(world.pod_pass().await.unwrap_err());
    world.pod_pass().await.unwrap();
    assert_eq!(world.claim_names().await.len(), 1);
    assert_eq!(world.recorded().await[0]["resourceClaimName"], world.claim_names().await[0]);
}

#[tokio::test(start_paused = true)]
async fn new_pod_of_the_name_gets_nothing_from_the_pass_over_the_old_one() {
    let world = World::new();
    world.template().await;
    world.pod(from_template(), json!({})).await;
    world.delete(PODS, "web").await;
    let containers = json!([{"name": "c", "image": "i"}]);
    let spec = json!({"resourceClaims": from_template(), "containers": containers});
    world.create(PODS, json!({"metadata": {"name": "web"}, "spec": spec})).await;
    world.pod_pass().await.unwrap();
    assert_eq!(world.recorded().await, Value::Null);
}

/// The cache of pods is late, and the garbage collector deletes each claim that is created.
#[tokio::test(start_paused = true)]
async fn pod_that_only_the_cache_has_gets_one_claim() {
    let world = World::new();
    world.template().await;
    let pod = world.pod(from_template(), json!({})).await;
    world.delete(PODS, "web").await;
    for _ in 0..3 {
        world.pod_pass().await.unwrap();
        for name in world.claim_names().await {
            let claim = world.get(CLAIMS, &name).await.unwrap();
            world.cache_claim(&claim);
            world.delete(CLAIMS, &name).await;
            world.claims.delete(serde_json::from_value::<Claim>(claim).unwrap());
        }
    }
    assert_eq!(world.faults.count(Verb::Create, CLAIMS), 1);
    assert!(world.controller.deleted.contains(pod["metadata"]["uid"].as_str().unwrap()));
}

#[tokio::test(start_paused = true)]
async fn pod_that_is_not_deleted_after_all_gets_its_claim() {
    let world = World::new();
    world.template().await;
    let pod = world.pod(from_template(), json!({})).await;
    let uid = pod["metadata"]["uid"].as_str().unwrap();
    world.controller.deleted.add(uid);
    world.pod_pass().await.unwrap();
    assert_eq!(world.faults.count(Verb::Create, CLAIMS), 1);
    assert!(!world.controller.deleted.contains(uid));
}

#[tokio::test(start_paused = true)]
async fn member_of_a_pod_group_is_an_error_that_is_not_retried() {
    let world = World::new();
    world.template().await;
    let mut pod = world.pod(from_template(), json!({})).await;
    pod["spec"]["schedulingGroup"] = json!({"podGroupName": "group"});
    pod["metadata"]["resourceVersion"] = json!("900");
    world.cache_pod(&pod);
    let error = world.pod_pass().await.unwrap_err();
    assert!(TerminalError::is_cause_of(&error));
    assert_eq!(
        error.to_string(),
        "get PodGroup for Pod default/web: Pod is a member of PodGroup group but GenericWorkload \
         feature is disabled"
    );
    assert_eq!(world.writes(), 0);
}

#[tokio::test(start_paused = true)]
async fn claims_of_pod_on_a_node_are_reserved() {
    let world = World::new();
    let entries = json!([{"name": "gone", "resourceClaimName": "missing"},
                         {"name": "e", "resourceClaimName": "c"}]);
    let pod = world.pod_on("n", entries, json!({})).await;
    world.allocated(json!({"name": "c"}), json!([])).await;
    world.pod_pass().await.unwrap();
    let claim = world.get(CLAIMS, "c").await.unwrap();
    assert_eq!(claim["status"]["reservedFor"], json!([consumer(&pod)]));
    world.pod_pass().await.unwrap();
    assert_eq!(world.writes(), 1, "the own write is known");
    assert_eq!(world.faults.count(Verb::Get, CLAIMS), 0, "users' claims are not read");
}

#[tokio::test(start_paused = true)]
async fn reservation_after_a_conflict_keeps_the_other_consumer() {
    let world = World::new();
    let entries = json!([{"name": "e", "resourceClaimName": "c"}]);
    world.pod_on("n", entries, json!({})).await;
    world.allocated(json!({"name": "c"}), json!([])).await;
    let other = json!([{"resource": "pods", "name": "other", "uid": "other"}]);
    world.patch_status(CLAIMS, "c", &json!({"reservedFor": other})).await;
    world.pod_pass().await.unwrap();
    let claim = world.get(CLAIMS, "c").await.unwrap();
    assert_eq!(claim["status"]["reservedFor"].as_array().unwrap().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn deleted_claim_is_released_beside_pods_that_it_cannot_be_reserved_for() {
    let world = World::new();
    let entries = json!([{"name": "e", "resourceClaimName": "c"}]);
    world.pod_on("n", entries, json!({})).await;
    let gone = json!([{"resource": "pods", "name": "gone", "uid": "gone"}]);
    world.allocated(json!({"name": "c"}), gone).await;
    // The cache does not show the deletion yet.
    world.delete(CLAIMS, "c").await;
    let (reserved, released) = tokio::join!(world.pod_pass(), world.claim_pass());
    reserved.unwrap();
    released.unwrap();
    assert!(world.get(CLAIMS, "c").await.is_none(), "its last consumer is gone");
    assert_eq!(world.faults.count(Verb::Get, CLAIMS), 1, "after the conflict");
}

#[tokio::test(start_paused = true)]
async fn no_claim_is_created_beside_one_that_does_not_decode() {
    let world = World::new();
    world.template().await;
    let pod = world.pod(from_template(), json!({})).await;
    let claim = world.create(CLAIMS, claim_for(&pod, "c")).await;
    let metadata = serde_json::from_value::<homeostat::ObjectMeta>(claim["metadata"].clone());
    world.claims.apply_opaque(metadata.unwrap());
    world.pod_pass().await.unwrap();
    assert_eq!(world.claim_names().await, ["c"]);
    assert_eq!(world.recorded().await[0]["resourceClaimName"], "c");
}

#[tokio::test(start_paused = true)]
async fn each_create_is_counted_by_its_outcome() {
    let create = |status: &str, admin_access: bool| {
        let name = "resourceclaim_creates_total";
        format!(
            "{name}{{admin_access={admin_access},owner_api_group=,owner_api_kind=Pod,\
             status={status}}} 1"
        )
    };
    for (admin_access, is_refused) in [(false, false), (false, true), (true, false), (true, true)] {
        let recorded = Recorded::default();
        let _guard = metrics::set_default_local_recorder(&recorded);
        let world = World::new();
        world.permit_admin_access().await;
        world.cache_template(&admin_request(admin_access));
        world.pod(from_template(), json!({})).await;
        if is_refused {
            world.faults.refuse(Calls::create(CLAIMS), ApiError::conflict());
        }
        assert_eq!(world.pod_pass().await.is_err(), is_refused);
        let status = if is_refused { "failure" } else { "success" };
        assert_eq!(recorded.counters(), [create(status, admin_access)]);
        assert_eq!(world.claim_names().await.len(), usize::from(!is_refused));
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_counted_without_a_create() {
    let recorded = Recorded::default();
    let _guard = metrics::set_default_local_recorder(&recorded);
    let world = World::with("DRAAdminAccess=false,DRAPrioritizedList=false");
    world.pod(from_template(), json!({})).await;
    let list = json!({"name": "r", "firstAvailable": [{"name": "s", "deviceClassName": "g"}]});
    for (request, expected) in [
        (None, "resource claim template \"t\""),
        (Some(admin_request(true)), "admin access is requested, but the feature is disabled"),
        (
            Some(list),
            "template includes a prioritized list of subrequests, but the feature is disabled",
        ),
    ] {
        if let Some(request) = &request {
            world.cache_template(request);
        }
        let error = world.pod_pass().await.unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    assert!(recorded.counters().is_empty());
    assert_eq!(world.writes(), 0);
}

#[tokio::test(start_paused = true)]
async fn recorded_claim_that_only_the_own_writes_show_costs_no_request() {
    let world = World::new();
    world.template().await;
    world.pod(from_template(), json!({})).await;
    world.pod_pass().await.unwrap();
    world.cache_pod(&world.get(PODS, "web").await.unwrap());
    // The claim is gone, which the informer does not show either.
    let name = world.claim_names().await.remove(0);
    world.delete(CLAIMS, &name).await;
    let writes = world.writes();
    world.pod_pass().await.unwrap();
    assert_eq!((world.writes(), world.faults.count(Verb::Get, CLAIMS)), (writes, 0));
}

#[tokio::test(start_paused = true)]
async fn failed_read_of_a_recorded_claim_creates_nothing() {
    let world = World::new();
    world.template().await;
    world.pod(from_template(), recorded("c")).await;
    world.faults.refuse(Calls::get(CLAIMS), ApiError::internal_error());
    let error = world.pod_pass().await.unwrap_err().to_string();
    let start = "pod default/web, PodResourceClaim e: checking claim existence: ";
    assert!(error.starts_with(start), "{error}");
    assert_eq!(world.writes(), 0);
}

#[tokio::test(start_paused = true)]
async fn claim_of_the_name_in_another_namespace_does_not_matter() {
    let world = World::new();
    world.template().await;
    let pod = world.pod(from_template(), recorded("c")).await;
    let mut other = claim_for(&pod, "c");
    other["metadata"]["namespace"] = json!("other");
    other["metadata"]["uid"] = json!("of-other");
    world.cache_claim(&other);
    world.pod_pass().await.unwrap();
    assert_eq!(world.claim_names().await.len(), 1);
    assert_ne!(world.recorded().await[0]["resourceClaimName"], "c");
}

#[tokio::test(start_paused = true)]
async fn pass_over_100_000_entries_is_bounded() {
    const ENTRIES: usize = 100_000;
    let world = World::new();
    // Most of the claims are the user's and do not exist. The others were created by an earlier
    // pass that could not record them.
    let entry = |n: usize| match n % 100 {
        0 => json!({"name": format!("e{n}"), "resourceClaimTemplateName": "t"}),
        _ => json!({"name": format!("e{n}"), "resourceClaimName": format!("c{n}")}),
    };
    let entries: Vec<_> = (0..ENTRIES).map(entry).collect();
    let mut pod = world.pod_on("n", json!([]), json!({})).await;
    pod["spec"]["resourceClaims"] = json!(entries);
    pod["metadata"]["resourceVersion"] = json!("900");
    world.cache_pod(&pod);
    for n in (0..ENTRIES).step_by(100) {
        let mut claim = claim_for(&pod, &format!("c{n}"));
        claim["metadata"]["annotations"] = json!({POD_CLAIM_NAME: format!("e{n}")});
        claim["metadata"]["namespace"] = json!("default");
        claim["metadata"]["uid"] = json!(format!("u{n}"));
        world.cache_claim(&claim);
    }
    let began = jiff::Timestamp::now();
    drop(world.pod_pass().await);
    let took = jiff::Timestamp::now().duration_since(began);
    // A slow machine takes a minute; quadratic costs would take an hour.
    assert!(took < jiff::SignedDuration::from_mins(10), "{took:?}");
    assert_eq!((world.writes(), world.faults.count(Verb::Get, CLAIMS)), (1, 0), "one apply");
}

#[tokio::test(start_paused = true)]
async fn generated_claim_of_pod_on_a_node_is_reserved() {
    let world = World::new();
    world.template().await;
    let pod = world.pod_on("n", from_template(), recorded("c")).await;
    let metadata = json!({"name": "c", "annotations": {POD_CLAIM_NAME: "e"},
                          "ownerReferences": [owner(&pod)]});
    world.allocated(metadata, json!([])).await;
    world.pod_pass().await.unwrap();
    let claim = world.get(CLAIMS, "c").await.unwrap();
    assert_eq!(claim["status"]["reservedFor"], json!([consumer(&pod)]));
    assert_eq!((world.writes(), world.claim_names().await.len()), (1, 1));
}

// === the pass over a claim ===

#[tokio::test(start_paused = true)]
async fn consumers_stay_while_their_pods_exist() {
    for is_cached in [true, false] {
        let world = World::new();
        let pod = world.pod_on("n", json!([]), json!({})).await;
        if !is_cached {
            world.pods.delete(serde_json::from_value::<Pod>(pod.clone()).unwrap());
        }
        world.allocated(json!({"name": "c"}), json!([consumer(&pod)])).await;
        world.claim_pass().await.unwrap();
        assert_eq!(world.writes(), 0);
        assert_eq!(world.faults.count(Verb::Get, PODS), u64::from(!is_cached));
    }
}

#[tokio::test(start_paused = true)]
async fn last_consumer_that_is_gone_ends_the_allocation() {
    let world = World::new();
    let gone = json!({"resource": "pods", "name": "web", "uid": "gone"});
    world.allocated(json!({"name": "c"}), json!([gone])).await;
    world.claim_pass().await.unwrap();
    let claim = world.get(CLAIMS, "c").await.unwrap();
    assert_eq!(claim["status"], json!({}));
    assert_eq!(claim["metadata"].get("finalizers"), None);
}

#[tokio::test(start_paused = true)]
async fn consumer_with_the_name_of_another_pod_is_removed() {
    let world = World::new();
    let pod = world.pod_on("n", json!([]), json!({})).await;
    let old = json!({"resource": "pods", "name": "web", "uid": "old"});
    world.allocated(json!({"name": "c"}), json!([old, consumer(&pod)])).await;
    world.claim_pass().await.unwrap();
    let claim = world.get(CLAIMS, "c").await.unwrap();
    assert_eq!(claim["status"]["reservedFor"], json!([consumer(&pod)]));
    assert!(claim["status"]["allocation"].is_object());
    assert_eq!(world.faults.count(Verb::Get, PODS), 1, "the cache may be the older one");
}

/// The cache of pods is late: the pod was deleted and created again, and the scheduler has reserved
/// the claims of the new one.
#[tokio::test(start_paused = true)]
async fn new_pod_keeps_its_claims_while_the_cache_has_its_predecessor() {
    for (is_reserved, is_opaque) in [(true, false), (true, true), (false, false), (false, true)] {
        let world = World::new();
        let predecessor = world.pod_on("n", json!([]), json!({})).await;
        world.delete(PODS, "web").await;
        if is_opaque {
            world.pods.delete(serde_json::from_value::<Pod>(predecessor.clone()).unwrap());
            let metadata = predecessor["metadata"].clone();
            let metadata = serde_json::from_value::<homeostat::ObjectMeta>(metadata);
            world.pods.apply_opaque(metadata.unwrap());
        }
        let spec = json!({"nodeName": "n", "containers": [{"name": "c", "image": "i"}]});
        let pod = world.create(PODS, json!({"metadata": {"name": "web"}, "spec": spec})).await;
        let consumers = if is_reserved { json!([consumer(&pod)]) } else { json!([]) };
        let metadata = json!({"name": "c", "ownerReferences": [owner(&pod)]});
        let claim = world.allocated(metadata, consumers).await;
        world.claim_pass().await.unwrap();
        assert_eq!(world.get(CLAIMS, "c").await, Some(claim));
    }
}

#[tokio::test(start_paused = true)]
async fn remembered_uid_of_a_deleted_pod_needs_no_request() {
    let world = World::new();
    let gone = json!({"resource": "pods", "name": "web", "uid": "gone"});
    world.allocated(json!({"name": "c"}), json!([gone])).await;
    world.controller.deleted.add("gone");
    world.claim_pass().await.unwrap();
    assert_eq!(world.get(CLAIMS, "c").await.unwrap()["status"], json!({}));
    assert_eq!(world.faults.count(Verb::Get, PODS), 0);
}

/// The cache leaves out pods that use no claims, and such a pod has reserved one.
#[tokio::test(start_paused = true)]
async fn consumer_that_names_no_claim_is_judged_by_the_server() {
    for (phase, is_kept) in [("Running", true), ("Succeeded", false), ("Failed", false)] {
        let world = World::new();
        let pod = json!({"metadata": {"name": "web"}, "status": {"phase": phase},
                         "spec": {"containers": [{"name": "c", "image": "i"}]}});
        let pod = world.create(PODS, pod).await;
        world.allocated(json!({"name": "c"}), json!([consumer(&pod)])).await;
        world.claim_pass().await.unwrap();
        let status = world.get(CLAIMS, "c").await.unwrap()["status"].clone();
        assert_eq!(status["reservedFor"].is_array(), is_kept, "{phase}: {status}");
    }
}

#[tokio::test(start_paused = true)]
async fn failed_read_of_a_consumer_removes_nothing() {
    let world = World::new();
    let gone = json!({"resource": "pods", "name": "web", "uid": "gone"});
    world.allocated(json!({"name": "c"}), json!([gone])).await;
    world.faults.refuse(Calls::get(PODS), ApiError::forbidden());
    drop(world.claim_pass().await.unwrap_err());
    assert_eq!(world.writes(), 0);
}

#[tokio::test(start_paused = true)]
async fn unknown_consumer_stays_and_keeps_the_allocation() {
    let world = World::new();
    let gone = json!({"resource": "pods", "name": "web", "uid": "gone"});
    let job = json!({"apiGroup": "example.com", "resource": "jobs", "name": "j", "uid": "j"});
    world.allocated(json!({"name": "c"}), json!([gone, job])).await;
    world.claim_pass().await.unwrap();
    let claim = world.get(CLAIMS, "c").await.unwrap();
    assert_eq!(claim["status"]["reservedFor"], json!([job]));
    assert!(claim["status"]["allocation"].is_object());
}

/// Rows of upstream's `TestSyncHandler` with several consumers.
#[tokio::test(start_paused = true)]
async fn only_consumers_that_are_gone_or_done_lose_their_reservation() {
    let gone = || json!({"resource": "pods", "name": "web-II", "uid": "gone"});
    let foreign = |group: &str, resource: &str| {
        let name = "foo";
        json!({"apiGroup": group, "resource": resource, "name": name, "uid": "123"})
    };
    let group = || foreign("scheduling.k8s.io", "podgroups");
    let entries = json!([{"name": "e", "resourceClaimName": "c"}]);
    for (case, entries, phase, others, is_pod_kept) in [
        ("dont-clear-reserved-structured", &entries, "Pending", vec![gone()], true),
        ("remove-reserved", &json!([]), "Pending", vec![gone()], true),
        ("dont-clear-reserved-podgroup-feature-disabled", &entries, "Pending", vec![group()], true),
        (
            "remove-pod-reservation-with-non-pod-reservation-present",
            &entries,
            "Succeeded",
            vec![foreign("foo.com", "foo")],
            false,
        ),
    ] {
        let world = World::new();
        let pod = world.pod_on("n", entries.clone(), json!({"phase": phase})).await;
        if entries == &json!([]) {
            // Such a pod is not in the cache.
            world.pods.delete(serde_json::from_value::<Pod>(pod.clone()).unwrap());
        }
        let mut consumers = vec![consumer(&pod)];
        consumers.extend(others.clone());
        let metadata = json!({"name": "c", "ownerReferences": [owner(&pod)]});
        world.allocated(metadata, json!(consumers)).await;
        world.claim_pass().await.unwrap();
        let claim = world.get(CLAIMS, "c").await.unwrap();
        let mut expected = vec![consumer(&pod)];
        expected.extend(others);
        expected.retain(|it| it["uid"] != "gone" && (is_pod_kept || it["uid"] == "123"));
        assert_eq!(claim["status"]["reservedFor"], json!(expected), "{case}");
        assert!(claim["status"]["allocation"].is_object(), "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn deleted_claim_without_consumers_goes() {
    for has_consumer in [false, true] {
        let world = World::new();
        let gone = json!({"resource": "pods", "name": "web", "uid": "gone"});
        let consumers = if has_consumer { json!([gone]) } else { json!([]) };
        world.allocated(json!({"name": "c"}), consumers).await;
        world.delete(CLAIMS, "c").await;
        world.cache_claim(&world.get(CLAIMS, "c").await.unwrap());
        world.claim_pass().await.unwrap();
        assert_eq!(world.get(CLAIMS, "c").await, None, "{has_consumer}");
    }
}

#[tokio::test(start_paused = true)]
async fn unused_claim_that_is_not_deleted_keeps_its_allocation() {
    let world = World::new();
    world.allocated(json!({"name": "c"}), json!([])).await;
    world.claim_pass().await.unwrap();
    assert_eq!(world.writes(), 0);
}

#[tokio::test(start_paused = true)]
async fn claim_of_finished_pod_is_released_and_deleted() {
    let world = World::new();
    let pod = world.pod_on("n", json!([]), json!({"phase": "Succeeded"})).await;
    let metadata = json!({"name": "c", "ownerReferences": [owner(&pod)]});
    world.allocated(metadata, json!([consumer(&pod)])).await;
    world.claim_pass().await.unwrap();
    assert_eq!(world.get(CLAIMS, "c").await, None);
}

#[tokio::test(start_paused = true)]
async fn claim_of_pod_that_is_gone_is_left_to_the_garbage_collector() {
    let world = World::new();
    let pod = json!({"metadata": {"name": "web", "uid": "gone"}});
    let metadata = json!({"name": "c", "ownerReferences": [owner(&pod)]});
    world.allocated(metadata, json!([consumer(&pod)])).await;
    world.claim_pass().await.unwrap();
    let claim = world.get(CLAIMS, "c").await.unwrap();
    assert_eq!(claim["status"], json!({}));
}

#[tokio::test(start_paused = true)]
async fn claim_of_an_earlier_pod_of_the_name_is_deleted() {
    let world = World::new();
    world.pod_on("n", json!([]), json!({})).await;
    let old = json!({"metadata": {"name": "web", "uid": "old"}});
    world.claim_of(&old, "c").await;
    world.claim_pass().await.unwrap();
    assert_eq!(world.get(CLAIMS, "c").await, None);
}

#[tokio::test(start_paused = true)]
async fn claim_of_another_uid_under_the_name_is_not_deleted() {
    let world = World::new();
    let pod = world.pod_on("n", json!([]), json!({"phase": "Failed"})).await;
    world.claim_of(&pod, "c").await;
    world.delete(CLAIMS, "c").await;
    let kept = world.create(CLAIMS, json!({"metadata": {"name": "c"}, "spec": spec()})).await;
    world.claim_pass().await.unwrap();
    assert_eq!(world.get(CLAIMS, "c").await, Some(kept));
}

#[tokio::test(start_paused = true)]
async fn nothing_is_released_or_deleted_for_pod_that_does_not_decode() {
    let world = World::new();
    let pod = world.pod_on("n", json!([]), json!({"phase": "Failed"})).await;
    let metadata = serde_json::from_value::<homeostat::ObjectMeta>(pod["metadata"].clone());
    world.pods.delete(serde_json::from_value::<Pod>(pod.clone()).unwrap());
    world.pods.apply_opaque(metadata.unwrap());
    let metadata = json!({"name": "c", "ownerReferences": [owner(&pod)]});
    world.allocated(metadata, json!([consumer(&pod)])).await;
    world.claim_pass().await.unwrap();
    assert_eq!(world.writes(), 0);
}

#[tokio::test(start_paused = true)]
async fn release_keeps_the_devices_that_drivers_report() {
    let world = World::new();
    let gone = json!({"resource": "pods", "name": "web", "uid": "gone"});
    let other = json!({"apiGroup": "example.com", "resource": "jobs", "name": "j", "uid": "j"});
    world.allocated(json!({"name": "c"}), json!([gone, other])).await;
    let device = json!({"driver": "d", "pool": "p", "device": "x", "data": {"a": 1}});
    world.patch_status(CLAIMS, "c", &json!({"devices": [device]})).await;
    world.cache_claim(&world.get(CLAIMS, "c").await.unwrap());
    world.claim_pass().await.unwrap();
    let status = &world.get(CLAIMS, "c").await.unwrap()["status"];
    assert_eq!(status["devices"][0]["data"], json!({"a": 1}));
    assert_eq!(status["reservedFor"], json!([other]));
}

#[tokio::test(start_paused = true)]
async fn missing_permission_for_the_binding_is_an_error() {
    let world = World::new();
    let gone = json!({"resource": "pods", "name": "web", "uid": "gone"});
    world.allocated(json!({"name": "c"}), json!([gone])).await;
    let text = "changing status.allocation or status.reservedFor requires \
                resource=\"resourceclaims/binding\", verb=\"patch\" permission: no";
    let invalid = ApiError::new(http::StatusCode::UNPROCESSABLE_ENTITY, "Invalid", text);
    world.faults.refuse(Calls::patch(CLAIMS).subresource("status"), invalid);
    let error = world.claim_pass().await.unwrap_err().to_string();
    assert!(error.contains("resourceclaims/binding"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn foreign_object_under_the_derived_name_moves_to_the_next_salt() {
    let world = World::new();
    world.template().await;
    let pod = world.pod(from_template(), json!({})).await;
    let uid = pod["metadata"]["uid"].as_str().unwrap();
    let name = |salt| crate::names::claim_name("web", uid, "e", salt);
    let foreign = json!({"metadata": {"name": name(0)}, "spec": spec()});
    let foreign = world.create(CLAIMS, foreign).await;
    world.pod_pass().await.unwrap();
    assert_eq!(world.recorded().await[0]["resourceClaimName"], json!(name(1)));
    assert_eq!(world.get(CLAIMS, &name(0)).await, Some(foreign));
}

#[tokio::test(start_paused = true)]
async fn allocation_without_the_finalizer_outlives_its_consumers() {
    let world = World::new();
    let pod = world.pod_on("n", json!([]), json!({"phase": "Succeeded"})).await;
    let mut claim = world.allocated(json!({"name": "c"}), json!([consumer(&pod)])).await;
    // The claim of another allocator: the finalizer of the scheduler is not set.
    claim["metadata"]["finalizers"] = json!(["example.com/own"]);
    let patch = Patch::Merge(json!({"metadata": {"finalizers": ["example.com/own"]}}));
    world.api(CLAIMS).patch("c", &PatchParams::default(), &patch).await.unwrap();
    world.cache_claim(&world.get(CLAIMS, "c").await.unwrap());
    world.claim_pass().await.unwrap();
    let left = world.get(CLAIMS, "c").await.unwrap();
    assert_eq!(left["status"].get("reservedFor"), None);
    assert_eq!(left["status"]["allocation"], claim["status"]["allocation"]);
    assert_eq!(left["metadata"]["finalizers"], json!(["example.com/own"]));
}

mod hostile;
