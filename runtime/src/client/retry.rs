//! Decides whether a request is sent again, and when. Pure.
//!
//! client-go's rules, with tighter bounds: reads whose connection broke, and whatever the server asked by `Retry-After`
//! to be sent again. Never a write that was not answered: it may have been carried out.

use std::time::Duration;

use http::{HeaderMap, Method, StatusCode, header};

/// After this many broken connections something is wrong that patience does not mend.
const MAX_BROKEN: u32 = 3;
/// The first pause after a broken connection; doubled each time. A server that restarts is gone for longer: who called waits then.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// client-go's number.
const MAX_ASKED: u32 = 10;
/// All pauses that a server may ask of one request: what takes longer is an error that its caller can see and count.
const MAX_WAIT: Duration = Duration::from_secs(30);

/// What one request has been through.
#[derive(Debug)]
pub(super) struct Attempts {
    repeatable: Repeatable,
    broken: u32,
    asked: u32,
    waited: Duration,
}

#[derive(Debug, PartialEq, Eq, Clone, Copy)]
enum Repeatable {
    /// A read: also after a broken connection.
    Always,
    /// A write: only when the server says that it was not carried out and may come again.
    WhenAsked,
    /// A watch: its informer has a back-off of its own and wants to see each failure.
    Never,
}

/// How an attempt ended.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
pub(super) enum Outcome {
    Answered {
        status: StatusCode,
        retry_after: Option<Duration>,
    },
    /// No connection came about; nothing was sent.
    Unreachable,
    /// The connection broke before the answer came; what was sent may have been carried out.
    Broken,
}

// === impl Attempts ===

impl Attempts {
    pub(super) fn new(method: &Method, is_watch: bool) -> Self {
        let repeatable = if is_watch {
            Repeatable::Never
        } else if method == Method::GET {
            Repeatable::Always
        } else {
            Repeatable::WhenAsked
        };
        Self { repeatable, broken: 0, asked: 0, waited: Duration::ZERO }
    }

    /// How long to pause before sending it again; `None` hands the outcome to the caller.
    pub(super) fn pause_after(&mut self, outcome: Outcome) -> Option<Duration> {
        match outcome {
            Outcome::Answered {
                status: StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE,
                retry_after: Some(pause),
            } if self.repeatable != Repeatable::Never => self.when_asked(pause),
            Outcome::Broken if self.repeatable == Repeatable::Always => self.when_broken(),
            Outcome::Answered { .. } | Outcome::Unreachable | Outcome::Broken => None,
        }
    }

    fn when_asked(&mut self, pause: Duration) -> Option<Duration> {
        let waited = self.waited.saturating_add(pause);
        if self.asked == MAX_ASKED || waited > MAX_WAIT {
            return None;
        }
        self.asked += 1;
        self.waited = waited;
        Some(pause)
    }

    fn when_broken(&mut self) -> Option<Duration> {
        if self.broken == MAX_BROKEN {
            return None;
        }
        let pause = FIRST_PAUSE * 2_u32.pow(self.broken);
        self.broken += 1;
        Some(pause)
    }
}

/// What `Retry-After` asks, when it is a number of seconds. The API server sends no dates.
pub(super) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let value = headers.get(header::RETRY_AFTER)?.to_str().ok()?;
    value.trim().parse().ok().map(Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(status: u16, seconds: u64) -> Outcome {
        Outcome::Answered {
            status: StatusCode::from_u16(status).unwrap(),
            retry_after: Some(Duration::from_secs(seconds)),
        }
    }

    #[test]
    fn a_write_that_was_not_answered_is_never_sent_again() {
        for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
            let mut attempts = Attempts::new(&method, false);
            assert_eq!(attempts.pause_after(Outcome::Broken), None);
            assert_eq!(attempts.pause_after(Outcome::Unreachable), None);
        }
    }

    #[test]
    fn a_read_survives_three_broken_connections() {
        let mut attempts = Attempts::new(&Method::GET, false);
        for pause in [100, 200, 400] {
            let expected = Some(Duration::from_millis(pause));
            assert_eq!(attempts.pause_after(Outcome::Broken), expected);
        }
        assert_eq!(attempts.pause_after(Outcome::Broken), None);
    }

    #[test]
    fn whatever_the_server_asks_for_is_sent_again_within_bounds() {
        let mut attempts = Attempts::new(&Method::POST, false);
        for _ in 0..10 {
            assert_eq!(attempts.pause_after(asked(429, 1)), Some(Duration::from_secs(1)));
        }
        assert_eq!(attempts.pause_after(asked(429, 1)), None);

        let mut attempts = Attempts::new(&Method::POST, false);
        assert!(attempts.pause_after(asked(503, 20)).is_some());
        assert_eq!(attempts.pause_after(asked(503, 20)), None, "over 30 s in all");
        assert_eq!(Attempts::new(&Method::POST, false).pause_after(asked(503, u64::MAX)), None);
    }

    #[test]
    fn other_answers_and_watches_are_the_callers() {
        let mut post = Attempts::new(&Method::POST, false);
        assert_eq!(post.pause_after(asked(504, 1)), None, "a 504 may have been carried out");
        assert_eq!(post.pause_after(asked(409, 1)), None);
        let unasked =
            Outcome::Answered { status: StatusCode::SERVICE_UNAVAILABLE, retry_after: None };
        assert_eq!(post.pause_after(unasked), None);
        let mut watch = Attempts::new(&Method::GET, true);
        assert_eq!(watch.pause_after(asked(429, 1)), None);
        assert_eq!(watch.pause_after(Outcome::Broken), None);
    }

    #[test]
    fn retry_after_is_a_number_of_seconds_or_nothing() {
        let parse = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::RETRY_AFTER, text.parse().unwrap());
            retry_after(&headers)
        };
        assert_eq!(parse("7"), Some(Duration::from_secs(7)));
        assert_eq!(parse("18446744073709551615"), Some(Duration::from_secs(u64::MAX)));
        for text in ["", "-1", "1.5", "Wed, 21 Oct 2015 07:28:00 GMT", "18446744073709551616"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
