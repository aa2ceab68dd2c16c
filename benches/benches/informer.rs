//! Measures each part of an informer separately, with criterion. `benches/peers/informer-parts.sh`
//! compares the same work with client-go's.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use homeostat_benches::informer::parts::{PODS, Parts};

fn parts(criterion: &mut Criterion) {
    let mut parts = Parts::new();
    let mut group = criterion.benchmark_group("informer, 100,000 pods");
    group.sample_size(20);
    group.throughput(Throughput::Elements(PODS as u64));
    group.bench_function("queue: add one, take one", |bencher| bencher.iter(|| parts.queue_each()));
    group.bench_function("queue: add all, take all", |bencher| bencher.iter(|| parts.queue_all()));
    group.bench_function("update each, two indices", |bencher| {
        bencher.iter(|| parts.update_all());
    });
    group.bench_function("look up each, 20 by 20", |bencher| bencher.iter(|| parts.look_up_all()));
    group.bench_function("list", |bencher| bencher.iter(|| parts.list()));
    group.finish();
}

criterion_group!(benches, parts);
criterion_main!(benches);
