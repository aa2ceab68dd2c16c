//! kube-runtime, the library of Rust controllers without homeostat.

use std::collections::BTreeMap;
use std::future::ready;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use homeostat_apiserver::ApiServer;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube_client::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube_client::{Api, Client, Config};
use kube_core::Resource as _;
use kube_runtime::controller::Action;
use kube_runtime::reflector::{self, Store};
use kube_runtime::{Controller, WatchStreamExt as _, watcher};
use libtest_mimic::{Failed, Trial};
use serde_json::json;
use tokio::runtime;
use tokio::task::JoinSet;
use tokio::time::sleep;

/// Timeout of a wait.
const TIMEOUT: Duration = Duration::from_secs(60);

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for (name, config) in [
        ("in pages", watcher::Config::default().page_size(7)),
        ("as streams", watcher::Config::default().streaming_lists()),
    ] {
        let embedded = config.clone();
        trials.push(Trial::test(
            format!("kube-runtime::reflector {name}, in process"),
            move || {
                in_virtual_time(async |server| reflector(&server, server.client(), embedded).await)
            },
        ));
        trials.push(Trial::test(format!("kube-runtime::reflector {name}, socket"), move || {
            over_socket(async |server, client| reflector(&server, client, config).await)
        }));
    }
    trials.push(Trial::test("kube-runtime::controller, in process", || {
        in_virtual_time(async |server| controller(server.client()).await)
    }));
    trials.push(Trial::test("kube-runtime::controller, socket", || {
        over_socket(async |_, client| controller(client).await)
    }));
    trials
}

fn in_virtual_time(play: impl AsyncFnOnce(ApiServer)) -> Result<(), Failed> {
    let mut runtime = runtime::Builder::new_current_thread();
    runtime.enable_all().start_paused(true).build()?.block_on(play(ApiServer::new()));
    Ok(())
}

fn over_socket(play: impl AsyncFnOnce(ApiServer, Client)) -> Result<(), Failed> {
    runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
        let server = ApiServer::new();
        let listener = server.listen((Ipv4Addr::LOCALHOST, 0).into()).await?;
        let client = Client::try_from(Config::new(listener.url().parse()?))?;
        play(server, client).await;
        Ok(())
    })
}

/// Checks that the store of a reflector follows the server across restarts and a compaction.
async fn reflector(server: &ApiServer, client: Client, config: watcher::Config) {
    const COUNT: usize = 30;
    let maps = Api::<ConfigMap>::default_namespaced(client);
    for n in 0..COUNT {
        maps.create(&PostParams::default(), &map(&format!("m-{n:02}"))).await.unwrap();
    }
    let (store, writer) = reflector::store();
    let stream = watcher(maps.clone(), config).default_backoff().reflect(writer);
    let mut tasks = JoinSet::new();
    tasks.spawn(stream.for_each(|_| ready(())));
    store.wait_until_ready().await.unwrap();
    assert_eq!(store.len(), COUNT);

    for (round, disturb) in
        [ApiServer::restart, ApiServer::compact, ApiServer::restart].iter().enumerate()
    {
        disturb(server);
        let patch = Patch::Merge(json!({ "data": { "round": round.to_string() } }));
        for n in 0..COUNT - round - 1 {
            maps.patch(&format!("m-{n:02}"), &PatchParams::default(), &patch).await.unwrap();
        }
        let last = format!("m-{:02}", COUNT - round - 1);
        maps.delete(&last, &DeleteParams::default()).await.unwrap();
        wait_for_equal_store(&store, &maps).await;
    }
}

/// Waits until the store has the objects of the server.
async fn wait_for_equal_store(store: &Store<ConfigMap>, maps: &Api<ConfigMap>) {
    let versions = |maps: &mut dyn Iterator<Item = &ObjectMeta>| {
        maps.map(|meta| (meta.name.clone(), meta.resource_version.clone()))
            .collect::<BTreeMap<_, _>>()
    };
    let listed = maps.list(&ListParams::default()).await.unwrap().items;
    let expected = versions(&mut listed.iter().map(|map| &map.metadata));
    wait_until(|| versions(&mut store.state().iter().map(|map| &map.metadata)) == expected).await;
}

/// Checks a controller that creates a secret per `ConfigMap`, and again after its deletion.
async fn controller(client: Client) {
    let maps = Api::<ConfigMap>::default_namespaced(client.clone());
    let secrets = Api::<Secret>::default_namespaced(client.clone());
    for name in ["a", "b", "c"] {
        maps.create(&PostParams::default(), &map(name)).await.unwrap();
    }
    let controller = Controller::new(maps, watcher::Config::default())
        .owns(secrets.clone(), watcher::Config::default())
        .run(
            reconcile,
            |_, _: &kube_client::Error, _| Action::requeue(Duration::from_secs(1)),
            Arc::new(client),
        );
    let mut tasks = JoinSet::new();
    tasks.spawn(controller.for_each(|_| ready(())));
    let wait_for_secrets = async |count: usize| {
        let listed = async || secrets.list(&ListParams::default()).await.unwrap().items;
        let mut left = TIMEOUT;
        while listed().await.len() != count {
            left = left
                .checked_sub(Duration::from_millis(20))
                .expect("the secrets exist within the timeout");
            sleep(Duration::from_millis(20)).await;
        }
    };
    wait_for_secrets(3).await;
    let before = secrets.get("b").await.unwrap().metadata.uid;
    secrets.delete("b", &DeleteParams::default()).await.unwrap();
    wait_for_secrets(3).await;
    assert_ne!(secrets.get("b").await.unwrap().metadata.uid, before);
}

async fn reconcile(map: Arc<ConfigMap>, client: Arc<Client>) -> kube_client::Result<Action> {
    let secrets = Api::<Secret>::default_namespaced(Client::clone(&client));
    let secret = Secret {
        metadata: ObjectMeta {
            name: map.metadata.name.clone(),
            owner_references: Some(vec![map.controller_owner_ref(&()).unwrap()]),
            ..ObjectMeta::default()
        },
        ..Secret::default()
    };
    match secrets.create(&PostParams::default(), &secret).await {
        Err(kube_client::Error::Api(status)) if status.is_already_exists() => {}
        made => drop(made?),
    }
    Ok(Action::await_change())
}

fn map(name: &str) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
        ..ConfigMap::default()
    }
}

async fn wait_until(mut holds: impl FnMut() -> bool) {
    let mut left = TIMEOUT;
    while !holds() {
        left = left
            .checked_sub(Duration::from_millis(20))
            .expect("the condition holds within the timeout");
        sleep(Duration::from_millis(20)).await;
    }
}
