//! Object operations of a controller, through `kube_client::Api`.

#![expect(clippy::unwrap_used, reason = "a test that fails is meant to panic")]

use std::collections::BTreeSet;
use std::time::Duration;

use futures::{AsyncBufReadExt, TryStreamExt};
use homeostat_apiserver::ApiServer;
use homeostat_apiserver::cluster::NamespaceController;
use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Endpoints, Namespace, Pod, Service, ServiceAccount};
use k8s_openapi::api::networking::v1::IPAddress;
use kube_client::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, Preconditions};
use kube_client::{Api, Client, Error, ResourceExt};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::Instant;

fn server() -> ApiServer {
    ApiServer::builder().seed(1).epoch("2026-01-01T00:00:00Z".parse().unwrap()).build()
}

fn pod(name: &str) -> Pod {
    let spec = json!({"containers": [{"name": "c", "image": "nginx"}]});
    serde_json::from_value(
        json!({"metadata": {"name": name, "labels": {"app": "a"}}, "spec": spec}),
    )
    .unwrap()
}

fn replica_set(name: &str) -> ReplicaSet {
    let template = json!({
        "metadata": {"labels": {"app": "a"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    });
    let spec = json!({"selector": {"matchLabels": {"app": "a"}}, "template": template});
    serde_json::from_value(
        json!({"metadata": {"name": name}, "spec": spec, "status": {"replicas": 9}}),
    )
    .unwrap()
}

fn pods(client: &Client) -> Api<Pod> {
    Api::default_namespaced(client.clone())
}

async fn bind(client: &Client, name: &str) {
    let binding = json!({"metadata": {"name": name}, "target": {"kind": "Node", "name": "n1"}});
    let body = binding.to_string().into_bytes();
    let request = http::Request::post(format!("/api/v1/namespaces/default/pods/{name}/binding"))
        .body(body)
        .unwrap();
    let status: Value = client.request(request).await.unwrap();
    assert_eq!(status["status"], "Success");
}

#[track_caller]
fn status_of<T: std::fmt::Debug>(result: Result<T, Error>) -> (u16, String, String) {
    match result.unwrap_err() {
        Error::Api(status) => (status.code, status.reason.clone(), status.message.clone()),
        other => panic!("not a status: {other}"),
    }
}

#[tokio::test(start_paused = true)]
async fn version_zero_is_no_precondition() {
    let maps = Api::<ConfigMap>::default_namespaced(server().client());
    let map = |text: &str| -> ConfigMap {
        let metadata = json!({"name": "m", "resourceVersion": "0"});
        serde_json::from_value(json!({"metadata": metadata, "data": {"text": text}})).unwrap()
    };
    maps.create(&PostParams::default(), &map("a")).await.unwrap();
    let replaced = maps.replace("m", &PostParams::default(), &map("b")).await.unwrap();
    assert_eq!(replaced.data.unwrap()["text"], "b");
}

#[tokio::test(start_paused = true)]
async fn created_pod_has_defaults_and_system_fields() {
    let server = server();
    let created = pods(&server.client()).create(&PostParams::default(), &pod("a")).await.unwrap();
    assert_eq!(created.metadata.generation, Some(1));
    assert_eq!(created.creation_timestamp().unwrap().0.to_string(), "2026-01-01T00:00:00Z");
    assert!(created.uid().is_some() && created.resource_version().is_some());
    let spec = created.spec.unwrap();
    assert_eq!(spec.restart_policy.as_deref(), Some("Always"));
    assert_eq!(spec.termination_grace_period_seconds, Some(30));
    assert_eq!(spec.containers[0].image_pull_policy.as_deref(), Some("Always"));
    assert_eq!(created.status.unwrap().phase.as_deref(), Some("Pending"));
}

#[tokio::test(start_paused = true)]
async fn create_fails_for_a_taken_name_and_a_missing_namespace() {
    let server = server();
    let api = pods(&server.client());
    api.create(&PostParams::default(), &pod("a")).await.unwrap();
    let again = status_of(api.create(&PostParams::default(), &pod("a")).await);
    assert_eq!(again, (409, "AlreadyExists".into(), "pods \"a\" already exists".into()));
    let elsewhere: Api<Pod> = Api::namespaced(server.client(), "nowhere");
    let refused = status_of(elsewhere.create(&PostParams::default(), &pod("a")).await);
    assert_eq!(refused, (404, "NotFound".into(), "namespaces \"nowhere\" not found".into()));
}

#[tokio::test(start_paused = true)]
async fn same_seed_generates_the_same_names() {
    let mut names = Vec::new();
    for _ in 0..2 {
        let mut unnamed = pod("");
        unnamed.metadata.name = None;
        unnamed.metadata.generate_name = Some("web-".into());
        let created =
            pods(&server().client()).create(&PostParams::default(), &unnamed).await.unwrap();
        names.push((created.name_any(), created.uid()));
    }
    assert_eq!(names[0], names[1]);
    assert!(names[0].0.starts_with("web-") && names[0].0.len() == 9);
}

#[tokio::test(start_paused = true)]
async fn replica_set_counts_generations_and_separates_status() {
    let client = server().client();
    let api: Api<ReplicaSet> = Api::default_namespaced(client);
    let created = api.create(&PostParams::default(), &replica_set("r")).await.unwrap();
    assert_eq!(created.spec.replicas, Some(1));
    assert_eq!(created.status.as_ref().unwrap().replicas, 0);
    let scale = Patch::Merge(json!({"spec": {"replicas": 3}, "status": {"replicas": 8}}));
    let scaled = api.patch("r", &PatchParams::default(), &scale).await.unwrap();
    assert_eq!(scaled.metadata.generation, Some(2));
    assert_eq!(scaled.status.as_ref().unwrap().replicas, 0);
    let status = Patch::Merge(json!({"spec": {"replicas": 7}, "status": {"replicas": 3}}));
    let counted = api.patch_status("r", &PatchParams::default(), &status).await.unwrap();
    assert_eq!(counted.metadata.generation, Some(2));
    assert_eq!(counted.spec.replicas, Some(3));
    assert_eq!(counted.status.as_ref().unwrap().replicas, 3);
    let same = api.patch_status("r", &PatchParams::default(), &status).await.unwrap();
    assert_eq!(
        same.resource_version(),
        counted.resource_version(),
        "a write that changes nothing is none"
    );
}

#[tokio::test(start_paused = true)]
async fn replica_set_with_a_selector_that_misses_its_template_is_invalid() {
    let mut wrong = replica_set("r");
    wrong.spec.selector.match_labels = Some([("app".into(), "b".into())].into());
    let api: Api<ReplicaSet> = Api::default_namespaced(server().client());
    let (code, _, message) = status_of(api.create(&PostParams::default(), &wrong).await);
    assert_eq!(code, 422);
    let expected = "ReplicaSet.apps \"r\" is invalid: spec.template.metadata.labels: Invalid \
                    value: {\"app\":\"a\"}: `selector` does not match template `labels`";
    assert_eq!(message, expected);
}

#[tokio::test(start_paused = true)]
async fn stale_update_conflicts_and_unconditional_update_does_not() {
    let api: Api<ConfigMap> = Api::default_namespaced(server().client());
    let map = ConfigMap { metadata: pod("m").metadata, ..ConfigMap::default() };
    let stale = api.create(&PostParams::default(), &map).await.unwrap();
    let mut fresh = stale.clone();
    fresh.data = Some([("a".into(), "1".into())].into());
    api.replace("m", &PostParams::default(), &fresh).await.unwrap();
    let (code, reason, message) = status_of(api.replace("m", &PostParams::default(), &stale).await);
    assert_eq!((code, reason.as_str()), (409, "Conflict"));
    assert!(message.starts_with(
        "Operation cannot be fulfilled on configmaps \"m\": the object has been modified"
    ));
    let mut unconditional = stale;
    unconditional.metadata.resource_version = None;
    api.replace("m", &PostParams::default(), &unconditional).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn owner_reference_is_removed_only_if_the_uid_matches() {
    let api = pods(&server().client());
    let mut owned = pod("a");
    let reference = json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "u", "controller": true,
    });
    owned.metadata.owner_references = serde_json::from_value(json!([reference])).unwrap();
    let created = api.create(&PostParams::default(), &owned).await.unwrap();
    let release = |uid: &str| {
        let owners = json!([{"$patch": "delete", "uid": "u"}]);
        Patch::Strategic(json!({"metadata": {"uid": uid, "ownerReferences": owners}}))
    };
    let (code, reason, message) =
        status_of(api.patch("a", &PatchParams::default(), &release("other")).await);
    assert_eq!((code, reason.as_str()), (422, "Invalid"));
    assert_eq!(
        message,
        "Pod \"a\" is invalid: metadata.uid: Invalid value: \"other\": field is immutable"
    );
    let released =
        api.patch("a", &PatchParams::default(), &release(&created.uid().unwrap())).await.unwrap();
    assert!(released.owner_references().is_empty());
}

#[tokio::test(start_paused = true)]
async fn patch_of_any_format_can_reset_the_owners() {
    let client = server().client();
    let list = r#"[{"op":"replace","path":"/metadata/managedFields","value":[{}]}]"#;
    let patches = [
        ("strategic-merge-patch", r#"{"metadata":{"managedFields":[{}]}}"#),
        ("strategic-merge-patch", r#"{"metadata":{"managed\u0046ields":[{}]}}"#),
        ("merge-patch", r#"{"metadata":{"managedFields":[{}]}}"#),
        ("json-patch", list),
    ];
    for (index, (format, body)) in patches.into_iter().enumerate() {
        let name = format!("p{index}");
        let created = pods(&client).create(&PostParams::default(), &pod(&name)).await.unwrap();
        let owners = created.metadata.managed_fields;
        assert_eq!(owners.as_ref().map(Vec::len), Some(1));
        let patch = async |body: &str| {
            let request = http::Request::patch(format!("/api/v1/namespaces/default/pods/{name}"))
                .header("content-type", format!("application/{format}+json"))
                .body(body.as_bytes().to_vec());
            client.request::<Pod>(request.unwrap()).await.unwrap().metadata.managed_fields
        };
        let nothing = if format == "json-patch" { "[]" } else { "{}" };
        assert_eq!(patch(nothing).await, owners, "{format}");
        assert_eq!(patch(body).await, None, "{format}: {body}");
    }
}

#[tokio::test(start_paused = true)]
async fn scheduled_pod_is_deleted_in_two_steps() {
    let client = server().client();
    let api = pods(&client);
    api.create(&PostParams::default(), &pod("a")).await.unwrap();
    bind(&client, "a").await;
    let marked = api.delete("a", &DeleteParams::default()).await.unwrap().left().unwrap();
    assert_eq!(marked.metadata.deletion_grace_period_seconds, Some(30));
    assert_eq!(marked.metadata.deletion_timestamp.unwrap().0.to_string(), "2026-01-01T00:00:30Z");
    assert_eq!(marked.metadata.generation, Some(2), "the deletion counts, the binding does not");
    assert!(api.get_opt("a").await.unwrap().is_some());
    api.delete("a", &DeleteParams::default().grace_period(0)).await.unwrap();
    assert!(api.get_opt("a").await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn unscheduled_pod_is_deleted_at_once_if_its_uid_matches() {
    let api = pods(&server().client());
    let created = api.create(&PostParams::default(), &pod("a")).await.unwrap();
    let only = |uid: Option<String>| DeleteParams {
        preconditions: Some(Preconditions { uid, resource_version: None }),
        ..DeleteParams::default()
    };
    let (code, reason, message) = status_of(api.delete("a", &only(Some("other".into()))).await);
    assert_eq!((code, reason.as_str()), (409, "Conflict"));
    assert!(message.starts_with(
        "Operation cannot be fulfilled on Pod \"a\": the UID in the precondition (other)"
    ));
    api.delete("a", &only(created.uid())).await.unwrap();
    assert!(api.get_opt("a").await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn object_is_removed_with_its_last_finalizer() {
    let api: Api<ReplicaSet> = Api::default_namespaced(server().client());
    api.create(&PostParams::default(), &replica_set("r")).await.unwrap();
    let marked = api.delete("r", &DeleteParams::foreground()).await.unwrap().left().unwrap();
    assert_eq!(marked.finalizers(), ["foregroundDeletion"]);
    assert_eq!(marked.metadata.deletion_grace_period_seconds, Some(0));
    let add = Patch::Merge(json!({"metadata": {"finalizers": ["x.io/new"]}}));
    assert_eq!(status_of(api.patch("r", &PatchParams::default(), &add).await).0, 422);
    let remove = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    api.patch("r", &PatchParams::default(), &remove).await.unwrap();
    assert!(api.get_opt("r").await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn terminating_namespace_accepts_no_object_until_it_is_finalized() {
    let client = server().client();
    let api: Api<Namespace> = Api::all(client.clone());
    let namespace = Namespace { metadata: pod("n").metadata, ..Namespace::default() };
    api.create(&PostParams::default(), &namespace).await.unwrap();
    let going = api.delete("n", &DeleteParams::default()).await.unwrap().left().unwrap();
    assert_eq!(going.status.as_ref().unwrap().phase.as_deref(), Some("Terminating"));
    let inside: Api<Pod> = Api::namespaced(client.clone(), "n");
    assert_eq!(status_of(inside.create(&PostParams::default(), &pod("a")).await).0, 403);
    let mut done = going;
    done.spec.as_mut().unwrap().finalizers = None;
    let body = serde_json::to_vec(&done).unwrap();
    let request = http::Request::put("/api/v1/namespaces/n/finalize").body(body).unwrap();
    let _last: Value = client.request(request).await.unwrap();
    assert!(api.get_opt("n").await.unwrap().is_none());
    assert_eq!(status_of(api.delete("default", &DeleteParams::default()).await).0, 403);
}

#[tokio::test(start_paused = true)]
async fn server_creates_its_deleted_objects_again() {
    let server = server();
    let client = server.client();
    let services: Api<Service> = Api::default_namespaced(client.clone());
    let endpoints: Api<Endpoints> = Api::default_namespaced(client.clone());
    let delete = DeleteParams::default();
    services.delete("kubernetes", &delete).await.unwrap();
    endpoints.delete("kubernetes", &delete).await.unwrap();
    assert!(services.get_opt("kubernetes").await.unwrap().is_none());
    tokio::time::sleep(Duration::from_secs(11)).await;
    let service = services.get("kubernetes").await.unwrap();
    assert_eq!(service.spec.unwrap().cluster_ip.as_deref(), Some("10.0.0.1"));
    assert!(endpoints.get_opt("kubernetes").await.unwrap().is_some());
    let addresses: Api<IPAddress> = Api::all(client.clone());
    assert!(addresses.get_opt("10.0.0.1").await.unwrap().is_some());

    let _controller = NamespaceController::start(server.client_as("namespaces"));
    let namespaces: Api<Namespace> = Api::all(client);
    namespaces.delete("kube-node-lease", &delete).await.unwrap();
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert!(namespaces.get_opt("kube-node-lease").await.unwrap().is_none());
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(namespaces.get_opt("kube-node-lease").await.unwrap().is_some());
}

#[tokio::test(start_paused = true)]
async fn server_does_not_create_its_service_again_if_the_address_is_taken() {
    let services: Api<Service> = Api::default_namespaced(server().client());
    services.delete("kubernetes", &DeleteParams::default()).await.unwrap();
    let params = PostParams::default();
    services.create(&params, &service("a", Some("10.0.0.1"))).await.unwrap();
    tokio::time::sleep(Duration::from_secs(11)).await;
    assert!(services.get_opt("kubernetes").await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn new_pod_waits_for_the_default_account_of_its_namespace() {
    let server = ApiServer::builder().seed(1).service_account_admission().build();
    let (client, params) = (server.client(), PostParams::default());
    let accounts = Api::<ServiceAccount>::default_namespaced(client.clone());
    let start = Instant::now();
    let create = async |pod: Pod| {
        let created = pods(&client).create(&params, &pod).await.map_err(|error| error.to_string());
        (created, start.elapsed().as_millis())
    };
    let mut other = pod("other");
    other.spec.as_mut().unwrap().service_account_name = Some("builder".to_owned());
    let (refused, millis) = create(other).await;
    assert!(refused.unwrap_err().contains("serviceaccount \"builder\" not found"));
    assert_eq!(millis, 0, "a controller makes no other account");

    let (refused, millis) = create(pod("early")).await;
    assert!(refused.unwrap_err().contains("serviceaccount \"default\" not found"));
    assert_eq!(millis, 1350);

    let account = json!({"metadata": {"name": "default"}});
    let account = serde_json::from_value(account).unwrap();
    let made = async {
        tokio::time::sleep(Duration::from_millis(650)).await;
        accounts.create(&params, &account).await.unwrap();
    };
    let ((created, millis), ()) = tokio::join!(create(pod("late")), made);
    assert_eq!(millis, 2000, "the account is there");
    assert_eq!(created.unwrap().spec.unwrap().service_account_name.unwrap(), "default");
}

#[tokio::test(start_paused = true)]
async fn dry_run_changes_nothing() {
    let api = pods(&server().client());
    let try_it = PostParams { dry_run: true, ..PostParams::default() };
    let tried = api.create(&try_it, &pod("a")).await.unwrap();
    assert_eq!(tried.resource_version(), None);
    assert!(api.list(&ListParams::default()).await.unwrap().items.is_empty());
}

#[tokio::test(start_paused = true)]
async fn event_is_the_same_object_in_both_groups() {
    let client = server().client();
    let body = json!({
        "metadata": {"name": "e"},
        "involvedObject": {"kind": "Pod", "namespace": "default", "name": "p"},
        "reason": "Why", "message": "words", "type": "Normal",
    });
    let request = http::Request::post("/api/v1/namespaces/default/events")
        .body(body.to_string().into_bytes())
        .unwrap();
    let _created: Value = client.request(request).await.unwrap();
    let path = "/apis/events.k8s.io/v1/namespaces/default/events/e";
    let other: Value =
        client.request(http::Request::get(path).body(Vec::new()).unwrap()).await.unwrap();
    assert_eq!(other["apiVersion"], "events.k8s.io/v1");
    assert_eq!((&other["note"], &other["regarding"]["name"]), (&json!("words"), &json!("p")));
    let path = "/api/v1/events?fieldSelector=involvedObject.name%3Dp";
    let list: Value =
        client.request(http::Request::get(path).body(Vec::new()).unwrap()).await.unwrap();
    assert_eq!(list["items"].as_array().unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn request_is_processed_when_its_future_is_dropped() {
    let server = server();
    let api = pods(&server.client());
    let params = PostParams::default();
    let template = pod("a");
    // One poll sends the request.
    let mut create = std::pin::pin!(api.create(&params, &template));
    assert!(futures::poll!(create.as_mut()).is_pending());
    let other = server.client();
    let mut seen = false;
    for _ in 0..10 {
        seen = seen || pods(&other).get_opt("a").await.unwrap().is_some();
    }
    assert!(seen);
}

#[tokio::test]
async fn listener_serves_both_http_versions_and_stops() {
    let server = server();
    let listener = server.listen("127.0.0.1:0".parse().unwrap()).await.unwrap();
    assert!(listener.kubeconfig().contains(&listener.url()));
    let client =
        Client::try_from(kube_client::Config::new(listener.url().parse().unwrap())).unwrap();
    pods(&client).create(&PostParams::default(), &pod("a")).await.unwrap();
    let watch =
        http::Request::get("/api/v1/pods?watch&resourceVersion=0").body(Vec::new()).unwrap();
    let lines = client.request_stream(watch).await.unwrap().lines();
    let mut lines = std::pin::pin!(lines);
    assert!(lines.try_next().await.unwrap().unwrap().starts_with("{\"type\":\"ADDED\""));
    let address = listener.addr();
    drop(listener);
    assert!(
        lines.try_next().await.ok().flatten().is_none(),
        "an open watch ends with its listener"
    );
    assert!(tokio::net::TcpStream::connect(address).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn update_of_a_deleted_lease_creates_no_other_lease() {
    let api: Api<Lease> = Api::default_namespaced(server().client());
    let lease = Lease { metadata: pod("l").metadata, ..Lease::default() };
    let made = api.replace("l", &PostParams::default(), &lease).await.unwrap();
    api.delete("l", &DeleteParams::default()).await.unwrap();
    let (code, reason, message) = status_of(api.replace("l", &PostParams::default(), &made).await);
    assert_eq!((code, reason.as_str()), (409, "Conflict"));
    assert!(message.contains("Precondition failed: UID in precondition"), "{message}");
    assert!(api.get_opt("l").await.unwrap().is_none());
}

fn service(name: &str, address: Option<&str>) -> Service {
    let spec = json!({"ports": [{"port": 80}], "clusterIP": address});
    serde_json::from_value(json!({"metadata": {"name": name}, "spec": spec})).unwrap()
}

#[tokio::test(start_paused = true)]
async fn cluster_ip_is_free_again_after_a_restore_of_a_state_without_it() {
    let server = server();
    let services = Api::<Service>::default_namespaced(server.client());
    let (params, address) = (PostParams::default(), Some("10.0.0.8"));
    let before = server.backup();
    services.create(&params, &service("a", address)).await.unwrap();
    let with_a = server.backup();
    // The server has counted the address of a.
    services.create(&params, &service("later", None)).await.unwrap();
    server.restore(&before);
    services.create(&params, &service("b", address)).await.unwrap();
    services.delete("b", &DeleteParams::default()).await.unwrap();
    server.restore(&with_a);
    let (code, reason, message) = status_of(services.create(&params, &service("c", address)).await);
    assert_eq!((code, &*reason), (422, "Invalid"));
    assert!(message.ends_with("provided IP is already allocated"), "{message}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_services_have_different_cluster_ips() {
    let server = server();
    let services = Api::<Service>::default_namespaced(server.client());
    let mut creates = JoinSet::new();
    // More than the 254 addresses of the real server's default range.
    for n in 0..300 {
        let services = services.clone();
        creates.spawn(async move {
            let new = service(&format!("s{n}"), None);
            let stored = services.create(&PostParams::default(), &new).await.unwrap();
            stored.spec.unwrap().cluster_ip.unwrap()
        });
    }
    let addresses: BTreeSet<String> = creates.join_all().await.into_iter().collect();
    assert_eq!(addresses.len(), 300);
}
