//! The output for a scraper. The test has its own file, because the recorder is global.
#![cfg(feature = "prometheus")]

use std::convert::Infallible;

use bytes::Bytes;
use homeostat::{
    Action, ConsistencyStore, Controller, GroupResource, Queue, Reconciler, SharedInformerFactory,
    install_prometheus,
};
use http::{Request, Response};
use http_body_util::Full;
use k8s_openapi::api::core::v1::ConfigMap;
use kube_client::client::Body;
use metrics_exporter_prometheus::PrometheusBuilder;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

#[tokio::test]
async fn scraper_gets_the_metrics_with_their_buckets() {
    let free = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    let prometheus = install_prometheus(address).unwrap();
    let queue = Queue::builder().name("pods").build();
    queue.add("ns/a");
    queue.add("ns/b");
    queue.try_get().unwrap().done();
    let pods = GroupResource::new("", "pods");
    let store = ConsistencyStore::<&str, &str>::new("replicaset_controller", [pods.clone()]);
    assert!(store.reached(&pods, "41").is_empty());
    store.wrote_at(&"ns/a", &"uid", &pods, "41");
    let server = tower::service_fn(async |_: Request<Body>| {
        Ok::<_, Infallible>(Response::new(Full::new(Bytes::from(vec![b'a'; 100]))))
    });
    let client = homeostat::client::builder().service(server).build();
    let create = Request::post("/api/v1/namespaces/shop/pods").body(b"{}".to_vec()).unwrap();
    client.request_text(create).await.unwrap();

    let mut scraper = TcpStream::connect(address).await.unwrap();
    scraper
        .write_all(b"GET /metrics HTTP/1.1\r\nhost: test\r\nconnection: close\r\n\r\n")
        .await
        .unwrap();
    let mut answer = String::new();
    scraper.read_to_string(&mut answer).await.unwrap();
    for line in [
        "workqueue_depth{name=\"pods\"} 1",
        "workqueue_adds_total{name=\"pods\"} 2",
        "workqueue_queue_duration_seconds_count{name=\"pods\"} 1",
        "workqueue_work_duration_seconds_bucket{name=\"pods\",le=\"10\"} 1",
        "workqueue_queue_duration_seconds_bucket{name=\"pods\",le=\"+Inf\"} 1",
        "replicaset_controller_write_observed_seconds_bucket{group=\"\",resource=\"pods\",\
         le=\"5\"} 1",
        "rest_client_request_size_bytes_bucket{verb=\"POST\",host=\"the server\",le=\"64\"} 1",
        "rest_client_request_size_bytes_sum{verb=\"POST\",host=\"the server\"} 2",
        "rest_client_response_size_bytes_sum{verb=\"POST\",host=\"the server\"} 100",
    ] {
        assert!(answer.contains(line), "{line} is not in {answer}");
    }
    for family in answer.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
        let name = family.split(' ').next().unwrap_or_default();
        assert!(answer.contains(&format!("# HELP {name} ")), "{name} has no help text");
    }
    let buckets = prometheus.render();
    let buckets =
        buckets.lines().filter(|line| line.starts_with("workqueue_work_duration_seconds_bucket"));
    assert_eq!(buckets.count(), 11, "ten and +Inf");

    let again = install_prometheus(address).unwrap_err();
    assert!(again.to_string().contains(&address.to_string()), "{again}");
}

struct Idle;

impl Reconciler<ConfigMap> for Idle {
    type Error = Infallible;

    async fn reconcile(&self, _: &homeostat::Request<ConfigMap>) -> Result<Action, Infallible> {
        Ok(Action::AwaitChange)
    }
}

#[tokio::test]
async fn workers_of_both_queues_are_counted() {
    let server = tower::service_fn(async |_: Request<Body>| {
        Ok::<_, Infallible>(Response::new(Full::new(Bytes::new())))
    });
    let client = homeostat::client::builder().service(server).build();
    let maps = SharedInformerFactory::new(&client).informer::<ConfigMap>();
    let recorder = PrometheusBuilder::new().build_recorder();
    let builder = Controller::builder("maps", &maps).workers(3).second_queue("urgent", 2);
    let controller = metrics::with_local_recorder(&recorder, || builder.build(Idle));
    let rendered = recorder.handle().render();
    let line = "controller_runtime_max_concurrent_reconciles{controller=\"maps\"} 5\n";
    assert!(rendered.contains(line), "{rendered}");
    drop(controller);
}
