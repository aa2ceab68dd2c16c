//! Measures updates beside a reader of all objects: of a list, a namespace, an index, a label.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use homeostat_informer::testing::Store;
use homeostat_informer::{Index, LabelSelector, Lister, ObjectMeta};
use k8s_openapi::api::core::v1::Pod;

use super::PODS;
use super::paced::writer_p99;

/// A cache whose pods are all in one namespace, with one label and one index value.
#[derive(Debug)]
pub struct Crowd {
    store: Store<Pod>,
    lister: Lister<Pod>,
    by_app: Index<Pod, String>,
    selector: LabelSelector,
    /// The number of updates so far, which is the version of the last one.
    version: AtomicUsize,
}

/// The lookup that another thread repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reader {
    /// Another thread repeats nothing.
    None,
    /// `Lister::list`.
    List,
    /// `Lister::list_in`.
    Namespace,
    /// `Index::get`.
    Index,
    /// `Lister::list_matching`, which compares the labels of each pod.
    Label,
}

// === impl Reader ===

impl Reader {
    /// All of them, the idle one first.
    pub const ALL: [Self; 5] = [Self::None, Self::List, Self::Namespace, Self::Index, Self::Label];

    /// Returns the name in the figures.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "alone",
            Self::List => "list",
            Self::Namespace => "list by namespace",
            Self::Index => "get by index",
            Self::Label => "list by label",
        }
    }
}

// === impl Crowd ===

impl Crowd {
    /// Fills the cache.
    ///
    /// # Panics
    ///
    /// Panics if the selector is no selector.
    pub fn new() -> Self {
        let store = Store::new();
        let (lister, by_app) = (store.lister(), store.index(app));
        drop(lister.list_in("crowd"));
        let selector = LabelSelector::parse("app=web").expect("a selector");
        let crowd = Self { store, lister, by_app, selector, version: AtomicUsize::new(0) };
        for number in 0..PODS {
            let pod = crowd.next_state(number);
            crowd.store.apply(pod);
        }
        crowd
    }

    /// Returns a state of a pod that is newer than all others.
    fn next_state(&self, number: usize) -> Pod {
        pod(number, self.version.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// Finds all pods. Returns true if there are any.
    fn read(&self, reader: Reader) -> bool {
        match reader {
            Reader::None => false,
            Reader::List => !self.lister.list().is_empty(),
            Reader::Namespace => !self.lister.list_in("crowd").is_empty(),
            Reader::Index => !self.by_app.get("web").is_empty(),
            Reader::Label => !self.lister.list_matching(Some("crowd"), &self.selector).is_empty(),
        }
    }

    /// Returns the 99th percentile of the time of an update beside a reader.
    pub fn writer_p99(&self, reader: Reader, during: Duration) -> Duration {
        let states = (0..PODS).cycle().map(|number| self.next_state(number));
        writer_p99(|| self.read(reader), states, |pod| self.store.apply(pod), during)
    }
}

impl Default for Crowd {
    fn default() -> Self {
        Self::new()
    }
}

fn app(pod: &Pod) -> Option<String> {
    pod.metadata.labels.as_ref()?.get("app").cloned()
}

fn pod(number: usize, version: usize) -> Pod {
    Pod {
        metadata: ObjectMeta {
            name: Some(format!("web-7d4b9c6f5d-{number:06}")),
            namespace: Some("crowd".to_owned()),
            uid: Some(format!("a{number:07x}-1d2c-4ab3-8e3f-0123456789ab")),
            resource_version: Some(version.to_string()),
            labels: Some([("app".to_owned(), "web".to_owned())].into()),
            ..ObjectMeta::default()
        },
        ..Pod::default()
    }
}
