//! The two servers, behind the same client.

use homeostat_apiserver::ApiServer;
use homeostat_testing::control_plane::ControlPlane;
use http::header::AUTHORIZATION;
use http::{Request, Response};
use kube_client::Client;
use kube_client::client::Body;
use kube_client::config::AuthInfo;

use crate::script::Disruption;

/// A server that exchanges are played on.
pub(crate) struct Server {
    client: Client,
    /// The client of requests with a token of their own: it has no certificate, which would decide.
    bearer: Client,
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
        let client = server.client();
        Self { bearer: client.clone(), client, kind: ServerKind::Embedded(server) }
    }

    /// Returns a real server that scripts share.
    pub(crate) fn shared(control_plane: &ControlPlane) -> Result<Self, String> {
        let (client, bearer) = clients(control_plane)?;
        Ok(Self { client, bearer, kind: ServerKind::Real(None) })
    }

    /// Starts a real server for one script.
    pub(crate) async fn own(service_accounts: bool) -> Result<Self, String> {
        let builder = ControlPlane::builder();
        // The default disables the plugin.
        let enabled = "--disable-admission-plugins=";
        let builder = if service_accounts { builder.api_server_arg(enabled) } else { builder };
        let control_plane = builder.start().await.map_err(|error| error.to_string())?;
        let (client, bearer) = clients(&control_plane)?;
        Ok(Self { client, bearer, kind: ServerKind::Real(Some(Box::new(control_plane))) })
    }

    pub(crate) fn is_real(&self) -> bool {
        matches!(self.kind, ServerKind::Real(_))
    }

    pub(crate) async fn send(&self, request: Request<Body>) -> Result<Response<Body>, String> {
        let has_token = request.headers().contains_key(AUTHORIZATION);
        let client = if has_token { &self.bearer } else { &self.client };
        client.send(request).await.map_err(|error| error.to_string())
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
                (self.client, self.bearer) = clients(server)?;
            }
            (ServerKind::Real(None), _) => return Err("the server is shared".to_owned()),
        }
        Ok(())
    }
}

/// Returns a client of the administrator, and one without credentials.
fn clients(control_plane: &ControlPlane) -> Result<(Client, Client), String> {
    let mut config = control_plane.config();
    config.auth_info = AuthInfo::default();
    let client = control_plane.client().map_err(|error| error.to_string())?;
    Ok((client, Client::try_from(config).map_err(|error| error.to_string())?))
}
