//! The consistency check of a watch-list: its initial events are what a list at the same version
//! shows. client-go has the same check behind `KUBE_WATCHLIST_INCONSISTENCY_DETECTOR`.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use futures::StreamExt as _;
use homeostat::informer::list_watch::{
    Decoded, KubeListWatch, ListWatch as _, WatchEvent, WatchRequest,
};
use homeostat::kube_client::Client;
use homeostat::kube_client::api::{Api, ListParams};
use homeostat::kube_client::core::params::VersionMatch;
use k8s_openapi::api::core::v1::Pod;

/// The pods by name.
type Pods = BTreeMap<String, Pod>;

/// The time limit of the initial events.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Requests all pods of a namespace by watch-list, then by a list at exactly the version of the
/// bookmark that ends the initial events. Returns the number of pods.
///
/// # Errors
///
/// Returns an error if the two differ.
pub(crate) async fn compare_pods(client: Client, namespace: &str) -> anyhow::Result<usize> {
    let initial = initial_events(client.clone(), namespace);
    let (version, watched) = tokio::time::timeout(TIMEOUT, initial).await??;
    let exactly = ListParams::default().at(&version).matching(VersionMatch::Exact);
    let list = Api::<Pod>::namespaced(client, namespace).list(&exactly).await?;
    ensure!(list.metadata.resource_version.as_deref() == Some(&version), "list of another version");
    let listed: Pods = list.items.into_iter().map(|pod| (name(&pod), pod)).collect();
    for name in watched.keys().chain(listed.keys()) {
        let (watched, listed) = (watched.get(name), listed.get(name));
        ensure!(watched == listed, "{name} at {version}: watched {watched:?}, listed {listed:?}");
    }
    Ok(listed.len())
}

/// Reads the initial events of a watch, and the version of the bookmark that ends them.
async fn initial_events(client: Client, namespace: &str) -> anyhow::Result<(String, Pods)> {
    let pods = KubeListWatch::<Pod>::new(client, Some(namespace)).managed_fields(true);
    let request = WatchRequest::with_initial_events(None, TIMEOUT);
    let mut watch = pods.watch(&request).await?;
    let mut watched = Pods::new();
    loop {
        for event in watch.next().await.context("the watch ended")?? {
            match event {
                WatchEvent::Applied(Decoded::Fits(pod)) => {
                    watched.insert(name(&pod), Pod::clone(&pod));
                }
                WatchEvent::Deleted(Decoded::Fits(pod)) => {
                    watched.remove(&name(&pod));
                }
                WatchEvent::Bookmark { resource_version, initial_events_end: true } => {
                    return Ok((resource_version.as_str().to_owned(), watched));
                }
                WatchEvent::Bookmark { .. } => {}
                _ => bail!("a pod cannot be decoded"),
            }
        }
    }
}

fn name(pod: &Pod) -> String {
    pod.metadata.name.clone().unwrap_or_default()
}
