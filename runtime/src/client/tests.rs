use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use futures::future::join_all;
use http::{Method, Request, Response, StatusCode};
use http_body::Frame;
use http_body_util::{Full, StreamBody};
use kube_client::client::Body;
use kube_client::{Client, Config};
use tokio::time::Instant;
use tower::{BoxError, service_fn};

use super::builder::DEFAULT_USER_AGENT;
use super::*;

/// A server that answers the n-th request (from 0) with `answer(n)`, after `after`.
fn scripted(
    after: Duration,
    answer: impl Fn(usize) -> (u16, Option<&'static str>) + Send + Sync + 'static,
) -> (ClientBuilder<Server>, Arc<AtomicUsize>) {
    let calls = Arc::new(AtomicUsize::new(0));
    let (counter, answer) = (Arc::clone(&calls), Arc::new(answer));
    let service = service_fn(move |_: Request<Body>| {
        let (status, retry_after) = answer(counter.fetch_add(1, Ordering::SeqCst));
        async move {
            tokio::time::sleep(after).await;
            let mut response = Response::new(Full::new(Bytes::new()));
            *response.status_mut() = StatusCode::from_u16(status).unwrap();
            if let Some(seconds) = retry_after {
                let header = http::header::RETRY_AFTER;
                response.headers_mut().insert(header, seconds.parse().unwrap());
            }
            Ok::<_, Infallible>(response)
        }
    });
    (builder().qps(0.0).service(service), calls)
}

fn request(method: Method, path: &str) -> Request<Body> {
    let mut request = Request::new(Body::from(Bytes::from_static(b"{}")));
    *request.method_mut() = method;
    *request.uri_mut() = path.parse().unwrap();
    request
}

async fn status(client: &Client, method: Method, path: &str) -> u16 {
    let response = client.send(request(method, path)).await;
    response.unwrap().status().as_u16()
}

#[tokio::test]
async fn user_agent_is_sent_with_each_request() {
    let agents = Arc::new(parking_lot::Mutex::new(Vec::new()));
    let seen = Arc::clone(&agents);
    let service = service_fn(move |request: Request<Body>| {
        seen.lock().push(request.headers()[http::header::USER_AGENT].clone());
        async { Ok::<_, Infallible>(Response::new(Full::new(Bytes::new()))) }
    });
    let named = builder().user_agent("shop/7").service(service.clone()).build();
    let unnamed = builder().service(service).build();
    for client in [named, unnamed] {
        status(&client, Method::GET, "/version").await;
    }
    assert_eq!(*agents.lock(), ["shop/7", DEFAULT_USER_AGENT]);
}

#[tokio::test(start_paused = true)]
async fn create_that_is_answered_with_5xx_is_sent_once() {
    for code in [500, 502, 503, 504] {
        let (builder, calls) = scripted(Duration::ZERO, move |_| (code, None));
        let client = builder.build();
        assert_eq!(status(&client, Method::POST, "/api/v1/pods").await, code);
        assert_eq!(calls.load(Ordering::SeqCst), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn retry_after_of_the_server_is_waited_for() {
    let (builder, calls) = scripted(Duration::ZERO, |n| match n {
        0 => (429, Some("2")),
        1 => (503, Some("3")),
        _ => (201, None),
    });
    let start = Instant::now();
    let client = builder.build();
    assert_eq!(status(&client, Method::POST, "/api/v1/pods").await, 201);
    assert_eq!(calls.load(Ordering::SeqCst), 3);
    assert_eq!(start.elapsed().as_secs(), 5);
}

#[tokio::test(start_paused = true)]
async fn requests_in_flight_are_bounded_and_a_watch_is_not_counted() {
    let (builder, _) = scripted(Duration::from_secs(1), |_| (200, None));
    let client = builder.in_flight(2).build();
    let start = Instant::now();
    let reads = join_all((0..6).map(|_| status(&client, Method::GET, "/api/v1/pods")));
    let watch = async {
        status(&client, Method::GET, "/api/v1/pods?&watch=true").await;
        start.elapsed().as_secs()
    };
    let (_, watched_after) = tokio::join!(reads, watch);
    assert_eq!(watched_after, 1);
    assert_eq!(start.elapsed().as_secs(), 3);
}

#[tokio::test(start_paused = true)]
async fn requests_start_at_the_rate_after_the_burst() {
    let (builder, calls) = scripted(Duration::ZERO, |_| (200, None));
    let client = builder.qps(10.0).burst(5).build();
    let start = Instant::now();
    join_all((0..25).map(|_| status(&client, Method::GET, "/api/v1/pods"))).await;
    assert_eq!(calls.load(Ordering::SeqCst), 25);
    let took = start.elapsed();
    assert!(took >= Duration::from_millis(1990) && took < Duration::from_millis(2100), "{took:?}");
}

#[tokio::test]
async fn unreachable_server_is_named_in_the_error() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let config = Config::new(url.parse().unwrap());
    let client = builder().config(config).unwrap().build();
    let error = client.send(request(Method::GET, "/version")).await.unwrap_err();
    assert_eq!(describe_error(&error), format!("cannot reach {url}: connection refused"));
}

#[tokio::test]
async fn missing_or_broken_kubeconfig_is_named_in_the_error() {
    let missing = builder().kubeconfig("/nonexistent/kubeconfig").await;
    assert_eq!(
        missing.unwrap_err().to_string(),
        "there is no kubeconfig at /nonexistent/kubeconfig"
    );
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "apiVersion: v1\nkind: Config\ncurrent-context: nowhere\n")
        .unwrap();
    let broken = builder().kubeconfig(file.path()).await.unwrap_err().to_string();
    let name = file.path().display().to_string();
    assert!(broken.contains(&name) && broken.contains("nowhere"), "{broken}");
}

/// A server whose answers, or their bodies, never arrive.
fn silent(answers: bool) -> ClientBuilder<Server> {
    let service = service_fn(move |_: Request<Body>| async move {
        if !answers {
            std::future::pending::<()>().await;
        }
        let first = futures::stream::iter([Ok::<_, BoxError>(Frame::data(Bytes::from("{")))]);
        let body = StreamBody::new(first.chain(futures::stream::pending()));
        Ok::<_, Infallible>(Response::new(body))
    });
    builder().qps(0.0).request_timeout(Duration::from_secs(20)).service(service)
}

#[tokio::test(start_paused = true)]
async fn request_without_an_answer_fails_after_its_timeout_and_is_not_repeated() {
    let client = silent(false).build();
    let watch = "/api/v1/pods?&watch=true";
    for (method, path, seconds) in [
        (Method::POST, "/api/v1/pods", 20),
        (Method::GET, "/api/v1/pods", 20),
        (Method::GET, watch, 10),
    ] {
        let start = Instant::now();
        let error = client.send(request(method, path)).await.unwrap_err();
        let expected = format!("no answer from the server within {seconds}s");
        assert_eq!(describe_error(&error), expected);
        assert_eq!(start.elapsed().as_secs(), seconds);
    }
}

#[tokio::test(start_paused = true)]
async fn body_that_stalls_fails_and_a_silent_watch_stays_open() {
    let client = silent(true).build();
    let start = Instant::now();
    let list = client.send(request(Method::GET, "/api/v1/pods")).await.unwrap();
    let error = list.into_body().collect_bytes().await.unwrap_err();
    assert!(error.to_string().contains("no answer from the server within 20s"), "{error}");
    assert_eq!(start.elapsed().as_secs(), 20);
    for path in ["/api/v1/pods?&watch=true", "/api/v1/namespaces/a/pods/b/log?&follow=true"] {
        let stream = client.send(request(Method::GET, path)).await.unwrap();
        let hour = Duration::from_secs(3600);
        let ended = tokio::time::timeout(hour, stream.into_body().collect_bytes()).await;
        assert!(ended.is_err(), "{path} is cut");
    }
}

#[tokio::test(start_paused = true)]
async fn refusal_of_a_watch_that_stalls_fails() {
    let service = service_fn(|_: Request<Body>| async {
        let stalled = StreamBody::new(futures::stream::pending::<Result<Frame<Bytes>, BoxError>>());
        let mut response = Response::new(stalled);
        *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
        Ok::<_, Infallible>(response)
    });
    let builder = builder().qps(0.0).request_timeout(Duration::from_secs(20));
    let client = builder.service(service).build();
    let watch = client.send(request(Method::GET, "/api/v1/pods?watch=true")).await.unwrap();
    let hour = Duration::from_secs(3600);
    let read = tokio::time::timeout(hour, watch.into_body().collect_bytes()).await;
    let error = read.expect("the body ends").unwrap_err();
    assert!(error.to_string().contains("no answer from the server within 20s"), "{error}");
}

#[tokio::test]
async fn unknown_context_is_reported_with_the_known_ones() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let text = "apiVersion: v1\nkind: Config\ncurrent-context: y\ncontexts:\n\
                - {name: prod, context: {cluster: a}}\n- {name: test, context: {cluster: a}}\n\
                clusters:\n- {name: a, cluster: {server: 'http://127.0.0.1:1'}}\n";
    std::fs::write(file.path(), text).unwrap();
    let name = file.path().display();
    for (context, expected) in [(None, "y"), (Some("z"), "z")] {
        let builder = context.into_iter().fold(builder(), ClientBuilder::context);
        let error = builder.kubeconfig(file.path()).await.unwrap_err();
        let expected = format!(
            "context was not found for specified context: {expected}; kubeconfig {name} has prod, \
             test"
        );
        assert_eq!(error.to_string(), expected);
        assert!(std::error::Error::source(&error).is_none(), "the cause would be printed twice");
    }
    let selected = builder().context("test").master("http://127.0.0.1:2").kubeconfig(file.path());
    assert_eq!(&*selected.await.unwrap().server.url, "http://127.0.0.1:2");
}

#[tokio::test]
async fn password_in_the_url_of_a_server_is_in_no_log_line_label_or_error() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let text = "{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: a, context: \
                {cluster: a}}], clusters: [{name: a, cluster: {server: 'http://127.0.0.1:1'}}]}";
    std::fs::write(file.path(), text).unwrap();
    let selected = |url: &str| builder().master(url).kubeconfig(file.path());
    let server = selected("http://me:secret@127.0.0.1:2/base/").await.unwrap().server;
    assert_eq!(&*server.url, "http://127.0.0.1:2/base");
    let error = selected("http://me:secret@a server").await.unwrap_err().to_string();
    assert!(error.contains("invalid URL \"a server\""), "{error}");
    assert!(!error.contains("secret"), "{error}");
}

#[tokio::test]
async fn server_without_a_scheme_is_one_of_http_or_of_https_with_tls() {
    let config = |url: &str| Config::new(url.parse().unwrap());
    let error = async |config: Config| match builder().config(config) {
        Ok(builder) => {
            let client = builder.build();
            client.send(request(Method::GET, "/version")).await.unwrap_err().to_string()
        }
        Err(error) => error.to_string(),
    };
    let plain = error(config("127.0.0.1:1")).await;
    assert!(plain.contains("cannot reach http://127.0.0.1:1: "), "{plain}");
    let mut insecure = config("127.0.0.1:1");
    insecure.accept_invalid_certs = true;
    let tls = error(insecure).await;
    assert!(tls.contains("cannot reach https://127.0.0.1:1: "), "{tls}");
    let path = error(config("/k8s")).await;
    assert!(path.ends_with("host must be a URL or a host:port pair: \"/k8s\""), "{path}");
}

#[test]
fn names_that_look_like_subresources_are_no_long_running_requests() {
    let is_long = |path: &str| requests::is_long_running(&path.parse().unwrap());
    assert!(is_long("/api/v1/namespaces/ns/pods/web/exec?command=ls"));
    assert!(is_long("/api/v1/namespaces/ns/pods/web/attach"));
    assert!(is_long("/api/v1/namespaces/ns/pods/web/portforward"));
    assert!(is_long("/api/v1/namespaces/ns/pods/web/proxy/index.html"));
    assert!(is_long("/api/v1/nodes/a/proxy"));
    assert!(is_long("/api/v1/namespaces/ns/pods/web/log?follow=true"));
    assert!(!is_long("/api/v1/namespaces/proxy/pods"));
    assert!(!is_long("/api/v1/namespaces/ns/configmaps/exec"));
    assert!(!is_long("/apis/example.com/v1/proxy"));
    assert!(!is_long("/apis/example.com/v1/namespaces/proxy/proxies/attach"));
}
