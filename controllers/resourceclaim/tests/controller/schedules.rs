//! Random schedules: a user, a scheduler, faults below the controller's client, and crashes of the
//! controller. The server of every other seed enforces a quota of claims.
//!
//! The [witness](crate::witness) checks each change of a claim and of a pod at the time at which it
//! happens. Once the faults are over, each pod that needs claims has them, nothing else is left,
//! and the requests end.
//!
//! A fortieth of `HOMEOSTAT_SEEDS` is the number of seeds. `HOMEOSTAT_SEED` runs one seed alone.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::time::Duration;

use homeostat::kube_client::api::{DeleteParams, ListParams};
use homeostat_apiserver::cluster::ClaimScheduler;
use homeostat_core::Random;
use homeostat_faults::{Calls, Chaos, HeldWatches, Verb};
use homeostat_resourceclaim::Options;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::resource::v1::ResourceClaim;
use serde_json::json;
use tokio::time::sleep;

use crate::witness::{Tally, Witness};
use crate::world::{World, claim, on_node, pod, pod_with};

/// The number of seeds of which a fortieth is run, unless the environment sets it.
const SEEDS: u64 = 200;

/// The number of operations of a user, and the longest pause between two of them.
const OPERATIONS: u64 = 60;
const PAUSE_MS: u64 = 300;

/// The names of the pods. They are few, so that pods are created again under their name.
const NAMES: u64 = 6;

/// The claims that the user creates, and allocates at once.
const SHARED: [&str; 2] = ["shared-0", "shared-1"];

/// The number of claims that an enforcing server allows.
const LIMIT: u32 = 8;

/// Longer than each back-off after the faults.
const RECOVERY: Duration = Duration::from_secs(150);

/// The least counts per run.
const MINIMA: [(&str, f64); 8] = [
    ("claim created", 5.0),
    ("claim deleted", 2.0),
    ("reservation added", 3.0),
    ("reservation dropped", 2.0),
    ("allocation cleared", 0.5),
    ("claim recorded", 4.0),
    ("crash", 0.5),
    ("fault", 10.0),
];

/// A pod of the user.
struct UserPod {
    uid: String,
    /// The number of its entries with a template.
    entries: usize,
    /// The claim of the user that it names.
    shared: Option<&'static str>,
    /// True until it has ended: it may use its claims.
    is_live: bool,
    /// True if it runs until its grace period has passed.
    is_terminating: bool,
}

/// The user's view of a schedule.
struct Schedule {
    world: World,
    random: Random,
    witness: Witness,
    /// By name.
    pods: BTreeMap<String, UserPod>,
    crashes: u64,
    /// The watches of the controller that stand still: its caches are of different age.
    held: Vec<HeldWatches>,
    /// The watches and tasks before the controller started.
    at_work: (usize, usize),
    /// Kept for its `Drop`.
    _scheduler: ClaimScheduler,
}

#[test]
fn invariants_hold_in_any_schedule() {
    let mut total = Tally::new();
    let seeds = seeds();
    for seed in seeds.clone() {
        let tally = homeostat_testing::in_virtual_time(Box::pin(play(seed)));
        for (what, count) in tally {
            *total.entry(what).or_default() += count;
        }
    }
    let runs = f64::from(u32::try_from(seeds.end - seeds.start).unwrap());
    if runs < 10.0 {
        return; // Too few for each operation to be among them.
    }
    for (what, per_run) in MINIMA {
        let count = total.get(what).copied().unwrap_or_default();
        let count = f64::from(u32::try_from(count).unwrap());
        assert!(count >= per_run * runs, "{what}: {count} in {runs} runs, of {total:?}");
    }
}

/// Plays one seed, and returns what has happened.
async fn play(seed: u64) -> Tally {
    let mut schedule = Schedule::start(seed).await;
    let chaos = schedule.world.faults.chaos(Calls::any(), Chaos::of(0.15));
    for _ in 0..OPERATIONS {
        schedule.step().await;
        schedule.disturb().await;
        sleep(Duration::from_millis(1 + schedule.random.below(PAUSE_MS))).await;
    }
    let faults = chaos.hits();
    schedule.world.faults.heal();
    schedule.held.clear();
    schedule.world.restart_server();
    schedule.world.set_limit(1000).await;
    schedule.kill_terminating().await;
    sleep(RECOVERY).await;
    schedule.check_end().await;
    let mut tally = schedule.witness.tally();
    tally.insert("fault", faults);
    tally.insert("crash", schedule.crashes);
    tally
}

// === impl Schedule ===

impl Schedule {
    async fn start(seed: u64) -> Self {
        let mut world = World::seeded(seed, seed % 2 == 1).await;
        world.create_template("t").await;
        for name in SHARED {
            world.create::<ResourceClaim>(&claim(name)).await;
            world.allocate(name).await;
            world.report_device(name).await;
        }
        world.limit_claims(LIMIT).await;
        let scheduler = world.scheduler();
        let witness = Witness::start(&world.client, &SHARED).await;
        sleep(Duration::from_millis(1)).await;
        let at_work = world.at_work();
        world.start_as_deployed(Options::default());
        let (random, pods) = (Random::new(Some(seed)), BTreeMap::new());
        Self {
            world,
            random,
            witness,
            pods,
            crashes: 0,
            held: Vec::new(),
            at_work,
            _scheduler: scheduler,
        }
    }

    async fn step(&mut self) {
        let name = format!("p{}", self.random.below(NAMES));
        match (self.random.below(8), self.pods.contains_key(&name)) {
            (0..=5, false) => self.create(name).await,
            (0 | 1, true) => self.finish(&name).await,
            (2 | 3, true) => self.kill(&name).await,
            (4, true) => self.delete_gracefully(&name).await,
            (6, _) => self.delete_a_claim().await,
            (7, _) => self.world.set_limit(LIMIT).await,
            _ => {}
        }
    }

    /// Restarts the server or the controller, expires the history, or holds a watch, sometimes.
    async fn disturb(&mut self) {
        let watches = ["pods", "resourceclaims", "resourceclaimtemplates"];
        let watches = Calls::watch(watches[usize::try_from(self.random.below(3)).unwrap()]);
        match self.random.below(60) {
            0 => self.world.restart_server(),
            1 => self.world.expire_history(),
            4..8 => self.held.push(self.world.faults.hold_watches(watches)),
            8..11 => self.held.clear(),
            11 => drop(self.world.faults.expire_watches(watches)),
            2 | 3 => {
                self.crashes += 1;
                self.world.crash();
                sleep(Duration::from_millis(self.random.below(2000))).await;
                self.world.start_as_deployed(Options::default());
            }
            _ => {}
        }
    }

    /// Creates a pod with claims from a template or with a shared claim, with a node or without.
    async fn create(&mut self, name: String) {
        let shared = SHARED[usize::from(self.random.below(2) == 0)];
        let (entries, object) = match self.random.below(4) {
            0 | 1 => {
                let entries = 1 + usize::try_from(self.random.below(3)).unwrap();
                (entries, pod(&name, &vec!["t"; entries]))
            }
            2 => {
                (0, on_node(pod_with(&name, &json!([{"name": "s", "resourceClaimName": shared}]))))
            }
            _ => (2, on_node(pod(&name, &["t", "t"]))),
        };
        let created: Pod = self.world.create(&object).await;
        let uid = created.metadata.uid.unwrap();
        self.witness.lives(&uid);
        let shared = (entries == 0).then_some(shared);
        self.pods
            .insert(name, UserPod { uid, entries, shared, is_live: true, is_terminating: false });
    }

    async fn finish(&mut self, name: &str) {
        let pod = self.pods.get_mut(name).unwrap();
        if !pod.is_live {
            return;
        }
        pod.is_live = false;
        self.witness.ends(&pod.uid);
        self.world.set_phase(name, "Succeeded").await;
    }

    async fn kill(&mut self, name: &str) {
        let pod = self.pods.remove(name).unwrap();
        self.witness.ends(&pod.uid);
        self.world.kill(name).await;
    }

    /// Deletes a pod. One that runs stays with its claims until it is killed.
    async fn delete_gracefully(&mut self, name: &str) {
        let stored = self.world.pods().get(name).await.unwrap();
        let is_scheduled = stored.spec.unwrap().node_name.is_some();
        if !is_scheduled || !self.pods[name].is_live {
            return self.kill(name).await;
        }
        drop(self.world.pods().delete(name, &DeleteParams::default()).await.unwrap());
        self.pods.get_mut(name).unwrap().is_terminating = true;
    }

    /// Kills the pods whose grace period has not passed.
    async fn kill_terminating(&mut self) {
        let terminating = self.pods.iter().filter(|(_, pod)| pod.is_terminating);
        let names: Vec<_> = terminating.map(|(name, _)| name.clone()).collect();
        for name in names {
            self.kill(&name).await;
        }
    }

    /// Deletes a claim of a template, as a user who should not.
    async fn delete_a_claim(&mut self) {
        let claims = self.world.claims().list(&ListParams::default()).await.unwrap().items;
        let generated: Vec<_> =
            claims.into_iter().filter(|claim| claim.metadata.owner_references.is_some()).collect();
        if generated.is_empty() {
            return;
        }
        let place = self.random.below(u64::try_from(generated.len()).unwrap());
        let metadata = &generated[usize::try_from(place).unwrap()].metadata;
        self.witness.is_deleted_by_user(metadata.uid.as_deref().unwrap());
        let name = metadata.name.as_deref().unwrap();
        drop(self.world.claims().delete(name, &DeleteParams::default()).await.unwrap());
    }

    /// Checks that each pod has what it needs, that nothing else is left, and that requests end.
    async fn check_end(&mut self) {
        let seed = &self.world.seed;
        let trace = self.world.faults.trace();
        let violations = self.witness.violations();
        assert!(violations.is_empty(), "seed {seed}: {violations:#?}\n{trace}");
        let mut left: BTreeSet<_> = self.world.claim_names().await.into_iter().collect();
        for (name, pod) in self.pods.iter().filter(|(_, pod)| pod.is_live) {
            let recorded = self.world.recorded(name).await;
            assert_eq!(recorded.len(), pod.entries, "seed {seed}: {name}: {recorded:?}\n{trace}");
            for (entry, claim) in recorded {
                let found = self.world.claims().get(&claim).await;
                let owner = found.map(|claim| claim.metadata.owner_references.unwrap());
                let owner = owner.map(|owners| owners[0].uid.clone());
                assert_eq!(owner.ok().as_ref(), Some(&pod.uid), "seed {seed}: {entry}\n{trace}");
                left.remove(&claim);
            }
        }
        left.retain(|name| !SHARED.contains(&name.as_str()));
        assert!(left.is_empty(), "seed {seed}: claims without use: {left:?}\n{trace}");
        for shared in SHARED {
            let is_user = |pod: &&UserPod| pod.is_live && pod.shared == Some(shared);
            let users = self.pods.values().filter(is_user).count();
            let consumers = self.world.consumers(shared).await;
            // A claim that was deallocated since is not reserved: nothing allocates it again.
            if self.world.is_allocated(shared).await {
                assert_eq!(consumers.len(), users, "seed {seed}: {shared}: {consumers:?}\n{trace}");
            } else {
                assert!(consumers.is_empty(), "seed {seed}: {shared}: {consumers:?}\n{trace}");
            }
        }
        let requests = |world: &World| {
            let all = world.faults.requests().into_iter();
            let work = all.filter(|((verb, _), _)| !matches!(verb, Verb::Watch | Verb::List));
            work.map(|(_, count)| count).sum::<u64>()
        };
        let before = requests(&self.world);
        sleep(Duration::from_secs(60)).await;
        assert_eq!(requests(&self.world), before, "seed {}: requests at rest", self.world.seed);
        self.world.stop().await;
        sleep(Duration::from_secs(1)).await;
        assert_eq!(self.world.at_work(), self.at_work, "seed {}: left", self.world.seed);
    }
}

/// Returns the seeds to run.
fn seeds() -> Range<u64> {
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    match number("HOMEOSTAT_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("HOMEOSTAT_SEEDS").unwrap_or(SEEDS).div_ceil(40),
    }
}
