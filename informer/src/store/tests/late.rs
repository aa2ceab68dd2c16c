//! Handlers that are added while objects change, on two threads.

use std::sync::atomic::AtomicBool;

use super::*;

#[test]
fn handler_added_while_objects_change_misses_nothing() {
    let store = Arc::new(Store::<Pod>::new());
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
        // A gap shows at the next change.
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

/// The first event that does not follow from the one before.
fn gap(handler: &mut Fixture) -> Option<String> {
    tokio_test::assert_pending!(handler.task.poll());
    let heard = std::mem::take(&mut *handler.heard.lock());
    let mut told = None::<Arc<Pod>>;
    heard.into_iter().find_map(|event| {
        let follows = match (&event, &told) {
            (Event::Added { .. }, None) => true,
            (Event::Updated { old, .. }, Some(told)) => Arc::ptr_eq(old, told),
            _ => false,
        };
        told = event.object().cloned();
        (!follows).then(|| words(&event))
    })
}
