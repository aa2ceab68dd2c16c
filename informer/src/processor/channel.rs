//! [`Channel`]: the queue of one handler, between the writer of the store and the handler's task.

use std::sync::atomic::Ordering;

use super::handler::Handler;
use super::queue::{Message, Queue};
use crate::object::Object;
use crate::store::Store;
use crate::sync::{Mutex, Notify};

/// A handler's queue, shared by the writer of the store and the handler's task.
pub(crate) struct Channel<K: Object> {
    /// Locked after the store's writer and the processor. Never held while events are dropped or
    /// the author's code runs.
    pub(super) queue: Mutex<Queue<K>>,
    /// Notified after each push: the handler's task may be waiting.
    pub(super) pushed: Notify,
}

// === impl Channel ===

impl<K: Object> Channel<K> {
    pub(super) fn new(queue: Queue<K>) -> Self {
        Self { queue: Mutex::new(queue), pushed: Notify::new() }
    }

    /// Queues all objects again, between two steps of the store.
    ///
    /// Holding the writer's lock puts the resync at one place among the changes: an event queued
    /// later is newer than the snapshot.
    pub(super) fn resync(&self, store: &Store<K>, handler: &Handler) {
        let _pause = store.pause();
        self.send(Message::Resync(store.freeze().entries), handler);
    }

    pub(super) fn send(&self, message: Message<K>, handler: &Handler) {
        let mut queue = self.queue.lock();
        let events = message.len();
        let refused = queue.push(message);
        if refused.is_none() {
            handler.queued.fetch_add(events, Ordering::Relaxed);
        }
        drop(queue);
        drop(refused);
        self.pushed.notify_one();
    }

    /// Waits for the next message.
    ///
    /// # Cancel safety
    /// It is taken in the same step in which the future completes.
    pub(super) async fn pop(&self) -> Message<K> {
        loop {
            let message = self.queue.lock().pop();
            match message {
                Some(message) => return message,
                // One consumer: a push between the look above and this wait has left its permit.
                None => self.pushed.notified().await,
            }
        }
    }
}
