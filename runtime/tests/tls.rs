//! The client over real sockets and TLS: which protocol, whose certificates, and what happens when a connection dies.
#![cfg(feature = "rustls-tls")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::convert::Infallible;
use std::fmt::Write as _;
use std::io::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use futures::future::join_all;
use homeostat::client::{self, in_words};
use homeostat::kube_client::Client;
use homeostat::kube_client::client::Body;
use http::{Method, Request, Response, header};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

/// The only name in the server's certificate: no address, so that `tls-server-name` is needed.
const SERVER_NAME: &str = "kubernetes.test";

struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

struct Identity {
    certificate: String,
    key: String,
}

/// A server that answers each request with what it saw: protocol, client certificate, authorization.
struct Server {
    address: SocketAddr,
    connections: Arc<AtomicUsize>,
    /// Cancelled and replaced to break all connections.
    alive: Arc<parking_lot::Mutex<CancellationToken>>,
    _tasks: JoinSet<()>,
}

// === impl Authority ===

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        Self { issuer }
    }

    fn issue(&self, name: &str) -> Identity {
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
    async fn start(authority: &Authority, protocols: &[&str]) -> Self {
        drop(rustls::crypto::ring::default_provider().install_default());
        let identity = authority.issue(SERVER_NAME);
        let verifier = WebPkiClientVerifier::builder(authority.roots()).allow_unauthenticated();
        let mut config = rustls::ServerConfig::builder()
            .with_client_cert_verifier(verifier.build().unwrap())
            .with_single_cert(
                vec![CertificateDer::from_pem_slice(identity.certificate.as_bytes()).unwrap()],
                PrivateKeyDer::from_pem_slice(identity.key.as_bytes()).unwrap(),
            )
            .unwrap();
        config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();

        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let connections = Arc::new(AtomicUsize::new(0));
        let alive = Arc::new(parking_lot::Mutex::new(CancellationToken::new()));
        let mut tasks = JoinSet::new();
        tasks.spawn(accept_all(
            listener,
            TlsAcceptor::from(Arc::new(config)),
            Arc::clone(&connections),
            Arc::clone(&alive),
        ));
        Self { address, connections, alive, _tasks: tasks }
    }

    fn break_connections(&self) {
        let mut alive = self.alive.lock();
        alive.cancel();
        *alive = CancellationToken::new();
    }

    fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

async fn accept_all(
    listener: TcpListener,
    acceptor: TlsAcceptor,
    connections: Arc<AtomicUsize>,
    alive: Arc<parking_lot::Mutex<CancellationToken>>,
) {
    let mut tasks = JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let acceptor = acceptor.clone();
        let connections = Arc::clone(&connections);
        let alive = alive.lock().clone();
        tasks.spawn(alive.run_until_cancelled_owned(async move {
            let Ok(stream) = acceptor.accept(stream).await else { return };
            connections.fetch_add(1, Ordering::SeqCst);
            let certificates = stream.get_ref().1.peer_certificates().map_or(0, <[_]>::len);
            let service = service_fn(move |request| async move {
                Ok::<_, Infallible>(Response::new(answer(&request, certificates)))
            });
            // An error is a connection that the test broke.
            drop(
                auto::Builder::new(TokioExecutor::new())
                    .serve_connection(TokioIo::new(stream), service)
                    .await,
            );
        }));
    }
}

fn answer(request: &Request<Incoming>, certificates: usize) -> Full<Bytes> {
    let authorization = request.headers().get(header::AUTHORIZATION);
    let authorization = authorization.map_or("none", |value| value.to_str().unwrap());
    Full::from(format!("{:?}, {certificates} certificates, {authorization}", request.version()))
}

fn kubeconfig(server: &Server, authority: &Authority, name: Option<&str>, user: &str) -> String {
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

async fn client(kubeconfig: &str) -> Client {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(kubeconfig.as_bytes()).unwrap();
    client::builder().qps(0.0).kubeconfig(file.path()).await.unwrap().build()
}

async fn get(client: &Client) -> String {
    let mut request = Request::new(Body::empty());
    *request.method_mut() = Method::GET;
    *request.uri_mut() = "/version".parse().unwrap();
    let response = client.send(request).await.unwrap();
    String::from_utf8(response.into_body().collect_bytes().await.unwrap().to_vec()).unwrap()
}

#[tokio::test]
async fn many_requests_share_one_http2_connection_with_a_client_certificate() {
    let authority = Authority::new();
    let server = Server::start(&authority, &["h2", "http/1.1"]).await;
    let Identity { certificate, key } = authority.issue("bob");
    let user = format!(
        "client-certificate-data: {}, client-key-data: {}",
        BASE64.encode(certificate),
        BASE64.encode(key)
    );
    let client = client(&kubeconfig(&server, &authority, Some(SERVER_NAME), &user)).await;
    assert_eq!(get(&client).await, "HTTP/2.0, 1 certificates, none");
    join_all((0..100).map(|_| get(&client))).await;
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn a_server_without_http2_is_spoken_to_in_http1_with_a_token() {
    let authority = Authority::new();
    let server = Server::start(&authority, &["http/1.1"]).await;
    let user = "token: secret";
    let client = client(&kubeconfig(&server, &authority, Some(SERVER_NAME), user)).await;
    assert_eq!(get(&client).await, "HTTP/1.1, 0 certificates, Bearer secret");
}

#[tokio::test]
async fn a_connection_that_died_is_replaced() {
    let authority = Authority::new();
    let server = Server::start(&authority, &["h2"]).await;
    let client = client(&kubeconfig(&server, &authority, Some(SERVER_NAME), "")).await;
    for round in 1..=3 {
        assert_eq!(get(&client).await, "HTTP/2.0, 0 certificates, none");
        assert_eq!(server.connections(), round);
        server.break_connections();
    }
}

#[tokio::test]
async fn a_certificate_for_another_name_is_refused_in_words() {
    let authority = Authority::new();
    let server = Server::start(&authority, &["h2"]).await;
    for name in [None, Some("other.test")] {
        let client = client(&kubeconfig(&server, &authority, name, "")).await;
        let error = client.send(Request::new(Body::empty())).await.unwrap_err();
        let words = in_words(&error);
        let prefix = format!("cannot reach https://{}: ", server.address);
        assert!(words.starts_with(&prefix) && words.contains("not valid for"), "{words}");
    }
}

#[tokio::test]
async fn a_certificate_of_another_authority_is_refused_in_words() {
    let server = Server::start(&Authority::new(), &["h2"]).await;
    let client = client(&kubeconfig(&server, &Authority::new(), Some(SERVER_NAME), "")).await;
    let error = client.send(Request::new(Body::empty())).await.unwrap_err();
    let words = in_words(&error);
    assert!(words.starts_with("cannot reach https://127.0.0.1:"), "{words}");
    assert!(words.contains("certificate"), "{words}");
}
