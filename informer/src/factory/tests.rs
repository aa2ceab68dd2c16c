//! Callers that ask for one informer at the same time.

use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::thread::{self, JoinHandle};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use k8s_openapi::api::core::v1::Pod;
use kube_client::Client;
use kube_client::client::Body;
use kube_core::GroupVersionResource;
use metrics::{
    Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit,
    with_local_recorder,
};
use parking_lot::Mutex;

use super::SharedInformerFactory;
use crate::metrics::Labels;
use crate::shared::SharedIndexInformer;

/// A recorder during whose first call another caller asks for the informer that is being built.
struct Racing {
    factory: SharedInformerFactory,
    has_raced: AtomicBool,
    /// The caller that waits until the informer is built.
    other: Mutex<Option<JoinHandle<SharedIndexInformer<Pod>>>>,
    this: Weak<Self>,
}

// === impl Racing ===

impl Racing {
    /// Asks for the informer under this recorder: the labels of one recorder are unique.
    fn ask(&self) -> SharedIndexInformer<Pod> {
        with_local_recorder(self, || self.factory.informer())
    }

    /// Starts the other caller. If the factory does not let it wait, it comes first: this call
    /// returns when it has its informer.
    fn race(&self) {
        if self.has_raced.swap(true, Ordering::SeqCst) {
            return;
        }
        let recorder = self.this.upgrade().expect("the test holds the recorder");
        let other = thread::spawn(move || recorder.ask());
        if !self.factory.shared.building.is_locked() {
            while !other.is_finished() {
                thread::yield_now();
            }
        }
        *self.other.lock() = Some(other);
    }
}

impl Recorder for Racing {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, _: &Key, _: &Metadata<'_>) -> Counter {
        self.race();
        Counter::noop()
    }

    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        self.race();
        Gauge::noop()
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        self.race();
        Histogram::noop()
    }
}

#[tokio::test]
async fn informer_that_two_callers_ask_for_at_once_has_metrics() {
    let service = tower::service_fn(|_: Request<Body>| async {
        Ok::<_, Infallible>(Response::new(Full::new(Bytes::new())))
    });
    let client = Client::new(service, "default");
    let racing = Arc::new_cyclic(|this| Racing {
        factory: SharedInformerFactory::builder(client).metrics("test").build(),
        has_raced: AtomicBool::new(false),
        other: Mutex::new(None),
        this: this.clone(),
    });
    let first = racing.ask();
    let other = racing.other.lock().take().expect("the recorder was called");
    let second = other.join().unwrap();
    assert!(Arc::ptr_eq(first.name(), second.name()), "one informer");
    let labels = Labels::new("test", &GroupVersionResource::gvr("", "v1", "pods"));
    let free = with_local_recorder(&*racing, || labels.reserve());
    assert!(free.is_none(), "the labels belong to the informer that stays");
}
