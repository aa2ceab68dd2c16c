//! The connection to a server: HTTP/2 under TLS if the server supports it, HTTP/1.1 otherwise, with
//! credentials added to each request.
//!
//! From the outside in: base URL, `auth-provider` of old kubeconfigs, extra headers
//! (impersonation), a proxy's credentials, [`Connections`] with the user's, TLS, proxy, TCP.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::future::{Either, Ready, ready};
use http::uri::PathAndQuery;
use http::{Request, Response, Uri};
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;
use kube_client::Config;
use kube_client::client::{Body, ConfigExt};
use kube_client::config::AuthInfo;
use tower::util::BoxCloneSyncService;
use tower::{BoxError, Service, ServiceBuilder, ServiceExt};

use super::connections::{Connections, tcp};
use super::credentials::Credentials;
use super::error::{ClientError, TransportError, shown_url};
use super::proxy;

#[cfg(feature = "rustls-tls")]
#[path = "transport/tls.rs"]
mod connector;
#[cfg(not(feature = "rustls-tls"))]
#[path = "transport/plain.rs"]
mod connector;

/// The body of an answer.
pub type TransportBody = UnsyncBoxBody<Bytes, BoxError>;

/// A service that sends a request to one server, once. Clones share its connections.
///
/// [`ClientBuilder::layer`](super::ClientBuilder::layer) wraps it.
///
/// A program meets it only in the type of its own layer: `impl Layer<Transport>`, as [`Fence`] has
/// it.
///
/// [`Fence`]: crate::leader_election::Fence
#[derive(Clone)]
pub struct Transport {
    /// Boxed, so that a layer does not change the type of the client.
    inner: BoxCloneSyncService<Request<Body>, Response<TransportBody>, BoxError>,
}

/// Sends each request to one server: a request names only a path and a query.
#[derive(Clone)]
struct AtServer<S> {
    base: Uri,
    /// The server's URL, for errors.
    server: String,
    inner: S,
}

/// Sets up the transport to the server of `config`, with its credentials. It connects at the first
/// request.
///
/// # Errors
///
/// If the credentials, the certificate authorities, the proxy or the headers of `config` cannot be
/// used.
pub(super) fn connect(config: &Config) -> Result<(Transport, Arc<Credentials>), ClientError> {
    let server = shown_url(&config.cluster_url);
    let setup = |reason: BoxError| ClientError::Setup { server: server.clone(), reason };
    let kube = |error: kube_client::Error| setup(error.into());
    let provider = config.auth_info.auth_provider.is_some();
    let user = if provider { &AuthInfo::default() } else { &config.auth_info };
    let credentials = Arc::new(Credentials::new(user).map_err(setup)?);
    let tcp = proxy::connector(config, tcp()).map_err(setup)?;
    let authorize = tcp.authorize();
    let connectors = connector::connectors(config, &credentials, tcp).map_err(setup)?;
    let connectors = connectors.with_timeout(config.connect_timeout);
    let connections = Connections::new(connectors, Arc::clone(&credentials), server.clone());
    // The `auth-provider` of old kubeconfigs is left to kube-client.
    let provider = if provider { config.auth_layer().map_err(kube)? } else { None };
    let (base, name) = (config.cluster_url.clone(), server.clone());
    let service = ServiceBuilder::new()
        .layer_fn(move |inner| AtServer { base: base.clone(), server: name.clone(), inner })
        .option_layer(provider)
        .layer(config.extra_headers_layer().map_err(kube)?)
        .map_request(authorize)
        .service(connections);
    Ok((Transport::new(service), credentials))
}

/// Returns the URI of a request for the path and query of `request` on the server `base`. The path
/// of `base`, which most servers do not have, comes first.
///
/// kube-client's layer formats and parses each URI.
///
/// # Errors
///
/// If both paths together are longer than a URI may be (64 KiB).
fn at_server(base: &Uri, request: &Uri) -> Result<Uri, http::Error> {
    let Some(path) = request.path_and_query() else { return Ok(base.clone()) };
    let mut parts = base.clone().into_parts();
    let prefix = base.path().trim_end_matches('/');
    parts.path_and_query = Some(if prefix.is_empty() {
        path.clone()
    } else {
        format!("{prefix}{path}").parse::<PathAndQuery>()?
    });
    Ok(Uri::from_parts(parts)?)
}

// === impl Transport ===

impl Transport {
    /// Returns a transport that sends requests to `service`, with its body and errors erased.
    ///
    /// It costs one allocation per request, for the future of the service.
    pub(crate) fn new<S, B>(service: S) -> Self
    where
        S: Service<Request<Body>, Response = Response<B>> + Clone + Send + Sync + 'static,
        S::Future: Send + 'static,
        S::Error: Into<BoxError> + 'static,
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let service = service
            .map_response(|response: Response<B>| {
                response.map(|body| body.map_err(Into::into).boxed_unsync())
            })
            .map_err(Into::into);
        Self { inner: BoxCloneSyncService::new(service) }
    }
}

impl Service<Request<Body>> for Transport {
    type Response = Response<TransportBody>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        self.inner.call(request)
    }
}

// === impl AtServer ===

impl<S> Service<Request<Body>> for AtServer<S>
where
    S: Service<Request<Body>, Error = BoxError>,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = Either<S::Future, Ready<Result<S::Response, BoxError>>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        match at_server(&self.base, request.uri()) {
            Ok(uri) => {
                *request.uri_mut() = uri;
                Either::Left(self.inner.call(request))
            }
            Err(error) => {
                let (server, source) = (self.server.clone(), error.into());
                Either::Right(ready(Err(TransportError::InvalidUrl { server, source }.into())))
            }
        }
    }
}

// === impl Transport ===

impl fmt::Debug for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transport").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_of_the_server_precedes_that_of_the_request() {
        let joined = |base: &str, request: &str| {
            at_server(&base.parse().unwrap(), &request.parse().unwrap()).unwrap().to_string()
        };
        for base in ["https://a.example:6443", "https://a.example:6443/"] {
            assert_eq!(joined(base, "/api/v1?limit=1"), "https://a.example:6443/api/v1?limit=1");
            assert_eq!(joined(base, "/"), "https://a.example:6443/");
        }
        for base in ["http://a.example/k8s/c1", "http://a.example/k8s/c1/"] {
            assert_eq!(joined(base, "/api?watch=1"), "http://a.example/k8s/c1/api?watch=1");
        }
    }

    #[tokio::test]
    async fn request_whose_url_is_too_long_is_an_error() {
        let config = Config::new("http://127.0.0.1:1/k8s/c1".parse().unwrap());
        let (transport, _) = connect(&config).unwrap();
        let mut request = Request::new(Body::empty());
        *request.uri_mut() = format!("/api?labelSelector={}", "a".repeat(65_510)).parse().unwrap();
        let error = transport.oneshot(request).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "the request's URL at http://127.0.0.1:1/k8s/c1 is invalid: uri too long; shorten the \
             selectors"
        );
    }
}
