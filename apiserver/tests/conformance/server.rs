//! The two servers, behind the same client.

use homeostat_apiserver::{
    ApiServer, Kind,
    control_plane::{ControlPlane, ControlPlaneError},
};
use http::{Request, Response};
use kube_client::{Client, client::Body};

use crate::script::Upheaval;

/// A server that exchanges are played on.
pub(crate) struct Server {
    client: Client,
    kind: ServerKind,
}

enum ServerKind {
    Embedded(ApiServer),
    /// Shared with other scripts, or of one's own.
    Real(Option<Box<ControlPlane>>),
}

// === impl Server ===

impl Server {
    /// A fresh one in this process.
    pub(crate) fn embedded() -> Self {
        let kind = Kind::custom("samplecontroller.k8s.io", "v1alpha1", "Foo", "foos").with_scale(
            "spec.replicas",
            "status.availableReplicas",
            "",
        );
        let server = ApiServer::builder().kind(kind).build();
        Self { client: server.client(), kind: ServerKind::Embedded(server) }
    }

    /// A real one that others use too.
    pub(crate) fn shared(control_plane: &ControlPlane) -> Result<Self, ControlPlaneError> {
        Ok(Self { client: control_plane.client()?, kind: ServerKind::Real(None) })
    }

    /// A real one that nobody else uses.
    pub(crate) async fn own() -> Result<Self, ControlPlaneError> {
        let control_plane = ControlPlane::start().await?;
        Ok(Self {
            client: control_plane.client()?,
            kind: ServerKind::Real(Some(Box::new(control_plane))),
        })
    }

    pub(crate) fn is_real(&self) -> bool {
        matches!(self.kind, ServerKind::Real(_))
    }

    pub(crate) async fn send(&self, request: Request<Body>) -> Result<Response<Body>, String> {
        self.client.send(request).await.map_err(|error| error.to_string())
    }

    /// Compacts or restarts the server.
    pub(crate) async fn suffer(&mut self, upheaval: Upheaval) -> Result<(), String> {
        match (&mut self.kind, upheaval) {
            (ServerKind::Embedded(server), Upheaval::Compact) => server.compact(),
            (ServerKind::Embedded(server), Upheaval::Restart) => server.restart(),
            (ServerKind::Real(Some(server)), Upheaval::Compact) => {
                server.compact().await.map_err(|error| error.to_string())?;
            }
            (ServerKind::Real(Some(server)), Upheaval::Restart) => {
                server.restart_api_server().await.map_err(|error| error.to_string())?;
                self.client = server.client().map_err(|error| error.to_string())?;
            }
            (ServerKind::Real(None), _) => return Err("others use this server".to_owned()),
        }
        Ok(())
    }
}
