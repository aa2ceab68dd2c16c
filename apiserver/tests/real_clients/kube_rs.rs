//! kube-rs as its users write it: a derived custom resource with rules and defaults, applies, the
//! entry API, finalizers, metadata and a `Controller` that owns a custom resource.
//!
//! Each story runs in process, over a socket, and on a real kube-apiserver.

mod garden;

use std::collections::BTreeMap;
use std::future::ready;
use std::net::Ipv4Addr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt as _, TryStreamExt as _};
use homeostat_apiserver::ApiServer;
use homeostat_testing::control_plane::ControlPlane;
use k8s_openapi::api::core::v1::{ConfigMap, Node, Pod};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::entry::Entry;
use kube::api::{DeleteParams, ListParams, LogParams, Patch, PatchParams, PostParams};
use kube::core::{PartialObjectMeta, PartialObjectMetaExt as _};
use kube::{Api, Client, Config, CustomResourceExt as _, Error, Resource, ResourceExt};
use kube_runtime::controller::Action;
use kube_runtime::finalizer::{Event, finalizer};
use kube_runtime::wait::{await_condition, conditions};
use kube_runtime::{Controller, WatchStreamExt as _, reflector, watcher};
use libtest_mimic::{Failed, Trial};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use tokio::runtime::Builder;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use self::garden::{Garden, GardenSpec, GardenStatus, Plot, PlotSpec};
use crate::with_programs;

/// Timeout of a wait.
const TIMEOUT: Duration = Duration::from_secs(60);
const FINALIZER: &str = "kubers.example.com/compost";

type Story = fn(Client) -> std::pin::Pin<Box<dyn Future<Output = ()>>>;

const STORIES: [(&str, Story); 7] = [
    ("defaults and rules", |client| Box::pin(defaults_and_rules(client))),
    ("apply", |client| Box::pin(apply(client))),
    ("entries", |client| Box::pin(entries(client))),
    ("finalizers", |client| Box::pin(finalizers(client))),
    ("watches", |client| Box::pin(watches(client))),
    ("subresources", |client| Box::pin(subresources(client))),
    ("a controller", |client| Box::pin(controller(client))),
];

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for (name, story) in STORIES {
        trials.push(Trial::test(format!("kube-rs::{name}, in process"), move || {
            let mut runtime = Builder::new_current_thread();
            runtime.enable_all().start_paused(true).build()?.block_on(async {
                play(ApiServer::new().client(), story).await;
            });
            Ok(())
        }));
        trials.push(Trial::test(format!("kube-rs::{name}, socket"), move || {
            Builder::new_current_thread().enable_all().build()?.block_on(over_socket(story))
        }));
    }
    trials.push(Trial::test("kube-rs::calls that need a kubelet", || {
        Builder::new_current_thread().enable_all().build()?.block_on(async {
            let client = ApiServer::new().client();
            let nodes: Api<Node> = Api::all(client.clone());
            let pods: Api<Pod> = Api::default_namespaced(client);
            let unknown = "pods \"web\" not found";
            assert_refused(pods.logs("web", &LogParams::default()).await, 404, unknown);
            let node = json!({
                "metadata": {"name": "node"},
                "status": {"addresses": [{"type": "InternalIP", "address": "192.0.2.1"}]},
            });
            nodes.create(&PostParams::default(), &serde_json::from_value(node)?).await?;
            let pod = |name: &str, node: Option<&str>| {
                let container = json!({"name": "web", "image": "nginx"});
                let spec = json!({"containers": [container], "nodeName": node});
                serde_json::from_value::<Pod>(json!({"metadata": {"name": name}, "spec": spec}))
            };
            pods.create(&PostParams::default(), &pod("new", None)?).await?;
            assert_eq!(pods.logs("new", &LogParams::default()).await?, "");
            pods.create(&PostParams::default(), &pod("web", Some("node"))?).await?;
            let text = "pods \"web\": log is not implemented: the embedded API server runs no";
            assert_refused(pods.logs("web", &LogParams::default()).await, 501, text);
            Ok(())
        })
    }));
    trials.push(with_programs("kube-rs on a real kube-apiserver", |_| {
        Builder::new_current_thread().enable_all().build()?.block_on(async {
            let plane = ControlPlane::start().await?;
            for (_, story) in STORIES {
                play(plane.client()?, story).await;
            }
            Ok(())
        })
    }));
    trials
}

async fn over_socket(story: Story) -> Result<(), Failed> {
    let server = ApiServer::new();
    let listener = server.listen((Ipv4Addr::LOCALHOST, 0).into()).await?;
    let client = Client::try_from(Config::new(listener.url().parse()?))?;
    play(client, story).await;
    Ok(())
}

/// Installs the definitions, waits until they are served, and plays a story.
async fn play(client: Client, story: Story) {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    for definition in [Garden::crd(), Plot::crd()] {
        let name = definition.name_any();
        let params = PatchParams::apply("kube-rs").force();
        definitions.patch(&name, &params, &Patch::Apply(&definition)).await.unwrap();
        let established = conditions::is_crd_established();
        let wait = await_condition(definitions.clone(), &name, established);
        timeout(TIMEOUT, wait).await.expect("the definition is established").unwrap();
    }
    // A real server serves the kind a moment after it says so.
    wait_for(async || gardens(&client).list(&ListParams::default()).await.is_ok()).await;
    wait_for(async || plots(&client).list(&ListParams::default()).await.is_ok()).await;
    story(client).await;
}

fn gardens(client: &Client) -> Api<Garden> {
    Api::default_namespaced(client.clone())
}

fn plots(client: &Client) -> Api<Plot> {
    Api::default_namespaced(client.clone())
}

fn garden(name: &str) -> Garden {
    let spec = GardenSpec { owner: "ana".to_owned(), beds: 3, limit: 10, ..GardenSpec::default() };
    Garden::new(name, spec)
}

async fn create<K>(api: &Api<K>, object: &K) -> K
where
    K: Clone + std::fmt::Debug + DeserializeOwned + Serialize,
{
    api.create(&PostParams::default(), object).await.unwrap()
}

async fn delete<K>(api: &Api<K>, name: &str)
where
    K: Clone + std::fmt::Debug + DeserializeOwned,
{
    drop(api.delete(name, &DeleteParams::default()).await.unwrap());
}

/// Waits until a condition holds.
async fn wait_for(condition: impl AsyncFn() -> bool) {
    let wait = async {
        while !condition().await {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(TIMEOUT, wait).await.expect("the condition holds within the timeout");
}

#[track_caller]
fn assert_refused<T: std::fmt::Debug>(result: kube::Result<T>, code: u16, text: &str) {
    match result {
        Err(Error::Api(status)) => {
            assert_eq!(status.code, code, "{status}");
            assert!(status.message.contains(text), "{}", status.message);
        }
        other => panic!("not refused: {other:?}"),
    }
}

/// A derived definition: its defaults are filled in, and its rules are checked.
async fn defaults_and_rules(client: Client) {
    let api = gardens(&client);
    let post = PostParams::default();
    let bare = json!({
        "apiVersion": "kubers.example.com/v1", "kind": "Garden",
        "metadata": {"name": "rules"}, "spec": {"owner": "ana"},
    });
    let request =
        kube::core::Request::new("/apis/kubers.example.com/v1/namespaces/default/gardens");
    let request = request.create(&post, serde_json::to_vec(&bare).unwrap()).unwrap();
    let made: Garden = client.request(request).await.unwrap();
    assert_eq!((made.spec.beds, made.spec.limit), (3, 10), "the defaults of the schema");

    let mut greedy = garden("greedy");
    greedy.spec.beds = 11;
    let text = "spec: Invalid value: 11 beds are more than 10";
    assert_refused(api.create(&post, &greedy).await, 422, text);
    greedy.spec.beds = 500;
    let text = "spec.beds: Invalid value: 500: spec.beds in body should be less than or equal to";
    assert_refused(api.create(&post, &greedy).await, 422, text);
    let mut unowned = garden("unowned");
    unowned.spec.owner = String::new();
    assert_refused(
        api.create(&post, &unowned).await,
        422,
        "spec.owner: Invalid value: \"\": no owner",
    );
    let forbidden = api.create(&post, &garden("forbidden")).await;
    assert_refused(forbidden, 422, "failed rule: self.metadata.name != 'forbidden'");

    let moved = Patch::Merge(json!({"spec": {"owner": "ben"}}));
    let refused = api.patch("rules", &PatchParams::default(), &moved).await;
    assert_refused(refused, 422, "spec.owner: Invalid value: \"ben\": the owner stays");
    let unknown = Patch::Merge(json!({"spec": {"colour": "red"}}));
    let strict = PatchParams {
        field_validation: Some(kube::api::ValidationDirective::Strict),
        ..PatchParams::default()
    };
    assert_refused(api.patch("rules", &strict, &unknown).await, 422, "spec.colour");
    delete(&api, "rules").await;
}

/// Applies of the object and of its status, by two managers.
async fn apply(client: Client) {
    let api = gardens(&client);
    let (one, two) = (PatchParams::apply("one"), PatchParams::apply("two"));
    let plants = |names: &[&str]| {
        let plant = |name: &&str| json!({"name": name, "count": 1});
        names.iter().map(plant).collect::<Vec<_>>()
    };
    let config = |spec: serde_json::Value| {
        json!({
            "apiVersion": "kubers.example.com/v1", "kind": "Garden",
            "metadata": {"name": "applied"}, "spec": spec,
        })
    };
    let first = config(json!({"owner": "ana", "plants": plants(&["rose"])}));
    let made = api.patch("applied", &one, &Patch::Apply(&first)).await.unwrap();
    assert_eq!(made.spec.beds, 3);
    let second = config(json!({"plants": plants(&["lily"]), "beds": 5}));
    let merged = api.patch("applied", &two, &Patch::Apply(&second)).await.unwrap();
    let names: Vec<&str> = merged.spec.plants.iter().map(|plant| plant.name.as_str()).collect();
    assert_eq!((names, merged.spec.beds), (vec!["rose", "lily"], 5));

    let third = config(json!({"owner": "ana", "plants": plants(&["rose"]), "beds": 6}));
    let refused = api.patch("applied", &one, &Patch::Apply(&third)).await;
    assert_refused(refused, 409, "conflict with \"two\": .spec.beds");
    let forced = api.patch("applied", &one.clone().force(), &Patch::Apply(&third)).await.unwrap();
    assert_eq!(forced.spec.beds, 6);
    let nothing = config(json!({"plants": plants(&[])}));
    let left = api.patch("applied", &two, &Patch::Apply(&nothing)).await.unwrap();
    let names: Vec<&str> = left.spec.plants.iter().map(|plant| plant.name.as_str()).collect();
    assert_eq!(names, ["rose"], "the plants of the other manager stay");

    let status = json!({
        "apiVersion": "kubers.example.com/v1", "kind": "Garden",
        "metadata": {"name": "applied"}, "status": {"ready": true, "beds": 6},
    });
    let written = api.patch_status("applied", &one, &Patch::Apply(&status)).await.unwrap();
    assert_eq!(written.status, Some(GardenStatus { ready: true, beds: 6, phase: None }));
    assert_eq!(written.spec, left.spec, "a status write changes no spec");
    let owners: BTreeMap<_, _> = written
        .managed_fields()
        .iter()
        .map(|entry| (entry.manager.clone(), entry.subresource.clone()))
        .filter(|(_, subresource)| subresource.is_some())
        .collect();
    assert_eq!(owners, [(Some("one".to_owned()), Some("status".to_owned()))].into());

    let dry = PatchParams { dry_run: true, ..one.clone().force() };
    let config = config(json!({"owner": "ana", "beds": 9}));
    let shown = api.patch("applied", &dry, &Patch::Apply(&config)).await.unwrap();
    assert_eq!(shown.spec.beds, 9);
    assert_eq!(api.get("applied").await.unwrap().spec.beds, 6);
    delete(&api, "applied").await;
}

/// `Api::entry`: create or change, and conflicts.
async fn entries(client: Client) {
    let api = gardens(&client);
    let post = PostParams::default();
    let entry = api.entry("entry").await.unwrap();
    assert!(matches!(entry, Entry::Vacant(_)));
    let mut entry = entry.or_insert(|| Garden::new("entry", garden("entry").spec));
    entry.commit(&post).await.unwrap();
    assert!(entry.get().uid().is_some());
    let mut rival = api.entry("entry").await.unwrap().and_modify(|garden| garden.spec.beds = 4);
    let Entry::Occupied(rival) = &mut rival else { panic!("the garden exists") };
    rival.commit(&post).await.unwrap();
    entry.get_mut().spec.beds = 5;
    let error = entry.commit(&post).await.unwrap_err();
    assert!(error.to_string().contains("the object has been modified"), "{error}");
    assert_eq!(api.get("entry").await.unwrap().spec.beds, 4);
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    let mut entry = api.entry("dry").await.unwrap().or_insert(|| garden("dry"));
    entry.commit(&dry).await.unwrap();
    assert!(api.get_opt("dry").await.unwrap().is_none());
    delete(&api, "entry").await;
}

/// kube-runtime's `finalizer`: it is added first, and the object goes after its clean-up.
async fn finalizers(client: Client) {
    #[derive(Debug, thiserror::Error)]
    #[error("never")]
    struct Never;

    let api = gardens(&client);
    create(&api, &garden("final")).await;
    let pass = async || {
        let object = Arc::new(api.get("final").await.unwrap());
        let mut seen = String::new();
        let done = finalizer(&api, FINALIZER, object, |event| {
            seen = match event {
                Event::Apply(_) => "apply".to_owned(),
                Event::Cleanup(_) => "cleanup".to_owned(),
            };
            ready(Ok::<_, Never>(Action::await_change()))
        });
        done.await.unwrap();
        seen
    };
    assert_eq!(pass().await, "", "the first pass adds the finalizer");
    assert_eq!(api.get("final").await.unwrap().finalizers(), [FINALIZER]);
    assert_eq!(pass().await, "apply");
    let going = api.delete("final", &DeleteParams::default()).await.unwrap();
    assert!(going.left().is_some_and(|garden| garden.meta().deletion_timestamp.is_some()));
    assert_eq!(pass().await, "cleanup");
    assert!(api.get_opt("final").await.unwrap().is_none());
}

/// `watcher` with streaming lists, `reflector`, `metadata_watcher` and `PartialObjectMeta`.
async fn watches(client: Client) {
    let api = gardens(&client);
    for name in ["w-1", "w-2"] {
        create(&api, &garden(name)).await;
    }
    let (store, writer) = reflector::store();
    let config = watcher::Config::default().streaming_lists().fields("spec.owner=ana");
    let objects = watcher(api.clone(), config).default_backoff().reflect(writer);
    let (metadata, meta_writer) = reflector::store::<PartialObjectMeta<Garden>>();
    let metadata_api: Api<PartialObjectMeta<Garden>> = Api::default_namespaced(client.clone());
    let config = watcher::Config::default().any_semantic();
    let partial = watcher(metadata_api, config).default_backoff().reflect(meta_writer);
    #[expect(deprecated, reason = "controllers written for kube 4 call it")]
    let mut older =
        Box::pin(kube_runtime::metadata_watcher(api.clone(), watcher::Config::default()));
    let mut tasks = JoinSet::new();
    tasks.spawn(objects.for_each(|_| ready(())));
    tasks.spawn(partial.for_each(|_| ready(())));
    timeout(TIMEOUT, store.wait_until_ready()).await.expect("the list ends").unwrap();
    timeout(TIMEOUT, metadata.wait_until_ready()).await.expect("the list ends").unwrap();
    assert_eq!((store.len(), metadata.len()), (2, 2));
    let mut names = Vec::new();
    while names.len() < 2 {
        let event = timeout(TIMEOUT, older.try_next()).await.expect("an event follows").unwrap();
        if let Some(watcher::Event::InitApply(meta)) = event {
            names.push(meta.name_any());
        }
    }
    assert_eq!(names, ["w-1", "w-2"]);

    let mut other = garden("w-3");
    "ben".clone_into(&mut other.spec.owner);
    create(&api, &other).await;
    let labels = Patch::Merge(json!({"metadata": {"labels": {"season": "spring"}}}));
    let patched = api.patch_metadata("w-1", &PatchParams::default(), &labels).await.unwrap();
    assert_eq!(patched.labels()["season"], "spring");
    delete(&api, "w-2").await;
    let labelled = || store.state().iter().all(|garden| garden.labels().contains_key("season"));
    wait_for(async || store.len() == 1 && labelled() && metadata.len() == 2).await;
    let spring = ListParams::default().labels("season=spring");
    let listed = api.list_metadata(&spring).await.unwrap().items;
    assert_eq!(listed.iter().map(ResourceExt::name_any).collect::<Vec<_>>(), ["w-1"]);
    assert_eq!(api.get_metadata("w-3").await.unwrap().types.unwrap().kind, "PartialObjectMetadata");
    let request = other.meta().clone().into_request_partial::<Garden>();
    let params = PatchParams::apply("meta");
    let applied = api.patch_metadata("w-3", &params, &Patch::Apply(&request)).await.unwrap();
    assert_eq!(applied.name_any(), "w-3");

    let events =
        api.watch(&kube::core::params::WatchParams::default().timeout(1), "0").await.unwrap();
    let seen: Vec<_> = pin!(events).try_collect().await.unwrap();
    assert!(seen.len() >= 2, "{seen:?}");
    let all = api.delete_collection(&DeleteParams::default(), &ListParams::default()).await;
    drop(all.unwrap());
    wait_for(async || store.is_empty() && metadata.is_empty()).await;
}

/// `/scale` and `/status` of a derived kind.
async fn subresources(client: Client) {
    let api = gardens(&client);
    create(&api, &garden("scaled")).await;
    let scale = api.get_scale("scaled").await.unwrap();
    assert_eq!(scale.spec.unwrap().replicas, Some(3));
    let patch = Patch::Merge(json!({"spec": {"replicas": 7}}));
    let scaled = api.patch_scale("scaled", &PatchParams::default(), &patch).await.unwrap();
    assert_eq!(scaled.spec.unwrap().replicas, Some(7));
    let mut object = api.get("scaled").await.unwrap();
    assert_eq!(object.spec.beds, 7);
    object.status = Some(GardenStatus { ready: true, beds: 2, phase: Some("Growing".to_owned()) });
    object.spec.beds = 1;
    let written = api.replace_status("scaled", &PostParams::default(), &object).await.unwrap();
    assert_eq!((written.spec.beds, written.status.unwrap().beds), (7, 2));
    assert_eq!(api.get_scale("scaled").await.unwrap().status.unwrap().replicas, 2);
    let chosen = ListParams::default().fields("spec.owner=ana,metadata.name=scaled");
    assert_eq!(api.list(&chosen).await.unwrap().items.len(), 1);
    let unknown = ListParams::default().fields("spec.beds=7");
    assert_refused(api.list(&unknown).await, 400, "field label not supported: spec.beds");
    delete(&api, "scaled").await;
}

/// A controller of gardens that owns plots: it applies a plot for each bed, and reports in the
/// status.
async fn controller(client: Client) {
    let api = gardens(&client);
    let own = plots(&client);
    let run = Controller::new(api.clone(), watcher::Config::default())
        .owns(own.clone(), watcher::Config::default())
        .owns(Api::<ConfigMap>::default_namespaced(client.clone()), watcher::Config::default())
        .run(
            reconcile,
            |_, _: &Error, _| Action::requeue(Duration::from_secs(1)),
            Arc::new(client.clone()),
        );
    let mut tasks = JoinSet::new();
    tasks.spawn(run.for_each(|_| ready(())));
    create(&api, &garden("grown")).await;
    let count = async || own.list(&ListParams::default()).await.unwrap().items.len();
    let grown = async || api.get("grown").await.unwrap().status.unwrap_or_default();
    wait_for(async || count().await == 3 && grown().await.ready).await;
    delete(&own, "grown-1").await;
    wait_for(async || count().await == 3).await;
    let patch = Patch::Merge(json!({"spec": {"beds": 5}}));
    api.patch("grown", &PatchParams::default(), &patch).await.unwrap();
    wait_for(async || count().await == 5 && grown().await.beds == 5).await;
    drop(tasks);
    let all = own.delete_collection(&DeleteParams::default(), &ListParams::default()).await;
    drop(all.unwrap());
    delete(&api, "grown").await;
}

async fn reconcile(garden: Arc<Garden>, client: Arc<Client>) -> kube::Result<Action> {
    let params = PatchParams::apply("gardener").force();
    for bed in 0..garden.spec.beds {
        let name = format!("{}-{bed}", garden.name_any());
        let mut plot = Plot::new(&name, PlotSpec { bed });
        plot.meta_mut().owner_references = Some(vec![garden.controller_owner_ref(&()).unwrap()]);
        plots(&client).patch(&name, &params, &Patch::Apply(&plot)).await?;
    }
    let status = json!({
        "apiVersion": Garden::api_version(&()), "kind": Garden::kind(&()),
        "metadata": {"name": garden.name_any()},
        "status": GardenStatus { ready: true, beds: garden.spec.beds, phase: None },
    });
    gardens(&client).patch_status(&garden.name_any(), &params, &Patch::Apply(&status)).await?;
    Ok(Action::requeue(Duration::from_secs(300)))
}
