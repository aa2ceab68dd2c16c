//! Cost of decoding, by the weight of the object. Run it with
//! `cargo bench -p homeostat-benches --bench decode`.
//!
//! A watch starts with 2,000 pods. Its bytes come from memory in chunks of the size that a
//! connection delivers. Dropping the decoded objects is not measured. The allocator is mimalloc.

use std::convert::Infallible;
use std::hint::black_box;
use std::time::Duration;

use bytes::Bytes;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use futures::StreamExt as _;
use homeostat::kube_client::Client;
use homeostat::kube_client::client::Body;
use homeostat::kube_client::core::GroupVersionResource;
use homeostat_benches::informer::projection::PodState;
use homeostat_informer::list_watch::{KubeListWatch, ListWatch, WatchRequest};
use homeostat_informer::{Dynamic, Lazy, Metadata, Object};
use http::{Request, Response};
use http_body::Frame;
use http_body_util::StreamBody;
use k8s_openapi::api::core::v1::Pod;
use tokio::runtime::{Builder, Runtime};
use tokio::time::Instant;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const POD: &str = include_str!("../../informer/tests/fixtures/pod.json");
const PODS: usize = 2000;

/// Size of a chunk from hyper when a body is long.
const CHUNK: usize = 400 << 10;

fn benchmarks(criterion: &mut Criterion) {
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_time().build();
    let runtime = runtime.expect("threads can be started");
    let client = {
        let _entered = runtime.enter();
        client()
    };
    let mut group = criterion.benchmark_group(format!("decode a pod of {} bytes", POD.len()));
    group.throughput(Throughput::Elements(PODS as u64));
    group.sample_size(10).warm_up_time(Duration::from_millis(500));
    group.measurement_time(Duration::from_secs(3));
    macro_rules! weight {
        ($name:literal, $list_watch:expr) => {
            let list_watch = $list_watch;
            group.bench_function($name, |bencher| {
                bencher.iter_custom(|passes| measure(&runtime, &list_watch, passes));
            });
        };
    }
    let pods = || KubeListWatch::<Pod>::new(client.clone(), None);
    weight!("Pod, managed fields kept", pods().managed_fields(true));
    weight!("Pod", pods());
    weight!("Pod, two decoders", pods().decoders(2));
    weight!("Lazy<Pod>", KubeListWatch::<Lazy<Pod>>::new(client.clone(), None));
    weight!(
        "Lazy<Pod>, two decoders",
        KubeListWatch::<Lazy<Pod>>::new(client.clone(), None).decoders(2)
    );
    weight!("a projection", KubeListWatch::<PodState>::new(client.clone(), None));
    weight!("Metadata<Pod>", KubeListWatch::<Metadata<Pod>>::new(client.clone(), None));
    let resource = GroupVersionResource::gvr("", "v1", "pods");
    weight!("Dynamic", KubeListWatch::<Dynamic>::of_resource(client.clone(), &resource, None));
    group.finish();
    let lazy: Lazy<Pod> = serde_json::from_str(POD).expect("a pod");
    criterion.bench_function("decode a Lazy<Pod> and drop it", |bencher| {
        bencher.iter(|| black_box(lazy.decode().expect("it fits")));
    });
}

/// A server that answers every watch with the same bytes.
fn client() -> Client {
    let pod = POD.trim_end();
    let bytes = format!("{{\"type\":\"ADDED\",\"object\":{pod}}}\n").repeat(PODS);
    let chunks: Vec<Bytes> = bytes.as_bytes().chunks(CHUNK).map(Bytes::copy_from_slice).collect();
    let service = tower::service_fn(move |_: Request<Body>| {
        let chunks = chunks.clone().into_iter().map(|it| Ok::<_, Infallible>(Frame::data(it)));
        let body = StreamBody::new(futures::stream::iter(chunks));
        std::future::ready(Ok::<_, Infallible>(Response::new(body)))
    });
    Client::new(service, "default")
}

/// Time of several watches until the last of their pods is decoded.
fn measure<K: Object>(runtime: &Runtime, list_watch: &dyn ListWatch<K>, passes: u64) -> Duration {
    let request = WatchRequest::with_initial_events(None, Duration::from_secs(300));
    (0..passes)
        .map(|_| {
            runtime.block_on(async {
                let begin = Instant::now();
                let mut watch = list_watch.watch(&request).await.expect("a watch");
                let mut batches = Vec::new();
                while let Some(batch) = watch.next().await {
                    batches.push(batch.expect("the bytes are a watch"));
                }
                let took = begin.elapsed();
                assert_eq!(batches.iter().map(Vec::len).sum::<usize>(), PODS);
                took
            })
        })
        .sum()
}

criterion_group!(group, benchmarks);
criterion_main!(group);
