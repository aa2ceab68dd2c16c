//! The informer alone: prints every change of the given kinds.
//!
//! ```text
//! cargo run --example informer                                    # embedded API server
//! cargo run --example informer -- --lazy pods events              # decoded on use
//! cargo run --example informer -- --kubeconfig F --metadata -o name pods deployments.apps
//! ```
//!
//! Without a cluster it plays a scene and ends by itself; the exit code is not zero if an informer
//! missed a change. On a cluster it only reads, and ends with Ctrl-C.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use clap::{Parser, ValueEnum};
use homeostat::informer::list_watch::{KubeListWatch, ListRequest, ListWatch};
use homeostat::informer::{Dynamic, Lazy, Metadata};
use homeostat::kube_client::core::GroupVersionResource;
use homeostat::kube_client::{Client, Config};
use homeostat::{Event, Object, ObjectMeta, SharedIndexInformer, shutdown_signal};
use homeostat_apiserver::ApiServer;
use homeostat_apiserver::cluster::{GarbageCollector, Kubelet};
use homeostat_replicaset::Options;
use homeostat_scenarios::scene;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::APIResource;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

/// Prints every change of these kinds.
#[derive(Clone, Debug, Parser)]
struct Arguments {
    /// Kinds as kubectl takes them: `pods`, `po`, `deployments.apps`.
    #[arg(default_values = ["replicasets", "pods"])]
    kinds: Vec<String>,
    /// Print only names.
    #[arg(short, long)]
    output: Option<Output>,
    /// Keep objects as bytes, and decode them on first use.
    #[arg(long, conflicts_with = "metadata")]
    lazy: bool,
    /// Request only metadata from the server.
    #[arg(long)]
    metadata: bool,
    /// Follow only this namespace.
    #[arg(short, long)]
    namespace: Option<String>,
    /// Follow the cluster that this kubeconfig names.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Output {
    Name,
}

/// A kind, from discovery.
#[derive(Clone)]
struct Kind {
    resource: GroupVersionResource,
    /// `pod`, `replicaset.apps`: as kubectl prints it before a name.
    prefix: String,
}

/// The whole object, decoded: a type of this example for kinds that are known only at run time.
#[derive(Deserialize)]
struct Tree {
    metadata: ObjectMeta,
    #[serde(flatten)]
    members: Arc<Map<String, Value>>,
}

/// The members that the example compares; each weight of an object returns those that it has.
trait Look: Object<Kind = Dynamic> + DeserializeOwned {
    fn members(&self) -> Option<Arc<Map<String, Value>>>;
}

/// Longer than a sync usually takes: after it, the example prints the reason.
const PATIENCE: Duration = Duration::from_secs(3);

#[tokio::main(worker_threads = 2)]
async fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let ran = match &arguments.kubeconfig {
        Some(kubeconfig) => on_cluster(&arguments, kubeconfig).await,
        None => embedded(&arguments).await,
    };
    match ran {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            print(&format!("\nfailed: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

async fn on_cluster(arguments: &Arguments, kubeconfig: &PathBuf) -> anyhow::Result<()> {
    let client = homeostat::client::builder().kubeconfig(kubeconfig).await?.build();
    follow_all(client, arguments, async {
        shutdown_signal().await;
        Ok(())
    })
    .await
}

/// Runs a `ReplicaSet` controller and a kubelet on the embedded API server while informers watch.
async fn embedded(arguments: &Arguments) -> anyhow::Result<()> {
    let listener = ApiServer::new().listen(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await?;
    let client = || -> anyhow::Result<Client> {
        let config = Config::new(listener.url().parse()?);
        Ok(homeostat::client::builder().qps(1000.0).burst(2000).config(config)?.build())
    };
    let user = client()?;
    let _helpers = (Kubelet::start(user.clone()), GarbageCollector::start(user.clone()));
    let over = CancellationToken::new();
    let until = over.clone().cancelled_owned();
    let controller = Box::pin(homeostat_replicaset::run(client()?, Options::default(), until));
    let play = Box::pin(async {
        let played = scene::play(&user, |step| print(&format!("# done: {}", step.request))).await;
        over.cancel();
        played
    });
    follow_all(client()?, arguments, async {
        let (ran, played) = tokio::join!(controller, play);
        played?;
        ran.context("the controller")
    })
    .await
}

/// Follows every given kind until `work` ends.
async fn follow_all(
    client: Client,
    arguments: &Arguments,
    work: impl Future<Output = anyhow::Result<()>>,
) -> anyhow::Result<()> {
    let mut kinds = Vec::new();
    for name in &arguments.kinds {
        let kind = find(&client, name).await?;
        kinds.push(kind.with_context(|| format!("the server has no kind {name}"))?);
    }
    let stop = CancellationToken::new();
    let mut informers = JoinSet::new();
    for kind in kinds {
        let (client, arguments, stop) = (client.clone(), arguments.clone(), stop.clone());
        if arguments.metadata {
            informers.spawn(follow::<Metadata<Dynamic>>(kind, client, arguments, stop));
        } else if arguments.lazy {
            informers.spawn(follow::<Lazy<Tree>>(kind, client, arguments, stop));
        } else {
            informers.spawn(follow::<Tree>(kind, client, arguments, stop));
        }
    }
    let worked = work.await;
    stop.cancel();
    while let Some(followed) = informers.join_next().await {
        print(&followed??);
    }
    worked
}

/// Prints every change of one kind until `stop` is cancelled; returns a summary.
async fn follow<K: Look>(
    kind: Kind,
    client: Client,
    arguments: Arguments,
    stop: CancellationToken,
) -> anyhow::Result<String> {
    let list_watch = KubeListWatch::<K>::of_resource(
        client.clone(),
        &kind.resource,
        arguments.namespace.as_deref(),
    );
    let informer = SharedIndexInformer::builder(list_watch).build();
    let (changes, prefix) = (Arc::new(AtomicU32::new(0)), kind.prefix.clone());
    let seen = Arc::clone(&changes);
    let subscription = informer.add_handler("print", move |event: Event<K>| {
        seen.fetch_add(1, Ordering::Relaxed);
        print(&line(&prefix, &event, arguments.output));
    });
    informer.start();
    let complain = async {
        while timeout(PATIENCE, informer.wait_for_sync()).await.is_err() {
            if let Some(error) = informer.last_error() {
                print(&format!("# waiting: {error}"));
            }
        }
        std::future::pending::<()>().await;
    };
    stop.run_until_cancelled(complain).await;
    let checked = match arguments.kubeconfig {
        None => check(&informer, &client, &kind).await,
        // Other clients keep changing objects there.
        Some(_) => Ok(()),
    };
    let (cached, changes) = (informer.lister().len(), changes.load(Ordering::Relaxed));
    subscription.remove().await;
    informer.stop().await;
    checked.map(|()| format!("# {}: {cached} objects after {changes} changes", informer.name()))
}

/// Waits until the cache equals the server.
async fn check<K: Look>(
    informer: &SharedIndexInformer<K>,
    client: &Client,
    kind: &Kind,
) -> anyhow::Result<()> {
    let server =
        KubeListWatch::<Metadata<Dynamic>>::of_resource(client.clone(), &kind.resource, None);
    let states = |metadata: &ObjectMeta| (metadata.uid.clone(), metadata.resource_version.clone());
    let server = server.list(&ListRequest::new()).await?;
    let server: BTreeSet<_> = server.items.iter().map(|object| states(object.metadata())).collect();
    let agree = async {
        loop {
            let cache = informer.lister().list();
            let cache: BTreeSet<_> = cache.iter().map(|object| states(object.metadata())).collect();
            if cache == server {
                return;
            }
            sleep(Duration::from_millis(20)).await;
        }
    };
    let agreed = timeout(PATIENCE, agree).await;
    agreed.with_context(|| format!("the cache of {} differs from the server", kind.prefix))
}

/// Finds a kind by any of its names.
async fn find(client: &Client, name: &str) -> anyhow::Result<Option<Kind>> {
    let (name, group) =
        name.split_once('.').map_or((name, None), |(name, group)| (name, Some(group)));
    let is_it = |resource: &APIResource| {
        let short = resource.short_names.iter().flatten().any(|short| short == name);
        let named = resource.name == name || resource.singular_name == name || short;
        named && resource.verbs.iter().any(|verb| verb == "watch")
    };
    let kind = |group: &str, version: &str, resource: &APIResource| {
        let suffix = if group.is_empty() { String::new() } else { format!(".{group}") };
        Kind {
            resource: GroupVersionResource::gvr(group, version, &resource.name),
            prefix: format!("{}{suffix}", resource.kind.to_lowercase()),
        }
    };
    if group.is_none() {
        let core = client.list_core_api_resources("v1").await?;
        if let Some(resource) = core.resources.iter().find(|resource| is_it(resource)) {
            return Ok(Some(kind("", "v1", resource)));
        }
    }
    for known in client.list_api_groups().await?.groups {
        let Some(version) = known.preferred_version else { continue };
        if group.is_some_and(|group| group != known.name) {
            continue;
        }
        let resources = client.list_api_group_resources(&version.group_version).await?.resources;
        if let Some(resource) = resources.iter().find(|resource| is_it(resource)) {
            return Ok(Some(kind(&known.name, &version.version, resource)));
        }
    }
    Ok(None)
}

fn line<K: Look>(prefix: &str, event: &Event<K>, output: Option<Output>) -> String {
    let metadata = event.metadata();
    let name = format!("{prefix}/{}", metadata.name.as_deref().unwrap_or_default());
    if let Some(Output::Name) = output {
        return name;
    }
    let (what, details) = match event {
        Event::Added { initial: true, .. } => ("there", String::new()),
        Event::Added { .. } => ("added", String::new()),
        Event::Updated { old, new } => ("changed", changed(&**old, &**new).join(" ")),
        Event::Deleted { .. } => ("deleted", String::new()),
        Event::Opaque { .. } => ("opaque", "it does not decode".to_owned()),
        Event::OpaqueDeleted { .. } => ("deleted", "it did not decode".to_owned()),
    };
    let namespace = metadata.namespace.as_deref().unwrap_or("-");
    format!("{what:<8} {namespace:<12} {name:<32} {details}").trim_end().to_owned()
}

/// Returns the paths at which two states of an object differ, without the values: they may be
/// secret.
fn changed<K: Look>(old: &K, new: &K) -> Vec<String> {
    let tree = |object: &K| {
        let mut metadata = serde_json::to_value(object.metadata()).unwrap_or_default();
        if let Some(metadata) = metadata.as_object_mut() {
            metadata.remove("resourceVersion");
        }
        let mut tree = object.members().map(|members| (*members).clone()).unwrap_or_default();
        tree.insert("metadata".to_owned(), metadata);
        tree
    };
    let (old, new) = (tree(old), tree(new));
    let mut places = Vec::new();
    for member in old.keys().chain(new.keys()).collect::<BTreeSet<_>>() {
        let (old, new) = (old.get(member), new.get(member));
        match (old.and_then(Value::as_object), new.and_then(Value::as_object)) {
            (Some(old), Some(new)) => {
                let below = old.keys().chain(new.keys()).collect::<BTreeSet<_>>();
                let differing = below.into_iter().filter(|name| old.get(*name) != new.get(*name));
                places.extend(differing.map(|name| format!("{member}.{name}")));
            }
            _ if old != new => places.push(member.clone()),
            _ => {}
        }
    }
    places
}

/// Prints to standard output.
#[expect(clippy::print_stdout, reason = "the output of the example")]
fn print(line: &str) {
    println!("{line}");
}

// === impl Look ===

impl Object for Tree {
    type Kind = Dynamic;

    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }
}

impl Look for Tree {
    fn members(&self) -> Option<Arc<Map<String, Value>>> {
        Some(Arc::clone(&self.members))
    }
}

impl Look for Lazy<Tree> {
    fn members(&self) -> Option<Arc<Map<String, Value>>> {
        self.decode().ok()?.members()
    }
}

impl Look for Metadata<Dynamic> {
    fn members(&self) -> Option<Arc<Map<String, Value>>> {
        None
    }
}
