//! Benchmarks of the work queue: `cargo bench -p homeostat-benches --bench workqueue`.
//! `benches/peers/workqueue.sh` measures Go's queues with the same work.

use std::hint::black_box;
use std::time::Duration;

use clap::ValueEnum as _;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use homeostat_benches::workqueue::{Key, Keys, Work, Workload};
use homeostat_informer::ObjectKey;
use k8s_openapi::api::core::v1::Pod;
use tokio::runtime::{Builder, Runtime};

/// Number of keys in a pass.
const KEYS: usize = 10_000;

fn benchmarks(criterion: &mut Criterion) {
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_time().build();
    let runtime = runtime.expect("threads can be started");
    for &workload in Workload::value_variants() {
        let mut group = criterion.benchmark_group(workload.title());
        group.throughput(Throughput::Elements(KEYS as u64));
        group.sample_size(10).warm_up_time(Duration::from_millis(500));
        group.measurement_time(Duration::from_secs(2));
        let strings = Keys::<String>::new(KEYS, false);
        let object_keys = Keys::<ObjectKey<Pod>>::new(KEYS, true);
        group.bench_function(BenchmarkId::from_parameter("String"), |bencher| {
            bencher.iter_custom(|passes| measure(&runtime, workload, &strings, passes));
        });
        group.bench_function(BenchmarkId::from_parameter("ObjectKey"), |bencher| {
            bencher.iter_custom(|passes| measure(&runtime, workload, &object_keys, passes));
        });
        group.finish();
    }
}

/// Runs passes on one queue, and returns the time of their measured parts.
fn measure<K: Key>(runtime: &Runtime, workload: Workload, keys: &Keys<K>, passes: u64) -> Duration {
    runtime.block_on(async {
        let mut work = Work::new(workload, keys.clone());
        let mut took = Duration::ZERO;
        for _ in 0..passes {
            took += black_box(work.pass(false).await).took.wall;
        }
        took
    })
}

criterion_group!(benches, benchmarks);
criterion_main!(benches);
