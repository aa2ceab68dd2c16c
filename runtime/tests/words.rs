//! What a person reads when the server is not there, or says no.
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

/// What an informer of pods says after a while of trying.
async fn trouble(client: &Client) -> String {
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
async fn a_server_that_is_not_there_is_named_with_the_reason() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let client = client::builder().config(Config::new(url.parse().unwrap())).unwrap().build();
    let trouble = trouble(&client).await;
    assert!(trouble.contains(&format!("cannot reach {url}: connection refused")), "{trouble}");
}

#[tokio::test(start_paused = true)]
async fn a_refusal_says_which_verb_on_which_resource() {
    let body = serde_json::json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": "pods is forbidden: User \"bob\" cannot list resource \"pods\" in API group \"\" at the cluster scope",
        "reason": "Forbidden", "details": {"kind": "pods"}, "code": 403
    });
    let body = Bytes::from(body.to_string());
    let server = service_fn(move |_: Request<Body>| {
        let response = Response::builder().status(403).body(Full::new(body.clone())).unwrap();
        async { Ok::<_, Infallible>(response) }
    });
    let trouble = trouble(&client::builder().service(server).build()).await;
    assert!(trouble.contains("User \"bob\" cannot list resource \"pods\""), "{trouble}");
}
