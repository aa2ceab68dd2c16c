//! Connections without TLS: the feature `rustls-tls` is off.

use hyper_util::client::legacy::connect::HttpConnector;
use kube_client::Config;

use crate::client::error::ClientError;

pub(super) fn connector(config: &Config, tcp: HttpConnector) -> Result<HttpConnector, ClientError> {
    if config.cluster_url.scheme_str() == Some("https") {
        return Err(ClientError::Setup {
            server: config.cluster_url.to_string(),
            source: "this build has no TLS: turn homeostat's feature `rustls-tls` on".into(),
        });
    }
    Ok(tcp)
}
