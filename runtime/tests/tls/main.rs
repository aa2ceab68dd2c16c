//! The client over real sockets and TLS: which protocol, whose certificates, and what happens when
//! a connection dies or credentials change.
#![cfg(feature = "rustls-tls")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod rotation;
mod server;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use futures::future::join_all;
use homeostat::client::describe_error;
use homeostat::kube_client::Config;
use homeostat::kube_client::client::Body;
use http::{Request, StatusCode, header};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use self::server::{Authority, Identity, SERVER_NAME, Server, client, get, kubeconfig};

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
async fn server_without_http2_gets_http1_requests_with_a_token() {
    let authority = Authority::new();
    let server = Server::start(&authority, &["http/1.1"]).await;
    let user = "token: secret";
    let client = client(&kubeconfig(&server, &authority, Some(SERVER_NAME), user)).await;
    assert_eq!(get(&client).await, "HTTP/1.1, 0 certificates, Bearer secret");
}

#[tokio::test]
async fn upgraded_request_gets_a_connection_of_http1_to_itself() {
    let authority = Authority::new();
    let server = Server::start(&authority, &["h2", "http/1.1"]).await;
    let client = client(&kubeconfig(&server, &authority, Some(SERVER_NAME), "token: secret")).await;
    let session = Request::get("/api/v1/namespaces/shop/pods/web/exec?command=cat")
        .header(header::CONNECTION, "upgrade")
        .header(header::UPGRADE, "websocket")
        .body(Body::empty())
        .unwrap();
    let response = client.send(session).await.unwrap();
    assert_eq!(response.status(), StatusCode::SWITCHING_PROTOCOLS, "{response:?}");
    let mut stream = TokioIo::new(hyper::upgrade::on(response).await.unwrap());
    stream.write_all(b"hello").await.unwrap();
    let mut echoed = [0; 5];
    stream.read_exact(&mut echoed).await.unwrap();
    assert_eq!(&echoed, b"hello");
    assert_eq!(get(&client).await, "HTTP/2.0, 0 certificates, Bearer secret");
    assert_eq!(server.connections(), 2);
}

/// A connection takes 100 requests at once: 100 followed logs would keep all others waiting.
#[tokio::test]
async fn followed_log_takes_no_place_on_the_connection_of_calls() {
    let authority = Authority::new();
    let server = Server::start(&authority, &["h2", "http/1.1"]).await;
    let client = client(&kubeconfig(&server, &authority, Some(SERVER_NAME), "token: secret")).await;
    let log = Request::get("/api/v1/namespaces/shop/pods/web/log?follow=true");
    let log = client.send(log.body(Body::empty()).unwrap()).await.unwrap();
    assert_eq!(get(&client).await, "HTTP/2.0, 0 certificates, Bearer secret");
    assert_eq!((log.status(), server.connections()), (StatusCode::OK, 2));
}

#[tokio::test]
async fn dead_connection_is_replaced() {
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
async fn certificate_for_another_name_is_named_in_the_error() {
    let authority = Authority::new();
    let server = Server::start(&authority, &["h2"]).await;
    for name in [None, Some("other.test")] {
        let client = client(&kubeconfig(&server, &authority, name, "")).await;
        let error = client.send(Request::new(Body::empty())).await.unwrap_err();
        let words = describe_error(&error);
        let prefix = format!("cannot reach https://{}: ", server.address);
        assert!(words.starts_with(&prefix) && words.contains("not valid for"), "{words}");
    }
}

#[tokio::test]
async fn certificate_of_another_authority_is_named_in_the_error() {
    let server = Server::start(&Authority::new(), &["h2"]).await;
    let client = client(&kubeconfig(&server, &Authority::new(), Some(SERVER_NAME), "")).await;
    let error = client.send(Request::new(Body::empty())).await.unwrap_err();
    let words = describe_error(&error);
    assert!(words.starts_with("cannot reach https://127.0.0.1:"), "{words}");
    assert!(words.contains("certificate"), "{words}");
}

#[tokio::test]
async fn plain_answer_to_tls_is_explained() {
    drop(rustls::crypto::ring::default_provider().install_default());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    let plain = async {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            drop(stream.try_write(b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n"));
        }
    };
    let client = homeostat::client::builder().config(Config::new(url.parse().unwrap())).unwrap();
    let client = client.build();
    let error = tokio::select! {
        result = client.send(Request::new(Body::empty())) => result.unwrap_err(),
        () = plain => unreachable!(),
    };
    let expected = format!("cannot reach {url}: http: server gave HTTP response to HTTPS client");
    assert_eq!(describe_error(&error), expected);
}
