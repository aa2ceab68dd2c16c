//! Error texts for a server that is unreachable or refuses a request.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use homeostat::kube_client::client::Body;
use homeostat::kube_client::{Client, Config};
use homeostat::{SharedInformerFactory, client};
use http::{Request, Response};
use http_body_util::Full;
use k8s_openapi::api::core::v1::Pod;
use tokio::time::sleep;
use tower::service_fn;

/// Returns the first error of an informer of pods.
async fn first_error(client: &Client) -> String {
    let informers = SharedInformerFactory::new(client);
    let pods = informers.informer::<Pod>();
    informers.start();
    while pods.last_error().is_none() {
        sleep(Duration::from_millis(10)).await;
    }
    let unsynced = informers.unsynced();
    informers.stop().await;
    format!("{}: {}", unsynced[0].name, unsynced[0].error.as_ref().unwrap())
}

#[tokio::test]
async fn unreachable_server_is_named_with_the_reason() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let client = client::builder().config(Config::new(url.parse().unwrap())).unwrap().build();
    let error = first_error(&client).await;
    assert!(error.contains(&format!("cannot reach {url}: connection refused")), "{error}");
}

#[tokio::test(start_paused = true)]
async fn refusal_names_verb_and_resource() {
    let body = serde_json::json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": "pods is forbidden: User \"bob\" cannot list resource \"pods\"",
        "reason": "Forbidden", "details": {"kind": "pods"}, "code": 403
    });
    let body = Bytes::from(body.to_string());
    let server = service_fn(move |_: Request<Body>| {
        let response = Response::builder().status(403).body(Full::new(body.clone())).unwrap();
        async { Ok::<_, Infallible>(response) }
    });
    let error = first_error(&client::builder().service(server).build()).await;
    assert!(error.contains("User \"bob\" cannot list resource \"pods\""), "{error}");
}
