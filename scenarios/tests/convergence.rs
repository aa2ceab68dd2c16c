//! Promise 1: after any network faults, the store equals the server, and every handler has received
//! a valid event sequence that ends there.
//!
//! `HOMEOSTAT_SEEDS` sets the number of seeds in virtual time. `HOMEOSTAT_SEED` runs one seed alone
//! and prints its trace. Tests against the real control plane are reported as ignored if its
//! binaries are missing; `HOMEOSTAT_REQUIRE_CONTROL_PLANE=1` makes that an error.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use homeostat_scenarios::{Convergence, Tally, Wire};
use homeostat_testing::control_plane::Binaries;
use homeostat_testing::{in_real_time, in_virtual_time};
use libtest_mimic::{Arguments, Failed, Trial};
use parking_lot::Mutex;

/// The default number of seeds in virtual time.
const SEEDS: u64 = 200;

/// The number of seeds in real time.
const SOCKET_SEEDS: u64 = 48;
const CONTROL_PLANE_SEEDS: u64 = 2;

/// The number of concurrent runs: most of the time they wait.
const AT_ONCE: usize = 8;

fn main() {
    let mut arguments = Arguments::from_args();
    // Two at a time, so that their output does not interleave with a result.
    arguments.test_threads.get_or_insert(2);
    let missing = Binaries::missing_for_tests();
    let agree = "store and handlers agree with the server once the faults are over";
    let embedded = [
        ("in process, in virtual time", Wire::InProcess),
        ("through a pipe, in virtual time", Wire::Pipe),
        ("over a socket", Wire::Socket),
    ];
    let embedded = embedded
        .map(|(place, wire)| Trial::test(format!("{agree} ({place})"), move || run_all(wire)));
    let real = format!("{agree} (real kube-apiserver)");
    let real = Trial::test(real, || run_all(Wire::ControlPlane));
    let trials = embedded.into_iter().chain([real.with_ignored_flag(missing.is_some())]);
    libtest_mimic::run(&arguments, trials.collect()).exit();
}

/// The minimum counts per run in virtual time.
const VIRTUAL: &[(&str, f64)] = &[
    ("event: added", 20.0),
    ("event: updated", 8.0),
    ("event: deleted", 4.0),
    ("event: deleted unseen", 1.0),
    ("event: opaque", 2.0),
    ("event: opaque deleted", 0.5),
    ("event: resynced", 50.0),
    ("request: watch", 8.0),
    ("request: list", 1.0),
    ("expired versions", 0.5),
    ("states merged", 0.03),
    ("fifo: coalescing", 0.2),
    ("fifo: in order", 0.2),
    ("weight: projection", 0.1),
    ("weight: typed", 0.1),
    ("weight: lazy", 0.1),
    ("weight: metadata", 0.1),
    ("list-watch: several namespaces", 0.1),
    ("list-watch: pruned", 0.2),
    ("list-watch: lists in one piece", 0.05),
    ("handler: streams", 0.3),
    ("handler: filters", 0.5),
    ("handler: resyncs", 0.5),
    ("handler: coalesces", 0.5),
    ("fault: watch starts  revisions earlier", 0.3),
    ("fault: bookmarks for all", 1.0),
    ("fault: history expired at", 2.0),
    ("fault: corrupt at byte  of an event", 0.1),
    ("fault: ended", 2.0),
    ("fault: requests are lost", 1.0),
    ("fault: refused with  TooManyRequests", 0.2),
    ("fault: reply corrupt at byte  ( OK)", 0.2),
    ("fault: reply cut at byte  ( OK)", 0.3),
    ("fault: reply lost ( OK)", 0.2),
    ("fault: request lost", 0.3),
    ("fault: reset at byte", 0.05),
    ("fault: reset in the middle of a line", 2.0),
    ("fault: restarted", 2.0),
    ("fault: restored, back at", 0.1),
    ("fault: stalled at byte", 0.05),
    ("fault: ended with  Expired", 1.0),
    ("fault: ended with  InternalError", 1.0),
    ("fault: replies are lost", 1.0),
];

/// The minimum counts of all runs together. A run without faults proves nothing.
fn minima(wire: Wire) -> &'static [(&'static str, f64)] {
    match wire {
        Wire::InProcess | Wire::Pipe => VIRTUAL,
        Wire::Socket => &[
            ("event: updated", 4.0),
            ("event: deleted unseen", 0.2),
            ("event: opaque", 0.5),
            ("fault: connections cut", 0.5),
            ("fault: connections cut after some bytes", 0.5),
            ("fault: no connections for a while", 0.5),
        ],
        Wire::ControlPlane => &[
            ("event: updated", 10.0),
            ("event: deleted unseen", 1.0),
            ("event: opaque", 5.0),
            ("expired versions", 1.0),
            ("fault: server killed and started", 2.0),
            ("fault: history compacted", 1.0),
            ("fault: connections cut", 1.0),
            ("fault: connections cut after some bytes", 1.0),
        ],
    }
}

fn run_all(wire: Wire) -> Result<(), Failed> {
    let seeds = seeds(wire);
    let tally = match wire {
        Wire::InProcess | Wire::Pipe => {
            let run = |seed| in_virtual_time(Convergence { seed, wire }.run());
            seeds.clone().try_fold(Tally::default(), |tally, seed| add(tally, seed, run(seed)))
        }
        Wire::Socket => at_once(seeds.clone(), wire),
        Wire::ControlPlane => {
            let run = |seed| in_real_time(Convergence { seed, wire }.run());
            seeds.clone().try_fold(Tally::default(), |tally, seed| add(tally, seed, run(seed)))
        }
    }?;
    report(wire, &tally);
    let count = seeds.count();
    if count < 100 && matches!(wire, Wire::InProcess | Wire::Pipe) || count == 1 {
        return Ok(()); // chance is not even then
    }
    if matches!(wire, Wire::InProcess | Wire::Pipe) && tally.fault_classes() < 20 {
        return Err(format!("too few classes of faults:\n{tally}").into());
    }
    for (what, per_seed) in minima(wire) {
        let (found, least) = (tally.count(what), per_seed * f64::from(u32::try_from(count)?));
        if f64::from(u32::try_from(found)?) < least {
            return Err(format!("{what}: {found} in {count} runs\n{tally}").into());
        }
    }
    Ok(())
}

/// Runs several seeds concurrently, each on its own threads.
fn at_once(seeds: Range<u64>, wire: Wire) -> Result<Tally, Failed> {
    let (next, total) = (AtomicU64::new(seeds.start), Mutex::new(Ok(Tally::default())));
    let work = || {
        while let seed = next.fetch_add(1, Ordering::Relaxed)
            && seed < seeds.end
        {
            let run = in_real_time(Convergence { seed, wire }.run());
            let mut total = total.lock();
            let before = std::mem::replace(&mut *total, Ok(Tally::default()));
            *total = before.and_then(|tally| add(tally, seed, run));
        }
    };
    std::thread::scope(|scope| {
        (0..AT_ONCE).for_each(|_| drop(scope.spawn(work)));
    });
    total.into_inner()
}

fn add(mut tally: Tally, seed: u64, run: anyhow::Result<Tally>) -> Result<Tally, Failed> {
    let repeated = |error| format!("HOMEOSTAT_SEED={seed} repeats it: {error:#}");
    tally += run.map_err(repeated)?;
    Ok(tally)
}

#[expect(clippy::print_stdout, reason = "what was exercised is a part of the result")]
fn report(wire: Wire, tally: &Tally) {
    println!("{wire:?}\n{tally}");
}

/// Returns the seeds to run.
fn seeds(wire: Wire) -> Range<u64> {
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    if let Some(seed) = number("HOMEOSTAT_SEED") {
        return seed..seed + 1;
    }
    match wire {
        Wire::InProcess | Wire::Pipe => 0..number("HOMEOSTAT_SEEDS").unwrap_or(SEEDS),
        Wire::Socket => 0..SOCKET_SEEDS,
        Wire::ControlPlane => 0..CONTROL_PLANE_SEEDS,
    }
}
