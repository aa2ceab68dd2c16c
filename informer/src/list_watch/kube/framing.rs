//! Cuts a stream of bytes into lines, however the bytes are chunked.

use bytes::Bytes;

/// Keeps what came of a line whose end has not come yet.
///
/// A line that lies within one chunk, as nearly all do, is never copied.
pub(super) struct Framing {
    /// The begin of the current line: never holds a line break, never longer than `limit`.
    partial: Vec<u8>,
    limit: usize,
}

/// Whole lines, in order.
#[derive(Debug)]
pub(super) struct Lines {
    /// Each ends with a line break.
    pieces: Vec<Bytes>,
    bytes: usize,
    limit: usize,
}

/// A line is longer than the limit.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooLong {
    pub(super) limit: usize,
}

// === impl Framing ===

impl Framing {
    pub(super) fn new(limit: usize) -> Self {
        Self { partial: Vec::new(), limit }
    }

    /// Where the lines of the next chunks go.
    pub(super) fn lines(&self) -> Lines {
        Lines { pieces: Vec::new(), bytes: 0, limit: self.limit }
    }

    /// Adds the lines that `chunk` completes.
    ///
    /// After an error the stream is over; the lines before it have been added.
    pub(super) fn feed(&mut self, mut chunk: Bytes, lines: &mut Lines) -> Result<(), TooLong> {
        let Some(last) = memchr::memrchr(b'\n', &chunk) else { return self.keep(&chunk) };
        let rest = chunk.split_off(last + 1);
        if !self.partial.is_empty() {
            let first = memchr::memchr(b'\n', &chunk).expect("there is a last one");
            self.keep(&chunk.split_to(first))?;
            // The buffer goes with the line: one huge object must not pin its memory for the rest of a quiet watch.
            let mut line = std::mem::take(&mut self.partial);
            line.push(b'\n');
            lines.push(line.into());
            drop(chunk.split_to(1));
        }
        lines.push(chunk);
        self.keep(&rest)
    }

    /// Whether the stream must not end here.
    pub(super) fn is_mid_line(&self) -> bool {
        !self.partial.is_empty()
    }

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
    fn push(&mut self, piece: Bytes) {
        if !piece.is_empty() {
            self.bytes += piece.len();
            self.pieces.push(piece);
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The lines, without their line breaks. Those that came within one chunk are measured only here.
    pub(super) fn iter(&self) -> impl Iterator<Item = Result<&[u8], TooLong>> {
        let limit = self.limit;
        let checked =
            move |line: &[u8]| (line.len() <= limit).then_some(()).ok_or(TooLong { limit });
        self.pieces.iter().flat_map(move |piece| {
            let mut begin = 0;
            memchr::memchr_iter(b'\n', piece).map(move |end| {
                let line = &piece[std::mem::replace(&mut begin, end + 1)..end];
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
    fn every_split_gives_the_same_lines() {
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
    fn line_over_the_limit_is_refused_whether_or_not_it_ends() {
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
    fn line_at_the_limit_is_taken_and_pins_nothing() {
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
