//! The response body of a watch as a sequence of decoded batches.
//!
//! [`Frames`] reads chunks and splits them into lines; [`Decoding`] decodes them inline or on
//! tasks, in stream order.
//!
//! ```text
//!  body ─▶ Framing ─▶ block of lines ─▶ decode inline (small, or 1 decoder) ─▶ batch
//!                                   └─▶ decode on a task ─▶ in stream order ──▶
//! ```
//!
//! A batch is what has arrived without a wait. So a quiet watch delivers each event at once, and a
//! busy one takes the locks of queue and store once for many events.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use futures::FutureExt;
use http_body_util::BodyExt;
use kube_client::client::Body;
use serde::de::DeserializeOwned;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio_util::task::AbortOnDropHandle;

use super::decode::{Decoder, Frame};
use super::failure::cause;
use super::framing::{Framing, Lines, TooLong};
use crate::list_watch::{ApiError, BoxError, WatchError, WatchEvent};
use crate::object::Object;

/// The frames of one open watch.
///
/// It reads no chunk before a consumer polls, so a slow consumer slows the server down by
/// flow control. It buffers one incomplete line, one batch, and up to `max_tasks` blocks.
pub(super) struct Frames<K> {
    body: Body,
    framing: Framing,
    decoder: Decoder<K>,
    target: Arc<str>,
    decoding: Decoding<K>,
    /// The end of the stream, which is returned after all lines that are still being decoded.
    ended: Ended,
}

/// The blocks that are decoded on other tasks, in stream order.
///
/// Invariant: a block is returned only after all older blocks. With a task pending, a small block
/// also becomes a task, so that it cannot overtake.
struct Decoding<K> {
    /// The running tasks, oldest first. Dropping a handle aborts its task; a task holds only bytes
    /// and objects.
    tasks: VecDeque<AbortOnDropHandle<Block<K>>>,
    /// The maximum number of tasks; 0 on a current-thread runtime.
    max_tasks: usize,
}

/// The decoded lines of one read.
///
/// Invariant: the events precede `stop` in the stream, so they are delivered first.
struct Block<K> {
    events: Vec<WatchEvent<K>>,
    /// The error of the line after the last event.
    stop: Option<Stop>,
}

/// The end state of the stream: `No` → `WithError` → `Yes`, or `No` → `Yes`.
///
/// * `No`: the body may have more chunks.
/// * `WithError`: no chunk is read any more; the error is returned after the pending blocks.
/// * `Yes`: the stream returns `None`, now and later.
enum Ended {
    No,
    WithError(WatchError),
    Yes,
}

/// The reason why a frame ends the watch.
enum Stop {
    TooLong(TooLong),
    Corrupt(String),
    Refused(ApiError),
}

/// The size from which a batch is complete: 512 KiB. The consumer of a large initial list then
/// receives its first event before the last one has arrived, and no batch takes more than a few
/// milliseconds.
const BATCH_BYTES: usize = 512 << 10;

/// The size from which a batch is decoded on a task: 64 KiB. Handing it over costs a few
/// microseconds, decoding it about 150 µs.
const TASK_THRESHOLD: usize = 64 << 10;

// === impl Frames ===

impl<K: Object + DeserializeOwned> Frames<K> {
    /// Reads `body`. If `decoders` is more than 1 and the runtime has several threads, up to that
    /// many tasks decode large batches.
    ///
    /// Without a runtime, and on a current-thread runtime, lines are decoded inline: tasks would
    /// only add work.
    pub(super) fn new(
        body: Body,
        target: Arc<str>,
        max_frame: usize,
        decoder: Decoder<K>,
        decoders: usize,
    ) -> Self {
        let threads = Handle::try_current()
            .is_ok_and(|runtime| runtime.runtime_flavor() != RuntimeFlavor::CurrentThread);
        Self {
            body,
            framing: Framing::new(max_frame),
            decoder,
            target,
            decoding: Decoding {
                tasks: VecDeque::new(),
                max_tasks: if threads && decoders > 1 { decoders } else { 0 },
            },
            ended: Ended::No,
        }
    }

    /// Waits for a chunk that completes an event, and returns that event with all others that have
    /// arrived.
    ///
    /// An error is returned after all events that precede it, and once; the stream then returns
    /// `None`. Events after the error are dropped, because the consumer continues from the last
    /// event before it.
    ///
    /// # Cancel safety
    /// Cancel safe: everything that was read is kept.
    pub(super) async fn next_batch(&mut self) -> Option<Result<Vec<WatchEvent<K>>, WatchError>> {
        loop {
            let reads = matches!(self.ended, Ended::No) && !self.decoding.is_full();
            let block = if !reads && self.decoding.is_empty() {
                return self.end().map(Err);
            } else {
                tokio::select! {
                    biased;
                    block = self.decoding.next(), if !self.decoding.is_empty() => block,
                    chunk = self.body.frame(), if reads => {
                        let Some(block) = self.read(chunk) else { continue };
                        block
                    }
                }
            };
            if let Some(stop) = block.stop {
                // Lines after the error are void, and so is the end of the stream that they led to.
                self.decoding.tasks.clear();
                self.ended = Ended::WithError(self.stopped(stop));
            }
            if !block.events.is_empty() {
                return Some(Ok(block.events));
            }
        }
    }

    /// Takes the error at the end of the stream. Returns it once.
    fn end(&mut self) -> Option<WatchError> {
        match std::mem::replace(&mut self.ended, Ended::Yes) {
            Ended::WithError(error) => Some(error),
            Ended::No | Ended::Yes => None,
        }
    }

    /// Reads the chunks that are available without waiting. Returns them decoded, or `None` if a
    /// task decodes them.
    ///
    /// It stops at 64 KiB if tasks decode, so that several of them have work, and at 512 KiB
    /// otherwise.
    fn read(&mut self, first: Option<Chunk>) -> Option<Block<K>> {
        let enough = if self.decoding.max_tasks > 0 { TASK_THRESHOLD } else { BATCH_BYTES };
        let mut lines = self.framing.lines();
        self.take(first, &mut lines);
        while matches!(self.ended, Ended::No) && lines.bytes() < enough {
            let Some(chunk) = self.body.frame().now_or_never() else { break };
            self.take(chunk, &mut lines);
        }
        self.decoding.start(lines, &self.decoder)
    }

    /// Adds the lines of one chunk, or records the end of the body.
    ///
    /// A body that ends in the middle of a line is an error: the last event was cut off.
    fn take(&mut self, chunk: Option<Chunk>, lines: &mut Lines) {
        self.ended = match chunk {
            Some(Ok(frame)) => {
                let chunk: Bytes = frame.into_data().unwrap_or_default();
                match self.framing.feed(chunk, lines) {
                    Ok(()) => Ended::No,
                    Err(error) => Ended::WithError(self.stopped(Stop::TooLong(error))),
                }
            }
            Some(Err(error)) => Ended::WithError(self.torn(cause(error))),
            None if self.framing.is_mid_line() => {
                Ended::WithError(self.torn("the last event is incomplete".into()))
            }
            None => Ended::Yes,
        };
    }

    /// The error of a connection that broke.
    fn torn(&self, source: BoxError) -> WatchError {
        WatchError::Torn { target: Arc::clone(&self.target), source }
    }

    /// Maps the reason to the error of the watch. An `ERROR` event of the server is `Ended`; a line
    /// that cannot be read is `Corrupt`.
    fn stopped(&self, stop: Stop) -> WatchError {
        let target = Arc::clone(&self.target);
        match stop {
            Stop::Refused(error) => WatchError::Ended { target, error },
            Stop::Corrupt(error) => WatchError::Corrupt { target, error },
            Stop::TooLong(TooLong { limit }) => {
                WatchError::Corrupt { target, error: format!("event exceeds {limit} bytes") }
            }
        }
    }
}

/// An item of a response body.
type Chunk = Result<http_body::Frame<Bytes>, kube_client::Error>;

// === impl Decoding ===

impl<K: Object + DeserializeOwned> Decoding<K> {
    fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    /// Returns true if no further block may be read. Without tasks it is never full.
    fn is_full(&self) -> bool {
        self.max_tasks > 0 && self.tasks.len() >= self.max_tasks
    }

    /// Decodes a small block at once if no older block is pending. Gives any other block to a task.
    ///
    /// Returns `None` if the block became a task, or if there was nothing to decode.
    ///
    /// # Panics
    ///
    /// If it starts a task outside of a runtime. `max_tasks` is 0 there, so that no task is
    /// started.
    fn start(&mut self, lines: Lines, decoder: &Decoder<K>) -> Option<Block<K>> {
        if self.tasks.is_empty() && (self.max_tasks == 0 || lines.bytes() < TASK_THRESHOLD) {
            return Some(Block::decode(&lines, decoder));
        }
        if lines.bytes() > 0 {
            let decoder = decoder.clone();
            let task = Handle::current().spawn(async move { Block::decode(&lines, &decoder) });
            self.tasks.push_back(AbortOnDropHandle::new(task));
        }
        None
    }

    /// Waits for the oldest block. Never completes if there is none.
    ///
    /// # Cancel safety
    /// Cancel safe: the block stays the oldest until this completes.
    async fn next(&mut self) -> Block<K> {
        let Some(oldest) = self.tasks.front_mut() else { return std::future::pending().await };
        let block = oldest.await;
        self.tasks.pop_front();
        block.unwrap_or_else(|_| Block {
            events: Vec::new(),
            stop: Some(Stop::Corrupt("the decoding task was aborted".to_owned())),
        })
    }
}

// === impl Block ===

impl<K: DeserializeOwned> Block<K> {
    /// Decodes lines until the first that ends the watch.
    ///
    /// It is a function without `self`, so that it runs inline and on a task alike. The lines after
    /// an error are not decoded.
    fn decode(lines: &Lines, decoder: &Decoder<K>) -> Self {
        let mut events = Vec::new();
        for line in lines.iter() {
            let stop = match line.map(|line| decoder.frame(line)) {
                Ok(Ok(Frame::Event(event))) => {
                    events.push(event);
                    continue;
                }
                Ok(Ok(Frame::Error(error))) => Stop::Refused(error),
                Ok(Err(error)) => Stop::Corrupt(error),
                Err(too_long) => Stop::TooLong(too_long),
            };
            return Self { events, stop: Some(stop) };
        }
        Self { events, stop: None }
    }
}
