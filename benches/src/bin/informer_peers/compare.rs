//! Runs everybody in turn, and keeps what they report.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::process::Command;

use anyhow::{Context as _, ensure};
use homeostat_benches::informer::Report;
use serde_json::json;

use super::{Compare, figures, load::LoadServer, say};

/// All runs so far.
#[derive(Debug)]
pub(super) struct Comparison {
    arguments: Compare,
    server: LoadServer,
    /// One line of JSON for each run.
    raw: String,
    reports: BTreeMap<Who, Vec<Report>>,
}

/// Who keeps the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Who {
    ClientGo,
    ClientGoJson,
    KubePaged,
    KubeStreaming,
    Typed,
    Compact,
    Lazy,
    Projection,
    Metadata,
}

/// The begin.
pub(super) const SYNC: &str = "sync";
/// A watch that expired, and the begin of the run in which that was tried.
pub(super) const RELIST: &str = "relist";
pub(super) const BEFORE_RELIST: &str = "before relist";
/// As fast as they are taken.
pub(super) const FULL_SPEED: &str = "50000@0";
/// Few enough that everybody sleeps in between.
pub(super) const IDLE: &str = "500@100";
/// As many as a large cluster has.
pub(super) const STEADY: &str = "15000@5000";

// === impl Comparison ===

impl Comparison {
    pub(super) fn new(arguments: Compare) -> anyhow::Result<Self> {
        let server = LoadServer::start(&arguments.go, arguments.pods)?;
        Ok(Self { arguments, server, raw: String::new(), reports: BTreeMap::new() })
    }

    /// Lets everybody do the work once; who begins changes from round to round.
    pub(super) fn round(&mut self, round: usize) -> anyhow::Result<()> {
        let mut all = Who::ALL.to_vec();
        let only = &self.arguments.only;
        all.retain(|who| {
            let named = only.iter().any(|only| who.name().starts_with(only));
            only.is_empty() || named || *who == Who::ClientGo
        });
        let first = round * 2 % all.len();
        all.rotate_left(first);
        for who in all {
            self.run(round, who, who.trials()).with_context(|| who.name())?;
            if who.relists() {
                self.run(round, who, RELIST).with_context(|| who.name())?;
            }
        }
        Ok(())
    }

    fn run(&mut self, round: usize, who: Who, trials: &str) -> anyhow::Result<()> {
        self.server.settle()?;
        let mut command = who.command(&self.arguments, &self.server.url)?;
        let output = command.args(["--phases", trials]).output()?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let mut report: Report = serde_json::from_slice(&output.stdout)?;
        if report.contains_key(RELIST)
            && let Some(sync) = report.remove(SYNC)
        {
            report.insert(BEFORE_RELIST.to_owned(), sync);
        }
        say(&format!("round {round} {:<28} {}", who.name(), figures::line(&report)));
        writeln!(self.raw, "{}", json!({ "round": round, "who": who.name(), "report": report }))?;
        self.reports.entry(who).or_default().push(report);
        // After each run, so that what was measured is not lost with what comes after it.
        let raw = &self.arguments.raw;
        if let Some(folder) = raw.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(raw, &self.raw).with_context(|| format!("writing {}", raw.display()))
    }

    /// Medians and ratios of all runs.
    pub(super) fn tables(&self) -> String {
        let medians =
            self.reports.iter().map(|(who, reports)| (*who, figures::medians(reports))).collect();
        let mut text = figures::tables(&medians);
        let _ = writeln!(text, "What every run took: {}", self.arguments.raw.display());
        text
    }
}

// === impl Who ===

impl Who {
    const ALL: [Self; 9] = [
        Self::ClientGo,
        Self::Typed,
        Self::KubeStreaming,
        Self::Lazy,
        Self::Projection,
        Self::ClientGoJson,
        Self::Compact,
        Self::KubePaged,
        Self::Metadata,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::ClientGo => "client-go",
            Self::ClientGoJson => "client-go, JSON",
            Self::KubePaged => "kube-runtime, paged",
            Self::KubeStreaming => "kube-runtime, streaming",
            Self::Typed => "ours, typed",
            Self::Compact => "ours, typed, compact",
            Self::Lazy => "ours, lazy",
            Self::Projection => "ours, projection",
            Self::Metadata => "ours, metadata",
        }
    }

    fn command(self, arguments: &Compare, server: &str) -> anyhow::Result<Command> {
        let ours = std::env::current_exe()?;
        let (program, first) = match self {
            Self::ClientGo => (&arguments.go, &["consume"][..]),
            Self::ClientGoJson => (&arguments.go, &["consume", "--json"][..]),
            Self::KubePaged => (&arguments.kube_runtime, &["paged"][..]),
            Self::KubeStreaming => (&arguments.kube_runtime, &["streaming"][..]),
            Self::Typed => (&ours, &["consume", "--weight=typed"][..]),
            Self::Compact => (&ours, &["consume", "--weight=compact"][..]),
            Self::Lazy => (&ours, &["consume", "--weight=lazy"][..]),
            Self::Projection => (&ours, &["consume", "--weight=projection"][..]),
            Self::Metadata => (&ours, &["consume", "--weight=metadata"][..]),
        };
        // The server is on the first core.
        let mut command = Command::new("taskset");
        command.args(["-c", if arguments.one_core { "1" } else { "0,1" }]);
        command.arg(program).args(first).args(["--server", server]);
        // Huge pages cost a Rust program next to nothing in one run and seconds in the next, as the machine has some
        // at hand or not; Go's runtime asks for none.
        command.env("MIMALLOC_ALLOW_THP", "0");
        command.args(["--pods", &arguments.pods.to_string()]);
        Ok(command)
    }

    /// What it is put through. Latencies only of those that are compared.
    fn trials(self) -> &'static str {
        match self {
            Self::ClientGo | Self::Typed | Self::Lazy => "50000@0 500@100 15000@5000",
            _ => FULL_SPEED,
        }
    }

    /// Whether it is looked at what asking for everything again takes.
    fn relists(self) -> bool {
        matches!(self, Self::ClientGo | Self::Typed | Self::Lazy)
    }
}
