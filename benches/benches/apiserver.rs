//! Benchmarks of the embedded API server: `cargo bench -p homeostat-benches --bench apiserver`.
//! `benches/peers/apiserver.sh` measures a real API server with the same requests.
//!
//! In process the server and its client share one core; over TCP the server has its own thread.
//! Sixteen requests are in flight concurrently.

use std::time::Duration;

use criterion::measurement::WallTime;
use criterion::{
    BenchmarkGroup, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main,
};
use homeostat::kube_client::{Client, Config};
use homeostat_apiserver::{ApiServer, Listener};
use homeostat_benches::apiserver::{Load, OBJECTS, Verb};
use tokio::runtime::{Builder, Runtime};
use tokio::time::Instant;

/// Number of events that each watcher gets in a pass.
const EVENTS: u64 = 1_000;
const EVENTS_OF_ONE: usize = 1_000;

/// A namespace on a server, and the number of the next object.
struct Bench<'a> {
    runtime: &'a Runtime,
    load: Load,
    next: u64,
}

/// A server on a socket, in a thread of its own.
struct OnSocket {
    listener: Listener,
    runtime: Runtime,
}

fn benchmarks(criterion: &mut Criterion) {
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a thread can start");
    let in_process = runtime.block_on(async { ApiServer::new().client() });
    run(criterion.benchmark_group("in process"), &runtime, in_process);

    let on_socket = OnSocket::start();
    let mut config = Config::new(on_socket.listener.url().parse().expect("a URL"));
    config.default_retry = false;
    let over_tcp = runtime.block_on(async { Client::try_from(config) });
    run(criterion.benchmark_group("TCP"), &runtime, over_tcp.expect("TLS is off"));
    on_socket.stop();
}

fn run(mut group: BenchmarkGroup<'_, WallTime>, runtime: &Runtime, client: Client) {
    let load = runtime.block_on(Load::prepare(client, "bench", false));
    let mut bench = Bench { runtime, load: load.expect("it takes everything"), next: OBJECTS };
    group.sample_size(10).warm_up_time(Duration::from_millis(500));
    group.measurement_time(Duration::from_secs(2));
    group.throughput(Throughput::Elements(1));
    for verb in Verb::ALL {
        group.bench_function(verb.title(), |bencher| {
            bencher.iter_custom(|passes| bench.requests(verb, passes));
        });
    }
    group.throughput(Throughput::Elements(EVENTS));
    group.bench_function("watch that catches up", |bencher| {
        bencher.iter_custom(|passes| bench.catch_up(passes));
    });
    for watchers in [1, 10, 100] {
        group.throughput(Throughput::Elements(watchers * EVENTS));
        group.bench_function(BenchmarkId::new("updates to watchers", watchers), |bencher| {
            bencher.iter_custom(|passes| bench.fan_out(watchers, passes));
        });
    }
    group.finish();
}

// === impl Bench ===

impl Bench<'_> {
    fn requests(&mut self, verb: Verb, passes: u64) -> Duration {
        let since = Instant::now();
        self.runtime.block_on(self.load.repeat(verb, self.next, passes)).expect("it is done");
        self.next += passes;
        since.elapsed()
    }

    /// Opens watches that start 1,000 events in the past, one after the other.
    fn catch_up(&mut self, passes: u64) -> Duration {
        let took = self.runtime.block_on(async {
            let version = self.load.version().await?;
            self.load.repeat(Verb::Update, self.next, EVENTS).await?;
            let since = Instant::now();
            for _ in 0..passes {
                self.load.watch(&version).await?.events(EVENTS_OF_ONE).await?;
            }
            anyhow::Ok(since.elapsed())
        });
        self.next += EVENTS;
        took.expect("it is done")
    }

    /// Sends every event of all updates to each watcher.
    fn fan_out(&mut self, watchers: u64, passes: u64) -> Duration {
        let took = self.runtime.block_on(async {
            let version = self.load.version().await?;
            let mut all = Vec::new();
            for _ in 0..watchers {
                all.push(self.load.watch(&version).await?);
            }
            let since = Instant::now();
            for pass in 0..passes {
                let reads = all.iter_mut().map(|watcher| watcher.events(EVENTS_OF_ONE));
                let reads = futures::future::try_join_all(reads);
                let first = self.next + pass * EVENTS;
                let writes = self.load.repeat(Verb::Update, first, EVENTS);
                futures::future::try_join(writes, reads).await?;
            }
            anyhow::Ok(since.elapsed())
        });
        self.next += passes * EVENTS;
        took.expect("it is done")
    }
}

// === impl OnSocket ===

impl OnSocket {
    fn start() -> Self {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.expect("a thread can start");
        let address = ([127, 0, 0, 1], 0).into();
        let listener = runtime.block_on(async { ApiServer::new().listen(address).await });
        Self { listener: listener.expect("a port is free"), runtime }
    }

    fn stop(self) {
        drop(self.listener);
        // The thread does not wait for open watches.
        self.runtime.shutdown_background();
    }
}

criterion_group!(benches, benchmarks);
criterion_main!(benches);
