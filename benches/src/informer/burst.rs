//! [`Burst`]: the memory of an informer before, during and after a burst of objects.

use std::sync::Arc;
use std::time::Duration;

use homeostat_informer::list_watch::{Decoded, WatchEvent};
use homeostat_informer::testing::{ScriptedListWatch, ScriptedWatch};
use homeostat_informer::{Event, SharedIndexInformer, Subscription};
use k8s_openapi::api::core::v1::Pod;
use tokio::time::{self, Instant};

use super::parts::small_pod;
use crate::process::Usage;

/// Options of a burst.
#[derive(Debug, clap::Args)]
pub struct Burst {
    /// Number of pods at the peak.
    #[arg(long, default_value_t = 500_000)]
    pods: usize,
}

/// State of the process at one moment of a burst.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// Number of pods in the cache.
    pub pods: usize,
    /// Resident memory in MB.
    pub rss: f64,
    /// Time of a list of all pods.
    pub list: Duration,
}

/// Number of pods before and after the burst.
const REST: usize = 10;

/// Number of events that arrive together.
const BATCH: usize = 1000;

/// Time in which the allocator may return memory to the system.
const PAUSE: Duration = Duration::from_secs(5);

// === impl Burst ===

impl Burst {
    /// Adds the pods and deletes all but 10. Returns the state before, at the peak, and after.
    ///
    /// # Errors
    ///
    /// Returns an error if the system is not Linux.
    ///
    /// # Panics
    ///
    /// Panics if no runtime can be built, or if the informer stops.
    #[tokio::main]
    pub async fn run(&self) -> anyhow::Result<[Moment; 3]> {
        let server = ScriptedListWatch::new();
        let informer = SharedIndexInformer::builder(server.clone()).build();
        let by_node = informer.index(|pod: &Pod| pod.spec.as_ref()?.node_name.clone());
        informer.lister().index_by_namespace();
        let handler = informer.add_handler("drop", |event: Event<Pod>| drop(event));
        informer.start();
        let first = (0..REST).map(|number| small_pod(number, "1"));
        let watch = server.expect_watch().await.serve(first, "1");
        assert!(handler.wait_for_sync().await, "the informer stopped");
        let before = moment(&informer).await?;

        let state = |number: usize, version: usize| {
            Decoded::Fits(Arc::new(small_pod(number, &version.to_string())))
        };
        let added = |number| WatchEvent::Applied(state(number, 1 + number));
        self.send(&watch, &handler, added).await;
        let peak = moment(&informer).await?;
        let deleted = |number| WatchEvent::Deleted(state(number, 1 + self.pods + number));
        self.send(&watch, &handler, deleted).await;
        let after = moment(&informer).await?;
        drop(by_node);
        Ok([before, peak, after])
    }

    /// Sends an event for each pod of the burst. Waits for the handler after each batch, as a
    /// server waits for a slow client.
    async fn send(
        &self,
        watch: &ScriptedWatch<Pod>,
        handler: &Subscription,
        event: impl Fn(usize) -> WatchEvent<Pod>,
    ) {
        for start in (REST..self.pods).step_by(BATCH) {
            let end = self.pods.min(start + BATCH);
            watch.send((start..end).map(&event).collect());
            time::sleep(Duration::from_millis(1)).await;
            while handler.queued() > 0 {
                time::sleep(Duration::from_millis(1)).await;
            }
        }
    }
}

async fn moment(informer: &SharedIndexInformer<Pod>) -> anyhow::Result<Moment> {
    time::sleep(PAUSE).await;
    let start = Instant::now();
    let pods = informer.lister().list().len();
    let list = start.elapsed();
    Ok(Moment { pods, rss: Usage::of(std::process::id())?.rss, list })
}
