//! Proxies: the kubeconfig's `proxy-url`, or `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY`.
//!
//! The rules are those of Go's `http.ProxyFromEnvironment`, which client-go uses:
//!
//! * the variable of the server's scheme counts; the upper-case name comes first;
//! * `NO_PROXY` lists hosts, domains, addresses and ranges, each with or without a port, or `*` for
//!   everything;
//! * loopback addresses and `localhost` are never proxied;
//! * a proxy without a scheme is an HTTP proxy.
//!
//! Only HTTP proxies are supported. They carry TLS end to end by `CONNECT`, so that the proxy sees
//! neither tokens nor objects. A request to an `http` server is sent to the proxy with its complete
//! URL (`GET http://host/path`), as by Go: many proxies refuse `CONNECT` to other ports than 443.
//! The password of a proxy is in no log line and no error.

use std::future::Future;
use std::net::IpAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use http::{HeaderValue, Request, Uri, header};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use kube_client::Config;
use kube_client::client::Body;
use tower::{BoxError, Service};

use super::error::{shown_url, without_user};
use super::tcp_stream::TcpStream;

/// A connector that connects directly, or through a proxy.
///
/// All return the same type of connection, so that TLS on top does not know which it is.
#[derive(Debug, Clone)]
pub(super) enum TcpConnector {
    Direct(HttpConnector),
    /// By the proxy's `CONNECT`.
    Tunnel(Tunnel<HttpConnector>),
    /// To a proxy that reads each request and forwards it.
    Forward(Forward),
}

/// The way to an `http` server behind a proxy.
#[derive(Debug, Clone)]
pub(super) struct Forward {
    tcp: HttpConnector,
    proxy: Uri,
    /// The `Proxy-Authorization` of each request.
    authorization: Option<HeaderValue>,
    /// For requests that ask for an upgrade, as in client-go: few proxies forward those.
    tunnel: Tunnel<HttpConnector>,
}

/// Reads the variables of the environment; a test passes its own.
///
/// A function and not the environment, because a test that changes variables affects the other
/// tests of its process.
type Variable<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Sets the proxy of `config` from the environment if the kubeconfig names none, and removes one
/// that `NO_PROXY` excludes. The server of a kubeconfig and that of a pod are treated alike, as in
/// client-go.
///
/// # Errors
///
/// If the value of the variable is no URL.
pub(super) fn set_proxy(config: &mut Config, variable: Variable<'_>) -> Result<(), BoxError> {
    let from_environment = environment(&config.cluster_url, variable)?;
    // kube-client copies `HTTPS_PROXY` without a look at `NO_PROXY`.
    let is_copy = |proxy: &Uri| {
        let names = ["HTTPS_PROXY", "https_proxy"];
        names
            .iter()
            .filter_map(|name| variable(name))
            .any(|value| value.parse::<Uri>().is_ok_and(|value| value == *proxy))
    };
    if config.proxy_url.as_ref().is_none_or(is_copy) {
        config.proxy_url = from_environment;
    }
    Ok(())
}

/// Returns the proxy that the environment names for `server`.
///
/// `NO_PROXY` has precedence over the proxy.
fn environment(server: &Uri, variable: Variable<'_>) -> Result<Option<Uri>, BoxError> {
    let first = |names: [&str; 2]| {
        names.iter().filter_map(|name| variable(name)).find(|value| !value.is_empty())
    };
    let host = server.host().unwrap_or_default().trim_matches(['[', ']']);
    let is_loopback =
        host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    let name = if server.scheme_str() == Some("https") {
        ["HTTPS_PROXY", "https_proxy"]
    } else {
        ["HTTP_PROXY", "http_proxy"]
    };
    let Some(proxy) = first(name).filter(|_| !is_loopback) else { return Ok(None) };
    let excluded = first(["NO_PROXY", "no_proxy"]).unwrap_or_default();
    if excluded.split(',').any(|entry| excludes(entry.trim(), server)) {
        return Ok(None);
    }
    // A proxy without a scheme is an HTTP proxy, as in Go.
    let url = if proxy.contains("://") { proxy } else { format!("http://{proxy}") };
    let invalid = |error| format!("invalid proxy {:?}: {error}", without_user(&url));
    Ok(Some(url.parse().map_err(invalid)?))
}

/// Returns true if an entry of `NO_PROXY` names `server`.
///
/// A port restricts the entry. `.example.org` and `*.example.org` are the subdomains alone, and
/// `example.org` is the domain with them.
fn excludes(entry: &str, server: &Uri) -> bool {
    let host = server.host().unwrap_or_default();
    let of_scheme = if server.scheme_str() == Some("https") { 443 } else { 80 };
    let (name, port) = split_port(entry);
    if port.is_some_and(|port| port != server.port_u16().unwrap_or(of_scheme)) {
        return false;
    }
    match name.strip_prefix('*').unwrap_or(name) {
        "" => name == "*",
        domain if domain.starts_with('.') => {
            let (host, domain) = (host.to_ascii_lowercase(), domain.to_ascii_lowercase());
            host.ends_with(&domain) && host != domain
        }
        name => {
            let matcher = Matcher::builder().all("http://any.invalid").no(name).build();
            matcher.intercept(server).is_none()
        }
    }
}

/// Splits `HOST:PORT` and `[ADDRESS]:PORT`. An address of IPv6 without brackets has no port.
fn split_port(entry: &str) -> (&str, Option<u16>) {
    match entry.rsplit_once(':') {
        Some((host, port)) if host.ends_with(']') || !host.contains(':') => match port.parse() {
            Ok(port) => (host.trim_matches(['[', ']']), Some(port)),
            Err(_) => (entry, None),
        },
        _ => (entry.trim_matches(['[', ']']), None),
    }
}

/// Returns the connector for the proxy of `config`.
///
/// # Errors
///
/// Fails for a proxy that is not an HTTP proxy.
pub(super) fn connector(config: &Config, tcp: HttpConnector) -> Result<TcpConnector, BoxError> {
    let Some(proxy) = &config.proxy_url else { return Ok(TcpConnector::Direct(tcp)) };
    let unsupported =
        || format!("proxy {} is not supported: only http:// proxies are", shown_url(proxy));
    if proxy.scheme_str() != Some("http") {
        return Err(unsupported().into());
    }
    let matcher = Matcher::builder().all(proxy.to_string()).build();
    let intercept = matcher.intercept(&config.cluster_url).ok_or_else(unsupported)?;
    let [shown, server] = [proxy, &config.cluster_url].map(shown_url);
    tracing::info!(proxy = shown, server, "connecting through a proxy");
    let tunnel = tunnel(&intercept, tcp.clone());
    if config.cluster_url.scheme_str() == Some("https") {
        return Ok(TcpConnector::Tunnel(tunnel));
    }
    let (proxy, authorization) = (intercept.uri().clone(), intercept.basic_auth().cloned());
    Ok(TcpConnector::Forward(Forward { tcp, proxy, authorization, tunnel }))
}

/// A user and a password in the proxy's URL become its `Proxy-Authorization` header.
fn tunnel(intercept: &Intercept, tcp: HttpConnector) -> Tunnel<HttpConnector> {
    let tunnel = Tunnel::new(intercept.uri().clone(), tcp);
    match intercept.basic_auth() {
        Some(authorization) => tunnel.with_auth(authorization.clone()),
        None => tunnel,
    }
}

// === impl TcpConnector ===

impl TcpConnector {
    /// Returns the connector for requests that ask for an upgrade.
    pub(super) fn for_upgrades(self) -> Self {
        match self {
            Self::Forward(forward) => Self::Tunnel(forward.tunnel),
            direct_or_tunnel => direct_or_tunnel,
        }
    }

    /// Returns a function that adds the proxy's credentials to a request that the proxy reads. The
    /// requests in a tunnel get none: the server would see them.
    pub(super) fn authorize(&self) -> impl Fn(Request<Body>) -> Request<Body> + Clone + use<> {
        let authorization = match self {
            Self::Forward(forward) => forward.authorization.clone(),
            Self::Direct(_) | Self::Tunnel(_) => None,
        };
        move |mut request| {
            if let Some(authorization) = &authorization
                && !request.headers().contains_key(header::UPGRADE)
            {
                request.headers_mut().insert(header::PROXY_AUTHORIZATION, authorization.clone());
            }
            request
        }
    }
}

impl Service<Uri> for TcpConnector {
    type Response = TcpStream;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<TcpStream, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        match self {
            Self::Direct(tcp) => tcp.poll_ready(cx).map_err(Into::into),
            Self::Tunnel(tunnel) => tunnel.poll_ready(cx).map_err(Into::into),
            Self::Forward(forward) => forward.tcp.poll_ready(cx).map_err(Into::into),
        }
    }

    fn call(&mut self, server: Uri) -> Self::Future {
        match self {
            Self::Direct(tcp) => {
                let connecting = tcp.call(server);
                Box::pin(async move { Ok(TcpStream::to_server(connecting.await?)) })
            }
            Self::Tunnel(tunnel) => {
                let connecting = tunnel.call(server);
                Box::pin(async move { Ok(TcpStream::to_server(connecting.await?)) })
            }
            Self::Forward(Forward { tcp, proxy, .. }) => {
                let connecting = tcp.call(proxy.clone());
                Box::pin(async move { Ok(TcpStream::to_proxy(connecting.await?)) })
            }
        }
    }
}

#[cfg(test)]
mod tests;
