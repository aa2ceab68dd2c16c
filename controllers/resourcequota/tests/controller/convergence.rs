//! Random work under random faults, with the quota admission of the server and without it.
//!
//! The time counts from the moment at which the faults are over and the caches are current: no
//! request of the controller waits for a late answer, and each of its watches is open again. Until
//! then no count can be right: an informer whose watches failed waits up to 60 s before the next
//! attempt, as client-go's does. From then on:
//!
//! * Within 1 s the usage is no less than what is stored.
//! * Within 1 s after the next deletion it equals what is stored.
//! * With a periodic recount it equals what is stored within 1 s after the next one.
//!
//! A fifth of `HOMEOSTAT_SEEDS` is the number of seeds. `HOMEOSTAT_SEED` runs one seed alone.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use homeostat_core::Random;
use homeostat_faults::{Calls, Chaos, FaultClass};
use homeostat_resourcequota::Options;
use parking_lot::Mutex;
use serde_json::json;
use tokio::time::{sleep, timeout};

use crate::world::{World, pod, quota, secret, without_period};

/// The number of seeds of which a fifth is run, unless the environment sets it.
const SEEDS: u64 = 200;

/// The number of threads that run seeds. Each seed has a clock of its own.
const THREADS: usize = 2;

/// The number of operations of a user, and the longest pause between two of them.
const OPERATIONS: u64 = 40;
const PAUSE_MS: u64 = 400;

/// The time in which the usage is right once the caches are current.
const WITHIN: Duration = Duration::from_secs(1);

/// Longer than the longest back-off of an informer, with its jitter, and the period of discovery.
const RECOVERY: Duration = Duration::from_secs(120);

/// The period of the recount in the runs that have one.
const PERIOD: Duration = Duration::from_secs(30);

/// The kinds of faults, by a part of their message, and the least number of them per run.
const FAULTS: [(&str, f64); 9] = [
    ("refused with", 1.0),
    ("request lost", 0.4),
    ("reply lost", 0.3),
    ("reply delayed", 0.4),
    ("delayed by", 1.0),
    ("reset", 0.2),
    ("Expired", 0.2),
    ("restarted", 1.5),
    ("history expired", 0.5),
];

/// Counts of the faults of several runs.
type Tally = BTreeMap<&'static str, u64>;

/// The objects that are stored: CPUs by pod, and secrets. One of each stays until the end.
#[derive(Default)]
struct Stored {
    pods: BTreeMap<String, u64>,
    secrets: BTreeSet<String>,
}

// === impl Stored ===

impl Stored {
    async fn step(&mut self, world: &World, random: &mut Random, number: u64) {
        let name = format!("o{number}");
        match random.below(9) {
            0..=2 => self.create_pod(world, &name, 1 + random.below(3)).await,
            3 => self.create_secret(world, &name).await,
            4 | 5 => self.delete_pod(world).await,
            6 => self.delete_secret(world).await,
            7 => self.end_pod(world).await,
            _ => self.create_twice(world).await,
        }
    }

    /// Creates a pod, unless admission refuses it.
    async fn create_pod(&mut self, world: &World, name: &str, cpu: u64) {
        if world.is_created(&pod(name, &cpu.to_string())).await {
            self.pods.insert(name.to_owned(), cpu);
        }
    }

    async fn create_secret(&mut self, world: &World, name: &str) {
        if world.is_created(&secret(name)).await {
            self.secrets.insert(name.to_owned());
        }
    }

    async fn delete_pod(&mut self, world: &World) {
        if let Some((name, cpu)) = self.pods.pop_first() {
            world.delete(&pod(&name, &cpu.to_string())).await;
        }
    }

    async fn delete_secret(&mut self, world: &World) {
        if let Some(name) = self.secrets.pop_first() {
            world.delete(&secret(&name)).await;
        }
    }

    /// Ends a pod: it stays, and is charged no more.
    async fn end_pod(&mut self, world: &World) {
        if let Some((name, cpu)) = self.pods.pop_last() {
            let ended = json!({"status": {"phase": "Succeeded"}});
            world.patch(&pod(&name, &cpu.to_string()), "/status", &ended).await;
        }
    }

    /// Creates a secret whose name is taken: admission charges it, and the create fails.
    async fn create_twice(&self, world: &World) {
        if let Some(name) = self.secrets.first() {
            assert!(!world.is_created(&secret(name)).await, "the name is taken");
        }
    }

    /// Returns the usage of pods, CPUs and secrets, those that stay until the end included.
    fn usage(&self, kept: u64) -> [u64; 3] {
        let count = |count: usize| kept + u64::try_from(count).unwrap_or(u64::MAX);
        let cpus: u64 = self.pods.values().sum();
        [count(self.pods.len()), kept + cpus, count(self.secrets.len())]
    }
}

#[test]
fn usage_converges_after_any_faults() {
    play(seeds(), converges);
}

#[test]
fn usage_equals_what_is_stored_after_one_period() {
    let Range { start, end } = seeds();
    play(start..start + (end - start).div_ceil(4), converges_with_a_period);
}

/// Plays each seed in virtual time, and checks the number of faults of each kind.
fn play<F: Future<Output = Tally>>(seeds: Range<u64>, converges: impl Fn(u64) -> F + Sync) {
    let (next, total) = (AtomicU64::new(seeds.start), Mutex::new(Tally::new()));
    let work = || {
        while let seed = next.fetch_add(1, Ordering::Relaxed)
            && seed < seeds.end
        {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .start_paused(true)
                .build()
                .expect("a runtime");
            let tally = runtime.block_on(Box::pin(converges(seed)));
            let mut total = total.lock();
            for (kind, count) in tally {
                *total.entry(kind).or_default() += count;
            }
        }
    };
    std::thread::scope(|scope| (0..THREADS).for_each(|_| drop(scope.spawn(work))));
    let (total, runs) = (total.into_inner(), seeds.end - seeds.start);
    if runs < 20 {
        return; // Too few for each kind of fault to be among them.
    }
    let runs = f64::from(u32::try_from(runs).expect("a number of seeds"));
    for (kind, per_run) in FAULTS {
        let count = f64::from(u32::try_from(total[kind]).unwrap_or(u32::MAX));
        assert!(count >= per_run * runs, "{kind}: {count} in {runs} runs, of {total:?}");
    }
}

/// Starts a cluster. The server of every other seed enforces quotas.
async fn start(seed: u64, options: Options) -> World {
    let is_enforcing = seed % 2 == 1;
    let world = World::seeded(seed, is_enforcing, options).await;
    let hard = json!({"pods": "9", "requests.cpu": "18", "secrets": "6"});
    world.create(&quota("q", &hard)).await;
    if is_enforcing {
        // Before the first status, admission refuses each create.
        world.wait_for_used("q", "pods=0,requests.cpu=0,secrets=0").await;
    }
    world.create(&pod("kept", "1")).await;
    world.create(&secret("kept")).await;
    world
}

/// Works under faults until they end. Returns what is stored then, and the faults.
async fn work(world: &World, seed: u64) -> (Stored, Tally) {
    let mut random = Random::new(Some(seed));
    let chaos = Chaos::of(0.3).with(FaultClass::WatchTorn, 0.15);
    let chaos = chaos.with(FaultClass::WatchEnded, 0.1).with(FaultClass::WatchExpired, 0.15);
    world.faults.chaos(Calls::any(), chaos);
    let (mut stored, mut tally) = (Stored::default(), Tally::new());
    for number in 0..OPERATIONS {
        stored.step(world, &mut random, number).await;
        match random.below(40) {
            0 => world.server.restart(),
            1 => world.server.expire_history(),
            _ => {}
        }
        sleep(Duration::from_millis(random.below(PAUSE_MS))).await;
    }
    world.faults.heal();
    // A watch that is open may still be due to break, at an event to come.
    world.server.restart();
    // The watches end.
    sleep(Duration::from_millis(5)).await;
    for (kind, _) in FAULTS {
        let entries = [world.faults.trace(), world.server.faults().trace()];
        let messages = entries.iter().flat_map(|trace| trace.messages());
        let count = messages.filter(|message| message.contains(kind)).count();
        tally.insert(kind, u64::try_from(count).unwrap_or(u64::MAX));
    }
    let current = timeout(RECOVERY, world.wait_for_current_caches(3)).await;
    assert!(current.is_ok(), "seed {seed}: the caches are late\n{:#?}", world.requests());
    (stored, tally)
}

/// Plays one seed with a periodic recount, and returns the faults.
async fn converges_with_a_period(seed: u64) -> Tally {
    let options = Options { sync_period: Some(PERIOD), ..Options::default() };
    let world = start(seed, options).await;
    let (stored, faults) = work(&world, seed).await;
    sleep(PERIOD + WITHIN).await;
    let (used, right) = (used(&world).await, stored.usage(1));
    assert_eq!(used, right, "seed {seed}\n{}", world.faults.trace());
    world.stop().await;
    faults
}

/// Plays one seed without a periodic recount, and returns the faults.
async fn converges(seed: u64) -> Tally {
    let world = start(seed, without_period()).await;
    let (stored, faults) = work(&world, seed).await;
    sleep(WITHIN).await;
    let (least, right) = (used(&world).await, stored.usage(1));
    let is_enough = least.iter().zip(right).all(|(used, right)| *used >= right);
    assert!(
        is_enough,
        "seed {seed}: used {least:?} of {right:?}\n{}{:#?}",
        world.faults.trace(),
        world.requests()
    );
    // A deletion of each resource lowers what a failed create or a late cache left too high.
    world.requests();
    world.delete(&pod("kept", "1")).await;
    world.delete(&secret("kept")).await;
    sleep(WITHIN).await;
    let (used, right) = (used(&world).await, stored.usage(0));
    assert_eq!(used, right, "seed {seed}\n{}{:#?}", world.faults.trace(), world.requests());
    sleep(Duration::from_secs(5)).await;
    world.requests();
    sleep(Duration::from_secs(60)).await;
    let requests = world.requests();
    let is_idle = |line: &&String| !line.contains("/api ") && !line.contains("/apis ");
    let busy: Vec<_> = requests.iter().filter(is_idle).collect();
    // Watches that have reached their end are opened again.
    assert!(busy.len() <= 3, "seed {seed}: requests at rest: {busy:#?}");
    assert!(busy.iter().all(|line| line.contains("watch=true")), "seed {seed}: {busy:#?}");
    world.stop().await;
    faults
}

/// Returns the usage of pods, CPUs and secrets that the status shows.
async fn used(world: &World) -> [u64; 3] {
    let used = world.used("q").await;
    let value = |name: &str| {
        let entry = used.split(',').find_map(|entry| entry.strip_prefix(name));
        entry.map_or(0, |value| value.parse().unwrap_or_else(|_| panic!("a count: {used}")))
    };
    ["pods=", "requests.cpu=", "secrets="].map(value)
}

/// Returns the seeds to run.
fn seeds() -> Range<u64> {
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    match number("HOMEOSTAT_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("HOMEOSTAT_SEEDS").unwrap_or(SEEDS).div_ceil(5),
    }
}
