//! The client certificate, in the form that rustls needs.

use std::sync::Arc;

use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use tower::BoxError;

use super::material::PemPair;

/// A client certificate with its key, ready for a handshake.
pub(super) type ClientIdentity = Arc<CertifiedKey>;

/// Parses a client certificate and its key.
///
/// The server decides if they belong together: rustls' own check refuses certificates of X.509
/// version 1, which `openssl x509 -req` writes and Kubernetes accepts.
///
/// # Errors
///
/// If there is no certificate, or the key cannot be read or is of a type that the provider does not
/// support.
pub(super) fn parse_identity(pem: &PemPair) -> Result<ClientIdentity, BoxError> {
    let chain: Vec<_> =
        CertificateDer::pem_slice_iter(&pem.certificate).collect::<Result<_, _>>()?;
    if chain.is_empty() {
        return Err("the client certificate has no section CERTIFICATE".into());
    }
    let key = PrivateKeyDer::from_pem_slice(&pem.key)
        .map_err(|error| format!("failed to read the client key: {error}"))?;
    let key = install_provider().key_provider.load_private_key(key)?;
    Ok(Arc::new(CertifiedKey::new(chain, key)))
}

/// Returns the process' provider, and installs ring if there is none.
pub(super) fn install_provider() -> Arc<CryptoProvider> {
    if CryptoProvider::get_default().is_none() {
        // With two providers in the dependency tree rustls refuses to choose. If another thread
        // installs one first, that one is used.
        drop(ring::default_provider().install_default());
    }
    CryptoProvider::get_default().map_or_else(|| Arc::new(ring::default_provider()), Arc::clone)
}
