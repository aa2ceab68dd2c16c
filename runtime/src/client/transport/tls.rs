//! Connections with TLS by rustls. The TLS handshake selects HTTP/2 or HTTP/1.1.
//!
//! Each handshake uses the client certificate that was loaded last, and reads the file of the
//! certificate authorities. Sessions are not resumed: a resumed session would keep the identity of
//! an earlier certificate.
//!
//! | | Read |
//! |---|---|
//! | client certificate and key | at each handshake, from [`Credentials`] |
//! | file of certificate authorities | at each handshake, by [`AuthorityFile`] |
//! | text of certificate authorities | once |
//!
//! A rotation therefore takes effect with the next connection, without a restart of the process.
//! client-go reloads client certificates too (`transport/cert_rotation.go`), and closes the
//! connections then.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use hyper_rustls::{FixedServerNameResolver, HttpsConnector, HttpsConnectorBuilder};
use kube_client::Config;
use kube_client::client::ConfigExt;
use kube_client::config::AuthInfo;
use parking_lot::Mutex;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{ResolvesClientCert, Resumption, WebPkiServerVerifier};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::sign::CertifiedKey;
use rustls::{DigitallySignedStruct, RootCertStore, SignatureScheme};
use tower::BoxError;

use crate::client::connect_timeout::Connectors;
use crate::client::credentials::Credentials;
use crate::client::identity::install_provider;
use crate::client::proxy::TcpConnector;

/// Presents the client certificate that was loaded last.
///
/// It reads the current credentials without a wait: rustls calls it in the middle of a handshake.
#[derive(Debug)]
struct LatestCertificate {
    credentials: Arc<Credentials>,
}

/// Verifies servers by the certificate authorities in a file, and reads it at each handshake.
///
/// While the file is missing or broken, the authorities that were read last count: a file that is
/// being replaced does not interrupt the controller.
///
/// The file is read on the thread of the handshake. It has a few KiB, and handshakes are rare.
struct AuthorityFile {
    path: PathBuf,
    last: Mutex<Authorities>,
}

/// The content of the file, and the verifier for it.
struct Authorities {
    pem: Vec<u8>,
    verifier: Arc<WebPkiServerVerifier>,
}

/// Returns the connectors for `https` and `http` URLs.
///
/// # Errors
///
/// If the certificate authorities or the name in `tls-server-name` cannot be used.
pub(super) fn connectors(
    config: &Config,
    credentials: &Arc<Credentials>,
    tcp: TcpConnector,
) -> Result<Connectors<HttpsConnector<TcpConnector>>, BoxError> {
    install_provider();
    let mut tls = client_config(config)?;
    let credentials = Arc::clone(credentials);
    tls.client_auth_cert_resolver = Arc::new(LatestCertificate { credentials });
    tls.resumption = Resumption::disabled();
    let name = server_name(config)?;
    let builder = || {
        let builder = HttpsConnectorBuilder::new().with_tls_config(tls.clone()).https_or_http();
        match name.clone() {
            Some(name) => builder.with_server_name_resolver(FixedServerNameResolver::new(name)),
            None => builder,
        }
    };
    Ok(Connectors {
        any: builder().enable_all_versions().wrap_connector(tcp.clone()),
        http1: builder().enable_http1().wrap_connector(tcp.for_upgrades()),
    })
}

/// Returns the name that the server's certificate must have, or `None` for that in its URL.
///
/// # Errors
///
/// If it is neither a DNS name nor an address.
fn server_name(config: &Config) -> Result<Option<ServerName<'static>>, BoxError> {
    let Some(name) = &config.tls_server_name else { return Ok(None) };
    let parsed = name.clone().try_into();
    let parsed = parsed
        .map_err(|_| format!("tls-server-name {name:?} is neither a DNS name nor an address"))?;
    Ok(Some(parsed))
}

/// Returns the rules for the server's certificate, without a client certificate.
///
/// # Errors
///
/// If the certificate authorities cannot be read or parsed.
fn client_config(config: &Config) -> Result<rustls::ClientConfig, BoxError> {
    let mut anonymous = config.clone();
    anonymous.auth_info = AuthInfo::default(); // kube-client would run a plugin here.
    anonymous.root_cert_file = None;
    if config.cluster_url.scheme_str() == Some("http") {
        // No certificate is checked. An empty image has no authorities of the system to load.
        anonymous.root_cert.get_or_insert_default();
    } else if anonymous.root_cert.as_ref().is_some_and(Vec::is_empty) {
        // client-go's text. Without this check each request would fail with an unknown authority.
        return Err("unable to load root certificates: unable to parse bytes as PEM block".into());
    }
    let mut tls = anonymous.rustls_client_config()?;
    if let Some(path) = config.root_cert_file.clone().filter(|_| !config.accept_invalid_certs) {
        tls.dangerous().set_certificate_verifier(Arc::new(AuthorityFile::read(path)?));
    }
    Ok(tls)
}

// === impl LatestCertificate ===

impl ResolvesClientCert for LatestCertificate {
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        let identity = self.credentials.current()?.identity.clone()?;
        Some(Arc::clone(&identity.key))
    }

    fn has_certs(&self) -> bool {
        self.credentials.current().is_some_and(|loaded| loaded.identity.is_some())
    }
}

// === impl AuthorityFile ===

impl AuthorityFile {
    /// # Errors
    ///
    /// If the file cannot be read or contains no valid certificates: at the start there is nothing
    /// to fall back to.
    fn read(path: PathBuf) -> Result<Self, BoxError> {
        let pem = std::fs::read(&path)
            .map_err(|error| format!("failed to read {}: {error}", path.display()))?;
        let last = Mutex::new(Authorities::parse(pem)?);
        Ok(Self { path, last })
    }

    /// It compares the content before it parses: parsing a bundle takes longer than reading it.
    fn verifier(&self) -> Arc<WebPkiServerVerifier> {
        let read = std::fs::read(&self.path);
        let mut last = self.last.lock();
        match read.map_err(BoxError::from) {
            Ok(pem) if pem == last.pem => {}
            Ok(pem) => match Authorities::parse(pem) {
                Ok(authorities) => *last = authorities,
                Err(error) => self.report(&error),
            },
            Err(error) => self.report(&error),
        }
        Arc::clone(&last.verifier)
    }

    /// Logs that the earlier authorities stay in use.
    fn report(&self, error: &BoxError) {
        let path = self.path.display();
        let message = "failed to reload certificate authorities, using the earlier";
        tracing::warn!(%path, %error, message);
    }
}

impl fmt::Debug for AuthorityFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuthorityFile").field("path", &self.path).finish_non_exhaustive()
    }
}

impl ServerCertVerifier for AuthorityFile {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        self.verifier().verify_server_cert(end_entity, intermediates, name, ocsp, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let verifier = Arc::clone(&self.last.lock().verifier);
        verifier.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let verifier = Arc::clone(&self.last.lock().verifier);
        verifier.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.last.lock().verifier.supported_verify_schemes()
    }
}

// === impl Authorities ===

impl Authorities {
    /// # Errors
    ///
    /// If a certificate is malformed, or if there is none.
    fn parse(pem: Vec<u8>) -> Result<Self, BoxError> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(&pem) {
            roots.add(certificate?)?;
        }
        let verifier = WebPkiServerVerifier::builder(Arc::new(roots)).build()?;
        Ok(Self { pem, verifier })
    }
}
