//! The wait of a stream in every order of its steps.

use std::future::poll_fn;

use k8s_openapi::api::core::v1::Pod;

use super::*;
use crate::sync::{block_on, explore};

fn event() -> Event<Pod> {
    Event::Added { object: Arc::default(), initial: false }
}

#[test]
fn stream_returns_each_event_and_ends() {
    explore("two events, the end of the handler and a stream", 3, 50, |model| {
        let (sender, receiver) = channel::<Pod>(2, Overflow::End);
        model.thread(move || {
            sender.send(event());
            sender.send(event());
        });
        model.thread(move || {
            let next = || block_on(poll_fn(|context| receiver.poll(context)));
            assert_eq!(std::iter::from_fn(next).flatten().count(), 2);
        });
    });
}
