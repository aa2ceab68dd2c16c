//! Runs all libraries in turn, and keeps and compares their reports.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, ensure};
use clap::ValueEnum;
use homeostat_benches::workqueue::{Peer, Workload};
use serde_json::json;

use super::{KeyKind, MIN_PASSES, Report};

/// All runs so far.
#[derive(Debug)]
pub(super) struct Comparison {
    go: PathBuf,
    keys: usize,
    only: Vec<Workload>,
    /// One line of JSON for each run.
    raw: String,
    samples: BTreeMap<(Workload, Who), Vec<Sample>>,
}

/// The library that did the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Who {
    Peer(Peer),
    Ours(KeyKind),
}

/// Nanoseconds per key of one or several runs.
#[derive(Clone, Copy, Debug)]
struct Sample {
    wall: Figures,
    cpu: Figures,
}

#[derive(Clone, Copy, Debug)]
struct Figures {
    median: f64,
    fastest: f64,
}

// === impl Comparison ===

impl Comparison {
    pub(super) fn new(go: PathBuf, keys: usize, only: Vec<Workload>) -> Self {
        Self { go, keys, only, raw: String::new(), samples: BTreeMap::new() }
    }

    /// Runs every workload once with each library. Each round starts with another library.
    pub(super) fn round(&mut self, round: usize) -> anyhow::Result<()> {
        for &workload in Workload::value_variants() {
            if !self.only.is_empty() && !self.only.contains(&workload) {
                continue;
            }
            let mut all = Who::all(workload);
            let first = round % all.len();
            all.rotate_left(first);
            for who in all {
                let run = self.run(round, workload, who);
                run.with_context(|| format!("{workload:?} by {}", who.name()))?;
            }
        }
        Ok(())
    }

    fn run(&mut self, round: usize, workload: Workload, who: Who) -> anyhow::Result<()> {
        let mut program = who.program(&self.go, workload)?;
        let output = program.args(["--keys", &self.keys.to_string()]).output()?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let report: Report = serde_json::from_slice(&output.stdout)?;
        let expected = if workload.hands_out() { self.keys } else { 0 };
        ensure!(report.wall_ns.len() >= MIN_PASSES, "it ended too early");
        ensure!(
            report.handed_out.iter().all(|&handed_out| handed_out == expected),
            "handed out {:?} keys, not {expected}",
            report.handed_out,
        );
        let row = json!({
            "round": round, "workload": format!("{workload:?}"), "who": who.name(),
            "keys": self.keys, "report": report,
        });
        writeln!(self.raw, "{row}")?;
        let sample = Sample::of(&report, self.keys);
        self.samples.entry((workload, who)).or_default().push(sample);
        Ok(())
    }

    /// Writes the time of every pass, one line of JSON for each run.
    pub(super) fn save(&self, raw: &Path) -> anyhow::Result<()> {
        if let Some(folder) = raw.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(raw, &self.raw).with_context(|| format!("writing {}", raw.display()))
    }

    /// Returns the figures of all peers, and the ratios.
    pub(super) fn table(&self) -> Result<String, fmt::Error> {
        let mut table = String::from(
            "Nanoseconds per key: the median pass and the fastest one, wall time and CPU time\n\
             of all threads; of each the median over the rounds. Ratios are ours / theirs.\n\n",
        );
        let (ratio, fastest) = ("ratio", "fastest");
        writeln!(
            table,
            "{:22}     wall {ratio}  {fastest} {ratio}      CPU {ratio}  {fastest} {ratio}",
            ""
        )?;
        for &workload in Workload::value_variants() {
            let [theirs, ours @ ..] = Who::all(workload);
            let Some(base) = self.sample(workload, theirs) else { continue };
            writeln!(table, "{}\n{}", workload.title(), base.line(theirs.name()))?;
            for who in ours {
                self.write_ours(&mut table, workload, who, &base)?;
            }
        }
        Ok(table)
    }

    fn write_ours(
        &self,
        table: &mut String,
        workload: Workload,
        who: Who,
        base: &Sample,
    ) -> fmt::Result {
        let Some(sample) = self.sample(workload, who) else { return Ok(()) };
        write!(table, "{}", sample.line_beside(base, who.name()))?;
        let ratio = sample.wall.median / base.wall.median;
        match workload.target() {
            Some(target) if ratio <= target => writeln!(table, "  {target:.2} met"),
            Some(target) => writeln!(table, "  {target:.2} missed"),
            None => writeln!(table),
        }
    }

    /// Returns the medians over all rounds.
    fn sample(&self, workload: Workload, who: Who) -> Option<Sample> {
        let samples = self.samples.get(&(workload, who))?;
        let of = |value: fn(&Sample) -> f64| median(samples.iter().map(value).collect());
        Some(Sample {
            wall: Figures { median: of(|it| it.wall.median), fastest: of(|it| it.wall.fastest) },
            cpu: Figures { median: of(|it| it.cpu.median), fastest: of(|it| it.cpu.fastest) },
        })
    }
}

// === impl Who ===

impl Who {
    /// Returns all libraries of this workload: the peer first, then ours with each kind of key.
    fn all(workload: Workload) -> [Self; 4] {
        let peer = Self::Peer(workload.peer());
        let ours = Self::Ours;
        [peer, ours(KeyKind::String), ours(KeyKind::StringCloned), ours(KeyKind::ObjectKey)]
    }

    fn name(self) -> &'static str {
        match self {
            Self::Peer(peer) => peer.name(),
            Self::Ours(KeyKind::String) => "ours, String",
            Self::Ours(KeyKind::StringCloned) => "ours, String cloned",
            Self::Ours(KeyKind::ObjectKey) => "ours, ObjectKey",
        }
    }

    /// Returns the program that does the work.
    fn program(self, go: &Path, workload: Workload) -> anyhow::Result<Command> {
        match self {
            Self::Peer(peer) => {
                let mut program = Command::new(go);
                program.args(["--peer", peer.name(), "--workload", workload.name_in_go()]);
                program.env("GOMAXPROCS", "2");
                Ok(program)
            }
            Self::Ours(kind) => {
                let mut program = Command::new(std::env::current_exe()?);
                program.args(["work", "--workload", &name(&workload), "--kind", &name(&kind)]);
                Ok(program)
            }
        }
    }
}

/// Returns the name of a value on the command line.
fn name(value: &impl ValueEnum) -> String {
    value.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}

// === impl Sample ===

impl Sample {
    fn of(report: &Report, keys: usize) -> Self {
        let (wall, cpu) = (per_key(&report.wall_ns, keys), per_key(&report.cpu_ns, keys));
        Self { wall: Figures::of(wall), cpu: Figures::of(cpu) }
    }

    /// Returns the peer's line of the table.
    fn line(&self, name: &str) -> String {
        let (wall, cpu) = (&self.wall, &self.cpu);
        let [a, b, c, d] = [wall.median, wall.fastest, cpu.median, cpu.fastest];
        format!("  {name:<20}{a:9.1}      {b:9.1}      {c:9.1}      {d:9.1}")
    }

    /// Returns our line of the table, with the ratios.
    fn line_beside(&self, base: &Self, name: &str) -> String {
        let pair = |ours: f64, theirs: f64| format!("{ours:9.1}{:6.2}", ours / theirs);
        format!(
            "  {name:<20}{}{}{}{}",
            pair(self.wall.median, base.wall.median),
            pair(self.wall.fastest, base.wall.fastest),
            pair(self.cpu.median, base.cpu.median),
            pair(self.cpu.fastest, base.cpu.fastest),
        )
    }
}

impl Figures {
    fn of(values: Vec<f64>) -> Self {
        let fastest = values.iter().copied().fold(f64::INFINITY, f64::min);
        Self { median: median(values), fastest }
    }
}

#[expect(clippy::cast_precision_loss, reason = "nanoseconds and counts far below 2^52")]
fn per_key(nanos: &[u64], keys: usize) -> Vec<f64> {
    nanos.iter().map(|&ns| ns as f64 / keys as f64).collect()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    let upper = values[middle];
    if values.len() % 2 == 1 { upper } else { f64::midpoint(values[middle - 1], upper) }
}
