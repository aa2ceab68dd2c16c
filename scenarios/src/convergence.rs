//! An informer is put through a random workload and random faults of the wire; once they stop, everything it has told
//! has to agree with the server.

mod counted;
mod dice;
mod tally;
mod troubles;
mod witness;
mod workload;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use anyhow::{Context as _, bail, ensure};
use homeostat::informer::{
    BackoffConfig, Index, KubeListWatch, Lister, SharedIndexInformer, Subscription,
};
use homeostat::kube_client::{Api, Client, api::ListParams};
use homeostat_apiserver::{ApiServer, Duplex};
use k8s_openapi::api::core::v1::ConfigMap;
use parking_lot::Mutex;
use tokio::time::{Instant, sleep};

pub use self::tally::Tally;
use self::{
    counted::{Counted, number_of},
    dice::Dice,
    troubles::Troubles,
    witness::Witness,
    workload::Workload,
};

/// How an informer asks the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wire {
    /// Function calls: the fastest.
    InProcess,
    /// HTTP/1.1 through pipes in memory.
    Pipe,
}

/// One run: what happens follows from the seed alone.
#[derive(Debug, Clone, Copy)]
pub struct Convergence {
    /// Where all chance comes from.
    pub seed: u64,
    /// How the informer asks.
    pub wire: Wire,
}

/// An object as all who look at it have to see it: its uid, its version, and its number if it fits its type.
type Truth = (String, String, Option<u64>);

/// Only objects with this label are watched, so that objects come and go without being made or deleted.
const SELECTOR: &str = "watched=yes";

/// How long it may take until all agree once the faults are over. A watch that has gone silent is given up after the
/// longest time-out that the informer asks for, ten minutes; then it may be backing off.
const PATIENCE: Duration = Duration::from_secs(20 * 60);

/// How many handlers are added before the informer starts, and while it runs.
const HANDLERS: (usize, usize) = (2, 3);

/// Everything that is looked at.
struct Scene {
    server: ApiServer,
    user: Client,
    informer: SharedIndexInformer<Counted>,
    lister: Lister<Counted>,
    by_tens: Index<Counted, u64>,
    handlers: Vec<Handler>,
    /// Held for its `Drop`.
    _pipe: Option<Duplex>,
}

struct Handler {
    name: String,
    subscription: Subscription,
    witness: Arc<Mutex<Witness>>,
}

// === impl Convergence ===

impl Convergence {
    /// Runs it, in virtual time, and says what happened.
    ///
    /// # Errors
    ///
    /// What did not agree, and the trace of every fault.
    pub async fn run(self) -> anyhow::Result<Tally> {
        let server = ApiServer::builder().seed(self.seed).build();
        let trace = server.faults();
        let before = alive_tasks();
        let tally = self.act(server).await.with_context(|| {
            format!("seed {} over {:?}\n{}", self.seed, self.wire, trace.trace())
        })?;
        settle(before).await.with_context(|| format!("seed {} over {:?}", self.seed, self.wire))?;
        Ok(tally)
    }

    async fn act(self, server: ApiServer) -> anyhow::Result<Tally> {
        let mut dice = Dice::new(self.seed);
        let mut scene = Scene::new(self, server, &mut dice);
        let workload = Workload::new(scene.user.clone(), dice.fork());
        let mut troubles = Troubles::new(&scene.server, dice.fork());
        scene.informer.start();
        let work = workload.run();
        tokio::pin!(work);
        loop {
            tokio::select! {
                biased;
                () = &mut work => break,
                () = sleep(dice.millis(6000)) => {
                    scene.change_handlers(&mut dice).await;
                    troubles.step();
                }
            }
        }
        let set_back = troubles.end();
        let mut tally = Tally::default();
        tally.count_requests(&scene.server.faults());
        scene.agree(set_back, &mut tally).await?;
        tally.count_faults(&scene.server.faults());
        scene.end().await;
        Ok(tally)
    }
}

// === impl Scene ===

impl Scene {
    fn new(run: Convergence, server: ApiServer, dice: &mut Dice) -> Self {
        let pipe = (run.wire == Wire::Pipe).then(|| server.duplex());
        let client = match &pipe {
            None => server.client_as("informer"),
            Some(pipe) => pipe.client_as("informer"),
        };
        let list_watch = KubeListWatch::new(client, None).label_selector(SELECTOR);
        let informer = SharedIndexInformer::builder(list_watch)
            .seed(run.seed)
            .watch_list(dice.one_in(2))
            .page_size(dice.pick(&[1, 3, 500]))
            .backoff(backoff(dice.one_in(2)))
            .build();
        let lister = informer.lister();
        let by_tens = informer.index(|object: &Counted| object.number().map(|number| number / 10));
        let user = server.client_as("user");
        let handlers = Vec::new();
        let mut scene = Self { server, user, informer, lister, by_tens, handlers, _pipe: pipe };
        for _ in 0..HANDLERS.0 {
            scene.add_handler();
        }
        scene
    }

    fn add_handler(&mut self) {
        let witness = Arc::new(Mutex::new(Witness::default()));
        let told = Arc::clone(&witness);
        let name = format!("witness {}", self.handlers.len());
        let see = move |event| told.lock().see(event);
        let subscription = self.informer.add_handler(name.as_str(), see);
        self.handlers.push(Handler { name, subscription, witness });
    }

    /// Now and then a handler comes late, or goes.
    async fn change_handlers(&mut self, dice: &mut Dice) {
        if self.handlers.len() < HANDLERS.0 + HANDLERS.1 && dice.one_in(4) {
            self.add_handler();
        } else if self.handlers.len() > HANDLERS.0 && dice.one_in(8) {
            let Handler { subscription, witness, .. } = self.handlers.swap_remove(HANDLERS.0);
            subscription.remove().await;
            let seen = witness.lock().events();
            tokio::task::yield_now().await;
            let more = witness.lock().events() - seen;
            witness.lock().complain_if(more > 0, || format!("{more} events after its removal"));
        }
    }

    /// Waits until the store shows what the server has, and then asks everybody.
    async fn agree(&self, set_back: bool, tally: &mut Tally) -> anyhow::Result<()> {
        let deadline = Instant::now() + PATIENCE;
        let truth = loop {
            let (truth, version) = self.truth().await?;
            let store = self.store(&truth);
            if store == truth && self.is_quiet() {
                break truth;
            }
            let error = self.informer.last_error();
            ensure!(
                Instant::now() < deadline,
                "the store never agrees with {version}: {store:#?}\n{truth:#?}\n{error:?}"
            );
            sleep(Duration::from_secs(5)).await;
        };
        self.handlers.iter().for_each(|handler| tally.count_events(&handler.witness.lock()));
        self.check(&truth, set_back)
    }

    /// Whether every handler has been told everything.
    fn is_quiet(&self) -> bool {
        self.handlers.iter().all(|handler| handler.subscription.queued() == 0)
    }

    /// What the server has, and at which version.
    async fn truth(&self) -> anyhow::Result<(BTreeMap<String, Truth>, String)> {
        let maps = Api::<ConfigMap>::all(self.user.clone());
        let list = maps.list(&ListParams::default().labels(SELECTOR)).await?;
        let truth = list.items.into_iter().map(|map| {
            let number = number_of(map.data.as_ref());
            let metadata = map.metadata;
            let key = [metadata.namespace, metadata.name].map(Option::unwrap_or_default).join("/");
            let (uid, version) = (metadata.uid, metadata.resource_version);
            (key, (uid.unwrap_or_default(), version.unwrap_or_default(), number))
        });
        Ok((truth.collect(), list.metadata.resource_version.unwrap_or_default()))
    }

    /// The same, as the store has it. It cannot be asked for all that does not fit: hence the keys.
    fn store(&self, truth: &BTreeMap<String, Truth>) -> BTreeMap<String, Truth> {
        let fits = self.lister.list();
        let fits = fits.iter().map(|object| (object.text_key(), object.truth()));
        let mut store: BTreeMap<_, _> = fits.collect();
        let opaque = truth.keys().filter_map(|key| {
            let (namespace, name) = key.split_once('/')?;
            let metadata = self.lister.opaque((namespace, name))?;
            Some((key.clone(), counted::opaque_truth(&metadata)))
        });
        let before = store.len();
        store.extend(opaque);
        if store.len() != before + self.lister.opaque_len() {
            store.insert("opaque objects that the server does not have".into(), Truth::default());
        }
        store
    }

    fn check(&self, truth: &BTreeMap<String, Truth>, set_back: bool) -> anyhow::Result<()> {
        for Handler { name, subscription, witness } in &self.handlers {
            let witness = witness.lock();
            ensure!(witness.complaints().is_empty(), "{name}: {:#?}", witness.complaints());
            let went_back = witness.went_back();
            ensure!(set_back || went_back.is_empty(), "{name}: {went_back:#?}");
            ensure!(witness.shadow() == *truth, "{name}: {:#?}\n{truth:#?}", witness.shadow());
            ensure!(subscription.has_synced(), "{name} has all events, but is not synced");
            ensure!(subscription.panics() == 0, "{name} has panicked");
        }
        let mut tens = BTreeMap::<u64, usize>::new();
        for number in truth.values().filter_map(|(_, _, number)| *number) {
            *tens.entry(number / 10).or_default() += 1;
        }
        let mut indexed = self.by_tens.values();
        indexed.sort_unstable();
        ensure!(indexed.iter().eq(tens.keys()), "the index has {indexed:?}, not {tens:?}");
        for (ten, count) in tens {
            let found = self.by_tens.get(&ten).len();
            ensure!(found == count, "the index has {found} objects with {ten}, not {count}");
        }
        Ok(())
    }

    /// Stops the informer; after that no handler is called.
    async fn end(self) {
        self.informer.stop().await;
    }
}

/// That of the library, or one that leaves more time for trouble.
fn backoff(hasty: bool) -> BackoffConfig {
    let mut backoff = BackoffConfig::default();
    if hasty {
        backoff.initial = Duration::from_millis(20);
        backoff.max = Duration::from_secs(1);
        backoff.reset_after = Duration::from_secs(5);
    }
    backoff
}

fn alive_tasks() -> usize {
    tokio::runtime::Handle::current().metrics().num_alive_tasks()
}

/// Waits until no more tasks are there than before: all that was spawned was joined, and the server has noticed that its
/// clients are gone.
async fn settle(before: usize) -> anyhow::Result<()> {
    for _ in 0..100 {
        if alive_tasks() <= before {
            return Ok(());
        }
        sleep(Duration::from_millis(10)).await;
    }
    bail!("{} tasks are left, {before} were there before", alive_tasks())
}
