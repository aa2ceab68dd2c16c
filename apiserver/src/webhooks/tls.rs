//! TLS to the servers of webhooks, whose certificates the `caBundle` of a configuration verifies.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Verifies a server by the authorities in a bundle, as Go does: a certificate that is itself in
/// the bundle is trusted, too, even if it is one of an authority.
#[derive(Debug)]
struct Bundle {
    certificates: Vec<CertificateDer<'static>>,
    by_authority: Arc<WebPkiServerVerifier>,
}

const UNKNOWN: &str =
    "tls: failed to verify certificate: x509: certificate signed by unknown authority";

/// Connects to a server whose certificate has this name, and is verified by `authorities` in PEM.
///
/// # Errors
///
/// Returns the reason, in the words of Go where they are known.
pub(super) async fn connect(
    stream: TcpStream,
    name: &str,
    authorities: &[u8],
) -> Result<TlsStream<TcpStream>, String> {
    let found = CertificateDer::pem_slice_iter(authorities);
    let certificates: Vec<_> = found.filter_map(Result::ok).collect();
    let provider = Arc::new(ring::default_provider());
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(certificates.iter().cloned());
    if roots.is_empty() {
        return Err(UNKNOWN.to_owned());
    }
    let by_authority =
        WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
            .build()
            .map_err(|error| error.to_string())?;
    let bundle = Arc::new(Bundle { certificates, by_authority });
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .dangerous()
        .with_custom_certificate_verifier(bundle)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    let server = ServerName::try_from(name.to_owned()).map_err(|error| error.to_string())?;
    let connected = TlsConnector::from(Arc::new(config)).connect(server, stream).await;
    connected.map_err(|error| {
        let reason = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>());
        match (reason, error.kind()) {
            (Some(Error::InvalidCertificate(problem)), _) => text_of(problem, name),
            (_, std::io::ErrorKind::UnexpectedEof) => "EOF".to_owned(),
            (_, std::io::ErrorKind::ConnectionReset) => "connection reset by peer".to_owned(),
            _ => error.to_string(),
        }
    })
}

/// Returns Go's text for a problem of a certificate.
fn text_of(problem: &CertificateError, name: &str) -> String {
    let why = match problem {
        CertificateError::UnknownIssuer => return UNKNOWN.to_owned(),
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            let names: Vec<&str> = match problem {
                CertificateError::NotValidForNameContext { presented, .. } => {
                    presented.iter().map(|name| bare(name)).collect()
                }
                _ => Vec::new(),
            };
            if names.is_empty() {
                format!("certificate is not valid for any names, but wanted to match {name}")
            } else {
                format!("certificate is valid for {}, not {name}", names.join(", "))
            }
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "certificate has expired or is not yet valid".to_owned()
        }
        other => other.to_string(),
    };
    format!("tls: failed to verify certificate: x509: {why}")
}

/// Returns the text in `DnsName("text")`.
fn bare(presented: &str) -> &str {
    let inner = presented.split_once('(').map_or(presented, |(_, inner)| inner);
    inner.trim_end_matches(')').trim_matches('"')
}

// === impl Bundle ===

impl ServerCertVerifier for Bundle {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if self.certificates.iter().any(|known| known == certificate) {
            verify_server_name(&ParsedCertificate::try_from(certificate)?, name)?;
            return Ok(ServerCertVerified::assertion());
        }
        self.by_authority.verify_server_cert(certificate, intermediates, name, ocsp, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.by_authority.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.by_authority.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.by_authority.supported_verify_schemes()
    }
}
