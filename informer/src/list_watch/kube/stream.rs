//! A watch as a sequence of batches.

use std::{marker::PhantomData, sync::Arc};

use bytes::Bytes;
use futures::FutureExt;
use http_body_util::BodyExt;
use kube_client::client::Body;
use serde::de::DeserializeOwned;

use super::{
    decode::{self, Frame},
    framing::{Framing, TooLong},
};
use crate::{
    list_watch::{Refusal, WatchError, WatchEvent},
    object::Object,
};

/// Once this many events are in a batch, what else has arrived becomes the next one: whoever waits for the first
/// event of a flood need not wait for its last.
const BATCH: usize = 1000;

/// The frames of one watch.
pub(super) struct Frames<K> {
    body: Body,
    framing: Framing,
    target: Arc<str>,
    /// What comes after the batch that was handed out last: the stream's error.
    ended: Ended,
    object: PhantomData<fn() -> K>,
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

// === impl Frames ===

impl<K: Object + DeserializeOwned> Frames<K> {
    pub(super) fn new(body: Body, target: Arc<str>, max_frame: usize) -> Self {
        Self {
            body,
            framing: Framing::new(max_frame),
            target,
            ended: Ended::No,
            object: PhantomData,
        }
    }

    /// Waits for a chunk that completes an event, and decodes it and all that have arrived with it.
    pub(super) async fn next_batch(&mut self) -> Option<Result<Vec<WatchEvent<K>>, WatchError>> {
        let mut batch = Vec::new();
        loop {
            match std::mem::replace(&mut self.ended, Ended::Yes) {
                Ended::No => self.ended = Ended::No,
                Ended::WithError(error) => return Some(Err(error)),
                Ended::Yes => return None,
            }
            let first = self.body.frame().await;
            self.take(first, &mut batch);
            self.take_arrived(&mut batch);
            if !batch.is_empty() {
                return Some(Ok(batch));
            }
        }
    }

    /// Takes chunks as long as there is no need to wait for them.
    fn take_arrived(&mut self, batch: &mut Vec<WatchEvent<K>>) {
        while matches!(self.ended, Ended::No) && batch.len() < BATCH {
            let Some(chunk) = self.body.frame().now_or_never() else { return };
            self.take(chunk, batch);
        }
    }

    fn take(
        &mut self,
        chunk: Option<Result<http_body::Frame<Bytes>, kube_client::Error>>,
        batch: &mut Vec<WatchEvent<K>>,
    ) {
        let chunk = match chunk {
            Some(Ok(frame)) => frame.into_data().unwrap_or_default(),
            Some(Err(error)) => {
                self.ended = Ended::WithError(self.torn(super::cause(error)));
                return;
            }
            None if self.framing.is_mid_line() => {
                self.ended = Ended::WithError(self.torn("the last event is not whole".into()));
                return;
            }
            None => {
                self.ended = Ended::Yes;
                return;
            }
        };
        let result = self.framing.feed(&chunk, |line| match decode::frame(line) {
            Ok(Frame::Event(event)) => {
                batch.push(event);
                Ok(())
            }
            Ok(Frame::Error(refusal)) => Err(Stop::Refused(refusal)),
            Err(error) => Err(Stop::Corrupt(error)),
        });
        if let Err(stop) = result {
            self.ended = Ended::WithError(self.stopped(stop));
        }
    }

    fn torn(&self, source: crate::list_watch::BoxError) -> WatchError {
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

// === impl Stop ===

impl From<TooLong> for Stop {
    fn from(too_long: TooLong) -> Self {
        Self::TooLong(too_long)
    }
}
