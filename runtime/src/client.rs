//! The client that controllers should use: it never repeats a request whose outcome is unknown, never sends faster than
//! asked, and shares one connection.
//!
//! What [`kube_client`] builds by itself repeats *any* request that was answered 429, 503 or 504, up to fifteen times. A pod
//! create with a generated name that was carried out but answered 504 then makes two pods. client-go does not do that,
//! and limits how fast and how often it asks. Here is that behaviour, under the same [`Client`] type:
//!
//! - **Rate**: at most `qps` requests a second start, after a `burst`. Whoever waits longest goes first. Watches count, as
//!   in client-go.
//! - **In flight**: at most `in_flight` requests await their answer. Watches do not count: they stay open.
//! - **Repeats**: a read whose connection broke is sent again, three times. Anything is sent again when the server
//!   *asks* for it by `Retry-After` on a 429 or 503, within bounds. A write that was never answered is
//!   the caller's to judge; a watch that failed is the informer's.
//! - **Transport**: HTTP/2 under TLS where the server speaks it, so that 500 concurrent deletes share one connection
//!   instead of opening 500; HTTP/1.1 otherwise. A connection that has died is noticed by its unanswered pings and replaced.
//!
//! ```no_run
//! # async fn doc() -> Result<(), Box<dyn std::error::Error>> {
//! let client = homeostat::client::builder().qps(50.0).burst(100).infer().await?.build();
//! # Ok(())
//! # }
//! ```

mod courteous;
mod error;
mod limiter;
mod retry;
mod source;
mod transport;

use std::path::Path;

use bytes::Bytes;
use http::{HeaderValue, Request, Response};
use kube_client::client::Body;
use kube_client::{Client, Config};
use tower::{BoxError, Layer, Service};

use self::courteous::Courteous;
pub use self::error::{ClientError, TransportError, in_words};
use self::limiter::Limiter;
pub use self::transport::{Transport, TransportBody};

/// What kube-controller-manager and controller-runtime allow themselves.
const DEFAULT_QPS: f32 = 20.0;
const DEFAULT_BURST: u32 = 30;

/// Over HTTP/1.1 each request in flight is a connection of its own; an API server admits a few hundred at a time in all.
const DEFAULT_IN_FLIGHT: usize = 128;

/// Who asks, as audit logs and API priority rules see it.
const DEFAULT_USER_AGENT: &str = concat!("homeostat/", env!("CARGO_PKG_VERSION"));

/// Starts a client with the usual limits: 20 requests a second after a burst of 30, 128 in flight.
pub fn builder() -> Builder<NoServer> {
    Builder {
        server: NoServer,
        qps: DEFAULT_QPS,
        burst: DEFAULT_BURST,
        in_flight: DEFAULT_IN_FLIGHT,
        user_agent: HeaderValue::from_static(DEFAULT_USER_AGENT),
    }
}

/// Builds a [`Client`]; which server it talks to is said by one of [`infer`](Builder::infer),
/// [`kubeconfig`](Builder::kubeconfig), [`config`](Builder::config) and [`service`](Builder::service).
#[derive(Debug, Clone)]
#[must_use = "a builder does nothing until `build`"]
pub struct Builder<S> {
    server: S,
    qps: f32,
    burst: u32,
    in_flight: usize,
    user_agent: HeaderValue,
}

/// The builder does not know its server yet.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct NoServer;

/// The server that a builder was told, with the transport to it already set up.
#[derive(Debug, Clone)]
pub struct Server {
    transport: Transport,
    default_namespace: String,
}

// === impl Builder ===

impl<S> Builder<S> {
    /// Lets `qps` requests start each second on average. Zero, less, and what is not a number mean: as fast as asked.
    pub fn qps(mut self, qps: f32) -> Self {
        self.qps = qps;
        self
    }

    /// Lets `burst` requests start at once after a quiet time (at least one).
    pub fn burst(mut self, burst: u32) -> Self {
        self.burst = burst;
        self
    }

    /// Lets `n` requests await their answer at the same time (at least one); watches come on top.
    pub fn in_flight(mut self, n: usize) -> Self {
        self.in_flight = n;
        self
    }

    /// Says who asks, as the server's audit log shows it: the program's name and version.
    ///
    /// # Panics
    ///
    /// When `name` holds anything but visible ASCII.
    pub fn user_agent(mut self, name: &'static str) -> Self {
        self.user_agent = HeaderValue::from_static(name);
        self
    }

    fn with_server(self, transport: Transport, default_namespace: String) -> Builder<Server> {
        Builder {
            server: Server { transport, default_namespace },
            qps: self.qps,
            burst: self.burst,
            in_flight: self.in_flight,
            user_agent: self.user_agent,
        }
    }
}

impl Builder<NoServer> {
    /// Talks to the server of `$KUBECONFIG`, of `~/.kube/config`, or of the cluster that this process runs in.
    ///
    /// # Errors
    ///
    /// When none of them is there or can be used; the error says what was tried.
    pub async fn infer(self) -> Result<Builder<Server>, ClientError> {
        let config = source::infer().await?;
        self.config(config)
    }

    /// Talks to the server of the current context of the kubeconfig at `path`.
    ///
    /// # Errors
    ///
    /// When the file is missing or cannot be used.
    pub async fn kubeconfig(self, path: impl AsRef<Path>) -> Result<Builder<Server>, ClientError> {
        let config = source::from_file(path.as_ref()).await?;
        self.config(config)
    }

    /// Talks to the server that `config` describes. Its `default_retry` is not used: see the [module](self).
    ///
    /// # Errors
    ///
    /// When the certificates, keys or credentials in it cannot be used.
    pub fn config(self, config: Config) -> Result<Builder<Server>, ClientError> {
        let transport = transport::connect(&config)?;
        Ok(self.with_server(transport, config.default_namespace))
    }

    /// Talks to `service` instead of a socket: an API server in this process, or a test's script. The limits and the
    /// policy of repeats are those of a real connection.
    pub fn service<S, B>(self, service: S) -> Builder<Server>
    where
        S: Service<Request<Body>, Response = Response<B>> + Clone + Send + Sync + 'static,
        S::Future: Send + 'static,
        S::Error: Into<BoxError> + 'static,
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        self.with_server(Transport::new(service), "default".to_owned())
    }
}

impl Builder<Server> {
    /// Puts `layer` between the policy and the server, where a fault or a trace belongs: each repeat passes it.
    pub fn layer<L, B>(mut self, layer: &L) -> Self
    where
        L: Layer<Transport>,
        L::Service: Service<Request<Body>, Response = Response<B>> + Clone + Send + Sync + 'static,
        <L::Service as Service<Request<Body>>>::Future: Send + 'static,
        <L::Service as Service<Request<Body>>>::Error: Into<BoxError> + 'static,
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        self.server.transport = Transport::new(layer.layer(self.server.transport));
        self
    }

    /// The client. It lives in the tokio runtime that it was built in, and dies with it.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    pub fn build(self) -> Client {
        let limiter = Limiter::new(self.qps, self.burst);
        let service =
            Courteous::new(self.server.transport, limiter, self.in_flight, self.user_agent);
        Client::new(service, self.server.default_namespace)
    }
}

#[cfg(test)]
mod tests;
