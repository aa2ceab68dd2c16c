use bytes::Bytes;
use http::Method;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::*;
use crate::client::builder;

fn proxy_for(server: &str, in_kubeconfig: Option<&str>, set: &[(&str, &str)]) -> String {
    let mut config = Config::new(server.parse().unwrap());
    config.proxy_url = in_kubeconfig.map(|proxy| proxy.parse().unwrap());
    let variable =
        |name: &str| set.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
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
    assert_eq!(proxy_for(name, None, &[set, ("NO_PROXY", "example.com")]), "http://proxy:3128/");
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

/// Reads the head of a request, in lower case.
async fn head(connection: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(connection.read_u8().await.unwrap());
    }
    String::from_utf8(head).unwrap().to_ascii_lowercase()
}

async fn answer(connection: &mut TcpStream) {
    connection.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await.unwrap();
}

/// Returns a client of a server that only the proxy can reach.
fn behind(proxy: &TcpListener) -> kube_client::Client {
    let mut config = Config::new("http://api.invalid:8080/base".parse().unwrap());
    let address = proxy.local_addr().unwrap();
    config.proxy_url = Some(format!("http://me:secret@{address}").parse().unwrap());
    builder().config(config).unwrap().build()
}

fn get(path: &str) -> Request<Body> {
    Request::builder().method(Method::GET).uri(path).body(Body::from(Bytes::new())).unwrap()
}

/// The header with the name and the password of the proxy.
const AUTHORIZATION: &str = "proxy-authorization: basic bwu6c2vjcmv0\r\n";

#[tokio::test]
async fn request_to_plain_server_is_sent_to_the_proxy_with_its_complete_url() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = behind(&listener);
    let proxy = async {
        let (mut connection, _) = listener.accept().await.unwrap();
        // Both on one connection.
        for path in ["version", "api?limit=1"] {
            let head = head(&mut connection).await;
            let line = format!("get http://api.invalid:8080/base/{path} http/1.1\r\n");
            assert!(head.starts_with(&line), "{head}");
            assert!(head.contains("host: api.invalid:8080\r\n"), "{head}");
            assert!(head.contains(AUTHORIZATION), "{head}");
            answer(&mut connection).await;
        }
    };
    let requests = async {
        for path in ["/version", "/api?limit=1"] {
            assert_eq!(client.send(get(path)).await.unwrap().status(), 200);
        }
    };
    tokio::join!(proxy, requests);
}

#[tokio::test]
async fn upgrade_to_plain_server_passes_the_proxy_in_a_tunnel() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = behind(&listener);
    let proxy = async {
        let (mut connection, _) = listener.accept().await.unwrap();
        let connect = head(&mut connection).await;
        assert!(connect.starts_with("connect api.invalid:8080 http/1.1\r\n"), "{connect}");
        assert!(connect.contains(AUTHORIZATION), "{connect}");
        connection.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
        let inside = head(&mut connection).await;
        assert!(inside.starts_with("get /base/exec http/1.1\r\n"), "{inside}");
        assert!(!inside.contains("proxy-authorization"), "the server would see it: {inside}");
        answer(&mut connection).await;
    };
    let request = async {
        let mut request = get("/exec");
        request.headers_mut().insert(header::UPGRADE, HeaderValue::from_static("websocket"));
        assert_eq!(client.send(request).await.unwrap().status(), 200);
    };
    tokio::join!(proxy, request);
}
