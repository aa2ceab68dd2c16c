//! The figures of the steps, and the tables of their medians.

use std::collections::BTreeMap;
use std::fmt;

use crate::process::Usage;

/// The figures of one step.
#[derive(Clone, Debug, Default)]
pub struct Leg {
    /// The time until the result of the step was there, in seconds.
    pub wall: f64,
    /// CPU time, in seconds.
    pub cpu: f64,
    /// The peak of resident memory since the program started, in MB.
    pub peak_rss: f64,
    /// The requests by verb and resource.
    pub requests: BTreeMap<String, u64>,
    /// Latencies in milliseconds, where the step measures them.
    pub latencies: Vec<f64>,
    /// The same latencies without the program: the bench does its work by itself, at once.
    pub least_latencies: Vec<f64>,
}

// === impl Leg ===

impl Leg {
    /// Returns the number of requests.
    #[expect(clippy::cast_precision_loss, reason = "a few thousand requests are exact in an f64")]
    pub fn requests(&self) -> f64 {
        self.requests.values().sum::<u64>() as f64
    }
}

impl fmt::Display for Leg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { wall, cpu, peak_rss, requests, .. } = self;
        write!(f, "wall {wall:.2} s  CPU {cpu:.2} s  peak RSS {peak_rss:.0} MB  requests:")?;
        requests.iter().try_for_each(|(what, count)| write!(f, " {count} {what},"))
    }
}

/// Prints the medians of all rounds, theirs and ours, with their ratios.
pub fn report(theirs: &[Vec<(&'static str, Leg)>], ours: &[Vec<(&'static str, Leg)>]) {
    let Some(names) = theirs.first().map(|legs| legs.iter().map(|(name, _)| *name)) else { return };
    println(&format!("\nmedians of {} rounds, ours / theirs", theirs.len()));
    println("| Step | CPU s | ratio | peak RSS MB | ratio | requests | ratio | wall s | ratio |");
    println("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |");
    for (at, name) in names.enumerate() {
        let of = |rounds: &[Vec<(&'static str, Leg)>], value: fn(&Leg) -> f64| {
            median(
                rounds.iter().filter_map(|legs| legs.get(at)).map(|(_, leg)| value(leg)).collect(),
            )
        };
        let pair = |value: fn(&Leg) -> f64, digits: usize| {
            let (theirs, ours) = (of(theirs, value), of(ours, value));
            format!("{ours:.digits$} / {theirs:.digits$} | {:.2}", ours / theirs)
        };
        let cells = [
            pair(|leg| leg.cpu, 2),
            pair(|leg| leg.peak_rss, 0),
            pair(Leg::requests, 0),
            pair(|leg| leg.wall, 1),
        ];
        println(&format!("| {name} | {} |", cells.join(" | ")));
        if of(theirs, |leg| percentile(&leg.latencies, 50)) > 0.0 {
            let p50 = pair(|leg| percentile(&leg.latencies, 50), 1);
            let p99 = pair(|leg| percentile(&leg.latencies, 99), 1);
            println(&format!("latency ms: p50 {p50}, p99 {p99}"));
        }
        if of(theirs, |leg| percentile(&leg.least_latencies, 50)) > 0.0 {
            let p50 = pair(|leg| percentile(&leg.least_latencies, 50), 1);
            println(&format!("latency ms without the program, beside each: p50 {p50}"));
        }
    }
}

/// Prints the medians of the memory of all rounds, theirs and ours, with their ratios.
pub fn report_memory(theirs: &[Usage], ours: &[Usage]) {
    println(&format!("\nmedians of {} rounds, ours / theirs", theirs.len()));
    println("| RSS MB | ratio | peak RSS MB | ratio |");
    println("| ---: | ---: | ---: | ---: |");
    let pair = |value: fn(&Usage) -> f64| {
        let [theirs, ours] =
            [theirs, ours].map(|usages| median(usages.iter().map(value).collect()));
        format!("{ours:.0} / {theirs:.0} | {:.2}", ours / theirs)
    };
    println(&format!("| {} | {} |", pair(|usage| usage.rss), pair(|usage| usage.peak_rss)));
}

/// Returns a percentile of the values, or 0 if there are none.
fn percentile(values: &[f64], percent: usize) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = (sorted.len() * percent / 100).min(sorted.len().saturating_sub(1));
    sorted.get(at).copied().unwrap_or_default()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

#[expect(clippy::print_stdout, reason = "a bench prints what it measured")]
pub(super) fn println(line: &str) {
    println!("{line}");
}
