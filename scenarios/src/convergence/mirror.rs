//! An informer with its handlers, and what can be asked of it once the faults are over.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use anyhow::ensure;
use futures::FutureExt as _;
use futures::future::LocalBoxFuture;
use homeostat::informer::{
    BackoffConfig, DeltaFifo, Event, HandlerOptions, Index, KubeListWatch, Lazy, Lister, Metadata,
    ObjectMeta, ReflectorError, SharedIndexInformer, Subscription,
};
use homeostat::kube_client::Client;
use k8s_openapi::api::core::v1::ConfigMap;
use parking_lot::Mutex;

use super::weight::{Counted, Weight, metadata_truth};
use super::witness::Witness;
use super::{Pace, SELECTOR, State, Tally, Truth, dice::Dice};

/// An informer of any weight.
pub(super) trait Watching {
    fn start(&self);

    /// Now and then a handler comes late, or goes.
    fn change_handlers(&mut self) -> LocalBoxFuture<'_, ()>;

    /// What can never be, however late it is.
    ///
    /// # Errors
    ///
    /// If it is.
    fn is_valid(&self, set_back: bool) -> anyhow::Result<()>;

    /// What is not yet as it has to be when the server has this.
    ///
    /// # Errors
    ///
    /// The first difference.
    fn agrees_with(&self, truth: &State) -> anyhow::Result<()>;

    fn count(&self, tally: &mut Tally);

    /// Stops the informer; after that no handler is called.
    fn stop(self: Box<Self>) -> LocalBoxFuture<'static, ()>;
}

/// An informer of weight `K`, what reads it, and who is told by it.
struct Mirror<K: Weight> {
    informer: SharedIndexInformer<K>,
    lister: Lister<K>,
    by_tens: Index<K, u64>,
    by_namespace: Index<K, String>,
    handlers: Vec<Handler<K>>,
    dice: Dice,
    pace: Pace,
    /// How it was made.
    features: Vec<String>,
    /// How often the server had forgotten where it was.
    expired: Arc<AtomicUsize>,
}

struct Handler<K> {
    name: String,
    manner: Manner,
    subscription: Subscription,
    witness: Arc<Mutex<Witness<K>>>,
}

/// How a handler wants to be told.
#[derive(Debug, Clone, Copy, Default)]
struct Manner {
    filters: bool,
    resyncs: bool,
    coalesces: bool,
}

/// How many handlers are added before the informer starts, and while it runs.
const HANDLERS: (usize, usize) = (2, 3);

/// An informer of some weight, which asks through this client.
pub(super) fn any(client: Client, mut dice: Dice, pace: Pace) -> Box<dyn Watching> {
    match dice.below(6) {
        0..3 => Box::new(Mirror::<Counted>::new(client, dice, pace)),
        3 => Box::new(Mirror::<ConfigMap>::new(client, dice, pace)),
        4 => Box::new(Mirror::<Lazy<Counted>>::new(client, dice, pace)),
        _ => Box::new(Mirror::<Metadata<ConfigMap>>::new(client, dice, pace)),
    }
}

/// One of each weight.
pub(super) fn all(client: &Client, dice: &mut Dice, pace: Pace) -> Vec<Box<dyn Watching>> {
    vec![
        Box::new(Mirror::<Counted>::new(client.clone(), dice.fork(), pace)),
        Box::new(Mirror::<ConfigMap>::new(client.clone(), dice.fork(), pace)),
        Box::new(Mirror::<Lazy<Counted>>::new(client.clone(), dice.fork(), pace)),
        Box::new(Mirror::<Metadata<ConfigMap>>::new(client.clone(), dice.fork(), pace)),
    ]
}

// === impl Mirror ===

impl<K: Weight> Mirror<K> {
    fn new(client: Client, mut dice: Dice, pace: Pace) -> Self {
        let list_watch = KubeListWatch::<K>::new(client, None).label_selector(SELECTOR);
        let expired = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&expired);
        let coalesces = dice.one_in(3);
        let informer = SharedIndexInformer::builder(list_watch)
            .seed(dice.below(u64::MAX))
            .watch_list(dice.one_in(2))
            .page_size(dice.pick(&[1, 3, 500]))
            .backoff(backoff(pace.is_real || dice.one_in(2)))
            .delta_fifo(if coalesces { DeltaFifo::coalescing() } else { DeltaFifo::in_order() })
            .error_handler(move |error| {
                count.fetch_add(usize::from(is_expired(error)), Ordering::Relaxed);
            })
            .build();
        let lister = informer.lister();
        let by_tens = informer.index(|object: &K| object.number().map(|number| number / 10));
        let by_namespace =
            informer.index_by_metadata(|object: &ObjectMeta| object.namespace.clone());
        let fifo = if coalesces { "coalescing" } else { "in order" };
        let features = vec![format!("weight: {}", K::NAME), format!("fifo: {fifo}")];
        let handlers = Vec::new();
        let mut mirror = Self {
            informer,
            lister,
            by_tens,
            by_namespace,
            handlers,
            dice,
            pace,
            features,
            expired,
        };
        mirror.add_handler(Manner::default());
        while mirror.handlers.len() < HANDLERS.0 {
            mirror.add_any_handler();
        }
        mirror
    }

    fn add_any_handler(&mut self) {
        let mut yes = || self.dice.one_in(3);
        let manner = Manner { filters: yes(), resyncs: yes(), coalesces: yes() };
        self.add_handler(manner);
    }

    fn add_handler(&mut self, manner: Manner) {
        let name = format!("witness {}, {manner:?}", self.handlers.len());
        let mut options = HandlerOptions::new(name.as_str());
        if manner.filters {
            options = options.filter(|object: &K| is_wanted(&object.truth()));
        }
        if manner.resyncs {
            options = options.resync(self.dice.pick(self.pace.resyncs));
        }
        if manner.coalesces {
            options = options.coalesce();
        }
        self.features.extend(manner.names().map(|name| format!("handler: {name}")));
        let witness = Arc::new(Mutex::new(Witness::new(manner.resyncs)));
        let told = Arc::clone(&witness);
        let called = AtomicBool::new(false);
        let see = move |event: Event<K>| {
            let twice = called.swap(true, Ordering::AcqRel);
            let mut witness = told.lock();
            witness.complain_if(twice, || "two calls at the same time".to_owned());
            witness.see(event);
            called.store(false, Ordering::Release);
        };
        let subscription = self.informer.add_handler(options, see);
        self.handlers.push(Handler { name, manner, subscription, witness });
    }

    async fn remove_handler(&mut self) {
        let Handler { name, subscription, witness, .. } = self.handlers.swap_remove(HANDLERS.0);
        subscription.remove().await;
        let seen = witness.lock().events();
        tokio::task::yield_now().await;
        let more = witness.lock().events() - seen;
        if let Some(first) = self.handlers.first() {
            let about = || format!("{name} gets {more} events after its removal");
            first.witness.lock().complain_if(more > 0, about);
        }
    }

    /// What the store has. It cannot be asked for all that does not fit: hence the keys.
    fn store(&self, truth: &State) -> State {
        let fits = self.lister.list();
        let fits = fits.iter().map(|object| (object.key().to_string(), object.truth()));
        let mut store: State = fits.collect();
        let opaque = truth.keys().filter_map(|key| {
            let (namespace, name) = key.split_once('/')?;
            let metadata = self.lister.opaque((namespace, name))?;
            Some((key.clone(), metadata_truth(&metadata)))
        });
        let before = store.len();
        store.extend(opaque);
        if store.len() != before + self.lister.opaque_len() {
            store.insert("opaque objects that the server does not have".into(), Truth::default());
        }
        store
    }

    fn indices_agree_with(&self, truth: &State) -> anyhow::Result<()> {
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
        for namespace in super::workload::NAMESPACES {
            let found = self.by_namespace.keys(namespace).len();
            let count = truth.keys().filter(|key| key.split('/').next() == Some(namespace)).count();
            ensure!(found == count, "the index has {found} objects in {namespace}, not {count}");
        }
        Ok(())
    }
}

impl<K: Weight> Watching for Mirror<K> {
    fn start(&self) {
        self.informer.start();
    }

    fn change_handlers(&mut self) -> LocalBoxFuture<'_, ()> {
        async {
            if self.handlers.len() < HANDLERS.0 + HANDLERS.1 && self.dice.one_in(4) {
                self.add_any_handler();
            } else if self.handlers.len() > HANDLERS.0 && self.dice.one_in(8) {
                self.remove_handler().await;
            }
        }
        .boxed_local()
    }

    fn is_valid(&self, set_back: bool) -> anyhow::Result<()> {
        for Handler { name, subscription, witness, .. } in &self.handlers {
            let witness = witness.lock();
            ensure!(witness.complaints().is_empty(), "{name}: {:#?}", witness.complaints());
            let went_back = witness.went_back();
            ensure!(set_back || went_back.is_empty(), "{name}: {went_back:#?}");
            ensure!(subscription.panics() == 0, "{name} has panicked");
        }
        Ok(())
    }

    fn agrees_with(&self, truth: &State) -> anyhow::Result<()> {
        let sight = |(key, truth): (&String, &Truth)| (key.clone(), K::sight(truth.clone()));
        let truth: State = truth.iter().map(sight).collect();
        let store = self.store(&truth);
        let error = self.informer.last_error();
        ensure!(store == truth, "the store has {store:#?}\nand not {truth:#?}\n{error:?}");
        let reached = self.informer.store_resource_version();
        let reached = reached.and_then(|version| version.as_str().parse::<u64>().ok()).unwrap_or(0);
        let newest = truth.values().filter_map(|(_, version, _)| version.parse().ok()).max();
        ensure!(Some(reached) >= newest, "the store is at {reached} and has {newest:?}");
        for Handler { name, manner, subscription, witness } in &self.handlers {
            let shadow = witness.lock().shadow();
            let mut wanted = truth.clone();
            wanted.retain(|_, truth| !manner.filters || is_wanted(truth));
            ensure!(shadow == wanted, "{name} believes {shadow:#?}\nand not {wanted:#?}");
            ensure!(subscription.has_synced(), "{name} has all events, but is not synced");
        }
        self.indices_agree_with(&truth)
    }

    fn count(&self, tally: &mut Tally) {
        self.features.iter().for_each(|feature| tally.add(feature, 1));
        tally.add("expired versions", self.expired.load(Ordering::Relaxed));
        for handler in &self.handlers {
            tally.count_events(handler.witness.lock().counts());
        }
        // Both were there from the begin: what one was told more was over before the other got to it.
        if let [
            all,
            Handler { manner: Manner { filters: false, coalesces: true, .. }, witness, .. },
            ..,
        ] = &*self.handlers
        {
            let told = witness.lock().count("updated");
            let left_out = all.witness.lock().count("updated").saturating_sub(told);
            tally.add("states left out", left_out);
        }
    }

    fn stop(self: Box<Self>) -> LocalBoxFuture<'static, ()> {
        async move { self.informer.stop().await }.boxed_local()
    }
}

// === impl Manner ===

impl Manner {
    fn names(self) -> impl Iterator<Item = &'static str> {
        let names =
            [(self.filters, "filters"), (self.resyncs, "resyncs"), (self.coalesces, "coalesces")];
        names.into_iter().filter_map(|(is_so, name)| is_so.then_some(name))
    }
}

/// What a handler that filters wants: what is even, and whatever has no number.
fn is_wanted((_, _, number): &Truth) -> bool {
    number.is_none_or(|number| number.is_multiple_of(2))
}

fn is_expired(error: &ReflectorError) -> bool {
    match error {
        ReflectorError::List(error) => error.is_expired(),
        ReflectorError::Watch(error) => error.is_expired(),
        _ => false,
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
