//! A node, as its kubelet makes it known and keeps it alive.

use std::time::Duration;

use jiff::{Timestamp, tz::TimeZone};
use k8s_openapi::{
    api::{coordination::v1::Lease, core::v1::Node},
    apimachinery::pkg::apis::meta::v1::Time,
};
use kube_client::{Api, Client, Error, Result};
use kube_core::params::{Patch, PatchParams, PostParams};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{super::in_time, clock::ServerClock};

/// Where the Leases of nodes are.
const LEASES: &str = "kube-node-lease";

/// So many renewals may be missed until a node counts as lost: 40 s to real nodes' 10 s.
const RENEWALS_PER_LEASE: u32 = 4;

/// What a node's place in the cluster is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Registered {
    pub(super) uid: String,
    /// When its `Node` was made, by the server's clock.
    pub(super) created: Option<Time>,
}

/// The requests that keep one node alive.
#[derive(Clone)]
pub(super) struct Heart {
    pub(super) client: Client,
    pub(super) node: String,
    pub(super) clock: ServerClock,
    pub(super) period: Duration,
}

// === impl Heart ===

impl Heart {
    /// Makes the node known, and takes pods. One that is known already is as good.
    pub(super) async fn register(mut self) -> Result<Registered> {
        let nodes = Api::<Node>::all(self.client.clone());
        let labels = json!({
            "kubernetes.io/hostname": self.node, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64",
        });
        let node = json!({ "metadata": { "name": self.node, "labels": labels } });
        let node = match create(&nodes, node).await? {
            Some(made) => made,
            None => in_time(nodes.get(&self.node)).await?,
        };
        self.clock.observe(node.metadata.creation_timestamp.as_ref(), Instant::now());
        let params = PatchParams::default();
        let status = Patch::Strategic(status(&self.node, self.clock.now(Instant::now())));
        in_time(nodes.patch_status(&self.node, &params, &status)).await?;
        // A new node is tainted until somebody has seen it ready.
        let welcome = Patch::Merge(json!({ "spec": { "taints": null } }));
        in_time(nodes.patch(&self.node, &params, &welcome)).await?;
        let uid = node.metadata.uid.unwrap_or_default();
        self.renew(uid.clone()).await?;
        Ok(Registered { uid, created: node.metadata.creation_timestamp })
    }

    /// Says that the node lives.
    pub(super) async fn renew(&self, uid: String) -> Result<()> {
        let leases = Api::<Lease>::namespaced(self.client.clone(), LEASES);
        let renewed = json!({ "spec": { "renewTime": self.micro_time() } });
        let patch = Patch::Merge(&renewed);
        let params = PatchParams::default();
        match in_time(leases.patch(&self.node, &params, &patch)).await {
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

/// Creates an object; nothing, if there is one of this name.
async fn create<K>(api: &Api<K>, object: Value) -> Result<Option<K>>
where
    K: Clone + std::fmt::Debug + serde::Serialize + DeserializeOwned,
{
    let object = serde_json::from_value(object).map_err(Error::SerdeError)?;
    match in_time(api.create(&PostParams::default(), &object)).await {
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
    // Room for more than any test asks for; 110 pods is what a real node allows.
    let room = json!({ "cpu": "64", "memory": "256Gi", "pods": "110" });
    json!({ "status": {
        "capacity": room,
        "allocatable": room,
        "conditions": [
            condition("MemoryPressure", "False", "KubeletHasSufficientMemory"),
            condition("DiskPressure", "False", "KubeletHasNoDiskPressure"),
            condition("PIDPressure", "False", "KubeletHasSufficientPID"),
            condition("Ready", "True", "KubeletReady"),
        ],
        "addresses": [{ "type": "Hostname", "address": node }],
        "nodeInfo": {
            "machineID": "", "systemUUID": "", "bootID": "", "kernelVersion": "", "osImage": "homeostat",
            "containerRuntimeVersion": "homeostat://0.1.0", "kubeletVersion": "v1.37.1", "kubeProxyVersion": "",
            "operatingSystem": "linux", "architecture": "amd64",
        },
    }})
}
