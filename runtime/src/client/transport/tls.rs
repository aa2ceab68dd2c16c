//! Connections with TLS by rustls. The server chooses between HTTP/2 and HTTP/1.1 in the handshake.

use hyper_rustls::{FixedServerNameResolver, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use kube_client::Config;
use kube_client::client::ConfigExt;
use rustls::crypto::{CryptoProvider, ring};

use crate::client::error::ClientError;

pub(super) fn connector(
    config: &Config,
    tcp: HttpConnector,
) -> Result<HttpsConnector<HttpConnector>, ClientError> {
    let setup = |source| ClientError::Setup { server: config.cluster_url.to_string(), source };
    if CryptoProvider::get_default().is_none() {
        // Where another crate brings a second provider along, rustls refuses to choose. Losing the race to
        // another thread is fine: then there is one.
        drop(ring::default_provider().install_default());
    }
    let tls = config.rustls_client_config().map_err(|error| setup(error.into()))?;
    let mut builder = HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http();
    if let Some(name) = &config.tls_server_name {
        let name = name.clone().try_into().map_err(|_| {
            setup(format!("tls-server-name {name:?} is neither a DNS name nor an address").into())
        })?;
        builder = builder.with_server_name_resolver(FixedServerNameResolver::new(name));
    }
    Ok(builder.enable_all_versions().wrap_connector(tcp))
}
