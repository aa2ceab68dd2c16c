//! Measurements of the embedded server in process, with the targets.

use std::process::Command;
use std::time::Duration;

use anyhow::Context as _;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use homeostat_apiserver::ApiServer;
use homeostat_benches::apiserver::{IN_FLIGHT, Load, Verb};
use homeostat_benches::process::Usage;
use rustix::time::{ClockId, clock_gettime};
use tokio::runtime::{Builder, Runtime};
use tokio::time::Instant;

/// Wall time and CPU time of one measurement. The fastest of several measurements is reported,
/// because slower ones contain noise of the machine.
#[derive(Clone, Copy)]
struct Took {
    wall: Duration,
    cpu: Duration,
}

/// Number of updates in a measurement.
const UPDATES: u32 = 10_000;

/// Number of repetitions of each measurement.
const REPEATS: u64 = 5;

pub(crate) fn run() -> anyhow::Result<()> {
    println!("\nin process, one core; best of {REPEATS}, by wall time and by CPU time");
    let runtime = Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let load = Load::prepare(ApiServer::new().client(), "bench", false).await?;
        let mut next = 10_000;
        let mut unowned = None;
        for verb in Verb::ALL {
            let count: u32 = if verb == Verb::List { 200 } else { 10_000 };
            let took = best(async || {
                next += u64::from(count);
                load.repeat(verb, next, count.into()).await
            })
            .await?;
            let aim = match verb {
                Verb::Get => ">= 60,000/s".to_owned(),
                Verb::Update | Verb::PatchStatus => ratio(took, unowned.unwrap_or(took), "1.15"),
                _ => String::new(),
            };
            unowned = Some(took);
            report(verb.title(), count, took, &aim);
        }
        let events = 20_000_u32;
        let version = load.version().await?;
        load.repeat(Verb::Update, next, events.into()).await?;
        let count = usize::try_from(events)?;
        let took = best(async || load.watch(&version).await?.events(count).await).await?;
        report("watch events to one", events, took, ">= 100,000/s");
        anyhow::Ok(())
    })?;
    growth(&runtime)?;
    let own = std::env::current_exe()?;
    let status = Command::new(own).arg("memory").status().context("the measurement of memory")?;
    anyhow::ensure!(status.success(), "the measurement of memory has failed");
    Ok(())
}

/// Sends requests to objects that exist. The difference between two counts, divided by that of
/// their instructions, is the cost of one request.
pub(crate) fn requests(verb: Verb, count: u64) -> anyhow::Result<()> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let load = Load::prepare(ApiServer::new().client(), "bench", false).await?;
        load.repeat(verb, 10_000, count).await
    })
}

/// Cost of an update among few objects, among many, and while a paged list is open.
fn growth(runtime: &Runtime) -> anyhow::Result<()> {
    let mut first = None;
    for (objects, paged) in [(1_000, false), (100_000, false), (100_000, true)] {
        let took = runtime.block_on(updates(objects, paged))?;
        let few = *first.get_or_insert(took);
        let page = if paged { ", a paged list open" } else { "" };
        let title = format!("update of {objects}{page}");
        report(&title, UPDATES, took, &ratio(took, few, "1.5"));
    }
    Ok(())
}

async fn updates(objects: u64, paged: bool) -> anyhow::Result<Took> {
    let load = Load::prepare(ApiServer::new().client(), "bench", true).await?;
    load.repeat(Verb::Create, 0, objects).await?;
    let mut next = objects;
    best(async || {
        if paged {
            load.open_page().await?;
        }
        next += u64::from(UPDATES);
        load.repeat(Verb::Update, next, UPDATES.into()).await
    })
    .await
}

pub(crate) fn memory(pods: u64) -> anyhow::Result<()> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let load = Load::prepare(ApiServer::new().client(), "bench", true).await?;
        let made = stream::iter(0..pods).map(|index| load.create_large_pod(index));
        let add = |sum, size| async move { Ok(sum + size) };
        let sizes = made.buffer_unordered(IN_FLIGHT).try_fold(0, add);
        let bytes = sizes.await? as u64;
        let usage = Usage::of(std::process::id())?;
        println!(
            "{pods} pods of {} bytes: peak RSS {:.2} GB, objects {:.2} GB (100,000: up to 1.6 GB)",
            bytes / pods.max(1),
            usage.peak_rss / 1e3,
            f64::from(u32::try_from(bytes / 1_000_000)?) / 1e3,
        );
        Ok(())
    })
}

async fn best(mut work: impl AsyncFnMut() -> anyhow::Result<()>) -> anyhow::Result<Took> {
    let mut best = Took { wall: Duration::MAX, cpu: Duration::MAX };
    for _ in 0..REPEATS {
        let (began, cpu_began) = (Instant::now(), cpu());
        work().await?;
        best.wall = best.wall.min(began.elapsed());
        best.cpu = best.cpu.min(cpu().saturating_sub(cpu_began));
    }
    Ok(best)
}

fn report(title: &str, count: u32, took: Took, aim: &str) {
    let rate = |time: Duration| f64::from(count) / time.as_secs_f64();
    let micros = took.cpu.as_secs_f64() * 1e6 / f64::from(count);
    println!(
        "{title:40} {:>9.0}/s by wall {:>9.0}/s by CPU {micros:>8.1} us  {aim}",
        rate(took.wall),
        rate(took.cpu),
    );
}

/// Returns the ratio of two CPU times, with its limit.
fn ratio(took: Took, to: Took, limit: &str) -> String {
    let ratio = took.cpu.as_secs_f64() / to.cpu.as_secs_f64();
    format!("{ratio:.2}x (<= {limit}x)")
}

fn cpu() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).unwrap_or_default()
}
