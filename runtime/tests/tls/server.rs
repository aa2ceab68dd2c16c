//! A server with TLS that answers each request with what it saw, and the files of its clients.

use std::convert::Infallible;
use std::fmt::Write as _;
use std::future::ready;
use std::io::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use homeostat::client;
use homeostat::kube_client::Client;
use homeostat::kube_client::client::Body;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use parking_lot::Mutex;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

/// The only name in the server's certificate: no address, so that `tls-server-name` is needed.
pub(crate) const SERVER_NAME: &str = "kubernetes.test";

pub(crate) struct Authority {
    pub(crate) issuer: CertifiedIssuer<'static, KeyPair>,
}

pub(crate) struct Identity {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

/// A server that answers each request with what it saw: protocol, client certificate,
/// authorization. Lists of config maps are empty, and watches of them end at once.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    connections: Arc<AtomicUsize>,
    /// Cancelled and replaced to break all connections.
    alive: Arc<Mutex<CancellationToken>>,
    /// Certificates and `Authorization` headers that are answered with 401.
    refused: Refused,
    _tasks: JoinSet<()>,
}

const EMPTY_LIST: &str = r#"{"apiVersion": "v1", "kind": "ConfigMapList",
    "metadata": {"resourceVersion": "1"}, "items": []}"#;

type Refused = Arc<Mutex<Vec<Vec<u8>>>>;

// === impl Authority ===

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        Self { issuer }
    }

    pub(crate) fn issue(&self, name: &str) -> Identity {
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        Identity { certificate: certificate.pem(), key: key.serialize_pem() }
    }

    fn roots(&self) -> Arc<RootCertStore> {
        let mut roots = RootCertStore::empty();
        roots.add(self.issuer.der().clone()).unwrap();
        Arc::new(roots)
    }
}

// === impl Server ===

impl Server {
    pub(crate) async fn start(authority: &Authority, protocols: &[&str]) -> Self {
        drop(rustls::crypto::ring::default_provider().install_default());
        let verifier = WebPkiClientVerifier::builder(authority.roots()).allow_unauthenticated();
        Self::start_with(authority, protocols, verifier.build().unwrap()).await
    }

    pub(crate) async fn start_with(
        authority: &Authority,
        protocols: &[&str],
        verifier: Arc<dyn ClientCertVerifier>,
    ) -> Self {
        drop(rustls::crypto::ring::default_provider().install_default());
        let identity = authority.issue(SERVER_NAME);
        let mut config = rustls::ServerConfig::builder()
            .with_client_cert_verifier(verifier)
            .with_single_cert(
                vec![CertificateDer::from_pem_slice(identity.certificate.as_bytes()).unwrap()],
                PrivateKeyDer::from_pem_slice(identity.key.as_bytes()).unwrap(),
            )
            .unwrap();
        config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();

        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let connections = Arc::new(AtomicUsize::new(0));
        let alive = Arc::new(Mutex::new(CancellationToken::new()));
        let refused = Refused::default();
        let mut tasks = JoinSet::new();
        tasks.spawn(accept_all(
            listener,
            TlsAcceptor::from(Arc::new(config)),
            Arc::clone(&connections),
            Arc::clone(&alive),
            Arc::clone(&refused),
        ));
        Self { address, connections, alive, refused, _tasks: tasks }
    }

    /// Answers requests with this certificate (in PEM) or `Authorization` header with 401.
    pub(crate) fn refuse(&self, credential: &str) {
        let certificate = CertificateDer::from_pem_slice(credential.as_bytes());
        let bytes = certificate.map_or_else(|_| credential.as_bytes().to_vec(), |der| der.to_vec());
        self.refused.lock().push(bytes);
    }

    pub(crate) fn break_connections(&self) {
        let mut alive = self.alive.lock();
        alive.cancel();
        *alive = CancellationToken::new();
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

async fn accept_all(
    listener: TcpListener,
    acceptor: TlsAcceptor,
    connections: Arc<AtomicUsize>,
    alive: Arc<Mutex<CancellationToken>>,
    refused: Refused,
) {
    let mut tasks = JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let acceptor = acceptor.clone();
        let connections = Arc::clone(&connections);
        let refused = Arc::clone(&refused);
        let alive = alive.lock().clone();
        tasks.spawn(alive.run_until_cancelled_owned(async move {
            let Ok(stream) = acceptor.accept(stream).await else { return };
            connections.fetch_add(1, Ordering::SeqCst);
            let certificates = stream.get_ref().1.peer_certificates().unwrap_or_default().to_vec();
            let sessions = Mutex::new(JoinSet::new());
            let service = service_fn(|request| {
                let response = answer(&request, &certificates, &refused);
                let is_session = response.status() == StatusCode::SWITCHING_PROTOCOLS;
                let session = is_session.then(|| sessions.lock().spawn(echo(request)));
                drop(session); // The handle; the set owns the task.
                ready(Ok::<_, Infallible>(response))
            });
            // An error is a connection that the test broke.
            drop(
                auto::Builder::new(TokioExecutor::new())
                    .serve_connection_with_upgrades(TokioIo::new(stream), service)
                    .await,
            );
            sessions.into_inner().join_all().await;
        }));
    }
}

fn answer(
    request: &Request<Incoming>,
    certificates: &[CertificateDer<'_>],
    refused: &Refused,
) -> Response<Full<Bytes>> {
    let authorization = request.headers().get(header::AUTHORIZATION);
    let authorization = authorization.map_or("none", |value| value.to_str().unwrap());
    let version = request.version();
    let is_watch = request.uri().query().is_some_and(|query| query.contains("watch=true"));
    let text = match request.uri().path() {
        "/api/v1/configmaps" if is_watch => String::new(),
        "/api/v1/configmaps" => EMPTY_LIST.to_owned(),
        _ => format!("{version:?}, {} certificates, {authorization}", certificates.len()),
    };
    let certificate = certificates.first().map_or(&[][..], |der| der.as_ref());
    let refused = refused.lock();
    let is_refused =
        refused.iter().any(|bytes| *bytes == certificate || *bytes == authorization.as_bytes());
    let mut response = Response::new(Full::from(text));
    if is_refused {
        *response.status_mut() = StatusCode::UNAUTHORIZED;
    } else if let Some(protocol) = request.headers().get(header::UPGRADE) {
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        *response.body_mut() = Full::default();
        response.headers_mut().insert(header::UPGRADE, protocol.clone());
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    }
    response
}

/// Sends back what arrives on the connection of `request`, once it has another protocol.
async fn echo(request: Request<Incoming>) {
    let Ok(connection) = hyper::upgrade::on(request).await else { return };
    let (mut from, mut to) = tokio::io::split(TokioIo::new(connection));
    // An error is a connection that the client closed.
    drop(tokio::io::copy(&mut from, &mut to).await);
}

pub(crate) fn kubeconfig(
    server: &Server,
    authority: &Authority,
    name: Option<&str>,
    user: &str,
) -> String {
    let mut text = String::new();
    let ca = BASE64.encode(authority.issuer.pem());
    write!(
        text,
        "apiVersion: v1\nkind: Config\ncurrent-context: test\n\
         contexts: [{{name: test, context: {{cluster: test, user: test}}}}]\n\
         clusters:\n- name: test\n  cluster:\n    server: https://{}\n    certificate-authority-data: {ca}\n",
        server.address
    )
    .unwrap();
    if let Some(name) = name {
        writeln!(text, "    tls-server-name: {name}").unwrap();
    }
    write!(text, "users:\n- name: test\n  user: {{{user}}}\n").unwrap();
    text
}

pub(crate) async fn client(kubeconfig: &str) -> Client {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(kubeconfig.as_bytes()).unwrap();
    client::builder().qps(0.0).kubeconfig(file.path()).await.unwrap().build()
}

pub(crate) async fn get(client: &Client) -> String {
    let mut request = Request::new(Body::empty());
    *request.method_mut() = Method::GET;
    *request.uri_mut() = "/version".parse().unwrap();
    let response = client.send(request).await.unwrap();
    let status = response.status();
    let body = response.into_body().collect_bytes().await.unwrap().to_vec();
    let body = String::from_utf8(body).unwrap();
    if status.is_success() { body } else { format!("{status}: {body}") }
}
