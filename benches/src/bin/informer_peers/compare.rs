//! Runs all consumers in turn, and keeps their reports.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::process::Command;

use anyhow::{Context as _, ensure};
use homeostat_benches::informer::Report;
use serde_json::json;

use super::load::LoadServer;
use super::{Compare, figures, say};

/// All runs so far.
#[derive(Debug)]
pub(super) struct Comparison {
    arguments: Compare,
    server: LoadServer,
    /// One line of JSON for each run.
    raw: String,
    reports: BTreeMap<Who, Vec<Report>>,
}

/// The library that keeps the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Who {
    ClientGo,
    ClientGoJson,
    KubePaged,
    KubeStreaming,
    Typed,
    /// With one worker thread.
    TypedOneThread,
    Pruned,
    Lazy,
    Projection,
    Metadata,
    /// Four handlers.
    ClientGoFanOut,
    TypedFanOut,
    /// With the system's allocator instead of mimalloc.
    TypedSystem,
    /// With a recorder of metrics.
    TypedMetrics,
}

/// The initial list.
pub(super) const SYNC: &str = "sync";
/// An expired watch, and the initial list of the run that tests it.
pub(super) const RELIST: &str = "relist";
pub(super) const BEFORE_RELIST: &str = "before relist";
/// The same with 10 % of the objects changed.
pub(super) const RELIST_CHANGED: &str = "relist@10";
/// Updates at full speed.
pub(super) const FULL_SPEED: &str = "50000@0";
/// Updates at a rate at which every consumer sleeps in between.
pub(super) const IDLE: &str = "500@100";
/// Updates at the rate of a large cluster.
pub(super) const STEADY: &str = "15000@5000";

// === impl Comparison ===

impl Comparison {
    pub(super) fn new(arguments: Compare) -> anyhow::Result<Self> {
        let server = LoadServer::start(&arguments.go, arguments.pods)?;
        Ok(Self { arguments, server, raw: String::new(), reports: BTreeMap::new() })
    }

    /// Runs every consumer once. Each round starts with another consumer.
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
            for trial in [RELIST, RELIST_CHANGED].into_iter().filter(|_| who.relists()) {
                self.run(round, who, trial).with_context(|| who.name())?;
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
        if (report.contains_key(RELIST) || report.contains_key(RELIST_CHANGED))
            && let Some(sync) = report.remove(SYNC)
        {
            report.insert(BEFORE_RELIST.to_owned(), sync);
        }
        say(&format!("round {round} {:<28} {}", who.name(), figures::line(&report)));
        writeln!(self.raw, "{}", json!({ "round": round, "who": who.name(), "report": report }))?;
        self.reports.entry(who).or_default().push(report);
        // Written after each run, so that a later failure does not lose the figures.
        let raw = &self.arguments.raw;
        if let Some(folder) = raw.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(raw, &self.raw).with_context(|| format!("writing {}", raw.display()))
    }

    /// Returns the medians and ratios of all runs.
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
    const ALL: [Self; 14] = [
        Self::ClientGo,
        Self::Typed,
        Self::KubeStreaming,
        Self::Lazy,
        Self::Projection,
        Self::ClientGoJson,
        Self::Pruned,
        Self::TypedOneThread,
        Self::KubePaged,
        Self::Metadata,
        Self::ClientGoFanOut,
        Self::TypedFanOut,
        Self::TypedSystem,
        Self::TypedMetrics,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::ClientGo => "client-go",
            Self::ClientGoJson => "client-go, JSON",
            Self::KubePaged => "kube-runtime, paged",
            Self::KubeStreaming => "kube-runtime, streaming",
            Self::Typed => "ours, typed",
            Self::TypedOneThread => "ours, typed, one thread",
            Self::Pruned => "ours, typed, pruned",
            Self::Lazy => "ours, lazy",
            Self::Projection => "ours, projection",
            Self::Metadata => "ours, metadata",
            Self::ClientGoFanOut => "client-go, 4 handlers",
            Self::TypedFanOut => "ours, typed, 4 handlers",
            Self::TypedSystem => "ours, typed, system allocator",
            Self::TypedMetrics => "ours, typed, metrics",
        }
    }

    fn command(self, arguments: &Compare, server: &str) -> anyhow::Result<Command> {
        let ours = std::env::current_exe()?;
        // Built by the same command, into the same folder.
        let system = ours.with_file_name("informer_system");
        let (program, first) = match self {
            Self::ClientGo => (&arguments.go, &["consume"][..]),
            Self::ClientGoJson => (&arguments.go, &["consume", "--json"][..]),
            Self::KubePaged => (&arguments.kube_runtime, &["paged"][..]),
            Self::KubeStreaming => (&arguments.kube_runtime, &["streaming"][..]),
            Self::Typed | Self::TypedOneThread => (&ours, &["consume", "--weight=typed"][..]),
            Self::Pruned => (&ours, &["consume", "--weight=pruned"][..]),
            Self::Lazy => (&ours, &["consume", "--weight=lazy"][..]),
            Self::Projection => (&ours, &["consume", "--weight=projection"][..]),
            Self::Metadata => (&ours, &["consume", "--weight=metadata"][..]),
            Self::ClientGoFanOut => (&arguments.go, &["consume", "--handlers=4"][..]),
            Self::TypedFanOut => (&ours, &["consume", "--weight=typed", "--handlers=4"][..]),
            Self::TypedSystem => (&system, &["--weight=typed"][..]),
            Self::TypedMetrics => (&ours, &["consume", "--weight=typed", "--metrics"][..]),
        };
        // The server is on the first core.
        let mut command = Command::new("taskset");
        command.args(["-c", if arguments.one_core { "1" } else { "0,1" }]);
        command.arg(program).args(first).args(["--server", server]);
        // Huge pages are off: depending on free ones, they cost a Rust program milliseconds or
        // seconds. Go's runtime requests none.
        command.env("MIMALLOC_ALLOW_THP", "0");
        if self == Self::TypedOneThread {
            command.env("TOKIO_WORKER_THREADS", "1");
        }
        command.args(["--pods", &arguments.pods.to_string()]);
        Ok(command)
    }

    /// Returns the trials. Latencies are measured only for consumers that are compared by them.
    fn trials(self) -> &'static str {
        match self {
            Self::ClientGo
            | Self::Typed
            | Self::TypedOneThread
            | Self::Lazy
            | Self::TypedSystem => "50000@0 500@100 15000@5000",
            _ => FULL_SPEED,
        }
    }

    /// Returns true if the cost of a relist is measured.
    fn relists(self) -> bool {
        matches!(self, Self::ClientGo | Self::Typed | Self::Lazy)
    }
}
