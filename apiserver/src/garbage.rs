//! The garbage collector of the program. It follows the kinds of definitions that come and go.

use std::collections::BTreeSet;
use std::time::Duration;

use homeostat_apiserver::cluster::GarbageCollector;
use kube_client::discovery::ApiGroup;
use kube_client::{Client, Discovery};
use tokio::task::JoinSet;
use tokio::time::sleep;

/// Interval between reads of the discovery document. That of kube-controller-manager is 30 s.
const PERIOD: Duration = Duration::from_secs(1);

/// A garbage collector that is replaced by a new one when the server serves other kinds.
#[derive(Debug)]
pub(crate) struct Garbage {
    tasks: JoinSet<()>,
}

// === impl Garbage ===

impl Garbage {
    /// Starts to collect.
    pub(crate) fn start(client: Client) -> Self {
        let mut tasks = JoinSet::new();
        tasks.spawn(collect(client));
        Self { tasks }
    }

    /// Stops, and waits for the end of the task.
    pub(crate) async fn stop(mut self) {
        self.tasks.shutdown().await;
    }
}

async fn collect(client: Client) {
    loop {
        // Read before the kinds that are followed: a kind that comes in between counts as new.
        let followed = kinds(&client).await;
        match GarbageCollector::builder(client.clone()).every_kind().await {
            Ok(builder) => {
                let collector = builder.start();
                while kinds(&client).await.is_none_or(|kinds| Some(kinds) == followed) {
                    sleep(PERIOD).await;
                }
                collector.stop().await;
            }
            Err(error) => {
                tracing::warn!(%error, "cannot read the kinds of the server, trying again");
                sleep(PERIOD).await;
            }
        }
    }
}

/// Returns the groups and names of the resources that the server serves; `None` after an error.
async fn kinds(client: &Client) -> Option<BTreeSet<String>> {
    let discovery = Discovery::new(client.clone()).run_aggregated().await.ok()?;
    let resources = discovery.groups().flat_map(ApiGroup::recommended_resources);
    Some(resources.map(|(it, _)| format!("{}/{}/{}", it.group, it.version, it.plural)).collect())
}
