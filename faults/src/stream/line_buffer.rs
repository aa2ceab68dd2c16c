//! The bytes of a watch, cut into events.

use bytes::{Bytes, BytesMut};

use super::framing::Framing;

/// Cuts the bytes that the transport delivers into events, which are lines in JSON.
#[derive(Debug)]
pub(super) struct LineBuffer {
    framing: Framing,
    /// The start of a line whose end has not arrived.
    partial: BytesMut,
}

// === impl LineBuffer ===

impl LineBuffer {
    pub(super) fn new(framing: Framing) -> Self {
        Self { framing, partial: BytesMut::new() }
    }

    /// Adds bytes. Returns the complete lines received so far, as one chunk unless `cuts`.
    pub(super) fn push(&mut self, mut data: Bytes, cuts: bool) -> Vec<Bytes> {
        if self.framing.ends_nothing(&data) {
            self.partial.extend_from_slice(&data);
            return Vec::new();
        }
        if !self.partial.is_empty() {
            self.partial.extend_from_slice(&data);
            data = self.partial.split().freeze();
        }
        let mut complete = data.split_to(self.framing.complete_events(&data));
        self.partial.extend_from_slice(&data);
        if complete.is_empty() {
            return Vec::new();
        }
        if !cuts {
            return vec![complete];
        }
        let mut lines = Vec::new();
        while let Some(length) = self.framing.first_event(&complete) {
            lines.push(complete.split_to(length));
        }
        lines
    }

    /// Takes the start of a line whose end has not arrived.
    pub(super) fn take_rest(&mut self) -> Bytes {
        self.partial.split().freeze()
    }
}
