//! Decides if and when a request is sent again. Pure.
//!
//! The rules are client-go's with tighter bounds. A read is repeated if its connection broke. Any
//! request is repeated if the server answers with `Retry-After`, or closes the connection before it
//! processed the request. Another write without an answer is never repeated, because the server may
//! have carried it out.
//!
//! | Outcome | Read | Write | Watch |
//! |---|---|---|---|
//! | 429 or 503 with `Retry-After` | again | again | returned |
//! | broken connection | again, up to 3 times | returned | returned |
//! | not processed | again, up to 3 times | again, up to 3 times | returned |
//! | no connection, timeout | returned | returned | returned |
//! | any other answer | returned | returned | returned |
//!
//! client-go repeats any 5xx with `Retry-After` and a request whose connection broke if it is a
//! GET. What is returned reaches the reconciler, whose queue backs off per key.

use std::time::Duration;

use homeostat_core::retry_after as parse_retry_after;
use http::{HeaderMap, Method, StatusCode, header};

/// The number of broken connections, or of those that did not process the request, after which it
/// fails. More are a persistent fault.
const MAX_BROKEN: u32 = 3;
/// The pause after the first broken connection; it doubles each time. A server that restarts is
/// away for longer: the caller handles that.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// The number of retries that the server may request for one request: client-go's.
const MAX_REQUESTED: u32 = 10;
/// The sum of the pauses that the server may request for one request. Longer waits are returned as
/// an error that the caller can count and log.
const MAX_WAIT: Duration = Duration::from_secs(30);

/// The attempts of one request so far.
///
/// One value per request. The counts only grow, so that the number of repeats has a bound.
#[derive(Debug)]
pub(super) struct Attempts {
    repeatable: Repeatable,
    /// Broken connections so far; at most [`MAX_BROKEN`].
    broken: u32,
    /// Repeats that the server has requested so far; at most [`MAX_REQUESTED`].
    requested: u32,
    /// Sum of the pauses that the server has requested; at most [`MAX_WAIT`].
    waited: Duration,
}

/// Chosen once per request, by its method.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
enum Repeatable {
    /// A read: repeated after a broken connection too.
    Always,
    /// A write: repeated only if the server says that it was not carried out and may be sent again.
    WhenRequested,
    /// A watch: its informer has its own back-off and counts each failure.
    Never,
}

/// The result of one attempt.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
pub(super) enum Outcome {
    Answered {
        status: StatusCode,
        retry_after: Option<Duration>,
    },
    /// No connection was established, so nothing was sent.
    Unreachable,
    /// The server closed the connection, or refused the request, before it processed the request.
    NotProcessed,
    /// The connection broke before the answer arrived. The server may have carried the request out.
    Broken,
    /// No answer arrived in time. The server may have carried the request out. A read is not
    /// repeated either: the caller has waited long enough.
    TimedOut,
}

// === impl Attempts ===

impl Attempts {
    /// A `HEAD` counts as a write: Kubernetes' API has none.
    pub(super) fn new(method: &Method, is_watch: bool) -> Self {
        let repeatable = if is_watch {
            Repeatable::Never
        } else if method == Method::GET {
            Repeatable::Always
        } else {
            Repeatable::WhenRequested
        };
        Self { repeatable, broken: 0, requested: 0, waited: Duration::ZERO }
    }

    /// Returns the pause before the next attempt, or `None` if the caller gets the outcome.
    ///
    /// It changes the counts: call it once per outcome.
    pub(super) fn pause_after(&mut self, outcome: Outcome) -> Option<Duration> {
        match outcome {
            Outcome::Answered {
                status: StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE,
                retry_after: Some(pause),
            } if self.repeatable != Repeatable::Never => self.pause_when_requested(pause),
            Outcome::Broken if self.repeatable == Repeatable::Always => self.pause_when_broken(),
            Outcome::NotProcessed if self.repeatable != Repeatable::Never => {
                self.pause_when_broken()
            }
            Outcome::Answered { .. }
            | Outcome::Unreachable
            | Outcome::NotProcessed
            | Outcome::Broken
            | Outcome::TimedOut => None,
        }
    }

    /// Returns the server's pause if the request has repeats and time left for it.
    fn pause_when_requested(&mut self, pause: Duration) -> Option<Duration> {
        let waited = self.waited.saturating_add(pause);
        if self.requested == MAX_REQUESTED || waited > MAX_WAIT {
            return None;
        }
        self.requested += 1;
        self.waited = waited;
        Some(pause)
    }

    /// Returns 100, 200 and 400 ms, then `None`.
    fn pause_when_broken(&mut self) -> Option<Duration> {
        if self.broken == MAX_BROKEN {
            return None;
        }
        let pause = FIRST_PAUSE * 2_u32.pow(self.broken);
        self.broken += 1;
        Some(pause)
    }
}

/// Returns the wait that the answer's `Retry-After` header requests, in seconds or as a date.
pub(super) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name| headers.get(name)?.to_str().ok();
    parse_retry_after(text(header::RETRY_AFTER)?, text(header::DATE))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn retry_requested(status: u16, seconds: u64) -> Outcome {
        Outcome::Answered {
            status: StatusCode::from_u16(status).unwrap(),
            retry_after: Some(Duration::from_secs(seconds)),
        }
    }

    #[test]
    fn write_without_an_answer_is_never_sent_again() {
        for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
            let mut attempts = Attempts::new(&method, false);
            assert_eq!(attempts.pause_after(Outcome::Broken), None);
            assert_eq!(attempts.pause_after(Outcome::Unreachable), None);
            assert_eq!(attempts.pause_after(Outcome::TimedOut), None);
        }
    }

    #[test]
    fn read_survives_three_broken_connections() {
        let mut attempts = Attempts::new(&Method::GET, false);
        for pause in [100, 200, 400] {
            let expected = Some(Duration::from_millis(pause));
            assert_eq!(attempts.pause_after(Outcome::Broken), expected);
        }
        assert_eq!(attempts.pause_after(Outcome::Broken), None);
    }

    #[test]
    fn request_that_was_not_processed_is_sent_again() {
        for method in [Method::GET, Method::POST] {
            let mut attempts = Attempts::new(&method, false);
            for pause in [100, 200, 400] {
                let expected = Some(Duration::from_millis(pause));
                assert_eq!(attempts.pause_after(Outcome::NotProcessed), expected);
            }
            assert_eq!(attempts.pause_after(Outcome::NotProcessed), None);
        }
        assert_eq!(Attempts::new(&Method::GET, true).pause_after(Outcome::NotProcessed), None);
    }

    #[test]
    fn request_is_repeated_within_bounds_when_the_server_asks() {
        let mut attempts = Attempts::new(&Method::POST, false);
        for _ in 0..10 {
            assert_eq!(attempts.pause_after(retry_requested(429, 1)), Some(Duration::from_secs(1)));
        }
        assert_eq!(attempts.pause_after(retry_requested(429, 1)), None);

        let mut attempts = Attempts::new(&Method::POST, false);
        assert!(attempts.pause_after(retry_requested(503, 20)).is_some());
        assert_eq!(attempts.pause_after(retry_requested(503, 20)), None, "more than 30 s in total");
        assert_eq!(
            Attempts::new(&Method::POST, false).pause_after(retry_requested(503, u64::MAX)),
            None
        );
    }

    #[test]
    fn other_answers_and_watches_are_not_repeated() {
        let mut post = Attempts::new(&Method::POST, false);
        assert_eq!(
            post.pause_after(retry_requested(504, 1)),
            None,
            "a request answered with 504 may have been carried out"
        );
        assert_eq!(post.pause_after(retry_requested(409, 1)), None);
        let no_header =
            Outcome::Answered { status: StatusCode::SERVICE_UNAVAILABLE, retry_after: None };
        assert_eq!(post.pause_after(no_header), None);
        let mut watch = Attempts::new(&Method::GET, true);
        assert_eq!(watch.pause_after(retry_requested(429, 1)), None);
        assert_eq!(watch.pause_after(Outcome::Broken), None);
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let parse = |after: &str| {
            let headers =
                [(header::RETRY_AFTER, after), (header::DATE, "Wed, 21 Oct 2015 07:28:00 GMT")];
            let headers = headers.map(|(name, value)| (name, value.parse().unwrap()));
            retry_after(&headers.into_iter().collect())
        };
        assert_eq!(parse("7"), Some(Duration::from_secs(7)));
        assert_eq!(parse("Wed, 21 Oct 2015 07:28:09 GMT"), Some(Duration::from_secs(9)));
        assert_eq!(parse("soon"), None);
        assert_eq!(retry_after(&HeaderMap::new()), None);
    }
}
