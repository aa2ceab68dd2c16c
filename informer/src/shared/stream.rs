//! [`EventStream`]: the events of an informer as a bounded stream.
//!
//! A handler puts the events into a buffer that never exceeds its capacity, and the stream takes
//! them. The buffer's lock is held for a move of one event.
//!
//! A stream has a reader that may stop reading, so that its buffer has a bound and a policy for the
//! overflow. A handler has neither, because a callback cannot stop reading.

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use futures::Stream;

use super::SharedIndexInformer;
use crate::event::Event;
use crate::object::Object;
use crate::processor::Subscription;
use crate::sync::Mutex;

/// The events of an informer as a [`Stream`], made by [`SharedIndexInformer::events`].
///
/// It begins with the objects of the cache as [`Event::Added`], and continues with each change. It
/// ends when the informer stops. Dropping it ends the subscription.
///
/// Use it in code that reads events in a `select!` loop. A handler
/// ([`SharedIndexInformer::add_handler`]) has no bound and loses nothing; a work queue of keys is
/// better for a controller.
///
/// # Cancel safety
///
/// A dropped `next` loses no event: an event leaves the buffer in the poll that returns it.
///
/// # Examples
///
/// ```no_run
/// # use futures::StreamExt;
/// # use homeostat_informer::{Object, Overflow, SharedIndexInformer};
/// # async fn doc<K: Object>(pods: SharedIndexInformer<K>) {
/// let mut events = pods.events("audit", 10_000, Overflow::DropOldest);
/// while let Some(event) = events.next().await {
///     match event {
///         Ok(event) => println!("{:?}", event.key()),
///         Err(lagged) => eprintln!("{lagged}"),
///     }
/// }
/// # }
/// ```
#[must_use = "a stream does nothing until it is polled"]
pub struct EventStream<K: Object> {
    receiver: Receiver<K>,
    /// Removes the handler on drop.
    _subscription: Subscription,
}

/// Policy of an [`EventStream`] for an event that arrives when its buffer is full.
///
/// `End` is right for a reader that builds a state from the events: it must start over after a gap.
/// `DropOldest` is right for a reader that shows or counts events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Overflow {
    /// Ends the stream: after the buffered events comes one [`Lagged`] with the number 1, and then
    /// the end. The caller subscribes again and gets the objects of the cache.
    End,
    /// Drops the oldest event of the buffer. The next item is a [`Lagged`] with the number of
    /// dropped events.
    DropOldest,
}

/// Events were dropped because the reader of an [`EventStream`] was too slow.
///
/// It precedes the events that were received after the gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{events} events were dropped because the stream was read too slowly")]
#[non_exhaustive]
pub struct Lagged {
    /// The number of events that were dropped since the previous `Lagged`. It is 1 with
    /// [`Overflow::End`]: the stream ends with the first dropped event.
    pub events: u64,
}

/// The events between the handler and the stream.
///
/// Its lock is held to move one event, and never while an event is dropped or a task is woken.
struct Buffer<K: Object> {
    /// Never more than `capacity`.
    events: VecDeque<Event<K>>,
    capacity: usize,
    overflow: Overflow,
    /// Events that were dropped since the last `Lagged`.
    lost: u64,
    /// True after the informer has stopped, or after an overflow that ends the stream.
    is_closed: bool,
    /// The task that waits for an event.
    waker: Option<Waker>,
}

/// The handler's end of the buffer. Its drop ends the stream.
struct Sender<K: Object>(Arc<Mutex<Buffer<K>>>);

/// The stream's end of the buffer.
struct Receiver<K: Object>(Arc<Mutex<Buffer<K>>>);

/// An item of the stream.
type Item<K> = Result<Event<K>, Lagged>;

/// Returns both ends of an empty buffer with room for `capacity` events.
fn channel<K: Object>(capacity: usize, overflow: Overflow) -> (Sender<K>, Receiver<K>) {
    let buffer = Arc::new(Mutex::new(Buffer {
        events: VecDeque::new(),
        capacity,
        overflow,
        lost: 0,
        is_closed: false,
        waker: None,
    }));
    (Sender(Arc::clone(&buffer)), Receiver(buffer))
}

// === impl SharedIndexInformer ===

impl<K: Object> SharedIndexInformer<K> {
    /// Returns the objects of the cache and then each change, as a stream with room for `capacity`
    /// events.
    ///
    /// The capacity must hold the initial list if the stream is not read meanwhile.
    ///
    /// # Panics
    ///
    /// Panics if `capacity` is 0.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// use futures::StreamExt;
    /// use homeostat_informer::testing::ScriptedListWatch;
    /// use homeostat_informer::{Overflow, SharedIndexInformer};
    /// use k8s_openapi::api::core::v1::Pod;
    ///
    /// let server = ScriptedListWatch::<Pod>::new();
    /// let pods = SharedIndexInformer::builder(server.clone()).build();
    /// let mut events = pods.events("print", 1000, Overflow::End);
    /// pods.start();
    /// let mut pod = Pod::default();
    /// pod.metadata.name = Some("a".into());
    /// let _watch = server.expect_watch().await.serve([pod], "5");
    /// let event = events.next().await.expect("the informer runs").expect("no overflow");
    /// assert_eq!(format!("{event:?}"), r#"Added("a")"#);
    /// pods.stop().await;
    /// assert!(events.next().await.is_none());
    /// # }
    /// ```
    pub fn events(
        &self,
        name: impl Into<Arc<str>>,
        capacity: usize,
        overflow: Overflow,
    ) -> EventStream<K> {
        assert!(capacity > 0, "a stream of events needs room for one");
        let (sender, receiver) = channel(capacity, overflow);
        let name: Arc<str> = name.into();
        let subscription = self.add_handler(&*name, move |event: Event<K>| sender.send(event));
        EventStream { receiver, _subscription: subscription }
    }
}

// === impl EventStream ===

impl<K: Object> Stream for EventStream<K> {
    type Item = Item<K>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Item<K>>> {
        self.receiver.poll(context)
    }
}

impl<K: Object> fmt::Debug for EventStream<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventStream")
            .field("queued", &self.receiver.0.lock().events.len())
            .finish_non_exhaustive()
    }
}

// === impl Receiver ===

impl<K: Object> Receiver<K> {
    /// Takes the next item, or keeps the caller's waker for it.
    ///
    /// The code of a waker is another executor's, so that a waker is cloned and dropped without the
    /// lock. An item may arrive while it is cloned, which the second look finds.
    fn poll(&self, context: &Context<'_>) -> Poll<Option<Item<K>>> {
        let mut buffer = self.0.lock();
        let mut next = buffer.next();
        if next.is_pending() && !buffer.wakes(context.waker()) {
            drop(buffer);
            let waker = context.waker().clone();
            buffer = self.0.lock();
            next = buffer.next();
            let previous = buffer.waker.replace(waker);
            drop(buffer);
            drop(previous);
        }
        next
    }
}

// === impl Buffer ===

impl<K: Object> Buffer<K> {
    /// Takes the next item; `None` after the end.
    fn next(&mut self) -> Poll<Option<Item<K>>> {
        let drops_oldest = self.overflow == Overflow::DropOldest;
        if self.lost > 0 && (drops_oldest || self.events.is_empty()) {
            let events = std::mem::take(&mut self.lost);
            return Poll::Ready(Some(Err(Lagged { events })));
        }
        match self.events.pop_front() {
            Some(event) => Poll::Ready(Some(Ok(event))),
            None if self.is_closed => Poll::Ready(None),
            None => Poll::Pending,
        }
    }

    /// Returns true if the next event wakes the task of this waker.
    fn wakes(&self, waker: &Waker) -> bool {
        self.waker.as_ref().is_some_and(|own| own.will_wake(waker))
    }
}

// === impl Sender ===

impl<K: Object> Sender<K> {
    /// Puts an event into the buffer, or applies the overflow policy. Objects are dropped and
    /// wakers called without the lock.
    fn send(&self, event: Event<K>) {
        let mut buffer = self.0.lock();
        let is_full = buffer.events.len() >= buffer.capacity;
        let garbage = match buffer.overflow {
            _ if buffer.is_closed => Some(event),
            Overflow::End if is_full => {
                buffer.lost += 1;
                buffer.is_closed = true;
                Some(event)
            }
            Overflow::DropOldest if is_full => {
                buffer.lost += 1;
                let oldest = buffer.events.pop_front();
                buffer.events.push_back(event);
                oldest
            }
            Overflow::End | Overflow::DropOldest => {
                buffer.events.push_back(event);
                None
            }
        };
        let waker = buffer.waker.take();
        drop(buffer);
        if let Some(waker) = waker {
            waker.wake();
        }
        drop(garbage);
    }
}

impl<K: Object> Drop for Sender<K> {
    fn drop(&mut self) {
        let mut buffer = self.0.lock();
        buffer.is_closed = true;
        let waker = buffer.waker.take();
        drop(buffer);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

#[cfg(test)]
mod interleavings;
