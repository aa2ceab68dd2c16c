//! Promise 1: whatever happened on the wire, once it is over the store equals the server, and every handler has been told a
//! valid story that ends there.
//!
//! `HOMEOSTAT_SEEDS` says how many seeds are tried; `HOMEOSTAT_SEED` runs one alone, and prints what happened in it.

use homeostat_scenarios::{Convergence, Tally, Wire, in_virtual_time};

/// How many are tried unless told.
const SEEDS: u64 = 200;

#[test]
fn store_and_handlers_agree_with_the_server_once_the_faults_are_over() {
    let tally = run_all(Wire::InProcess);
    let seeds = seeds().count();
    if seeds < 100 {
        return; // chance is not even then
    }
    assert!(tally.fault_classes() >= 20, "{tally}");
    // A run in which nothing happens proves nothing.
    for (what, per_seed) in [
        ("event: added", 30),
        ("event: updated", 10),
        ("event: deleted", 5),
        ("event: deleted unseen", 1),
        ("event: opaque", 5),
        ("event: opaque deleted", 1),
        ("request: watch", 8),
        ("request: list", 1),
    ] {
        let count = tally.count(what);
        assert!(count >= per_seed * seeds, "{what}: {count} in {seeds} runs\n{tally}");
    }
}

#[test]
fn they_agree_over_http_through_a_pipe() {
    run_all(Wire::Pipe);
}

fn run_all(wire: Wire) -> Tally {
    let mut tally = Tally::default();
    for seed in seeds() {
        match in_virtual_time(Convergence { seed, wire }.run()) {
            Ok(run) => tally += run,
            Err(error) => panic!("HOMEOSTAT_SEED={seed} repeats it: {error:#}"),
        }
    }
    report(wire, &tally);
    tally
}

#[expect(clippy::print_stdout, reason = "what was exercised is a part of the result")]
fn report(wire: Wire, tally: &Tally) {
    println!("{wire:?}\n{tally}");
}

/// The seeds to try.
fn seeds() -> std::ops::Range<u64> {
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    match (number("HOMEOSTAT_SEED"), number("HOMEOSTAT_SEEDS")) {
        (Some(seed), _) => seed..seed + 1,
        (None, seeds) => 0..seeds.unwrap_or(SEEDS),
    }
}
