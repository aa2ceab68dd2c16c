//! The parts of an informer, each by itself, beside client-go's.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::ensure;
use homeostat_benches::informer::parts::{PER_NODE, PODS, Parts};
use tokio::time::Instant;

use super::{figures::median, print, say};

/// What to compare.
#[derive(Debug, clap::Args)]
pub(super) struct Compare {
    /// The Go program, built from `benches/peers/informer`.
    #[arg(long)]
    go: PathBuf,
    /// How often each of them runs.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
}

/// Nanoseconds per operation, by name.
type Nanos = BTreeMap<String, f64>;

/// Passes that are measured in a round, after one that is not.
const PASSES: usize = 7;

/// How many lists a pass makes: one takes too little for the clock.
const LISTS: u16 = 200;

/// The name that both sides know, what it is, and what ours may take of theirs.
const PARTS: [(&str, &str, f64); 6] = [
    ("fifo-hot", "queue: add one, take one", 0.5),
    ("fifo-burst", "queue: add 100,000, take all", 0.5),
    ("store-update", "store: update with two indices", 0.3),
    ("by-index", "index: 20 of 100,000", 0.25),
    ("list", "list of 100,000", 0.05),
    ("writer-p99", "update while somebody lists, p99", 0.05),
];

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
        "| Part, ns | client-go | ours | ratio | wanted | |\n| --- | ---: | ---: | ---: | ---: | --- |",
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

/// Measures ours and prints it as the Go program does.
#[expect(clippy::cast_precision_loss, reason = "nanoseconds of a few seconds")]
pub(super) fn ours() -> anyhow::Result<()> {
    let mut parts = Parts::new();
    let mut nanos = Nanos::new();
    let mut measure = |name: &str, operations: usize, pass: &mut dyn FnMut()| {
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
    ensure!(found == (PASSES + 1) * PODS, "the index found {found}");
    measure("list", LISTS.into(), &mut || {
        for _ in 0..LISTS {
            std::hint::black_box(parts.list());
        }
    });
    let p99 = parts.writer_p99(Duration::from_secs(2));
    nanos.insert("writer-p99".to_owned(), p99.as_nanos() as f64);
    print(&serde_json::to_string(&nanos)?);
    Ok(())
}
