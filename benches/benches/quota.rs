//! Benchmark of a recount: `cargo bench -p homeostat-benches --bench quota`.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use homeostat_quantity::ResourceName;
use homeostat_quota::object::Object;
use homeostat_quota::{Charge, DeviceClassMapping, Evaluator, Gates, Recount, Registry, Scopes};
use jiff::Timestamp;
use serde_json::json;

/// Number of pods in the namespace.
const PODS: usize = 5_000;

fn benchmarks(criterion: &mut Criterion) {
    let (evaluator, classes) = (Evaluator::pods(Gates::default()), DeviceClassMapping::default());
    let amounts = json!({"requests": {"cpu": "100m", "memory": "64Mi"},
                         "limits": {"cpu": "200m", "memory": "128Mi"}});
    let pod = json!({"spec": {"containers": [{"resources": amounts}, {"resources": amounts}]}});
    let pod = Object::read(evaluator.resource(), &pod).expect("a pod");
    // The charges are computed when the pods enter the cache.
    let charge = evaluator.charge(&pod, &classes).expect("a charge");
    let charges: Vec<Charge> = vec![charge; PODS];
    let hard = ["pods", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"];
    let hard = hard.map(ResourceName::from);
    let (registry, scopes) = (Registry::new(Gates::default()), Scopes::default());
    let recount = Recount {
        registry: &registry,
        classes: &classes,
        scopes: &scopes,
        now: Timestamp::UNIX_EPOCH,
    };
    let mut group = criterion.benchmark_group("recount");
    group.throughput(Throughput::Elements(PODS as u64));
    group.bench_function("namespace with 5,000 pods", |bencher| {
        bencher.iter(|| {
            black_box(recount.calculate_usage(&hard, |_, tally| {
                charges.iter().try_for_each(|charge| tally.add(charge))
            }))
        });
    });
    group.finish();
}

criterion_group!(benches, benchmarks);
criterion_main!(benches);
