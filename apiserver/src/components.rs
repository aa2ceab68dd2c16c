//! The simulated components that run beside the server.

use std::time::Duration;

use clap::ValueEnum;
use homeostat_apiserver::cluster::{
    DeploymentController, Kubelet, NamespaceController, RoleAggregator, VolumeProtection,
};
use kube_client::Client;

use crate::garbage::Garbage;

/// Interval between heartbeats of a node, as real kubelets send them.
const HEARTBEAT: Duration = Duration::from_secs(10);

/// A simulated component of the cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Component {
    /// Nodes. Pods on them become ready, fail or finish as their annotations say, and end when they
    /// are deleted.
    Kubelet,
    /// Garbage collector: deletes the dependents of deleted owners.
    Gc,
    /// Namespace controller: empties deleted namespaces, then removes them.
    Namespaces,
    /// Protection of volume claims: deleted claims go once no pod uses them.
    Volumes,
    /// Aggregation of roles: fills in the rules of `admin`, `edit`, `view` and their like.
    Roles,
    /// Deployment controller, without rollouts. It makes no pods: run homeostat-replicaset too.
    Deployments,
}

/// The components that run beside the server.
#[derive(Debug, Default)]
pub(crate) struct Components {
    kubelet: Option<Kubelet>,
    garbage: Option<Garbage>,
    namespaces: Option<NamespaceController>,
    deployments: Option<DeploymentController>,
    roles: Option<RoleAggregator>,
    volumes: Option<VolumeProtection>,
}

// === impl Components ===

impl Components {
    /// Starts these components. The numbers are those of the kubelet.
    pub(crate) fn start(
        client: &Client,
        wanted: &[Component],
        nodes: usize,
        ready_delay: Duration,
    ) -> Self {
        let mut started = Self::default();
        for component in wanted {
            match component {
                Component::Kubelet => {
                    let kubelet = Kubelet::builder(client.clone())
                        .nodes(nodes)
                        .heartbeat(HEARTBEAT)
                        .ready_delay(ready_delay);
                    started.kubelet = Some(kubelet.start());
                }
                Component::Gc => started.garbage = Some(Garbage::start(client.clone())),
                Component::Namespaces => {
                    started.namespaces = Some(NamespaceController::start(client.clone()));
                }
                Component::Volumes => {
                    started.volumes = Some(VolumeProtection::start(client.clone()));
                }
                Component::Roles => started.roles = Some(RoleAggregator::start(client.clone())),
                Component::Deployments => {
                    started.deployments = Some(DeploymentController::start(client.clone()));
                }
            }
        }
        started
    }

    pub(crate) async fn stop(self) {
        if let Some(kubelet) = self.kubelet {
            kubelet.stop().await;
        }
        if let Some(garbage) = self.garbage {
            garbage.stop().await;
        }
        if let Some(namespaces) = self.namespaces {
            namespaces.stop().await;
        }
        if let Some(deployments) = self.deployments {
            deployments.stop().await;
        }
        if let Some(roles) = self.roles {
            roles.stop().await;
        }
        if let Some(volumes) = self.volumes {
            volumes.stop().await;
        }
    }
}
