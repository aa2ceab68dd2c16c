//! An informer with its readers and handlers, and the checks after the faults are over.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::ensure;
use futures::FutureExt as _;
use futures::future::LocalBoxFuture;
use homeostat::informer::fifo::DeltaFifo;
use homeostat::informer::status::ReflectorError;
use homeostat::informer::{
    BackoffConfig, Index, Lazy, Lister, Metadata, ObjectMeta, SharedIndexInformer,
};
use homeostat::kube_client::Client;
use k8s_openapi::api::core::v1::ConfigMap;

use super::dice::Dice;
use super::handler::{Handler, Manner};
use super::source::Source;
use super::weight::{Counted, Weight, metadata_truth};
use super::{Pace, State, Tally, Truth};

/// An informer of any object representation.
pub(super) trait Watching {
    fn start(&self);

    /// Adds or removes a handler now and then.
    fn change_handlers(&mut self) -> LocalBoxFuture<'_, ()>;

    /// Checks what must hold at any time, however late the informer is.
    ///
    /// # Errors
    ///
    /// Returns the first violation.
    fn is_valid(&self, set_back: bool) -> anyhow::Result<()>;

    /// Compares everything with the server's state.
    ///
    /// # Errors
    ///
    /// Returns the first difference.
    fn agrees_with(&self, truth: &State) -> anyhow::Result<()>;

    fn count(&self, tally: &mut Tally);

    /// Stops the informer; after that no handler is called.
    fn stop(self: Box<Self>) -> LocalBoxFuture<'static, ()>;
}

/// An informer of representation `K`, its readers and its handlers.
struct Mirror<K: Weight> {
    informer: SharedIndexInformer<K>,
    lister: Lister<K>,
    by_tens: Index<K, u64>,
    by_namespace: Index<K, String>,
    handlers: Vec<Handler<K>>,
    dice: Dice,
    pace: Pace,
    source: Source,
    /// The settings it was made with.
    features: Vec<String>,
    /// The number of expired-version errors.
    expired: Arc<AtomicUsize>,
}

/// The number of handlers added before the informer starts, and while it runs.
const HANDLERS: (usize, usize) = (2, 3);

/// Returns an informer of a random representation that uses this client.
pub(super) fn any(client: &Client, mut dice: Dice, pace: Pace) -> Box<dyn Watching> {
    match dice.below(6) {
        0..3 => Box::new(Mirror::<Counted>::new(client, dice, pace)),
        3 => Box::new(Mirror::<ConfigMap>::new(client, dice, pace)),
        4 => Box::new(Mirror::<Lazy<Counted>>::new(client, dice, pace)),
        _ => Box::new(Mirror::<Metadata<ConfigMap>>::new(client, dice, pace)),
    }
}

/// Returns one informer of each representation.
pub(super) fn all(client: &Client, dice: &mut Dice, pace: Pace) -> Vec<Box<dyn Watching>> {
    vec![
        Box::new(Mirror::<Counted>::new(client, dice.fork(), pace)),
        Box::new(Mirror::<ConfigMap>::new(client, dice.fork(), pace)),
        Box::new(Mirror::<Lazy<Counted>>::new(client, dice.fork(), pace)),
        Box::new(Mirror::<Metadata<ConfigMap>>::new(client, dice.fork(), pace)),
    ]
}

// === impl Mirror ===

impl<K: Weight> Mirror<K> {
    fn new(client: &Client, mut dice: Dice, pace: Pace) -> Self {
        let source = Source::any(&mut dice);
        let expired = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&expired);
        let coalesces = dice.one_in(3);
        let informer = source
            .builder(client)
            .seed(dice.below(u64::MAX))
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
        let mut features = vec![format!("weight: {}", K::NAME), format!("fifo: {fifo}")];
        features.extend(source.names().map(|name| format!("list-watch: {name}")));
        let handlers = Vec::new();
        let mut mirror = Self {
            informer,
            lister,
            by_tens,
            by_namespace,
            handlers,
            dice,
            pace,
            source,
            features,
            expired,
        };
        mirror.add_handler(Manner::default());
        while mirror.handlers.len() < HANDLERS.0 {
            mirror.add_any_callback();
        }
        if mirror.dice.one_in(3) {
            mirror.add_stream();
        }
        mirror
    }

    fn add_any_handler(&mut self) {
        if self.dice.one_in(4) {
            self.add_stream();
        } else {
            self.add_any_callback();
        }
    }

    fn add_any_callback(&mut self) {
        let mut yes = || self.dice.one_in(3);
        let manner = Manner { filters: yes(), resyncs: yes(), coalesces: yes() };
        self.add_handler(manner);
    }

    fn add_stream(&mut self) {
        self.features.push("handler: streams".to_owned());
        self.handlers.push(Handler::stream(&self.informer, self.handlers.len()));
    }

    fn add_handler(&mut self, manner: Manner) {
        let resync = manner.resyncs.then(|| self.dice.pick(self.pace.resyncs));
        self.features.extend(manner.names().map(|name| format!("handler: {name}")));
        self.handlers.push(Handler::callback(&self.informer, self.handlers.len(), manner, resync));
    }

    async fn remove_handler(&mut self) {
        let handler = self.handlers.swap_remove(HANDLERS.0);
        let name = handler.name.clone();
        let more = handler.remove().await;
        if let Some(first) = self.handlers.first() {
            let about = || format!("{name} gets {more} events after its removal");
            first.witness.lock().complain_if(more > 0, about);
        }
    }

    /// Returns the store's state. Opaque objects cannot be listed, so they are read by key.
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
        self.handlers.iter().try_for_each(|handler| handler.is_valid(set_back))
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
        // Several collections have reached the version that the last one has reached.
        let is_behind = Some(reached) < newest && !self.source.merges;
        ensure!(!is_behind, "the store is at {reached} and has {newest:?}");
        self.handlers.iter().try_for_each(|handler| handler.agrees_with(&truth))?;
        let notes = self.lister.list().iter().filter(|object| object.has_note()).count();
        let wanted = if K::HAS_NOTE && !self.source.prunes { self.lister.len() } else { 0 };
        ensure!(notes == wanted, "{notes} objects have a note, not {wanted}");
        self.indices_agree_with(&truth)
    }

    fn count(&self, tally: &mut Tally) {
        self.features.iter().for_each(|feature| tally.add(feature, 1));
        tally.add("expired versions", self.expired.load(Ordering::Relaxed));
        for handler in &self.handlers {
            tally.count_events(handler.witness.lock().counts());
        }
        // Both handlers exist from the start. The plain one received more events, because the other
        // merged them.
        if let [
            all,
            Handler { manner: Manner { filters: false, coalesces: true, .. }, witness, .. },
            ..,
        ] = &*self.handlers
        {
            let plain = witness.lock().count("updated");
            let merged = all.witness.lock().count("updated").saturating_sub(plain);
            tally.add("states merged", merged);
        }
    }

    fn stop(self: Box<Self>) -> LocalBoxFuture<'static, ()> {
        async move { self.informer.stop().await }.boxed_local()
    }
}

fn is_expired(error: &ReflectorError) -> bool {
    match error {
        ReflectorError::List(error) => error.is_expired(),
        ReflectorError::Watch(error) => error.is_expired(),
        _ => false,
    }
}

/// Returns the library's back-off, or a shorter one that leaves more time for faults.
fn backoff(hasty: bool) -> BackoffConfig {
    let mut backoff = BackoffConfig::default();
    if hasty {
        backoff.initial = Duration::from_millis(20);
        backoff.max = Duration::from_secs(1);
        backoff.reset_after = Duration::from_secs(5);
    }
    backoff
}
