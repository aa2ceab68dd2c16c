//! Checks the reflector's decisions for random sequences of answers: the requests, the waits, and
//! that it recovers.
//!
//! The checks know the rules, not the states: they count what the server has answered and compare
//! that with the requests.

use std::time::Duration;

use proptest::prelude::{Strategy, any, prop_oneof};

use super::failures::{MAX_REFUSED, MAX_UNREADABLE};
use super::*;
use crate::list_watch::{ApiError, ListError, WatchError};
use crate::model::{Tally, check};

/// A server's answer to a request. An answer that does not apply to the request counts as a
/// failure.
#[derive(Clone, Debug)]
enum Answer {
    /// A complete list, or `news` events of a watch that closes after `lived` seconds.
    Good {
        news: u64,
        lived: u64,
    },
    /// A list that is older than requested or than a version seen before.
    Old,
    /// A Status, for the request or after the watch was open for `lived` seconds.
    Status {
        code: u16,
        retry_after: Option<u64>,
        lived: Option<u64>,
    },
    TooLarge,
    /// The continue token of a later page has expired.
    ExpiredToken,
    RepeatedToken,
    Unreachable,
    Torn {
        lived: u64,
        news: u64,
    },
    Corrupt,
    Silent,
    Incomplete,
    Panic,
}

fn answer() -> impl Strategy<Value = Answer> {
    let lived = || prop_oneof![3 => 0..2_u64, 1 => 100..400_u64];
    let retry_after =
        prop_oneof![4 => any::<()>().prop_map(|()| None), 1 => (0..1000_u64).prop_map(Some)];
    let code = (0..9_usize).prop_map(|at| [400, 401, 403, 404, 410, 422, 429, 500, 503][at]);
    let during = prop_oneof![any::<()>().prop_map(|()| None), lived().prop_map(Some)];
    prop_oneof![
        6 => (0..3_u64, lived()).prop_map(|(news, lived)| Answer::Good { news, lived }),
        1 => any::<()>().prop_map(|()| Answer::Old),
        8 => (code, retry_after, during)
            .prop_map(|(code, retry_after, lived)| Answer::Status { code, retry_after, lived }),
        1 => any::<()>().prop_map(|()| Answer::TooLarge),
        1 => any::<()>().prop_map(|()| Answer::ExpiredToken),
        1 => any::<()>().prop_map(|()| Answer::RepeatedToken),
        1 => any::<()>().prop_map(|()| Answer::Unreachable),
        2 => (lived(), 0..2_u64).prop_map(|(lived, news)| Answer::Torn { lived, news }),
        3 => any::<()>().prop_map(|()| Answer::Corrupt),
        1 => any::<()>().prop_map(|()| Answer::Silent),
        1 => any::<()>().prop_map(|()| Answer::Incomplete),
        1 => any::<()>().prop_map(|()| Answer::Panic),
    ]
}

/// The state under test, and the history of answers.
struct World<'a> {
    state: State,
    now: u64,
    /// The last version that was passed on.
    last: Option<u64>,
    /// Counts of the reasons to relist, since `last` was valid.
    reasons: Reasons,
    /// Consecutive requests without a wait or a new version.
    requests_without_wait: u32,
    /// The number of waits since a watch was healthy for two minutes.
    waits: u32,
    /// The number before the first request without an answer, since the last answer.
    answered_waits: Option<u32>,
    tally: &'a Tally,
}

#[derive(Default)]
struct Reasons {
    unusable: bool,
    unreadable: u32,
    refused: u32,
    /// The server has rejected a request because of its version.
    newest: bool,
}

fn api_error(code: u16, retry_after: Option<u64>) -> ApiError {
    let error = ApiError::new(code, "", "");
    match retry_after {
        Some(seconds) => error.with_retry_after(Duration::from_secs(seconds)),
        None => error,
    }
}

fn too_large() -> ApiError {
    ApiError::new(504, "Timeout", "Too large resource version: 2, current: 1")
}

fn list_error(answer: &Answer) -> ListError {
    let target = "pods".into();
    match answer {
        Answer::Status { code, retry_after, .. } => {
            ListError::Refused { target, error: api_error(*code, *retry_after) }
        }
        Answer::TooLarge => ListError::Refused { target, error: too_large() },
        Answer::ExpiredToken => ListError::Refused { target, error: api_error(410, None) },
        Answer::RepeatedToken | Answer::Corrupt => {
            ListError::Corrupt { target, error: "odd".into() }
        }
        Answer::Silent | Answer::Incomplete => {
            ListError::TimedOut { target, timeout: Duration::from_secs(75) }
        }
        _ => ListError::Unreachable { target, source: "refused".into() },
    }
}

fn watch_error(answer: &Answer) -> WatchError {
    let target = "pods".into();
    match answer {
        Answer::Status { code, retry_after, lived: None } => {
            WatchError::Refused { target, error: api_error(*code, *retry_after) }
        }
        Answer::Status { code, retry_after, lived: Some(_) } => {
            WatchError::Ended { target, error: api_error(*code, *retry_after) }
        }
        Answer::TooLarge => WatchError::Refused { target, error: too_large() },
        Answer::ExpiredToken => WatchError::Ended { target, error: api_error(410, None) },
        Answer::RepeatedToken | Answer::Corrupt => {
            WatchError::Corrupt { target, error: "odd".into() }
        }
        Answer::Silent => WatchError::Silent { target, timeout: Duration::from_secs(75) },
        Answer::Incomplete => WatchError::Incomplete { target },
        Answer::Torn { .. } => WatchError::Torn { target, source: "reset".into() },
        _ => WatchError::Unreachable { target, source: "refused".into() },
    }
}

impl World<'_> {
    fn step(&mut self, answer: &Answer) {
        self.now += 1;
        let ask = self.state.next_request();
        self.note_answer(answer, matches!(ask, NextRequest::List(_)));
        let (pause, retry_after) = match &ask {
            NextRequest::Probe(_) => unreachable!("no watch of this model is silent"),
            NextRequest::Watch(request) => {
                assert_eq!(
                    request.resource_version,
                    self.version(),
                    "resumes after the last version"
                );
                assert!(!self.reasons.unusable, "watch from an unusable version");
                self.watch(answer)
            }
            NextRequest::WatchList(request) => {
                self.check_list(request.resource_version.as_ref());
                assert!(request.initial_events);
                let newest = request.resource_version.is_none();
                self.answer_list(answer, newest, Self::watch_list_failed)
            }
            NextRequest::List(request) => {
                self.check_list(request.resource_version.as_ref());
                let paged = request.limit.is_some();
                let newest = request.resource_version.is_none();
                let failed = if paged { Self::list_failed } else { Self::unpaged_list_failed };
                self.tally.count("unpaged list", usize::from(!paged));
                self.answer_list(answer, newest, failed)
            }
        };
        self.check_pause(pause, retry_after);
    }

    /// Undoes the waits without an answer when the server answers.
    fn note_answer(&mut self, answer: &Answer, is_list: bool) {
        let is_unanswered = match answer {
            Answer::Panic => return,
            Answer::Unreachable | Answer::Silent => true,
            // A list cannot be torn; the model sends that as an unreachable server.
            Answer::Incomplete | Answer::Torn { .. } => is_list,
            _ => false,
        };
        if is_unanswered {
            self.answered_waits.get_or_insert(self.waits);
        } else {
            self.waits = self.answered_waits.take().unwrap_or(self.waits);
        }
    }

    fn version(&self) -> Option<ResourceVersion> {
        self.last.map(|last| last.to_string().into())
    }

    /// Checks that a list has a reason, and has no version only if that was the reason.
    fn check_list(&self, version: Option<&ResourceVersion>) {
        let Reasons { unusable, unreadable, refused, newest } = self.reasons;
        let why = unusable || unreadable >= MAX_UNREADABLE || refused >= MAX_REFUSED;
        assert!(why || self.last.is_none(), "relist without a reason");
        assert!(version == self.version().as_ref() || (version.is_none() && newest), "{version:?}");
        self.tally.count("forced relist", usize::from(!unusable && self.last.is_some()));
        self.tally.count("newest", usize::from(version.is_none() && self.last.is_some()));
    }

    fn answer_list(
        &mut self,
        answer: &Answer,
        newest: bool,
        failed: fn(&mut Self, &Answer) -> (Duration, Option<Duration>),
    ) -> (Duration, Option<Duration>) {
        match answer {
            Answer::Good { .. } => (self.gathered(self.now), None),
            Answer::Old if newest || self.last.is_none() => {
                self.tally.count("restored server", usize::from(self.last.is_some()));
                (self.gathered(self.last.unwrap_or(self.now) / 2 + 1), None)
            }
            Answer::Old => {
                self.reasons.newest = true;
                (self.state.full_state_too_old(), None)
            }
            Answer::Panic => (self.state.panicked(), None),
            _ => failed(self, answer),
        }
    }

    fn gathered(&mut self, version: u64) -> Duration {
        self.tally.count("list", 1);
        self.state.gathered(version.to_string().into());
        self.last = Some(version);
        self.now = self.now.max(version);
        self.reasons = Reasons { refused: self.reasons.refused, ..Reasons::default() };
        self.requests_without_wait = 0;
        Duration::ZERO
    }

    fn watch_list_failed(&mut self, answer: &Answer) -> (Duration, Option<Duration>) {
        let error = watch_error(answer);
        self.reasons.newest |= error.is_expired() || error.is_too_large_resource_version();
        (self.state.watch_list_failed(&error), error.retry_after())
    }

    fn list_failed(&mut self, answer: &Answer) -> (Duration, Option<Duration>) {
        let continued = matches!(answer, Answer::ExpiredToken | Answer::RepeatedToken);
        self.list_failed_at(answer, continued)
    }

    fn unpaged_list_failed(&mut self, answer: &Answer) -> (Duration, Option<Duration>) {
        self.list_failed_at(answer, false)
    }

    fn list_failed_at(&mut self, answer: &Answer, continued: bool) -> (Duration, Option<Duration>) {
        let error = list_error(answer);
        let misunderstood = error.api_error().is_some_and(ApiError::is_bad_request);
        let expired = error.is_expired() && !continued;
        self.reasons.newest |= expired || error.is_too_large_resource_version() || misunderstood;
        (self.state.list_failed(&error, continued), error.retry_after())
    }

    fn watch(&mut self, answer: &Answer) -> (Duration, Option<Duration>) {
        let (lived, news) = match answer {
            Answer::Good { news, lived } | Answer::Torn { news, lived } => (*lived, *news),
            Answer::Status { lived, .. } => (lived.unwrap_or(0), 0),
            _ => (0, 0),
        };
        let progress = news > 0;
        if progress {
            self.now += news;
            assert!(self.state.followed(self.now.to_string().into()));
            assert!(!self.state.followed((self.now - 1).to_string().into()), "an older version");
            assert!(!self.state.followed(self.now.to_string().into()), "end of the replay");
            self.last = Some(self.now);
            self.reasons.unreadable = 0;
        }
        if progress || lived >= 1 {
            self.requests_without_wait = 0;
        }
        let lived = Duration::from_secs(lived);
        if lived >= BackoffConfig::default().reset_after {
            self.waits = 0;
            self.tally.count("healthy watch", 1);
        }
        match answer {
            Answer::Good { .. } | Answer::Old => {
                self.reasons.refused = 0;
                (self.state.watch_ended(lived, progress), None)
            }
            Answer::Panic => {
                self.reasons.unreadable += 1;
                (self.state.panicked(), None)
            }
            _ => {
                let error = watch_error(answer);
                self.note(&error);
                (self.state.watch_failed(&error, lived, progress), error.retry_after())
            }
        }
    }

    /// Counts the reasons to relist that a failed watch gives.
    fn note(&mut self, error: &WatchError) {
        let unusable = error.is_expired()
            || error.is_too_large_resource_version()
            || error.api_error().is_some_and(ApiError::is_bad_request);
        self.reasons.unusable |= unusable;
        let busy = error.is_too_many_requests();
        match error {
            WatchError::Refused { .. } if unusable || busy || error.is_unauthorized() => {}
            // No silent watch of this model was opened.
            WatchError::Refused { .. } | WatchError::Silent { .. } => self.reasons.refused += 1,
            WatchError::Unreachable { .. } => {}
            _ => self.reasons.refused = 0,
        }
        if matches!(error, WatchError::Corrupt { .. } | WatchError::Ended { .. }) {
            self.reasons.unreadable += u32::from(!unusable && !busy);
        }
    }

    fn check_pause(&mut self, pause: Duration, retry_after: Option<Duration>) {
        if pause.is_zero() {
            self.requests_without_wait += 1;
            // WatchList, WatchList without version, list, list without version, unpaged list: each
            // once.
            assert!(
                self.requests_without_wait <= 5,
                "{} requests without a wait",
                self.requests_without_wait
            );
            return;
        }
        self.requests_without_wait = 0;
        let config = BackoffConfig::default();
        let step = config.initial.saturating_mul(1 << self.waits.min(10)).min(config.max);
        let asked = retry_after.unwrap_or_default().min(Duration::from_secs(300));
        assert!(pause >= step.max(asked), "{pause:?}: {step:?}, requested {asked:?}");
        assert!(
            pause <= (2 * step).max(asked + config.initial),
            "{pause:?} for {step:?}, {asked:?}"
        );
        self.waits += 1;
        self.tally.count("wait", 1);
        self.tally.count("wait for retry-after", usize::from(asked > step));
    }

    /// Answers well from now on, and checks that two answers suffice to follow the server.
    fn recover(&mut self) {
        for _ in 0..2 {
            self.step(&Answer::Good { news: 1, lived: 300 });
        }
        assert_eq!(self.last, Some(self.now), "two valid answers suffice");
        assert!(matches!(self.state.next_request(), NextRequest::Watch(_)));
        assert_eq!(self.requests_without_wait, 1, "requests continue without a wait");
    }
}

#[test]
fn next_request_is_valid_for_any_sequence_of_answers() {
    let least = [
        ("list", 500),
        ("newest", 300),
        ("forced relist", 100),
        ("restored server", 20),
        ("unpaged list", 50),
        ("wait", 3000),
        ("wait for retry-after", 300),
        ("healthy watch", 50),
    ];
    check(answer(), 80, &least, |answers, tally| {
        let watch_list = answers.len() % 3 > 0;
        let config = StateConfig { watch_list, ..StateConfig::default() };
        let mut world = World {
            state: State::new(config, Some(answers.len() as u64)),
            now: 1,
            last: None,
            reasons: Reasons::default(),
            requests_without_wait: 0,
            waits: 0,
            answered_waits: None,
            tally,
        };
        for answer in answers {
            world.step(answer);
        }
        world.recover();
    });
}
