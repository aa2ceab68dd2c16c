//! The `Node` object and the Lease of one simulated node.

use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube_client::{Api, Client, Error, Result};
use kube_core::params::{Patch, PatchParams, PostParams};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::cluster::server_clock::ServerClock;
use crate::cluster::with_timeout;

/// The namespace of the Leases of nodes.
const LEASE_NAMESPACE: &str = "kube-node-lease";

/// Renewal periods per lease duration: real nodes renew every 10 s a lease of 40 s.
const RENEWALS_PER_LEASE: u32 = 4;

/// The features of nodes that resizes of pods need.
const FEATURES: [&str; 2] =
    ["InPlacePodLevelResourcesVerticalScaling", "InPlacePodVerticalScalingInitContainers"];

/// The registered `Node` object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Registration {
    pub(super) uid: String,
    /// The creation timestamp of the `Node`.
    pub(super) created: Option<Time>,
}

/// The requests that register one node and renew its Lease.
#[derive(Clone)]
pub(super) struct Heartbeat {
    pub(super) client: Client,
    pub(super) node: String,
    pub(super) clock: ServerClock,
    pub(super) period: Duration,
}

// === impl Heartbeat ===

impl Heartbeat {
    /// Creates the `Node` and its Lease, sets it ready and removes its taints. An existing `Node`
    /// is used.
    pub(super) async fn register(mut self) -> Result<Registration> {
        let nodes = Api::<Node>::all(self.client.clone());
        let labels = json!({
            "kubernetes.io/hostname": self.node,
            "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64",
        });
        let node = json!({ "metadata": { "name": self.node, "labels": labels } });
        let node = match create(&nodes, node).await? {
            Some(made) => made,
            None => with_timeout(nodes.get(&self.node)).await?,
        };
        self.clock.observe(node.metadata.creation_timestamp.as_ref(), Instant::now());
        let params = PatchParams::default();
        let status = Patch::Strategic(status(&self.node, self.clock.now(Instant::now())));
        with_timeout(nodes.patch_status(&self.node, &params, &status)).await?;
        // The API server taints a new node as not ready.
        let untaint = Patch::Merge(json!({ "spec": { "taints": null } }));
        with_timeout(nodes.patch(&self.node, &params, &untaint)).await?;
        let uid = node.metadata.uid.unwrap_or_default();
        self.renew(uid.clone()).await?;
        Ok(Registration { uid, created: node.metadata.creation_timestamp })
    }

    /// Renews the Lease, or creates it.
    pub(super) async fn renew(&self, uid: String) -> Result<()> {
        let leases = Api::<Lease>::namespaced(self.client.clone(), LEASE_NAMESPACE);
        let renewed = json!({ "spec": { "renewTime": self.micro_time() } });
        let patch = Patch::Merge(&renewed);
        let params = PatchParams::default();
        match with_timeout(leases.patch(&self.node, &params, &patch)).await {
            Err(Error::Api(status)) if status.is_not_found() => {}
            other => return other.map(drop),
        }
        let seconds = self.period.saturating_mul(RENEWALS_PER_LEASE).as_secs().max(1);
        let owner = json!({ "apiVersion": "v1", "kind": "Node", "name": self.node, "uid": uid });
        let lease = json!({
            "metadata": { "name": self.node, "ownerReferences": [owner] },
            "spec": {
                "holderIdentity": self.node,
                "leaseDurationSeconds": i32::try_from(seconds).unwrap_or(i32::MAX),
                "renewTime": self.micro_time(),
            },
        });
        create(&leases, lease).await.map(drop)
    }

    fn micro_time(&self) -> String {
        let now = self.clock.now(Instant::now()).to_zoned(TimeZone::UTC);
        now.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string()
    }
}

/// Creates an object. Returns `None` if an object of this name exists.
async fn create<K>(api: &Api<K>, object: Value) -> Result<Option<K>>
where
    K: Clone + std::fmt::Debug + serde::Serialize + DeserializeOwned,
{
    let object = serde_json::from_value(object).map_err(Error::SerdeError)?;
    match with_timeout(api.create(&PostParams::default(), &object)).await {
        Ok(made) => Ok(Some(made)),
        Err(Error::Api(status)) if status.is_already_exists() => Ok(None),
        Err(error) => Err(error),
    }
}

fn status(node: &str, now: Timestamp) -> Value {
    let condition = |name: &str, status: &str, reason: &str| {
        json!({
            "type": name, "status": status, "reason": reason, "message": "",
            "lastHeartbeatTime": now, "lastTransitionTime": now,
        })
    };
    // 110 pods is the default of a real node.
    let capacity = json!({ "cpu": "64", "memory": "256Gi", "pods": "110" });
    json!({ "status": {
        "capacity": capacity,
        "allocatable": capacity,
        "conditions": [
            condition("MemoryPressure", "False", "KubeletHasSufficientMemory"),
            condition("DiskPressure", "False", "KubeletHasNoDiskPressure"),
            condition("PIDPressure", "False", "KubeletHasSufficientPID"),
            condition("Ready", "True", "KubeletReady"),
        ],
        "declaredFeatures": FEATURES,
        "addresses": [{ "type": "Hostname", "address": node }],
        "nodeInfo": {
            "machineID": "", "systemUUID": "", "bootID": "", "kernelVersion": "",
            "osImage": "homeostat", "containerRuntimeVersion": "homeostat://0.1.0",
            "kubeletVersion": "v1.37.1", "kubeProxyVersion": "",
            "operatingSystem": "linux", "architecture": "amd64",
        },
    }})
}
