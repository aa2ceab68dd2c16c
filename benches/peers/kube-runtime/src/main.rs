//! kube-runtime's reflector as a consumer of the load server, as `../informer/consume.go` is for
//! client-go. Prints one line of JSON. The allocator is mimalloc, as in our own consumer.

use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use futures::{StreamExt as _, TryStreamExt as _};
use futures::stream::BoxStream;
use k8s_openapi::api::core::v1::Pod;
use kube::{Api, Client, Config};
use kube::runtime::{WatchStreamExt as _, reflector};
use kube::runtime::watcher::{self, Event, watcher};
use mimalloc::MiMalloc;
use serde_json::{Value, json};

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// Seconds of user time and of system time, and the peak of resident memory in bytes.
#[derive(Clone, Copy)]
struct Usage {
    user: f64,
    system: f64,
    peak_rss: f64,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let how = arguments.next().context("paged or streaming")?;
    let mut options = BTreeMap::new();
    while let (Some(name), Some(value)) = (arguments.next(), arguments.next()) {
        options.insert(name, value);
    }
    let option = |name: &str| options.get(name).with_context(|| format!("{name} is missing"));
    let (server, pods) = (option("--server")?, option("--pods")?.parse::<usize>()?);

    let client = Client::try_from(Config::new(server.parse()?))?;
    let (reader, writer) = reflector::store();
    let config = watcher::Config::default();
    let config = if how == "streaming" { config.streaming_lists() } else { config };
    let mut report = BTreeMap::new();
    let (before, start) = (used()?, Instant::now());
    let pods_api = Api::<Pod>::all(client.clone());
    let mut events =
        reflector(writer, watcher(pods_api, config)).default_backoff().boxed();
    while !matches!(next(&mut events).await?, Event::InitDone) {}
    report.insert("sync".to_owned(), since(before, start, pods)?);
    anyhow::ensure!(reader.len() == pods, "{} pods, not {pods}", reader.len());
    for phase in option("--phases")?.split(' ') {
        let (count, rate) = phase.split_once('@').context("count@rate")?;
        let number: usize = count.parse()?;
        tokio::time::sleep(Duration::from_secs(1)).await;
        let (before, start) = (used()?, Instant::now());
        let request = http::Request::post(format!("/bench/updates?count={count}&rate={rate}"));
        client.request_text(request.body(Vec::new())?).await?;
        let mut seen = 0;
        while seen < number {
            seen += usize::from(matches!(next(&mut events).await?, Event::Apply(_)));
        }
        report.insert(phase.to_owned(), since(before, start, number)?);
    }
    println!("{}", serde_json::to_string(&report)?);
    Ok(())
}

async fn next(
    events: &mut BoxStream<'_, watcher::Result<Event<Pod>>>,
) -> anyhow::Result<Event<Pod>> {
    events.try_next().await?.context("the stream ended")
}

fn since(before: Usage, start: Instant, count: usize) -> anyhow::Result<Value> {
    let (wall, now) = (start.elapsed().as_secs_f64(), used()?);
    Ok(json!({
        "count": count,
        "wall": wall,
        "user": now.user - before.user,
        "system": now.system - before.system,
        "peak_rss": now.peak_rss,
    }))
}

/// Reads the counters of the kernel.
fn used() -> anyhow::Result<Usage> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    let (_, fields) = stat.rsplit_once(')').context("a command")?;
    let fields: Vec<_> = fields.split_whitespace().collect();
    let ticks = |at: usize| fields[at].parse::<f64>().map(|ticks| ticks / 100.0);
    let status = fs::read_to_string("/proc/self/status")?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).context("VmHWM")?;
    let kibibytes: f64 = peak.trim().trim_end_matches("kB").trim().parse()?;
    Ok(Usage { user: ticks(11)?, system: ticks(12)?, peak_rss: kibibytes * 1024.0 })
}
