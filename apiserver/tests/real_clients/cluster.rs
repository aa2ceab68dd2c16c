//! A server with what runs beside it, for programs that read a kubeconfig.

use std::{fs, net::Ipv4Addr, path::PathBuf};

use homeostat_apiserver::{
    ApiServer, Listener,
    cluster::{GarbageCollector, Kubelet, NamespaceController},
    control_plane::ControlPlane,
};
use kube_client::Client;
use libtest_mimic::Failed;
use tempfile::TempDir;

/// A cluster, as long as this is there.
pub(crate) struct Cluster {
    pub(crate) kubeconfig: PathBuf,
    pub(crate) server: Server,
    _kubelet: Kubelet,
    _collector: GarbageCollector,
    _namespaces: NamespaceController,
}

pub(crate) enum Server {
    Embedded { server: ApiServer, _listener: Listener, _folder: TempDir },
    Real { _plane: Box<ControlPlane> },
}

// === impl Cluster ===

impl Cluster {
    pub(crate) async fn embedded() -> Result<Self, Failed> {
        let server = ApiServer::new();
        let listener = server.listen((Ipv4Addr::LOCALHOST, 0).into()).await?;
        let folder = tempfile::tempdir()?;
        let kubeconfig = folder.path().join("kubeconfig");
        fs::write(&kubeconfig, listener.kubeconfig())?;
        let client = server.client();
        let server = Server::Embedded { server, _listener: listener, _folder: folder };
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
