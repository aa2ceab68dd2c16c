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
//! Only HTTP proxies are supported: they carry TLS end to end by `CONNECT`, so that the proxy sees
//! neither tokens nor objects. The password of a proxy is in no log line and no error.

use std::future::Future;
use std::net::IpAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use http::Uri;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use kube_client::Config;
use tower::{BoxError, Service};

use super::error::{shown_url, without_user};

/// A connector that connects directly, or through a proxy's `CONNECT`.
///
/// `Direct` and `Proxied` return the same type of connection, so that TLS on top does not know
/// which it is.
#[derive(Debug, Clone)]
pub(super) enum TcpConnector {
    Direct(HttpConnector),
    Proxied(Tunnel<HttpConnector>),
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
    let [proxy, server] = [proxy, &config.cluster_url].map(shown_url);
    tracing::info!(proxy, server, "connecting through a proxy");
    Ok(TcpConnector::Proxied(tunnel(&intercept, tcp)))
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

impl Service<Uri> for TcpConnector {
    type Response = <HttpConnector as Service<Uri>>::Response;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        match self {
            Self::Direct(tcp) => tcp.poll_ready(cx).map_err(Into::into),
            Self::Proxied(tunnel) => tunnel.poll_ready(cx).map_err(Into::into),
        }
    }

    fn call(&mut self, server: Uri) -> Self::Future {
        match self {
            Self::Direct(tcp) => {
                let connecting = tcp.call(server);
                Box::pin(async move { connecting.await.map_err(Into::into) })
            }
            Self::Proxied(tunnel) => {
                let connecting = tunnel.call(server);
                Box::pin(async move { connecting.await.map_err(Into::into) })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxy_for(server: &str, in_kubeconfig: Option<&str>, set: &[(&str, &str)]) -> String {
        let mut config = Config::new(server.parse().unwrap());
        config.proxy_url = in_kubeconfig.map(|proxy| proxy.parse().unwrap());
        let variable = |name: &str| {
            set.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        };
        set_proxy(&mut config, &variable).unwrap();
        config.proxy_url.map(|proxy| proxy.to_string()).unwrap_or_default()
    }

    #[test]
    fn proxy_of_the_environment_is_used_unless_no_proxy_excludes_the_server() {
        let server = "https://10.1.2.3:6443";
        let set = ("HTTPS_PROXY", "http://proxy:3128");
        assert_eq!(proxy_for(server, None, &[set]), "http://proxy:3128/");
        assert_eq!(proxy_for(server, None, &[("https_proxy", "proxy:3128")]), "http://proxy:3128/");
        assert_eq!(proxy_for(server, None, &[("HTTP_PROXY", "http://proxy:3128")]), "");
        for excluded in ["10.0.0.0/8", "a.example,10.1.2.3", "*"] {
            assert_eq!(proxy_for(server, None, &[set, ("NO_PROXY", excluded)]), "", "{excluded}");
        }
        let copied = Some("http://proxy:3128");
        assert_eq!(proxy_for(server, copied, &[set, ("no_proxy", "10.0.0.0/8")]), "");
        assert_eq!(proxy_for("https://127.0.0.1:1", None, &[set]), "", "Go's rule");
        let name = "https://api.example.org";
        assert_eq!(proxy_for(name, None, &[set, ("NO_PROXY", ".example.org")]), "");
        assert_eq!(
            proxy_for(name, None, &[set, ("NO_PROXY", "example.com")]),
            "http://proxy:3128/"
        );
    }

    #[test]
    fn no_proxy_has_gos_rules_for_ports_and_subdomains() {
        let set = ("HTTPS_PROXY", "http://proxy:3128");
        for (excluded, is_excluded, server) in [
            ("10.1.2.3:6443", true, "https://10.1.2.3:6443"),
            ("10.1.2.3:443", false, "https://10.1.2.3:6443"),
            ("[fd00::1]:443", true, "https://[fd00::1]"),
            ("fd00::/8", true, "https://[fd00::1]"),
            ("example.org:443", true, "https://api.example.org"),
            ("example.org:6443", false, "https://api.example.org"),
            ("*.example.org", true, "https://api.example.org"),
            ("*.example.org", false, "https://example.org"),
            (".Example.org", true, "https://api.example.org"),
            (".example.org", false, "https://example.org"),
            ("example.org", true, "https://example.org"),
            ("le.org", false, "https://example.org"),
            (":443", false, "https://example.org"),
        ] {
            let proxy = proxy_for(server, None, &[set, ("NO_PROXY", excluded)]);
            assert_eq!(proxy.is_empty(), is_excluded, "{excluded} and {server}");
        }
    }

    #[test]
    fn variable_of_the_servers_scheme_counts() {
        let set = [("HTTPS_PROXY", "http://tls:1"), ("http_proxy", "plain:2")];
        assert_eq!(proxy_for("http://10.1.2.3", None, &set), "http://plain:2/");
        assert_eq!(proxy_for("https://10.1.2.3", None, &set), "http://tls:1/");
        // kube-client has copied the proxy of the other scheme.
        let copied = Some("http://tls:1");
        assert_eq!(proxy_for("http://10.1.2.3", copied, &set[..1]), "");
        for loopback in ["http://localhost:8080", "https://[::1]:6443", "http://127.3.2.1"] {
            assert_eq!(proxy_for(loopback, None, &set), "", "{loopback}");
        }
        let empty = [("HTTPS_PROXY", ""), ("https_proxy", "lower:3")];
        assert_eq!(proxy_for("https://10.1.2.3", None, &empty), "http://lower:3/");
    }

    #[test]
    fn proxy_of_the_kubeconfig_comes_first() {
        let set = [("HTTPS_PROXY", "http://other:1"), ("NO_PROXY", "*")];
        let proxy = proxy_for("https://10.1.2.3", Some("http://mine:2"), &set);
        assert_eq!(proxy, "http://mine:2/");
    }

    #[test]
    fn proxy_that_is_no_url_is_an_error_without_its_password() {
        let variable =
            |name: &str| (name == "HTTPS_PROXY").then(|| "http://me:secret@a proxy".to_owned());
        let mut config = Config::new("https://10.1.2.3".parse().unwrap());
        let error = set_proxy(&mut config, &variable).unwrap_err().to_string();
        assert_eq!(error, "invalid proxy \"a proxy\": invalid uri character");
    }

    #[test]
    fn proxy_that_is_not_supported_is_an_error_without_its_password() {
        let mut config = Config::new("https://10.1.2.3".parse().unwrap());
        for scheme in ["socks5", "https"] {
            config.proxy_url = Some(format!("{scheme}://me:secret@proxy:1").parse().unwrap());
            let error = connector(&config, HttpConnector::new()).unwrap_err().to_string();
            let expected =
                format!("proxy {scheme}://proxy:1 is not supported: only http:// proxies are");
            assert_eq!(error, expected);
        }
    }
}
