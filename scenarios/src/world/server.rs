//! The API server of a world, and clients for it.

use anyhow::{Context as _, bail};
use homeostat::client::{self, ClientBuilder, NoServer};
use homeostat::kube_client::config::AuthInfo;
use homeostat::kube_client::{Client, Config};
use homeostat_apiserver::{ApiServer, Listener, User};
use homeostat_testing::control_plane::ControlPlane;
use http::Request;
use serde_json::{Value, json};

use super::manifests::create_all;

/// The form of a world's API server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// The embedded server, called in process, in virtual time.
    InProcess,
    /// The embedded server, over a socket on the loopback interface.
    Socket,
    /// A real etcd and kube-apiserver, started for this world.
    ControlPlane,
}

/// The API server of a world.
#[derive(Debug)]
pub(crate) enum Server {
    InProcess(ApiServer),
    Socket(ApiServer, Listener),
    ControlPlane(Box<ControlPlane>),
}

// === impl Server ===

impl Server {
    pub(crate) async fn start(target: Target) -> anyhow::Result<Self> {
        Ok(match target {
            Target::InProcess => Self::InProcess(embedded()),
            Target::Socket => {
                let server = embedded();
                let listener = server.listen(([127, 0, 0, 1], 0).into()).await?;
                Self::Socket(server, listener)
            }
            Target::ControlPlane => Self::ControlPlane(Box::new(ControlPlane::start().await?)),
        })
    }

    /// Creates the objects of `manifests`, and returns the builder of a client that may do what the
    /// service account of this namespace and name may do.
    pub(crate) async fn service_account(
        &self,
        user: &Client,
        manifests: &str,
        (namespace, name): (&str, &str),
    ) -> anyhow::Result<ClientBuilder<client::Server>> {
        create_all(user, manifests).await?;
        if let Self::InProcess(server) = self {
            return Ok(client().service(server.service_of(User::service_account(namespace, name))));
        }
        let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token");
        let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
                             "spec": {"expirationSeconds": 3600}});
        let answer: Value =
            user.request(Request::post(path).body(serde_json::to_vec(&request)?)?).await?;
        let token = answer["status"]["token"].as_str().context("the answer has a token")?;
        let config = with_token(self.config()?, token.to_owned());
        client().config(config).context("no client for the service account")
    }

    pub(crate) async fn restart(&mut self) -> anyhow::Result<()> {
        match self {
            Self::InProcess(server) | Self::Socket(server, _) => server.restart(),
            Self::ControlPlane(plane) => plane.restart_api_server().await?,
        }
        Ok(())
    }

    pub(crate) fn client(&self) -> anyhow::Result<ClientBuilder<client::Server>> {
        if let Self::InProcess(server) = self {
            return Ok(client().service(server.service()));
        }
        client().config(self.config()?).context("no client for the scenario's server")
    }

    /// Returns the configuration of an administrator's client.
    fn config(&self) -> anyhow::Result<Config> {
        Ok(match self {
            Self::InProcess(_) => bail!("a server in process has no address"),
            Self::Socket(server, listener) => {
                let token = server.token_of(User::admin());
                with_token(Config::new(listener.url().parse()?), token)
            }
            Self::ControlPlane(plane) => plane.config(),
        })
    }
}

/// Returns an embedded server that checks permissions and quotas, as the real one does.
fn embedded() -> ApiServer {
    ApiServer::builder().authorization().quota_admission().build()
}

/// Returns the configuration with a token as its only credentials.
fn with_token(mut config: Config, token: String) -> Config {
    config.auth_info = AuthInfo { token: Some(token.into()), ..AuthInfo::default() };
    config
}

/// Returns the builder of a deployed controller's client, with a higher rate limit: a scenario
/// measures the machinery, not its budget.
pub(super) fn client() -> ClientBuilder<NoServer> {
    client::builder().qps(1000.0).burst(2000)
}
