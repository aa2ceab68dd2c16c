//! The waits of the queue in every order of their steps.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;

use super::tests::bookmark;
use super::*;
use crate::sync::{block_on, explore};

/// Returns a queue that is full: its producer waits for room.
fn full() -> Arc<DeltaFifo<Pod>> {
    let fifo = DeltaFifo::in_order();
    // A version of 0 is no point in history, so that nothing is compared.
    fifo.push((0..FULL).map(|_| bookmark("0")));
    Arc::new(fifo)
}

/// Takes batches until the queue is closed. Returns the number of deltas.
fn drain(fifo: &DeltaFifo<Pod>) -> usize {
    let next = || block_on(fifo.pop());
    std::iter::from_fn(next).map(|batch| batch.deltas.len()).sum()
}

#[test]
fn consumer_gets_each_delta_and_the_end() {
    explore("pushes, a close and a consumer", 2, 100, |model| {
        let fifo = Arc::new(DeltaFifo::<Pod>::in_order());
        let producer = Arc::clone(&fifo);
        model.thread(move || {
            producer.push([bookmark("1")]);
            producer.push([bookmark("2")]);
            producer.close();
        });
        model.thread(move || assert_eq!(drain(&fifo), 2));
    });
}

#[test]
fn producer_that_waits_for_room_gets_it() {
    explore("a producer without room and a consumer", 2, 50, |model| {
        let fifo = full();
        let producer = Arc::clone(&fifo);
        model.thread(move || {
            block_on(producer.wait_for_room());
            assert!(producer.len() < FULL, "there is no room");
            producer.push([bookmark("1")]);
            producer.close();
        });
        model.thread(move || assert_eq!(drain(&fifo), FULL + 1));
    });
}

#[test]
fn close_ends_the_wait_for_room() {
    explore("a producer without room and a close", 3, 10, |model| {
        let fifo = full();
        let closer = Arc::clone(&fifo);
        model.thread(move || closer.close());
        model.thread(move || block_on(fifo.wait_for_room()));
    });
}
