//! Decodes a list while its body arrives: each item is parsed as soon as it is complete, and its
//! bytes are dropped.
//!
//! The decoder is pure: the caller feeds chunks and calls [`ListDecoder::decode`]. Memory holds the
//! decoded items and at most one incomplete item, so the size of a list has no limit. An item is
//! decoded straight from the buffer. One that is incomplete costs a look at its tokens.
//!
//! The [`Reader`] reads one token of the text after the other.
//!
//! Two costs are bounded. An incomplete token at the end of the buffer is parsed again only when
//! the buffer has doubled. A call of `decode` stops after 64 KiB, so that the runtime's thread is
//! not kept for longer than about 1 ms.

mod reader;

use serde::de::DeserializeOwned;

use self::reader::Reader;
use super::Decoder;
use crate::list_watch::Page;

/// The decoder of one list.
pub(in crate::list_watch::kube) struct ListDecoder<K> {
    /// The text that has arrived.
    buffer: String,
    /// The length of the text that is decoded. It leaves the buffer when the rest is incomplete, so
    /// that the bytes of a large chunk are moved once.
    decoded: usize,
    /// The first bytes of the character after the text.
    tail: Vec<u8>,
    /// The reason why the bytes after the text are not UTF-8.
    invalid: Option<String>,
    /// The size of the buffer from which the next attempt is worth its cost. It doubles with each
    /// attempt that finds an incomplete value, so that a huge item costs linear time.
    enough: usize,
    /// The limit of one value in bytes.
    limit: usize,
    reader: Reader<K>,
}

/// The result of decoding what has arrived.
#[derive(Debug, PartialEq)]
pub(in crate::list_watch::kube) enum Progress {
    /// More bytes are needed, or the list is complete.
    Idle,
    /// 64 KiB were decoded, and more can be: the caller should yield.
    Busy,
}

/// The number of bytes that are collected before they are decoded: 256 KiB. The incomplete item at
/// the end is parsed twice, which is a few percent of this.
const FILL: usize = 256 << 10;

/// The number of bytes after which the decoder yields: 64 KiB, which takes about 1 ms.
const TURN: usize = 64 << 10;

// === impl ListDecoder ===

impl<K: DeserializeOwned> ListDecoder<K> {
    /// Starts a list, a value of which may have up to `limit` bytes.
    pub(in crate::list_watch::kube) fn new(decoder: Decoder<K>, limit: usize) -> Self {
        Self {
            buffer: String::new(),
            decoded: 0,
            tail: Vec::new(),
            invalid: None,
            enough: FILL,
            limit,
            reader: Reader::new(decoder),
        }
    }

    /// Adds bytes that have arrived.
    ///
    /// It does not parse: the caller decides when, by [`is_filled`](Self::is_filled). It checks
    /// each byte once.
    pub(in crate::list_watch::kube) fn feed(&mut self, chunk: &[u8]) {
        if self.tail.is_empty() {
            return self.append(chunk);
        }
        let mut bytes = std::mem::take(&mut self.tail);
        bytes.extend_from_slice(chunk);
        self.append(&bytes);
    }

    /// Adds bytes that follow the text, without an incomplete character at their end.
    fn append(&mut self, bytes: &[u8]) {
        match std::str::from_utf8(bytes) {
            Ok(text) => self.buffer.push_str(text),
            Err(error) => {
                let (valid, rest) = bytes.split_at(error.valid_up_to());
                self.buffer.push_str(std::str::from_utf8(valid).unwrap_or_default());
                match error.error_len() {
                    Some(_) => self.invalid = Some(error.to_string()),
                    None => self.tail = rest.to_vec(),
                }
            }
        }
    }

    /// Returns true if enough bytes have arrived to decode them.
    pub(in crate::list_watch::kube) fn is_filled(&self) -> bool {
        self.left() >= self.enough
    }

    /// Returns the number of bytes that are not decoded.
    fn left(&self) -> usize {
        self.buffer.len() - self.decoded + self.tail.len()
    }

    /// Decodes the values that have arrived, up to 64 KiB of them.
    ///
    /// After an error the decoder must not be used any more.
    ///
    /// # Errors
    /// Returns the reason if the bytes are no list, or if a value exceeds the limit.
    pub(in crate::list_watch::kube) fn decode(&mut self) -> Result<Progress, String> {
        if let Some(invalid) = &self.invalid {
            return Err(invalid.clone());
        }
        let end = self.decoded + TURN;
        let progress = loop {
            if self.decoded >= end {
                break Progress::Busy;
            }
            match self.reader.read(&self.buffer[self.decoded..])? {
                Some(length) if length > self.limit => return Err(too_long(self.limit)),
                Some(length) => self.decoded += length,
                None => break Progress::Idle,
            }
        };
        if progress == Progress::Idle {
            self.buffer.drain(..std::mem::take(&mut self.decoded));
            let rest = self.left();
            if rest > self.limit {
                return Err(too_long(self.limit));
            }
            self.enough = FILL.max(2 * rest).min(self.limit.saturating_add(1)).max(rest + 1);
        }
        Ok(progress)
    }

    /// Returns the page after the last byte has arrived and was decoded.
    ///
    /// # Errors
    /// Returns the reason if the list is incomplete, or lacks its version or its items.
    pub(in crate::list_watch::kube) fn finish(self) -> Result<Page<K>, String> {
        if !self.reader.is_complete() || self.left() > 0 {
            return Err("it is incomplete".to_owned());
        }
        self.reader.finish()
    }
}

/// The text of the error for a value above the limit.
fn too_long(limit: usize) -> String {
    format!("an object exceeds {limit} bytes")
}
