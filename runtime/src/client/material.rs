//! Credentials as text, as files, kubeconfigs and plugins have them.

use http::HeaderValue;
use k8s_openapi::jiff::Timestamp;
use tower::BoxError;

/// Credentials as a source returns them.
///
/// The expiry is on the wall clock of the plugin. It is converted to this process' clock when it is
/// loaded, so that a later change of the wall clock has no effect.
pub(super) struct Material {
    pub(super) authorization: Option<HeaderValue>,
    pub(super) pem: Option<PemPair>,
    pub(super) expires_at: Option<Timestamp>,
}

/// A certificate chain and its private key, in PEM.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct PemPair {
    pub(super) certificate: Vec<u8>,
    pub(super) key: Vec<u8>,
}

/// Returns an `Authorization` header that logs do not show.
pub(super) fn header(scheme: &str, value: &str) -> Result<HeaderValue, BoxError> {
    let mut header = HeaderValue::try_from(format!("{scheme} {value}"))?;
    header.set_sensitive(true);
    Ok(header)
}
