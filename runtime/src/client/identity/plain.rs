//! The client certificate of a build without TLS: the feature `rustls-tls` is off.

use tower::BoxError;

use super::material::PemPair;

/// A client certificate; there is none without TLS.
pub(super) enum ClientIdentity {}

/// The text of the errors of a build without TLS.
pub(super) const NO_TLS: &str = "this build has no TLS: enable homeostat's feature `rustls-tls`";

/// # Errors
///
/// Always: a certificate cannot be used.
pub(super) fn parse_identity(_: &PemPair) -> Result<ClientIdentity, BoxError> {
    Err(NO_TLS.into())
}
