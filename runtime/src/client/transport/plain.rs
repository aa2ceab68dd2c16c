//! Connections without TLS: the feature `rustls-tls` is off.
//!
//! The functions have the signatures of their twins with TLS, so that the rest of the client has no
//! `cfg`. A server with `https` is refused when the client is built, not at the first request.

use std::sync::Arc;

use kube_client::Config;
use tower::BoxError;

use crate::client::connect_timeout::Connectors;
use crate::client::credentials::Credentials;
use crate::client::identity::NO_TLS;
use crate::client::proxy::TcpConnector;

/// # Errors
///
/// If the server's URL begins with `https`.
pub(super) fn connectors(
    config: &Config,
    _: &Arc<Credentials>,
    tcp: TcpConnector,
) -> Result<Connectors<TcpConnector>, BoxError> {
    if config.cluster_url.scheme_str() == Some("https") {
        return Err(NO_TLS.into());
    }
    Ok(Connectors { any: tcp.clone(), http1: tcp.for_upgrades() })
}
