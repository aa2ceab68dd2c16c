//! The waits of a handler in every order of their steps: a message, the removal, and the end of the
//! task.
//!
//! The tokens and the watch of a handler are tokio's: each of their calls is one step here.

use std::sync::atomic::AtomicUsize;

use k8s_openapi::api::core::v1::Pod;

use super::*;
use crate::sync::{block_on, explore};

/// A handler of versions, its queue and its task, which no thread runs yet.
struct Fixture {
    processor: Processor<Pod>,
    task: HandlerTask<Pod>,
    subscription: Subscription,
    /// Calls of the handler. The handler holds the second reference.
    calls: Arc<AtomicUsize>,
    stop: CancellationToken,
}

impl Fixture {
    /// `last` is the number of the call in which the handler stops its informer.
    fn new(last: usize) -> Self {
        let (stop, metrics) = (CancellationToken::new(), Metrics::new(None));
        let calls = Arc::new(AtomicUsize::new(0));
        let (called, informer) = (Arc::clone(&calls), stop.clone());
        let handler = Box::new(move |_: &ResourceVersion| {
            if called.fetch_add(1, Ordering::SeqCst) + 1 == last {
                informer.cancel();
            }
        });
        let owner = Owner { stop: &stop, metrics: &metrics };
        let (listener, task, subscription) = version_handler("model".into(), owner, handler);
        let mut processor = Processor::new();
        processor.add(listener, Store::<Pod>::new().freeze().entries, None, false);
        Self { processor, task, subscription, calls, stop }
    }
}

/// Queues a version for every handler.
fn send(processor: &mut Processor<Pod>, version: &str) {
    processor.send(&SharedEvents::default(), &[version.into()]);
}

#[test]
fn handler_gets_each_message() {
    explore("two messages for a handler", 3, 100, |model| {
        let Fixture { mut processor, task, subscription, calls, .. } = Fixture::new(2);
        model.thread(move || block_on(task.run()));
        model.thread(move || {
            send(&mut processor, "1");
            send(&mut processor, "2");
        });
        model.afterwards(move || {
            assert_eq!(calls.load(Ordering::SeqCst), 2);
            drop(subscription);
        });
    });
}

#[test]
fn removed_handler_is_dropped_and_not_called_again() {
    explore("a message, a removal and the task", 2, 300, |model| {
        let Fixture { mut processor, task, subscription, calls, .. } = Fixture::new(usize::MAX);
        model.thread(move || block_on(task.run()));
        model.thread(move || send(&mut processor, "1"));
        let (last, counted) = (Arc::new(AtomicUsize::new(0)), Arc::clone(&calls));
        let seen = Arc::clone(&last);
        model.thread(move || {
            block_on(subscription.remove());
            seen.store(counted.load(Ordering::SeqCst), Ordering::SeqCst);
            // The handler and two variables of this test hold the count.
            let is_dropped = Arc::strong_count(&counted) == 2;
            assert!(is_dropped || counted.load(Ordering::SeqCst) == 0, "it is there after a call");
        });
        model.afterwards(move || {
            let last = last.load(Ordering::SeqCst);
            assert_eq!(calls.load(Ordering::SeqCst), last, "called after its removal");
        });
    });
}

#[test]
fn removal_ends_although_the_informer_stops() {
    explore("a removal, a stop and the task", 3, 50, |model| {
        let Fixture { task, subscription, calls, stop, .. } = Fixture::new(usize::MAX);
        model.thread(move || block_on(task.run()));
        model.thread(move || stop.cancel());
        model.thread(move || block_on(subscription.remove()));
        model.afterwards(move || assert_eq!(Arc::strong_count(&calls), 1));
    });
}

#[test]
fn wait_for_sync_ends_with_the_task() {
    explore("a wait for the initial list and the end of the task", 2, 100, |model| {
        let Fixture { mut processor, task, subscription, stop, .. } = Fixture::new(usize::MAX);
        model.thread(move || block_on(task.run()));
        model.thread(move || {
            send(&mut processor, "1");
            processor.mark_synced();
            stop.cancel();
        });
        model.thread(move || {
            let synced = block_on(subscription.wait_for_sync());
            assert!(!synced || subscription.has_synced());
        });
    });
}
