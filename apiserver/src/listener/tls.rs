//! TLS of a listener: a certificate authority and a certificate, both made at the start, and the
//! certificates of clients.

use std::net::SocketAddr;
use std::sync::Arc;
use std::{fmt, io};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, IsCa, KeyPair, KeyUsagePurpose,
};
use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    DigitallySignedStruct, DistinguishedName as AuthorityName, Error, RootCertStore, ServerConfig,
    SignatureScheme,
};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::certificate;
use crate::access::{ClientCertificate, User};
use crate::credentials::Credentials;

/// Makes the TLS connections of a listener.
#[derive(Clone)]
pub(super) struct Acceptor {
    tls: TlsAcceptor,
    clients: Arc<dyn ClientCertVerifier>,
}

/// The certificate authority of a listener.
pub(super) struct Authority(Box<CertifiedIssuer<'static, KeyPair>>);

/// The certificates that a listener shows to its clients, and the key of the first one.
struct Identity {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

/// Requests the certificate of a client. A client may send any certificate or none, as on the real
/// server: it may have a token, too. The client's signature is checked.
#[derive(Debug)]
struct AnyCertificate(Arc<dyn ClientCertVerifier>);

type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// The protocols that a client may choose.
const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// The group of all users with credentials. The server adds it, so no certificate names it.
const AUTHENTICATED: &str = "system:authenticated";

/// Makes keys and certificates for a server at `address`. They are never written to a file.
/// `clients` has the certificates of further authorities of clients, in PEM. If the server has
/// credentials, clients see these.
pub(super) fn generate(
    address: SocketAddr,
    clients: &str,
    given: Option<&Credentials>,
) -> io::Result<(Acceptor, Authority)> {
    let clients = parse(clients).map_err(|error| {
        io::Error::other(format!("invalid certificates of an authority of clients: {error}"))
    })?;
    let authority = authority().map_err(failed)?;
    let identity = match given {
        Some(credentials) => Identity::read(credentials).map_err(|error| {
            io::Error::other(format!("invalid certificate or key of the server: {error}"))
        })?,
        None => Identity::generate(address, &authority).map_err(failed)?,
    };
    let acceptor = acceptor(identity, &authority, clients).map_err(failed)?;
    Ok((acceptor, Authority(Box::new(authority))))
}

#[expect(clippy::needless_pass_by_value, reason = "the argument of `map_err`")]
fn failed(error: Box<dyn std::error::Error + Send + Sync>) -> io::Error {
    io::Error::other(format!("failed to make the server's certificate: {error}"))
}

/// Reads certificates in PEM.
fn parse(pem: &str) -> Result<Vec<CertificateDer<'static>>> {
    let found = CertificateDer::pem_slice_iter(pem.as_bytes());
    let found = found.collect::<std::result::Result<Vec<_>, _>>()?;
    if found.is_empty() && !pem.trim().is_empty() {
        return Err("there is none".into());
    }
    Ok(found)
}

/// Makes the authority of a listener.
fn authority() -> Result<CertifiedIssuer<'static, KeyPair>> {
    let mut params = CertificateParams::new(Vec::new())?;
    params.distinguished_name = name("homeostat-apiserver authority");
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    Ok(CertifiedIssuer::self_signed(params, KeyPair::generate()?)?)
}

fn acceptor(
    identity: Identity,
    authority: &CertifiedIssuer<'static, KeyPair>,
    clients: Vec<CertificateDer<'static>>,
) -> Result<Acceptor> {
    let provider = Arc::new(ring::default_provider());
    let mut roots = RootCertStore::empty();
    roots.add(authority.der().clone())?;
    for authority in clients {
        roots.add(authority)?;
    }
    let clients =
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
            .build()?;
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_client_cert_verifier(Arc::new(AnyCertificate(Arc::clone(&clients))))
        .with_single_cert(identity.chain, identity.key)?;
    config.alpn_protocols = PROTOCOLS.iter().map(|protocol| protocol.to_vec()).collect();
    let tls = TlsAcceptor::from(Arc::new(config));
    Ok(Acceptor { tls, clients })
}

fn name(common_name: &str) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, common_name);
    name
}

// === impl Identity ===

impl Identity {
    fn read(credentials: &Credentials) -> Result<Self> {
        let chain = parse(&credentials.certificate)?;
        let key = PrivateKeyDer::from_pem_slice(credentials.key.as_bytes())?;
        Ok(Self { chain, key })
    }

    /// Makes a certificate for a server at `address`.
    fn generate(
        address: SocketAddr,
        authority: &CertifiedIssuer<'static, KeyPair>,
    ) -> Result<Self> {
        let mut names = vec!["localhost".to_owned(), "kubernetes.default.svc".to_owned()];
        names.push(address.ip().to_string());
        if address.ip().is_unspecified() {
            names.extend(["127.0.0.1".to_owned(), "::1".to_owned()]);
        }
        let mut params = CertificateParams::new(names)?;
        params.distinguished_name = name("homeostat-apiserver");
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate()?;
        let chain = vec![params.signed_by(&key, authority)?.der().clone()];
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        Ok(Self { chain, key })
    }
}

// === impl Acceptor ===

impl Acceptor {
    /// Carries out the handshake; returns the connection and what its client's certificate says.
    pub(super) async fn accept(
        &self,
        stream: TcpStream,
    ) -> io::Result<(TlsStream<TcpStream>, Option<ClientCertificate>)> {
        let stream = self.tls.accept(stream).await?;
        let (_, connection) = stream.get_ref();
        let certificate = connection.peer_certificates().and_then(|chain| self.check(chain));
        Ok((stream, certificate))
    }

    /// Returns what the certificate of a client says; `None` if it names no user.
    fn check(&self, chain: &[CertificateDer<'_>]) -> Option<ClientCertificate> {
        let (first, others) = chain.split_first()?;
        if let Err(error) = self.clients.verify_client_cert(first, others, UnixTime::now()) {
            tracing::debug!(%error, "client certificate is invalid");
            return Some(ClientCertificate::Invalid);
        }
        certificate::identity(first)
    }
}

// === impl Authority ===

impl Authority {
    /// Returns the authority's certificate as PEM.
    pub(super) fn pem(&self) -> String {
        self.0.pem()
    }

    /// Makes a certificate that names a user and its groups.
    pub(super) fn issue(&self, user: &User) -> io::Result<Credentials> {
        self.sign(user).map_err(|error| {
            io::Error::other(format!("failed to make the certificate of {user}: {error}"))
        })
    }

    fn sign(&self, user: &User) -> Result<Credentials> {
        let mut params = CertificateParams::new(Vec::new())?;
        params.distinguished_name = name(user.name());
        let groups: Vec<_> = user.groups().filter(|group| *group != AUTHENTICATED).collect();
        match groups.as_slice() {
            [] => {}
            [group] => params.distinguished_name.push(DnType::OrganizationName, *group),
            // rcgen writes one value for each attribute.
            [..] => return Err("it would have more than one group".into()),
        }
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        params.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &**self.0)?.pem();
        Ok(Credentials { certificate, key: key.serialize_pem() })
    }
}

impl fmt::Debug for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authority").finish_non_exhaustive()
    }
}

// === impl AnyCertificate ===

impl ClientCertVerifier for AnyCertificate {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[AuthorityName] {
        self.0.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> std::result::Result<ClientCertVerified, Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, Error> {
        self.0.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, Error> {
        self.0.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}
