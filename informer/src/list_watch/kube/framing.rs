//! Splits a byte stream into lines, independent of its chunks.
//!
//! The result never depends on the size of the chunks, and the cost is proportional to the bytes.
//! The property tests of this directory check both.
//!
//! A watch is a sequence of JSON values, one per line. Line breaks inside of values are escaped, so
//! that a search for `\n` finds all ends. The search is vectorized (`memchr`) and looks at each
//! byte once.

use bytes::Bytes;

/// Buffers the incomplete last line of a stream.
///
/// A line that lies within one chunk is never copied; almost all lines do.
///
/// Its buffer is bounded: an event that exceeds the limit ends the watch, and does not fill the
/// memory.
pub(super) struct Framing {
    /// The start of the incomplete line. It holds no line break and is never longer than `limit`.
    partial: Vec<u8>,
    limit: usize,
}

/// Complete lines, in order.
///
/// It shares the memory of the chunks and is `Send`, so that a task can decode it.
#[derive(Debug)]
pub(super) struct Lines {
    /// Each piece ends with a line break and may hold several lines.
    pieces: Vec<Bytes>,
    bytes: usize,
    limit: usize,
}

/// The error for a line that is longer than the limit.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooLong {
    pub(super) limit: usize,
}

// === impl Framing ===

impl Framing {
    /// Starts between two lines. `limit` is the longest line in bytes, without its line break.
    pub(super) fn new(limit: usize) -> Self {
        Self { partial: Vec::new(), limit }
    }

    /// Returns an empty collection for the lines of the next chunks.
    pub(super) fn lines(&self) -> Lines {
        Lines { pieces: Vec::new(), bytes: 0, limit: self.limit }
    }

    /// Adds to `lines` the lines that `chunk` completes.
    ///
    /// # Errors
    /// Returns [`TooLong`] if the incomplete line exceeds the limit. The lines before it have been
    /// added, and the stream must not be read further.
    pub(super) fn feed(&mut self, mut chunk: Bytes, lines: &mut Lines) -> Result<(), TooLong> {
        let Some(last) = memchr::memrchr(b'\n', &chunk) else { return self.keep(&chunk) };
        let rest = chunk.split_off(last + 1);
        if !self.partial.is_empty() {
            let first = memchr::memchr(b'\n', &chunk)
                .expect("the chunk has a last line break, so it has a first");
            self.keep(&chunk.split_to(first))?;
            // The line takes the buffer along, so that one huge object does not pin its memory for
            // the rest of a quiet watch.
            let mut line = std::mem::take(&mut self.partial);
            line.push(b'\n');
            lines.push(line.into());
            drop(chunk.split_to(1));
        }
        lines.push(chunk);
        self.keep(&rest)
    }

    /// Returns true if the last line is incomplete, so that the stream must not end here.
    pub(super) fn is_mid_line(&self) -> bool {
        !self.partial.is_empty()
    }

    /// Appends a part of a line to the incomplete line.
    ///
    /// # Errors
    ///
    /// [`TooLong`] if the incomplete line would exceed the limit. Nothing is appended then.
    fn keep(&mut self, part: &[u8]) -> Result<(), TooLong> {
        if part.len() > self.limit - self.partial.len() {
            return Err(TooLong { limit: self.limit });
        }
        self.partial.extend_from_slice(part);
        Ok(())
    }
}

// === impl Lines ===

impl Lines {
    /// A piece without bytes is not kept.
    fn push(&mut self, piece: Bytes) {
        if !piece.is_empty() {
            self.bytes += piece.len();
            self.pieces.push(piece);
        }
    }

    /// Returns the length of all lines with their line breaks, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the lines without their line breaks. The length of lines within one chunk is checked
    /// here, not in `feed`.
    ///
    /// An empty line is returned like any other; the decoder rejects it.
    pub(super) fn iter(&self) -> impl Iterator<Item = Result<&[u8], TooLong>> {
        let limit = self.limit;
        let checked =
            move |line: &[u8]| (line.len() <= limit).then_some(()).ok_or(TooLong { limit });
        self.pieces.iter().flat_map(move |piece| {
            let mut start = 0;
            memchr::memchr_iter(b'\n', piece).map(move |end| {
                let line = &piece[std::mem::replace(&mut start, end + 1)..end];
                checked(line).map(|()| line)
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> (Vec<Vec<u8>>, bool) {
        let mut framing = Framing::new(100);
        let mut lines = framing.lines();
        for chunk in chunks {
            framing.feed(Bytes::copy_from_slice(chunk), &mut lines).unwrap();
        }
        (lines.iter().map(|line| line.unwrap().to_vec()).collect(), framing.is_mid_line())
    }

    #[test]
    fn any_chunking_gives_the_same_lines() {
        let bytes = b"{\"a\":1}\n{\"b\":\"\xc3\xa4\"}\n\n{}\n{\"torn";
        let whole = lines([&bytes[..]]);
        assert_eq!(whole.0.len(), 4);
        assert!(whole.1);
        for one in 0..=bytes.len() {
            for two in one..=bytes.len() {
                assert_eq!(lines([&bytes[..one], &bytes[one..two], &bytes[two..]]), whole);
            }
        }
        assert_eq!(lines(bytes.chunks(1)), whole);
    }

    #[test]
    fn line_over_the_limit_is_rejected_complete_or_partial() {
        for chunks in [
            &[&b"ok\n123456\n"[..]][..],
            &[b"ok\n123456"],
            &[b"ok\n1234", b"56"],
            &[b"ok\n1234", b"56\n"],
            &[b"ok\n12345", b"6\nok\n"],
        ] {
            let mut framing = Framing::new(5);
            let mut lines = framing.lines();
            let fed: Result<(), TooLong> = chunks
                .iter()
                .try_for_each(|chunk| framing.feed(Bytes::from_static(chunk), &mut lines));
            let mut seen = lines.iter();
            assert_eq!(seen.next(), Some(Ok(&b"ok"[..])));
            let later = seen.find_map(Result::err);
            assert_eq!(fed.err().or(later), Some(TooLong { limit: 5 }));
        }
    }

    #[test]
    fn line_at_the_limit_is_accepted_and_frees_its_buffer() {
        for chunks in [&[&b"12345\n"[..]][..], &[b"123", b"45\n"], &[b"12345", b"\n"]] {
            let mut framing = Framing::new(5);
            let mut lines = framing.lines();
            for chunk in chunks {
                framing.feed(Bytes::from_static(chunk), &mut lines).unwrap();
            }
            assert_eq!(lines.iter().collect::<Vec<_>>(), [Ok(&b"12345"[..])]);
            assert_eq!((lines.bytes(), framing.partial.capacity()), (6, 0));
        }
    }
}
