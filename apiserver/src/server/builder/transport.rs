//! The settings of the connections to clients.

use http::HeaderValue;

use super::Builder;
#[cfg(feature = "tls")]
use crate::credentials::Credentials;

impl Builder {
    /// Trusts certificates of clients that other authorities signed, in PEM: the common name is the
    /// user, the organizations are the groups. By default
    /// [`ApiServer::listen_tls`](crate::ApiServer::listen_tls) trusts only its own authority.
    /// Invalid text fails `listen_tls`. Can be called several times.
    #[cfg(feature = "tls")]
    pub fn client_authority(mut self, pem: impl AsRef<str>) -> Self {
        self.client_authorities.push_str(pem.as_ref());
        self.client_authorities.push('\n');
        self
    }

    /// Shows this certificate to the clients of
    /// [`ApiServer::listen_tls`](crate::ApiServer::listen_tls), in place of one that the server
    /// makes at the start: a certificate, with those of its issuers, and its key, in PEM. Invalid
    /// text fails `listen_tls`.
    #[cfg(feature = "tls")]
    pub fn serving_certificate(
        mut self,
        certificate: impl Into<String>,
        key: impl Into<String>,
    ) -> Self {
        self.serving = Some(Credentials { certificate: certificate.into(), key: key.into() });
        self
    }

    /// Sends the header `Strict-Transport-Security` with each reply, as kube-apiserver's
    /// `--strict-transport-security-directives` does. The value joins the directives:
    /// `max-age=31536000; includeSubDomains`.
    pub fn strict_transport_security(mut self, value: HeaderValue) -> Self {
        self.transport_security = Some(value);
        self
    }
}
