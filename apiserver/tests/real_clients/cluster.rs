//! A server with its cluster actors, for programs that read a kubeconfig.

use std::fs;
use std::net::Ipv4Addr;
use std::path::PathBuf;

use homeostat_apiserver::cluster::{GarbageCollector, Kubelet, NamespaceController};
use homeostat_apiserver::{ApiServer, Listener};
use homeostat_testing::control_plane::ControlPlane;
use kube_client::Client;
use libtest_mimic::Failed;
use tempfile::TempDir;

/// A running cluster. Dropping it stops the server and the actors.
pub(crate) struct Cluster {
    pub(crate) kubeconfig: PathBuf,
    pub(crate) server: Server,
    _kubelet: Kubelet,
    _collector: GarbageCollector,
    _namespaces: NamespaceController,
}

pub(crate) enum Server {
    Embedded { server: ApiServer, _listener: Listener, _directory: TempDir },
    Real { _plane: Box<ControlPlane> },
}

// === impl Cluster ===

impl Cluster {
    pub(crate) async fn embedded() -> Result<Self, Failed> {
        let server = ApiServer::builder().authorization().build();
        let listener = server.listen_tls((Ipv4Addr::LOCALHOST, 0).into()).await?;
        let directory = tempfile::tempdir()?;
        let kubeconfig = directory.path().join("kubeconfig");
        fs::write(&kubeconfig, listener.kubeconfig())?;
        let client = server.client();
        let server = Server::Embedded { server, _listener: listener, _directory: directory };
        Self::with(kubeconfig, server, client).await
    }

    pub(crate) async fn real() -> Result<Self, Failed> {
        let plane = ControlPlane::start().await?;
        let kubeconfig = plane.kubeconfig().to_owned();
        let client = plane.client()?;
        Self::with(kubeconfig, Server::Real { _plane: Box::new(plane) }, client).await
    }

    async fn with(kubeconfig: PathBuf, server: Server, client: Client) -> Result<Self, Failed> {
        let collector = GarbageCollector::builder(client.clone()).every_kind().await?.start();
        Ok(Self {
            kubeconfig,
            server,
            _kubelet: Kubelet::start(client.clone()),
            _collector: collector,
            _namespaces: NamespaceController::start(client),
        })
    }
}
