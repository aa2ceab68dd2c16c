//! A server of one kind, played by a task.

use std::collections::BTreeMap;
use std::sync::Arc;

use homeostat::informer::testing::{ScriptedListWatch, ScriptedRequest, ScriptedWatch};
use homeostat::kube_client::Resource;
use homeostat::{Object, SharedIndexInformer};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Holds objects, and sends an informer their changes.
pub(crate) struct Script<K: Object> {
    pub(crate) informer: SharedIndexInformer<K>,
    state: Arc<Mutex<State<K>>>,
    answering: watch::Sender<bool>,
    _server: JoinSet<()>,
}

struct State<K> {
    objects: BTreeMap<String, K>,
    version: u64,
    watch: Option<ScriptedWatch<K>>,
}

// === impl Script ===

impl<K> Script<K>
where
    K: Object + Resource<DynamicType = ()> + Clone,
{
    pub(crate) fn new(objects: impl IntoIterator<Item = K>) -> Self {
        let server = ScriptedListWatch::new();
        let state = State { objects: BTreeMap::new(), version: 1, watch: None };
        let state = Arc::new(Mutex::new(state));
        let (answering, answer) = watch::channel(true);
        let mut task = JoinSet::new();
        task.spawn(serve(server.clone(), Arc::clone(&state), answer));
        let informer = SharedIndexInformer::builder(server).name(K::plural(&())).build();
        let script = Self { informer, state, answering, _server: task };
        objects.into_iter().for_each(|object| script.apply(object));
        script
    }

    pub(crate) fn name(&self) -> String {
        self.informer.name().to_string()
    }

    /// Makes or changes an object.
    pub(crate) fn apply(&self, object: K) {
        let mut state = self.state.lock();
        let object = state.stamp(object);
        state.objects.insert(object.meta().name.clone().unwrap(), object.clone());
        if let Some(watch) = &state.watch {
            watch.apply(object);
        }
    }

    /// Changes an object so that it does not fit its type any more.
    pub(crate) fn spoil(&self, name: &str) {
        let mut state = self.state.lock();
        let object = state.objects[name].clone();
        let metadata = state.stamp(object).meta().clone();
        if let Some(watch) = &state.watch {
            watch.apply_opaque(metadata);
        }
    }

    pub(crate) fn delete(&self, name: &str) {
        let mut state = self.state.lock();
        let object = state.objects.remove(name).unwrap();
        let object = state.stamp(object);
        if let Some(watch) = &state.watch {
            watch.delete(object);
        }
    }

    /// Answers nothing until [`release_lists`](Self::release_lists).
    pub(crate) fn hold_lists(&self) {
        self.answering.send_replace(false);
    }

    pub(crate) fn release_lists(&self) {
        self.answering.send_replace(true);
    }
}

async fn serve<K>(
    server: ScriptedListWatch<K>,
    state: Arc<Mutex<State<K>>>,
    mut answer: watch::Receiver<bool>,
) where
    K: Object + Resource<DynamicType = ()> + Clone,
{
    loop {
        let request = server.next_request().await;
        answer.wait_for(|answer| *answer).await.unwrap();
        let mut state = state.lock();
        let objects: Vec<K> = state.objects.values().cloned().collect();
        let version = state.version.to_string();
        match request {
            ScriptedRequest::List(list) => list.serve(objects, &version),
            ScriptedRequest::Watch(watch) if watch.request().initial_events => {
                state.watch = Some(watch.serve(objects, &version));
            }
            ScriptedRequest::Watch(watch) => state.watch = Some(watch.open()),
        }
    }
}

// === impl State ===

impl<K: Resource> State<K> {
    fn stamp(&mut self, mut object: K) -> K {
        self.version += 1;
        object.meta_mut().resource_version = Some(self.version.to_string());
        object
    }
}
