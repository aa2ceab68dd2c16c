//! The two servers, behind the same client.

use homeostat_apiserver::ApiServer;
use homeostat_testing::control_plane::{ControlPlane, ControlPlaneError};
use http::{Request, Response};
use kube_client::Client;
use kube_client::client::Body;

use crate::script::Disruption;

/// A server that exchanges are played on.
pub(crate) struct Server {
    client: Client,
    kind: ServerKind,
}

enum ServerKind {
    Embedded(ApiServer),
    /// `Some` if the server belongs to one script; `None` if scripts share it.
    Real(Option<Box<ControlPlane>>),
}

// === impl Server ===

impl Server {
    /// Starts a new server in this process. As the real one, it checks permissions.
    pub(crate) fn embedded(service_accounts: bool) -> Self {
        let builder = ApiServer::builder().authorization().quota_admission();
        let builder = if service_accounts { builder.service_account_admission() } else { builder };
        let server = builder.build();
        Self { client: server.client(), kind: ServerKind::Embedded(server) }
    }

    /// Returns a real server that scripts share.
    pub(crate) fn shared(control_plane: &ControlPlane) -> Result<Self, ControlPlaneError> {
        Ok(Self { client: control_plane.client()?, kind: ServerKind::Real(None) })
    }

    /// Starts a real server for one script.
    pub(crate) async fn own(service_accounts: bool) -> Result<Self, ControlPlaneError> {
        let builder = ControlPlane::builder();
        // The default disables the plugin.
        let enabled = "--disable-admission-plugins=";
        let builder = if service_accounts { builder.api_server_arg(enabled) } else { builder };
        let control_plane = builder.start().await?;
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
    pub(crate) async fn disrupt(&mut self, disruption: Disruption) -> Result<(), String> {
        match (&mut self.kind, disruption) {
            (ServerKind::Embedded(server), Disruption::Compact) => server.compact(),
            (ServerKind::Embedded(server), Disruption::Restart) => server.restart(),
            (ServerKind::Real(Some(server)), Disruption::Compact) => {
                server.compact().await.map_err(|error| error.to_string())?;
            }
            (ServerKind::Real(Some(server)), Disruption::Restart) => {
                server.restart_api_server().await.map_err(|error| error.to_string())?;
                self.client = server.client().map_err(|error| error.to_string())?;
            }
            (ServerKind::Real(None), _) => return Err("the server is shared".to_owned()),
        }
        Ok(())
    }
}
