//! Cuts a stream of bytes into lines, however the bytes are chunked.

/// Keeps what came of a line whose end has not come yet.
///
/// A line that lies within one chunk, as nearly all do, is never copied.
pub(super) struct Framing {
    /// The begin of the current line: never holds a line break, never longer than `limit`.
    partial: Vec<u8>,
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

    /// Calls `each` with every line that `chunk` completes, without its line break, until `each` breaks off.
    ///
    /// After an error, whether `each`'s or [`TooLong`], the rest of the chunk is lost: the stream is over.
    pub(super) fn feed<E: From<TooLong>>(
        &mut self,
        chunk: &[u8],
        mut each: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut rest = chunk;
        while let Some(end) = memchr::memchr(b'\n', rest) {
            let (line, after) = (&rest[..end], &rest[end + 1..]);
            if self.partial.len() + line.len() > self.limit {
                return Err(TooLong { limit: self.limit }.into());
            }
            if self.partial.is_empty() {
                each(line)?;
            } else {
                self.partial.extend_from_slice(line);
                let result = each(&self.partial);
                self.partial.clear();
                // One huge object must not pin its buffer for the rest of a quiet watch.
                self.partial.shrink_to(64 << 10);
                result?;
            }
            rest = after;
        }
        if self.partial.len() + rest.len() > self.limit {
            return Err(TooLong { limit: self.limit }.into());
        }
        self.partial.extend_from_slice(rest);
        Ok(())
    }

    /// Whether the stream must not end here.
    pub(super) fn is_mid_line(&self) -> bool {
        !self.partial.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> (Vec<Vec<u8>>, bool) {
        let mut framing = Framing::new(100);
        let mut lines = Vec::new();
        for chunk in chunks {
            framing
                .feed::<TooLong>(chunk, |line| {
                    lines.push(line.to_vec());
                    Ok(())
                })
                .unwrap();
        }
        (lines, framing.is_mid_line())
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
        for chunks in [&[&b"123456\n"[..]][..], &[b"1234", b"56"], &[b"1234", b"56\n"]] {
            let mut framing = Framing::new(5);
            let result: Result<(), TooLong> =
                chunks.iter().try_for_each(|chunk| framing.feed(chunk, |_| Ok(())));
            assert_eq!(result, Err(TooLong { limit: 5 }));
        }
    }

    #[test]
    fn what_breaks_off_gets_no_further_line() {
        #[derive(Debug, PartialEq)]
        struct Stop;
        impl From<TooLong> for Stop {
            fn from(_: TooLong) -> Self {
                Self
            }
        }
        let mut seen = 0;
        let result = Framing::new(9).feed(b"a\nb\nc\n", |line| {
            seen += 1;
            if line == b"b" { Err(Stop) } else { Ok(()) }
        });
        assert_eq!((result, seen), (Err(Stop), 2));
    }
}
