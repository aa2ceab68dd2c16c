//! A watch as a sequence of batches.

use std::{collections::VecDeque, sync::Arc};

use bytes::Bytes;
use futures::FutureExt;
use http_body_util::BodyExt;
use kube_client::client::Body;
use serde::de::DeserializeOwned;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio_util::task::AbortOnDropHandle;

use super::{
    decode::{Decoder, Frame},
    framing::{Framing, Lines, TooLong},
};
use crate::{
    list_watch::{BoxError, Refusal, WatchError, WatchEvent},
    object::Object,
};

/// The frames of one watch.
pub(super) struct Frames<K> {
    body: Body,
    framing: Framing,
    decoder: Decoder<K>,
    target: Arc<str>,
    decoding: Decoding<K>,
    /// What comes after everything that is being decoded: the stream's error.
    ended: Ended,
}

/// What is decoded beside this task, in the order of the stream.
struct Decoding<K> {
    /// Dropped, they are aborted: they hold nothing but bytes and objects.
    tasks: VecDeque<AbortOnDropHandle<Block<K>>>,
    /// How many tasks there may be; none at all unless there are threads for them.
    most: usize,
}

/// Lines, decoded.
struct Block<K> {
    events: Vec<WatchEvent<K>>,
    /// What is wrong with the line after the last of them.
    stop: Option<Stop>,
}

/// Whether the watch goes on. `No` → `WithError` → `Yes`, or `No` → `Yes`.
enum Ended {
    No,
    WithError(WatchError),
    Yes,
}

/// Why a frame ends the watch.
enum Stop {
    TooLong(TooLong),
    Corrupt(String),
    Refused(Refusal),
}

/// Once a batch has so many bytes, what else has arrived becomes the next one: whoever waits for the first event of a
/// flood need not wait for its last, and no batch takes more than a few milliseconds.
const BATCH: usize = 512 << 10;

/// From this size on a batch is worth a task: handing it over costs some microseconds, decoding it about 150.
const WORTH_A_TASK: usize = 64 << 10;

// === impl Frames ===

impl<K: Object + DeserializeOwned> Frames<K> {
    /// With more than one `decoders`, large batches are decoded by so many tasks, if the runtime has threads for them.
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
                most: if threads && decoders > 1 { decoders } else { 0 },
            },
            ended: Ended::No,
        }
    }

    /// Waits for a chunk that completes an event, and decodes it and all that have arrived with it.
    ///
    /// # Cancel safety
    /// Safe: what was read is kept.
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
                // What was read after it is void, and so is the end that it led to.
                self.decoding.tasks.clear();
                self.ended = Ended::WithError(self.stopped(stop));
            }
            if !block.events.is_empty() {
                return Some(Ok(block.events));
            }
        }
    }

    fn end(&mut self) -> Option<WatchError> {
        match std::mem::replace(&mut self.ended, Ended::Yes) {
            Ended::WithError(error) => Some(error),
            Ended::No | Ended::Yes => None,
        }
    }

    /// Takes chunks as long as there is no need to wait for them; returns them decoded, unless a task does that.
    fn read(&mut self, first: Option<Chunk>) -> Option<Block<K>> {
        let enough = if self.decoding.most > 0 { WORTH_A_TASK } else { BATCH };
        let mut lines = self.framing.lines();
        self.take(first, &mut lines);
        while matches!(self.ended, Ended::No) && lines.bytes() < enough {
            let Some(chunk) = self.body.frame().now_or_never() else { break };
            self.take(chunk, &mut lines);
        }
        self.decoding.begin(lines, self.decoder)
    }

    fn take(&mut self, chunk: Option<Chunk>, lines: &mut Lines) {
        self.ended = match chunk {
            Some(Ok(frame)) => {
                let chunk: Bytes = frame.into_data().unwrap_or_default();
                match self.framing.feed(chunk, lines) {
                    Ok(()) => Ended::No,
                    Err(error) => Ended::WithError(self.stopped(Stop::TooLong(error))),
                }
            }
            Some(Err(error)) => Ended::WithError(self.torn(super::cause(error))),
            None if self.framing.is_mid_line() => {
                Ended::WithError(self.torn("the last event is not whole".into()))
            }
            None => Ended::Yes,
        };
    }

    fn torn(&self, source: BoxError) -> WatchError {
        WatchError::Torn { target: Arc::clone(&self.target), source }
    }

    fn stopped(&self, stop: Stop) -> WatchError {
        let target = Arc::clone(&self.target);
        match stop {
            Stop::Refused(refusal) => WatchError::Ended { target, refusal },
            Stop::Corrupt(error) => WatchError::Corrupt { target, error },
            Stop::TooLong(TooLong { limit }) => WatchError::Corrupt {
                target,
                error: format!("an event takes more than {limit} bytes"),
            },
        }
    }
}

/// What a body yields.
type Chunk = Result<http_body::Frame<Bytes>, kube_client::Error>;

// === impl Decoding ===

impl<K: Object + DeserializeOwned> Decoding<K> {
    fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    fn is_full(&self) -> bool {
        self.most > 0 && self.tasks.len() >= self.most
    }

    /// Decodes at once what is small and next in order; all else goes to a task.
    fn begin(&mut self, lines: Lines, decoder: Decoder<K>) -> Option<Block<K>> {
        if self.tasks.is_empty() && (self.most == 0 || lines.bytes() < WORTH_A_TASK) {
            return Some(Block::decode(&lines, decoder));
        }
        if lines.bytes() > 0 {
            let task = Handle::current().spawn(async move { Block::decode(&lines, decoder) });
            self.tasks.push_back(AbortOnDropHandle::new(task));
        }
        None
    }

    /// The oldest, when it is decoded. Never, if there is none.
    ///
    /// # Cancel safety
    /// Safe: it stays the oldest until this completes.
    async fn next(&mut self) -> Block<K> {
        let Some(oldest) = self.tasks.front_mut() else { return std::future::pending().await };
        let block = oldest.await;
        self.tasks.pop_front();
        block.unwrap_or_else(|_| Block {
            events: Vec::new(),
            stop: Some(Stop::Corrupt("its decoder did not end".to_owned())),
        })
    }
}

// === impl Block ===

impl<K: DeserializeOwned> Block<K> {
    fn decode(lines: &Lines, decoder: Decoder<K>) -> Self {
        let mut events = Vec::new();
        for line in lines.iter() {
            let stop = match line.map(|line| decoder.frame(line)) {
                Ok(Ok(Frame::Event(event))) => {
                    events.push(event);
                    continue;
                }
                Ok(Ok(Frame::Error(refusal))) => Stop::Refused(refusal),
                Ok(Err(error)) => Stop::Corrupt(error),
                Err(too_long) => Stop::TooLong(too_long),
            };
            return Self { events, stop: Some(stop) };
        }
        Self { events, stop: None }
    }
}
