//! [`ClientBuilder`]: the server and the limits of a client.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Request, Response};
use kube_client::client::Body;
use kube_client::{Client, Config};
use tokio::sync::Semaphore;
use tower::{BoxError, Layer, Service};

use super::credentials::Credentials;
use super::error::{ClientError, shown_url};
use super::limiter::Limiter;
use super::measured::Requests;
use super::rate_limited_transport::{Limits, RateLimitedTransport};
use super::throttling::Throttling;
use super::transport::Transport;
use super::{kubeconfig, transport};

/// The defaults of kube-controller-manager and controller-runtime.
///
/// Requests per second, and requests at once after a pause.
const DEFAULT_QPS: f32 = 20.0;
const DEFAULT_BURST: u32 = 30;

/// Over HTTP/1.1 each request in flight needs a connection. An API server admits a few hundred
/// requests at a time from all its clients.
const DEFAULT_IN_FLIGHT: usize = 128;

/// Longer than a webhook may take by default (10 s), and half the time after which an API server
/// itself gives up (60 s).
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

/// The `User-Agent` that audit logs show.
pub(super) const DEFAULT_USER_AGENT: &str = concat!("homeostat/", env!("CARGO_PKG_VERSION"));

/// A builder of a [`Client`] with client-go's limits and retries.
///
/// One of [`infer`](ClientBuilder::infer), [`kubeconfig`](ClientBuilder::kubeconfig),
/// [`config`](ClientBuilder::config) and [`service`](ClientBuilder::service) selects the server;
/// after that [`build`](ClientBuilder::build) is available.
///
/// Use it for every controller. Use `kube_client`'s own client instead for a tool that a person
/// runs and that sends few requests. A clone of the builder builds a second client that shares the
/// connections and has its own limits, as a leader election needs it.
///
/// # Examples
///
/// A client for the server of a kubeconfig file, without a rate limit:
///
/// ```no_run
/// # async fn doc() -> Result<(), Box<dyn std::error::Error>> {
/// let client = homeostat::client::builder().qps(0.0).kubeconfig("admin.conf").await?.build();
/// # Ok(())
/// # }
/// ```
#[doc(alias = "RESTClientFor")]
#[doc(alias = "NewForConfig")]
#[derive(Debug, Clone)]
#[must_use = "a builder does nothing until `build`"]
pub struct ClientBuilder<S> {
    pub(super) server: S,
    qps: f32,
    burst: u32,
    in_flight: usize,
    timeout: Duration,
    user_agent: HeaderValue,
}

/// The state of a [`ClientBuilder`] before a server is selected.
///
/// Such a builder has no `build`: a client without a server does not compile.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct NoServer {
    /// The context of the kubeconfig; `None` for the current one.
    pub(super) context: Option<String>,
    /// The URL that replaces the server's.
    pub(super) master: Option<String>,
}

/// The state of a [`ClientBuilder`] whose server is selected and whose transport is set up.
#[derive(Debug, Clone)]
pub struct Server {
    /// The transport with the layers added so far; the last layer is the outermost.
    transport: Transport,
    /// The namespace of the kubeconfig's context, or `default`.
    default_namespace: String,
    /// The server's URL, for errors and metrics.
    pub(super) url: Arc<str>,
}

// === impl ClientBuilder ===

impl<S> ClientBuilder<S> {
    /// Sets the average number of requests that start per second (default 20, as in
    /// kube-controller-manager). Zero, a negative number and NaN mean no limit.
    #[doc(alias = "QPS")]
    pub fn qps(mut self, qps: f32) -> Self {
        self.qps = qps;
        self
    }

    /// Sets the number of requests that may start at once after an idle period (default 30, at
    /// least 1).
    pub fn burst(mut self, burst: u32) -> Self {
        self.burst = burst;
        self
    }

    /// Sets the number of requests that may await their answer at the same time (default 128, at
    /// least 1). Watches are not counted.
    ///
    /// A request over the limit waits for an earlier one to end, and takes no token of the rate
    /// meanwhile.
    #[doc(alias = "MaxInFlight")]
    pub fn in_flight(mut self, n: usize) -> Self {
        self.in_flight = n;
        self
    }

    /// Sets the time in which the server has to answer a request, and to send each further part of
    /// the answer (default 30 s). [`Duration::MAX`] means no timeout.
    ///
    /// A request that ends this way returns [`TransportError::TimedOut`](super::TransportError).
    /// Its outcome is unknown, so the client does not repeat it. A watch has to be accepted within
    /// the timeout, at most 10 s; it is not ended by silence. Choose a longer time than the slowest
    /// admission webhook takes.
    #[doc(alias = "Timeout")]
    pub fn request_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets the `User-Agent` header that the server's audit log shows: the program's name and
    /// version. The default is this crate's.
    ///
    /// # Panics
    ///
    /// Panics if `name` contains anything but visible ASCII and spaces.
    pub fn user_agent(mut self, name: impl AsRef<str>) -> Self {
        let name = HeaderValue::from_str(name.as_ref());
        self.user_agent = name.expect("a user agent is visible ASCII");
        self
    }

    /// Returns the builder with its server; the options stay.
    fn with_server(
        self,
        transport: Transport,
        default_namespace: String,
        url: &str,
    ) -> ClientBuilder<Server> {
        ClientBuilder {
            server: Server { transport, default_namespace, url: url.into() },
            qps: self.qps,
            burst: self.burst,
            in_flight: self.in_flight,
            timeout: self.timeout,
            user_agent: self.user_agent,
        }
    }
}

impl ClientBuilder<NoServer> {
    pub(super) fn new() -> Self {
        Self {
            server: NoServer::default(),
            qps: DEFAULT_QPS,
            burst: DEFAULT_BURST,
            in_flight: DEFAULT_IN_FLIGHT,
            timeout: DEFAULT_TIMEOUT,
            user_agent: HeaderValue::from_static(DEFAULT_USER_AGENT),
        }
    }

    /// Selects a context of the kubeconfig instead of the current one, for
    /// [`infer`](Self::infer) and [`kubeconfig`](Self::kubeconfig).
    ///
    /// With a context, `infer` requires a kubeconfig.
    #[doc(alias = "CurrentContext")]
    pub fn context(mut self, context: impl Into<String>) -> Self {
        self.server.context = Some(context.into());
        self
    }

    /// Replaces the URL of the server that [`infer`](Self::infer) or
    /// [`kubeconfig`](Self::kubeconfig) selects. Credentials and certificates stay.
    #[doc(alias = "masterUrl")]
    pub fn master(mut self, url: impl Into<String>) -> Self {
        self.server.master = Some(url.into());
        self
    }

    /// Selects the server of `$KUBECONFIG`, else of `~/.kube/config`, else of the cluster that the
    /// process runs in.
    ///
    /// # Errors
    ///
    /// Returns an error that lists the places searched if none of them exists, and one that names
    /// the file if a kubeconfig exists but cannot be used. A broken kubeconfig is an error even
    /// inside a cluster. The error of a credential plugin contains its error output.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the builder, and kills a credential plugin that runs.
    #[doc(alias = "BuildConfigFromFlags")]
    #[doc(alias = "GetConfig")]
    #[doc(alias = "InClusterConfig")]
    pub async fn infer(self) -> Result<ClientBuilder<Server>, ClientError> {
        let config = kubeconfig::infer(&self.server).await?;
        self.connect(config).await
    }

    /// Selects the server of the kubeconfig at `path`.
    ///
    /// # Errors
    ///
    /// Returns an error if the file is missing or cannot be used. The error of a credential plugin
    /// contains its error output.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the builder, and kills a credential plugin that runs.
    pub async fn kubeconfig(
        self,
        path: impl AsRef<Path>,
    ) -> Result<ClientBuilder<Server>, ClientError> {
        let config = kubeconfig::from_file(path.as_ref(), &self.server).await?;
        self.connect(config).await
    }

    /// Selects the server that `config` describes. The config's `default_retry` is ignored: the
    /// [module documentation](super) describes the retries. A credential plugin runs at the first
    /// request.
    ///
    /// # Errors
    ///
    /// Returns an error if the config's certificates, keys, credentials or proxy cannot be used.
    pub fn config(self, config: Config) -> Result<ClientBuilder<Server>, ClientError> {
        Ok(self.connected(config)?.0)
    }

    /// Selects the server that `config` describes, and runs its credential plugin.
    async fn connect(self, config: Config) -> Result<ClientBuilder<Server>, ClientError> {
        let (builder, credentials) = self.connected(config)?;
        let loaded = credentials.get().await;
        let server = || builder.server.url.to_string();
        loaded.map_err(|reason| ClientError::Setup { server: server(), reason })?;
        tracing::info!(server = %builder.server.url, "using the API server");
        Ok(builder)
    }

    fn connected(
        self,
        mut config: Config,
    ) -> Result<(ClientBuilder<Server>, Arc<Credentials>), ClientError> {
        kubeconfig::complete_url(&mut config)?;
        let (transport, credentials) = transport::connect(&config)?;
        let url = shown_url(&config.cluster_url);
        Ok((self.with_server(transport, config.default_namespace, &url), credentials))
    }

    /// Sends requests to `service` instead of a socket: an API server in the same process, or a
    /// test's script. Limits and retries are those of a real connection.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// use bytes::Bytes;
    /// use http::Response;
    /// use http_body_util::Full;
    ///
    /// let server = tower::service_fn(|_| async {
    ///     Ok::<_, std::convert::Infallible>(Response::new(Full::new(Bytes::from("{}"))))
    /// });
    /// let client = homeostat::client::builder().service(server).build();
    /// assert_eq!(client.default_namespace(), "default");
    /// # }
    /// ```
    pub fn service<S, B>(self, service: S) -> ClientBuilder<Server>
    where
        S: Service<Request<Body>, Response = Response<B>> + Clone + Send + Sync + 'static,
        S::Future: Send + 'static,
        S::Error: Into<BoxError> + 'static,
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        self.with_server(Transport::new(service), "default".to_owned(), "the server")
    }
}

impl ClientBuilder<Server> {
    /// Inserts `layer` between the retries and the server. Each attempt passes through it, so it
    /// is the place for injected faults and for traces.
    ///
    /// # Examples
    ///
    /// A layer that counts the attempts:
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// use std::sync::Arc;
    /// use std::sync::atomic::{AtomicU32, Ordering};
    ///
    /// use homeostat::kube_client::client::Body;
    /// use tower::util::MapRequestLayer;
    /// # let server = tower::service_fn(|_| async {
    /// #     let body = http_body_util::Full::new(bytes::Bytes::from("{}"));
    /// #     Ok::<_, std::convert::Infallible>(http::Response::new(body))
    /// # });
    ///
    /// let attempts = Arc::new(AtomicU32::new(0));
    /// let counter = Arc::clone(&attempts);
    /// let layer = MapRequestLayer::new(move |request: http::Request<Body>| {
    ///     counter.fetch_add(1, Ordering::Relaxed);
    ///     request
    /// });
    /// // `server` answers every request.
    /// let client = homeostat::client::builder().service(server).layer(&layer).build();
    /// let request = http::Request::get("/version").body(Vec::new()).unwrap();
    /// client.request_text(request).await.unwrap();
    /// assert_eq!(attempts.load(Ordering::Relaxed), 1);
    /// # }
    /// ```
    #[doc(alias = "WrapTransport")]
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

    /// Returns the client. It belongs to the current tokio runtime and stops working with it.
    ///
    /// # Panics
    ///
    /// Panics outside of a tokio runtime.
    pub fn build(self) -> Client {
        let server = self.server.url;
        let limits = Limits {
            rate: Limiter::new(self.qps, self.burst),
            in_flight: Semaphore::new(self.in_flight.clamp(1, Semaphore::MAX_PERMITS)),
            user_agent: self.user_agent,
            timeout: self.timeout,
            metrics: Requests::new(&server),
            server,
            throttling: Throttling::default(),
        };
        let service = RateLimitedTransport::new(self.server.transport, limits);
        Client::new(service, self.server.default_namespace)
    }
}
