//! Tables of the measurements, with the targets.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use homeostat_benches::informer::{Phase, Report};

use super::compare::{BEFORE_RELIST, FULL_SPEED, IDLE, RELIST, RELIST_CHANGED, STEADY, SYNC, Who};

/// The median of each figure.
pub(super) type Medians = BTreeMap<Who, Report>;

/// A figure of a phase.
type Figure = fn(&Phase) -> f64;

const USER: Figure = |phase| per_count(phase, phase.user);
const TOTAL: Figure = |phase| per_count(phase, phase.user + phase.system);
const WALL: Figure = |phase| phase.wall;
const RATE: Figure = |phase| f64::from(phase.count) / phase.wall;
const PEAK: Figure = |phase| phase.peak_rss / 1e6;
const P50: Figure = |phase| phase.p50_us;
const P99: Figure = |phase| phase.p99_us;

/// A table with the figures of one phase.
struct Table {
    title: &'static str,
    phase: &'static str,
    columns: &'static [(&'static str, Figure, usize)],
}

const TABLES: [Table; 7] = [
    Table {
        title: "Synchronising",
        phase: SYNC,
        columns: &[
            ("user µs/object", USER, 1),
            ("CPU µs/object", TOTAL, 1),
            ("wall s", WALL, 2),
            ("peak RSS MB", PEAK, 0),
        ],
    },
    Table {
        title: "Updates at full speed",
        phase: FULL_SPEED,
        columns: &[("CPU µs/event", TOTAL, 1), ("events/s", RATE, 0), ("peak RSS MB", PEAK, 0)],
    },
    Table {
        title: "From the wire to the handler, µs, 100 events/s",
        phase: IDLE,
        columns: &[("p50", P50, 0), ("p99", P99, 0), ("CPU µs/event", TOTAL, 1)],
    },
    Table {
        title: "From the wire to the handler, µs, 5,000 events/s",
        phase: STEADY,
        columns: &[("p50", P50, 0), ("p99", P99, 0), ("CPU µs/event", TOTAL, 1)],
    },
    Table {
        title: "Before its watch expired",
        phase: BEFORE_RELIST,
        columns: &[("peak RSS MB", PEAK, 0)],
    },
    Table {
        title: "After its relist; nothing has changed",
        phase: RELIST,
        columns: &[("peak RSS MB", PEAK, 0), ("CPU µs/object", TOTAL, 1)],
    },
    Table {
        title: "After its relist; 10 % of the objects have changed",
        phase: RELIST_CHANGED,
        columns: &[("peak RSS MB", PEAK, 0), ("CPU µs/object", TOTAL, 1)],
    },
];

/// The target of a ratio between two consumers.
struct Target {
    who: Who,
    base: Who,
    phase: &'static str,
    what: &'static str,
    figure: Figure,
    bound: Bound,
}

enum Bound {
    AtMost(f64, f64),
    AtLeast(f64),
}

const fn most(
    who: Who,
    phase: &'static str,
    what: &'static str,
    figure: Figure,
    [limit, best]: [f64; 2],
) -> Target {
    Target { who, base: Who::ClientGo, phase, what, figure, bound: Bound::AtMost(limit, best) }
}

const fn beside_kube(
    phase: &'static str,
    what: &'static str,
    figure: Figure,
    limit: f64,
) -> Target {
    let (who, base) = (Who::Typed, Who::KubeStreaming);
    Target { who, base, phase, what, figure, bound: Bound::AtMost(limit, limit) }
}

/// At least `times` client-go's events per second.
const fn events(who: Who, times: f64) -> Target {
    let bound = Bound::AtLeast(times);
    Target { who, base: Who::ClientGo, phase: FULL_SPEED, what: "events/s", figure: RATE, bound }
}

/// The allocator must not cost latency: mimalloc beside the system's.
const BUSY_BESIDE_SYSTEM: Target = Target {
    who: Who::Typed,
    base: Who::TypedSystem,
    phase: STEADY,
    what: "latency p99, 5,000/s",
    figure: P99,
    bound: Bound::AtMost(1.0, 1.0),
};

const TARGETS: [Target; 32] = [
    most(Who::Typed, SYNC, "user CPU at sync", USER, [0.5, 0.5]),
    most(Who::Typed, SYNC, "CPU at sync", TOTAL, [0.4, 0.4]),
    most(Who::Typed, SYNC, "wall at sync", WALL, [0.6, 0.6]),
    most(Who::Typed, SYNC, "peak RSS at sync", PEAK, [1.05, 1.05]),
    most(Who::Typed, FULL_SPEED, "peak RSS after updates", PEAK, [0.9, 0.8]),
    events(Who::Typed, 3.5),
    events(Who::TypedSystem, 2.5),
    most(Who::Pruned, SYNC, "CPU at sync", TOTAL, [0.25, 0.25]),
    most(Who::Pruned, SYNC, "peak RSS at sync", PEAK, [0.5, 0.5]),
    events(Who::Pruned, 3.5),
    most(Who::Lazy, SYNC, "CPU at sync", TOTAL, [0.3, 0.25]),
    most(Who::Lazy, SYNC, "wall at sync", WALL, [0.45, 0.35]),
    most(Who::Lazy, SYNC, "peak RSS at sync", PEAK, [0.35, 0.3]),
    most(Who::Lazy, FULL_SPEED, "peak RSS after updates", PEAK, [0.25, 0.25]),
    events(Who::Lazy, 6.0),
    most(Who::Projection, SYNC, "CPU at sync", TOTAL, [0.2, 0.2]),
    most(Who::Projection, SYNC, "peak RSS at sync", PEAK, [0.15, 0.15]),
    events(Who::Projection, 6.0),
    most(Who::Typed, IDLE, "latency p50, idle", P50, [0.7, 0.7]),
    most(Who::Typed, IDLE, "latency p99, idle", P99, [0.7, 0.7]),
    most(Who::Lazy, IDLE, "latency p50, idle", P50, [0.6, 0.6]),
    most(Who::Lazy, IDLE, "latency p99, idle", P99, [0.6, 0.6]),
    most(Who::Typed, STEADY, "latency p50, 5,000/s", P50, [0.8, 0.8]),
    most(Who::Typed, STEADY, "latency p99, 5,000/s", P99, [0.05, 0.05]),
    most(Who::Lazy, STEADY, "latency p99, 5,000/s", P99, [0.8, 0.5]),
    BUSY_BESIDE_SYSTEM,
    beside_kube(SYNC, "user CPU at sync", USER, 0.5),
    beside_kube(SYNC, "CPU at sync", TOTAL, 0.5),
    beside_kube(SYNC, "wall at sync", WALL, 0.5),
    beside_kube(SYNC, "peak RSS at sync", PEAK, 0.5),
    beside_kube(FULL_SPEED, "CPU per event", TOTAL, 0.7),
    beside_kube(FULL_SPEED, "peak RSS after updates", PEAK, 0.7),
];

/// Returns the median of each figure over the runs of one consumer.
pub(super) fn medians(reports: &[Report]) -> Report {
    let mut out = Report::new();
    for phase in reports.iter().flat_map(|report| report.keys()) {
        let of = |figure: Figure| {
            median(reports.iter().filter_map(|report| report.get(phase)).map(figure).collect())
        };
        let count = reports.iter().find_map(|report| Some(report.get(phase)?.count));
        let median = Phase {
            count: count.unwrap_or_default(),
            wall: of(|phase| phase.wall),
            user: of(|phase| phase.user),
            system: of(|phase| phase.system),
            peak_rss: of(|phase| phase.peak_rss),
            rss: of(|phase| phase.rss),
            p50_us: of(P50),
            p99_us: of(P99),
        };
        out.insert(phase.clone(), median);
    }
    out
}

/// Returns all tables in Markdown, and the results of the targets.
pub(super) fn tables(medians: &Medians) -> String {
    let mut text = String::new();
    for table in &TABLES {
        table.write(medians, &mut text);
    }
    text.push_str("| Target | ours / theirs | wanted | |\n| --- | ---: | ---: | --- |\n");
    for target in &TARGETS {
        target.write(medians, &mut text);
    }
    text.push('\n');
    text
}

/// Returns the line of one run.
pub(super) fn line(report: &Report) -> String {
    let mut text = String::new();
    if let Some(sync) = report.get(SYNC).or_else(|| report.get(BEFORE_RELIST)) {
        let (user, total, wall, peak) = (USER(sync), TOTAL(sync), WALL(sync), PEAK(sync));
        let _ = write!(text, "{user:.1}/{total:.1} µs {wall:.2} s {peak:.0} MB");
    }
    if let Some(full) = report.get(FULL_SPEED) {
        let (total, rate, peak) = (TOTAL(full), RATE(full), PEAK(full));
        let _ = write!(text, "; {total:.1} µs/event {rate:.0}/s {peak:.0} MB");
    }
    for phase in [IDLE, STEADY].iter().filter_map(|phase| report.get(*phase)) {
        let _ = write!(text, "; p50 {:.0} p99 {:.0}", phase.p50_us, phase.p99_us);
    }
    for relist in [RELIST, RELIST_CHANGED].iter().filter_map(|phase| report.get(*phase)) {
        let (total, peak) = (TOTAL(relist), PEAK(relist));
        let _ = write!(text, "; again {total:.1} µs {peak:.0} MB");
    }
    text
}

// === impl Table ===

impl Table {
    fn write(&self, medians: &Medians, text: &mut String) {
        let _ = write!(text, "| {} |", self.title);
        for (name, ..) in self.columns {
            let _ = write!(text, " {name} | ratio |");
        }
        text.push_str("\n| --- |");
        text.push_str(&" ---: | ---: |".repeat(self.columns.len()));
        text.push('\n');
        let base = medians.get(&Who::ClientGo).and_then(|report| report.get(self.phase));
        for (who, report) in medians {
            let (Some(phase), Some(base)) = (report.get(self.phase), base) else { continue };
            let _ = write!(text, "| {} |", who.name());
            for &(_, figure, digits) in self.columns {
                let (value, ratio) = (figure(phase), figure(phase) / figure(base));
                let _ = write!(text, " {value:.digits$} | {ratio:.2} |");
            }
            text.push('\n');
        }
        text.push('\n');
    }
}

// === impl Target ===

impl Target {
    fn write(&self, medians: &Medians, text: &mut String) {
        let phase = |who| medians.get(&who).and_then(|report: &Report| report.get(self.phase));
        let (Some(ours), Some(theirs)) = (phase(self.who), phase(self.base)) else { return };
        let ratio = (self.figure)(ours) / (self.figure)(theirs);
        let (wanted, verdict) = match self.bound {
            Bound::AtMost(limit, best) if limit > best => {
                let verdict = match ratio {
                    ratio if ratio <= best => "met, and the stretch",
                    ratio if ratio <= limit => "met",
                    _ => "missed",
                };
                (format!("≤ {limit} ({best})"), verdict)
            }
            Bound::AtMost(limit, _) => {
                (format!("≤ {limit}"), if ratio <= limit { "met" } else { "missed" })
            }
            Bound::AtLeast(limit) => {
                (format!("≥ {limit}"), if ratio >= limit { "met" } else { "missed" })
            }
        };
        let (who, base, what) = (self.who.name(), self.base.name(), self.what);
        let _ = writeln!(text, "| {who} / {base}: {what} | {ratio:.2} | {wanted} | {verdict} |");
    }
}

fn per_count(phase: &Phase, seconds: f64) -> f64 {
    seconds * 1e6 / f64::from(phase.count.max(1))
}

pub(super) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    let upper = values[middle];
    if values.len() % 2 == 1 { upper } else { f64::midpoint(values[middle - 1], upper) }
}
