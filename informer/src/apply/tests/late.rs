//! Handlers that are added while another thread changes objects.

use std::sync::atomic::AtomicBool;

use super::*;

#[test]
fn handler_added_during_writes_misses_nothing() {
    let store = applier();
    let change = |version: u32| vec![Delta::Applied(pod("a", "u", &version.to_string()))];
    store.apply(change(1));
    let over = Arc::new(AtomicBool::new(false));
    let (writer, stop) = (Arc::clone(&store), Arc::clone(&over));
    let writing = std::thread::spawn(move || {
        let versions = (2..).take_while(|_| !stop.load(Ordering::Relaxed));
        versions.for_each(|version| {
            writer.apply(change(version));
        });
    });
    let gap = (0..50).find_map(|_| {
        let mut late: Vec<_> = (0..20).map(|_| Fixture::on(Arc::clone(&store))).collect();
        // A missed event shows at the next change.
        let reached = store.resource_version();
        while store.resource_version() == reached {
            std::thread::yield_now();
        }
        late.iter_mut().find_map(gap)
    });
    over.store(true, Ordering::Relaxed);
    writing.join().unwrap();
    assert_eq!(gap, None);
}

/// Returns the first event that does not follow from the previous one.
fn gap(handler: &mut Fixture) -> Option<String> {
    tokio_test::assert_pending!(handler.task.poll());
    let received = mem::take(&mut *handler.received.lock());
    let mut previous = None::<Arc<Pod>>;
    received.into_iter().find_map(|event| {
        let follows = match (&event, &previous) {
            (Event::Added { .. }, None) => true,
            (Event::Updated { old, .. }, Some(previous)) => Arc::ptr_eq(old, previous),
            _ => false,
        };
        previous = event.object().cloned();
        (!follows).then(|| event_text(&event))
    })
}
