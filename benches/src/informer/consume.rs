//! [`Consume`]: one run of our informer against the load server.

use clap::ValueEnum;
use homeostat::kube_client::{Client, Config};
use homeostat_informer::list_watch::{KubeListWatch, ListWatch};
use homeostat_informer::{GroupVersionResource, Lazy, Metadata, Object, SharedIndexInformer};
use k8s_openapi::api::core::v1::Pod;

use super::full_state::{FullState, Interrupted};
use super::projection::PodState;
use super::recorder::Atomics;
use super::{Consumer, Report, Trial};

/// Options of a run.
#[derive(Debug, clap::Args)]
pub struct Consume {
    /// The load server.
    #[arg(long)]
    server: String,
    /// Number of pods.
    #[arg(long, default_value_t = 100_000)]
    pods: u32,
    /// Weight of the objects.
    #[arg(long)]
    weight: Weight,
    /// Number of handlers.
    #[arg(long, default_value_t = 1)]
    handlers: u32,
    /// Number of decoding tasks.
    #[arg(long, default_value_t = 1)]
    decoders: usize,
    /// Records metrics.
    #[arg(long)]
    metrics: bool,
    /// Request for the initial list.
    #[arg(long, default_value = "watch-list")]
    full_state: FullState,
    /// Trials, in order.
    #[arg(long, value_delimiter = ' ')]
    phases: Vec<Trial>,
}

/// Weight of the pods in our informer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Weight {
    /// The complete pod of `k8s_openapi`.
    Typed,
    /// The pod without the members that a controller of pods does not read.
    Pruned,
    /// The metadata; the rest stays text.
    Lazy,
    /// The fields that a controller reads.
    Projection,
    /// The metadata; the server leaves out the rest.
    Metadata,
}

/// The members of a pod that a controller of pods does not read: it reads metadata, phase,
/// conditions, node, and the names and images of containers.
const UNREAD: [&str; 16] = [
    "spec.volumes",
    "spec.tolerations",
    "spec.affinity",
    "spec.topologySpreadConstraints",
    "spec.initContainers",
    "spec.securityContext",
    "spec.containers.*.env",
    "spec.containers.*.envFrom",
    "spec.containers.*.volumeMounts",
    "spec.containers.*.securityContext",
    "spec.containers.*.livenessProbe",
    "spec.containers.*.readinessProbe",
    "spec.containers.*.startupProbe",
    "spec.containers.*.lifecycle",
    "status.initContainerStatuses",
    "status.containerStatuses",
];

// === impl Consume ===

impl Consume {
    /// Keeps the server's pods, and returns the cost of each phase.
    ///
    /// # Errors
    ///
    /// Returns an error if the server does not answer, or has another number of pods.
    ///
    /// # Panics
    ///
    /// Panics if no runtime can be built.
    #[tokio::main]
    pub async fn run(&self) -> anyhow::Result<Report> {
        let config = Config::new(self.server.parse()?);
        let client = homeostat::client::builder().config(config)?.build();
        let pods = client.clone();
        match self.weight {
            Weight::Typed => self.follow(client, self.typed(pods)).await,
            Weight::Pruned => self.follow(client, self.typed(pods).prune(UNREAD)).await,
            Weight::Lazy => self.follow(client, KubeListWatch::<Lazy<Pod>>::new(pods, None)).await,
            Weight::Projection => {
                self.follow(client, KubeListWatch::<PodState>::new(pods, None)).await
            }
            Weight::Metadata => {
                self.follow(client, KubeListWatch::<Metadata<Pod>>::new(pods, None)).await
            }
        }
    }

    fn typed(&self, client: Client) -> KubeListWatch<Pod> {
        KubeListWatch::new(client, None).decoders(self.decoders)
    }

    async fn follow<K: Object>(
        &self,
        client: Client,
        list_watch: impl ListWatch<K>,
    ) -> anyhow::Result<Report> {
        let mut builder = if self.full_state == FullState::Interrupted {
            let objects = self.pods as usize / 2;
            SharedIndexInformer::builder(Interrupted { list_watch, objects })
        } else {
            SharedIndexInformer::builder(list_watch)
        };
        builder = builder.watch_list(self.full_state.is_watch());
        builder = builder.page_size(self.full_state.page_size());
        if self.metrics {
            metrics::set_global_recorder(Atomics)?;
            builder = builder.metrics("bench", &GroupVersionResource::gvr("", "v1", "pods"));
        }
        let informer = builder.build();
        Consumer::new(client, self.handlers).run(&informer, self.pods, &self.phases).await
    }
}
