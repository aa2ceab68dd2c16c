//! Compares each part of an informer with client-go's.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::ensure;
use homeostat_benches::informer::parts::{Crowd, PER_NODE, PODS, Parts, Reader};
use tokio::time::Instant;

use super::figures::median;
use super::{print, say};

/// Options of the comparison.
#[derive(Debug, clap::Args)]
pub(super) struct Compare {
    /// The Go program, built from `benches/peers/informer`.
    #[arg(long)]
    go: PathBuf,
    /// Number of rounds.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
}

/// Nanoseconds per operation, by name.
type Nanos = BTreeMap<String, f64>;

/// Number of measured passes in a round, after one that warms up.
const PASSES: usize = 7;

/// Number of lists in a pass: a single list is too short to measure.
const LISTS: u16 = 200;

/// Name on both sides, description, and target ratio.
const PARTS: [(&str, &str, f64); 6] = [
    ("fifo-hot", "queue: add one, take one", 0.5),
    ("fifo-burst", "queue: add 100,000, take all", 0.5),
    ("store-update", "store: update with two indices", 0.3),
    ("by-index", "index: 20 of 100,000", 0.25),
    ("list", "list of 100,000", 0.05),
    ("writer-p99", "update during a list, p99", 0.05),
];

/// Options of our own run.
#[derive(Debug, clap::Args)]
pub(super) struct Ours {
    /// Only the part with this name, for a profile.
    #[arg(long)]
    only: Option<String>,
}

/// The time for which the updates beside one reader are measured.
const BESIDE: Duration = Duration::from_secs(3);

/// Measures the updates of a cache beside each kind of reader, and prints a table.
#[expect(clippy::cast_precision_loss, reason = "nanoseconds of a few seconds")]
pub(super) fn beside_readers() {
    let crowd = Crowd::new();
    let mut alone = None;
    print("| An update, p99, ns | | beside / alone |\n| --- | ---: | ---: |");
    for reader in Reader::ALL {
        let p99 = crowd.writer_p99(reader, BESIDE).as_nanos() as f64;
        let ratio = p99 / *alone.get_or_insert(p99);
        print(&format!("| {} | {p99:.0} | {ratio:.2} |", reader.name()));
    }
}

pub(super) fn compare(arguments: &Compare) -> anyhow::Result<()> {
    let mut all: [Vec<Nanos>; 2] = [Vec::new(), Vec::new()];
    for round in 0..arguments.rounds {
        let output = Command::new(&arguments.go).arg("parts").output()?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        all[0].push(serde_json::from_slice(&output.stdout)?);
        let output = Command::new(std::env::current_exe()?).arg("parts").output()?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        all[1].push(serde_json::from_slice(&output.stdout)?);
        say(&format!(
            "round {round}: client-go {:?}\n         ours {:?}",
            all[0][round], all[1][round]
        ));
    }
    print(
        "| Part, ns | client-go | ours | ratio | wanted | |\n\
         | --- | ---: | ---: | ---: | ---: | --- |",
    );
    for (name, title, wanted) in PARTS {
        let of = |who: usize| {
            let values: Vec<_> =
                all[who].iter().filter_map(|nanos| nanos.get(name).copied()).collect();
            (!values.is_empty()).then(|| median(values))
        };
        let (Some(theirs), Some(ours)) = (of(0), of(1)) else { continue };
        let ratio = ours / theirs;
        let verdict = if ratio <= wanted { "met" } else { "missed" };
        print(&format!(
            "| {title} | {theirs:.0} | {ours:.0} | {ratio:.3} | ≤ {wanted} | {verdict} |"
        ));
    }
    Ok(())
}

/// Measures our parts, and prints the figures as the Go program does.
#[expect(clippy::cast_precision_loss, reason = "nanoseconds of a few seconds")]
pub(super) fn ours(arguments: &Ours) -> anyhow::Result<()> {
    let mut parts = Parts::new();
    let mut nanos = Nanos::new();
    let is_wanted = |name: &str| arguments.only.as_ref().is_none_or(|only| only == name);
    let mut measure = |name: &str, operations: usize, pass: &mut dyn FnMut()| {
        if !is_wanted(name) {
            return;
        }
        pass();
        let times = (0..PASSES).map(|_| {
            let start = Instant::now();
            pass();
            start.elapsed().as_nanos() as f64 / operations as f64
        });
        nanos.insert(name.to_owned(), median(times.collect()));
    };
    measure("fifo-hot", PODS, &mut || parts.queue_each());
    measure("fifo-burst", PODS, &mut || parts.queue_all());
    measure("store-update", PODS, &mut || parts.update_all());
    let mut found = 0;
    measure("by-index", PODS / PER_NODE, &mut || found += parts.look_up_all());
    let wanted = if is_wanted("by-index") { (PASSES + 1) * PODS } else { 0 };
    ensure!(found == wanted, "the index found {found}");
    measure("list", LISTS.into(), &mut || {
        for _ in 0..LISTS {
            std::hint::black_box(parts.list());
        }
    });
    if is_wanted("writer-p99") {
        let p99 = parts.writer_p99(Duration::from_secs(2));
        nanos.insert("writer-p99".to_owned(), p99.as_nanos() as f64);
    }
    print(&serde_json::to_string(&nanos)?);
    Ok(())
}
