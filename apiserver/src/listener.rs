//! The server on a TCP socket, with limits on slow and stuck clients.

mod activity;
mod body;
#[cfg(feature = "tls")]
mod certificate;
mod connections;
#[cfg(feature = "tls")]
mod tls;

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use homeostat_faults::{FaultService, ResponseBody};
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;
use tower::{Layer as _, Service as _};

use self::activity::Limits;
use self::connections::{Connections, Transport};
use crate::access::{Caller, User};
#[cfg(feature = "tls")]
use crate::credentials::Credentials;
use crate::server::{ApiServer, ApiService};

/// A TCP address that the server listens on; made by [`ApiServer::listen`]. Dropping it closes the
/// socket and every connection.
///
/// It speaks HTTP/1.1 and HTTP/2. A client that misbehaves loses its connection and
/// affects no other client:
///
/// - A connection closes if no request comes within 32 s of its start or within 90 s of the last
///   reply.
/// - A connection closes if a reply, also that of a watch, is left unread for 30 s.
/// - A connection closes when the client closes its side, even if it waits for a reply.
/// - A request fails if its body takes more than 60 s.
/// - An HTTP/2 connection has up to 100 concurrent requests.
/// - There are up to 4,096 connections. Another connection replaces the one that has been idle for
///   longest; if none is idle, it waits.
///
/// # Examples
///
/// ```
/// use homeostat_apiserver::ApiServer;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let server = ApiServer::new();
/// let listener = server.listen("127.0.0.1:0".parse()?).await?;
/// assert!(listener.kubeconfig().contains(&listener.url()));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "dropping a listener closes it"]
pub struct Listener {
    address: SocketAddr,
    /// The certificate of the authority as PEM, if the listener uses TLS.
    authority: Option<String>,
    /// Signs the certificates of clients, if the listener uses TLS.
    #[cfg(feature = "tls")]
    issuer: Option<tls::Authority>,
    /// The administrator's token, if the server asks for tokens.
    token: Option<String>,
    _accepting: JoinSet<()>,
    _stop: DropGuard,
}

/// Runs the tasks that hyper spawns, until their owner is dropped.
#[derive(Debug, Clone)]
pub(crate) struct Executor {
    pub(crate) tasks: TaskTracker,
    pub(crate) stopped: CancellationToken,
}

// === impl ApiServer ===

impl ApiServer {
    /// Serves HTTP/1.1 and HTTP/2 without TLS at `address`. Port 0 picks a free port.
    ///
    /// # Errors
    ///
    /// Fails if the address cannot be bound.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped before it completes, nothing listens.
    pub async fn listen(&self, address: SocketAddr) -> io::Result<Listener> {
        Listener::bind_with(self.clone(), address, Limits::DEFAULT).await
    }

    /// Serves HTTP/1.1 and HTTP/2 over TLS at `address`. Port 0 picks a free port.
    ///
    /// The keys are made at the start and stay in memory; the [kubeconfig](Listener::kubeconfig)
    /// has the certificate that a client must trust. With
    /// [`Builder::serving_certificate`](crate::Builder::serving_certificate) the server shows that
    /// certificate instead. Clients identify themselves by tokens, or by
    /// the certificates of [`Listener::kubeconfig_of`].
    ///
    /// # Errors
    ///
    /// Fails if the address cannot be bound, or if the certificates of
    /// [`Builder::client_authority`](crate::Builder::client_authority) or
    /// [`Builder::serving_certificate`](crate::Builder::serving_certificate) are invalid.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped before it completes, nothing listens.
    #[cfg(feature = "tls")]
    pub async fn listen_tls(&self, address: SocketAddr) -> io::Result<Listener> {
        let socket = TcpListener::bind(address).await?;
        let given = self.serving_credentials();
        let (acceptor, authority) =
            tls::generate(socket.local_addr()?, self.client_authorities(), given)?;
        let transport = Transport::Tls(acceptor);
        self.set_address(socket.local_addr()?);
        self.publish_authorities(&format!("{}{}", authority.pem(), self.client_authorities()));
        let mut listener = Listener::start(self.clone(), socket, Limits::DEFAULT, transport)?;
        let given = given.map(|credentials| credentials.certificate.clone());
        listener.authority = Some(given.unwrap_or_else(|| authority.pem()));
        listener.issuer = Some(authority);
        Ok(listener)
    }
}

// === impl Listener ===

impl Listener {
    async fn bind_with(server: ApiServer, address: SocketAddr, limits: Limits) -> io::Result<Self> {
        let socket = TcpListener::bind(address).await?;
        Self::start(server, socket, limits, Transport::Plain)
    }

    fn start(
        server: ApiServer,
        socket: TcpListener,
        limits: Limits,
        transport: Transport,
    ) -> io::Result<Self> {
        let address = socket.local_addr()?;
        let token = server.is_authenticating().then(|| server.token_of(User::admin()));
        // Cancelled with the listener; the server continues.
        let stopped = server.stopped().child_token();
        let executor = Executor { tasks: TaskTracker::new(), stopped: stopped.clone() };
        let mut accepting = JoinSet::new();
        accepting.spawn(accept(socket, server, Connections::new(executor, limits, transport)));
        let stop = stopped.drop_guard();
        Ok(Self {
            address,
            authority: None,
            #[cfg(feature = "tls")]
            issuer: None,
            token,
            _accepting: accepting,
            _stop: stop,
        })
    }

    /// Returns the address, with the port that was bound.
    pub fn addr(&self) -> SocketAddr {
        self.address
    }

    /// Returns the base URL.
    pub fn url(&self) -> String {
        let scheme = if self.authority.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", self.address)
    }

    /// Returns the text of a kubeconfig file, for kubectl and other clients. It has the token of an
    /// administrator if the server checks permissions.
    pub fn kubeconfig(&self) -> String {
        match &self.token {
            Some(token) => self.kubeconfig_with(&format!("\n    token: {token}")),
            None => self.kubeconfig_with(" {}"),
        }
    }

    /// Returns the text of a kubeconfig file with a client certificate, by which the server knows
    /// the user: the common name is the user's name, the organization is the user's group.
    ///
    /// # Errors
    ///
    /// Fails if the listener does not use TLS, or if the user is in more than one group besides
    /// `system:authenticated`.
    ///
    /// # Examples
    ///
    /// ```
    /// use homeostat_apiserver::{ApiServer, User};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let server = ApiServer::builder().authorization().build();
    /// let listener = server.listen_tls("127.0.0.1:0".parse()?).await?;
    /// let kubeconfig = listener.kubeconfig_of(&User::new("jane").in_group("dev"))?;
    /// assert!(kubeconfig.contains("client-certificate-data: "));
    /// # Ok(())
    /// # }
    /// ```
    #[cfg(feature = "tls")]
    pub fn kubeconfig_of(&self, user: &User) -> io::Result<String> {
        let issuer = self.issuer.as_ref().ok_or_else(|| {
            io::Error::new(io::ErrorKind::Unsupported, "the listener does not use TLS")
        })?;
        let Credentials { certificate, key } = issuer.issue(user)?;
        let [certificate, key] = [certificate, key].map(|pem| STANDARD.encode(pem));
        Ok(self.kubeconfig_with(&format!(
            "\n    client-certificate-data: {certificate}\n    client-key-data: {key}"
        )))
    }

    /// Returns a kubeconfig file with this user.
    fn kubeconfig_with(&self, user: &str) -> String {
        let authority = self.authority.as_ref().map_or_else(String::new, |pem| {
            format!("    certificate-authority-data: {}\n", STANDARD.encode(pem))
        });
        format!(
            "apiVersion: v1\nkind: Config\n\
             clusters:\n- name: homeostat\n  cluster:\n    server: {}\n{authority}\
             users:\n- name: homeostat\n  user:{user}\n\
             contexts:\n- name: homeostat\n  context:\n    cluster: homeostat\n    \
             user: homeostat\n    namespace: default\n\
             current-context: homeostat\n",
            self.url()
        )
    }
}

async fn accept(socket: TcpListener, server: ApiServer, mut connections: Connections) {
    loop {
        tokio::select! {
            biased;
            () = connections.wait_for_end() => {}
            accepted = socket.accept(), if connections.has_room() => match accepted {
                Ok((stream, _)) => {
                    let service = server.service_for(Caller::Network);
                    connections.open(stream, server.faults().layer().layer(service));
                }
                // Most likely the process is out of file descriptors: a connection has to close
                // first.
                Err(error) => {
                    tracing::warn!(%error, "failed to accept a connection, closing an idle one");
                    connections.close_most_idle();
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            },
        }
    }
}

/// The server behind its faults, for a pipe.
type Handler = FaultService<ApiService<Incoming>>;

/// Serves a connection that is not a socket.
pub(crate) async fn serve_http1<Io>(stream: Io, service: Handler)
where
    Io: hyper::rt::Read + hyper::rt::Write + Unpin + Send + 'static,
{
    let handler = service_fn(move |request| answer(service.clone(), request));
    let connection = http1::Builder::new().serve_connection(stream, handler);
    if let Err(error) = connection.await {
        tracing::debug!(%error, "connection ended early");
    }
}

async fn answer(
    mut service: Handler,
    request: Request<Incoming>,
) -> io::Result<Response<ResponseBody>> {
    // The boxed error would keep the compiler from proving that the connection's future is `Send`.
    service.call(request).await.map_err(io::Error::other)
}

// === impl Executor ===

impl<F> hyper::rt::Executor<F> for Executor
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    fn execute(&self, task: F) {
        let stopped = self.stopped.clone();
        self.tasks.spawn(async move {
            tokio::select! {
                biased;
                () = stopped.cancelled() => {}
                _ = task => {}
            }
        });
    }
}

#[cfg(test)]
mod tests;
