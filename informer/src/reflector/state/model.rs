//! Any sequence of answers: what is asked, how long it waits, and that it comes to an end.
//!
//! The checks know the rules, not the states: they count what the server has said, and hold it against what is asked.

use proptest::prelude::{Strategy, any, prop_oneof};

use super::*;
use crate::model::{Tally, check};

/// What a server does with a question. What makes no sense for it is another way of failing.
#[derive(Clone, Debug)]
enum Answer {
    /// All is well: a whole state, or events; a watch is closed after so many seconds.
    Good {
        news: u64,
        lived: u64,
    },
    /// A whole state that is older than asked for, or than what was seen.
    Old,
    /// A Status: when the watch was opened, or after it had lived for so many seconds.
    Status {
        code: u16,
        retry_after: Option<u64>,
        lived: Option<u64>,
    },
    TooLarge,
    /// The list was not at its first page.
    ExpiredPlace,
    Circle,
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
        1 => any::<()>().prop_map(|()| Answer::ExpiredPlace),
        1 => any::<()>().prop_map(|()| Answer::Circle),
        1 => any::<()>().prop_map(|()| Answer::Unreachable),
        2 => (lived(), 0..2_u64).prop_map(|(lived, news)| Answer::Torn { lived, news }),
        3 => any::<()>().prop_map(|()| Answer::Corrupt),
        1 => any::<()>().prop_map(|()| Answer::Silent),
        1 => any::<()>().prop_map(|()| Answer::Incomplete),
        1 => any::<()>().prop_map(|()| Answer::Panic),
    ]
}

/// The state, and what was said to it.
struct World<'a> {
    state: State,
    now: u64,
    /// What has been handed on.
    last: Option<u64>,
    /// Why a watch after `last` may be given up: counted since it was good.
    reasons: Reasons,
    /// Questions in a row without a wait or anything new.
    hurry: u32,
    /// How many waits there were since all was well for two minutes.
    waits: u32,
    tally: &'a Tally,
}

#[derive(Default)]
struct Reasons {
    useless: bool,
    unreadable: u32,
    refused: u32,
    /// The server cannot say what a version means to it.
    newest: bool,
}

fn refusal(code: u16, retry_after: Option<u64>) -> Refusal {
    let refusal = Refusal::new(code, "", "");
    match retry_after {
        Some(seconds) => refusal.with_retry_after(Duration::from_secs(seconds)),
        None => refusal,
    }
}

fn too_large() -> Refusal {
    Refusal::new(504, "Timeout", "Too large resource version: 2, current: 1")
}

fn list_error(answer: &Answer) -> ListError {
    let target = "pods".into();
    match answer {
        Answer::Status { code, retry_after, .. } => {
            ListError::Refused { target, refusal: refusal(*code, *retry_after) }
        }
        Answer::TooLarge => ListError::Refused { target, refusal: too_large() },
        Answer::ExpiredPlace => ListError::Refused { target, refusal: refusal(410, None) },
        Answer::Circle | Answer::Corrupt => ListError::Corrupt { target, error: "odd".into() },
        Answer::Silent | Answer::Incomplete => {
            ListError::TimedOut { target, deadline: Duration::from_secs(75) }
        }
        _ => ListError::Unreachable { target, source: "refused".into() },
    }
}

fn watch_error(answer: &Answer) -> WatchError {
    let target = "pods".into();
    match answer {
        Answer::Status { code, retry_after, lived: None } => {
            WatchError::Refused { target, refusal: refusal(*code, *retry_after) }
        }
        Answer::Status { code, retry_after, lived: Some(_) } => {
            WatchError::Ended { target, refusal: refusal(*code, *retry_after) }
        }
        Answer::TooLarge => WatchError::Refused { target, refusal: too_large() },
        Answer::ExpiredPlace => WatchError::Ended { target, refusal: refusal(410, None) },
        Answer::Circle | Answer::Corrupt => WatchError::Corrupt { target, error: "odd".into() },
        Answer::Silent => WatchError::Silent { target, deadline: Duration::from_secs(75) },
        Answer::Incomplete => WatchError::Incomplete { target },
        Answer::Torn { .. } => WatchError::Torn { target, source: "reset".into() },
        _ => WatchError::Unreachable { target, source: "refused".into() },
    }
}

impl World<'_> {
    fn turn(&mut self, answer: &Answer) {
        self.now += 1;
        let ask = self.state.ask();
        let (pause, retry_after) = match &ask {
            Ask::Watch(request) => {
                assert_eq!(request.resource_version, self.version(), "on from the last good place");
                assert!(!self.reasons.useless, "a place that is of no use");
                self.watch(answer)
            }
            Ask::WatchList(request) => {
                self.check_whole(request.resource_version.as_ref());
                assert!(request.initial_events);
                let newest = request.resource_version.is_none();
                self.whole(answer, newest, Self::watch_list_failed)
            }
            Ask::List(request) => {
                self.check_whole(request.resource_version.as_ref());
                let paged = request.limit.is_some();
                let newest = request.resource_version.is_none();
                let failed = if paged { Self::list_failed } else { Self::whole_list_failed };
                self.tally.count("in one piece", usize::from(!paged));
                self.whole(answer, newest, failed)
            }
        };
        self.check_pause(pause, retry_after);
    }

    fn version(&self) -> Option<ResourceVersion> {
        self.last.map(|last| last.to_string().into())
    }

    /// A whole state is asked for only if there is a reason, and only without a version if that was the reason.
    fn check_whole(&self, version: Option<&ResourceVersion>) {
        let Reasons { useless, unreadable, refused, newest } = self.reasons;
        let why = useless || unreadable >= UNREADABLE || refused >= REFUSED;
        assert!(why || self.last.is_none(), "a whole state for no reason");
        assert!(version == self.version().as_ref() || (version.is_none() && newest), "{version:?}");
        self.tally.count("around", usize::from(!useless && self.last.is_some()));
        self.tally.count("newest", usize::from(version.is_none() && self.last.is_some()));
    }

    fn whole(
        &mut self,
        answer: &Answer,
        newest: bool,
        failed: fn(&mut Self, &Answer) -> (Duration, Option<Duration>),
    ) -> (Duration, Option<Duration>) {
        match answer {
            Answer::Good { .. } => (self.gathered(self.now), None),
            Answer::Old if newest || self.last.is_none() => {
                self.tally.count("another history", usize::from(self.last.is_some()));
                (self.gathered(self.last.unwrap_or(self.now) / 2 + 1), None)
            }
            Answer::Old => {
                self.reasons.newest = true;
                (self.state.whole_is_too_old(), None)
            }
            Answer::Panic => (self.state.panicked(), None),
            _ => failed(self, answer),
        }
    }

    fn gathered(&mut self, version: u64) -> Duration {
        self.tally.count("whole state", 1);
        self.state.gathered(version.to_string().into());
        self.last = Some(version);
        self.now = self.now.max(version);
        self.reasons = Reasons { refused: self.reasons.refused, ..Reasons::default() };
        self.hurry = 0;
        Duration::ZERO
    }

    fn watch_list_failed(&mut self, answer: &Answer) -> (Duration, Option<Duration>) {
        let error = watch_error(answer);
        self.reasons.newest |= error.is_expired() || error.is_too_large_resource_version();
        (self.state.watch_list_failed(&error), error.retry_after())
    }

    fn list_failed(&mut self, answer: &Answer) -> (Duration, Option<Duration>) {
        let continued = matches!(answer, Answer::ExpiredPlace | Answer::Circle);
        self.list_failed_at(answer, continued)
    }

    fn whole_list_failed(&mut self, answer: &Answer) -> (Duration, Option<Duration>) {
        self.list_failed_at(answer, false)
    }

    fn list_failed_at(&mut self, answer: &Answer, continued: bool) -> (Duration, Option<Duration>) {
        let error = list_error(answer);
        let misunderstood = error.refusal().is_some_and(Refusal::is_bad_request);
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
            assert!(!self.state.followed((self.now - 1).to_string().into()), "never back");
            assert!(!self.state.followed(self.now.to_string().into()), "told again to its end");
            self.last = Some(self.now);
            self.reasons.unreadable = 0;
        }
        if progress || lived >= 1 {
            self.hurry = 0;
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

    /// What a failed watch says about its place.
    fn note(&mut self, error: &WatchError) {
        let useless = error.is_expired()
            || error.is_too_large_resource_version()
            || error.refusal().is_some_and(Refusal::is_bad_request);
        self.reasons.useless |= useless;
        let busy = error.is_too_many_requests();
        match error {
            WatchError::Refused { .. } if useless || busy || error.is_unauthorized() => {}
            WatchError::Refused { .. } => self.reasons.refused += 1,
            WatchError::Unreachable { .. } => {}
            _ => self.reasons.refused = 0,
        }
        if matches!(error, WatchError::Corrupt { .. } | WatchError::Ended { .. }) {
            self.reasons.unreadable += u32::from(!useless && !busy);
        }
    }

    fn check_pause(&mut self, pause: Duration, retry_after: Option<Duration>) {
        if pause.is_zero() {
            self.hurry += 1;
            // By watch, without a version, by list, in one piece: each once.
            assert!(self.hurry <= 5, "{} questions without a wait", self.hurry);
            return;
        }
        self.hurry = 0;
        let config = BackoffConfig::default();
        let step = config.initial.saturating_mul(1 << self.waits.min(10)).min(config.max);
        let asked = retry_after.unwrap_or_default().min(Duration::from_secs(300));
        assert!(pause >= step.max(asked), "{pause:?}: {step:?}, and {asked:?} was asked for");
        assert!(
            pause <= (2 * step).max(asked + config.initial),
            "{pause:?} for {step:?}, {asked:?}"
        );
        self.waits += 1;
        self.tally.count("wait", 1);
        self.tally.count("wait that was asked for", usize::from(asked > step));
    }

    /// From here on all is well.
    fn recover(&mut self) {
        for _ in 0..2 {
            self.turn(&Answer::Good { news: 1, lived: 300 });
        }
        assert_eq!(self.last, Some(self.now), "two good answers are enough");
        assert!(matches!(self.state.ask(), Ask::Watch(_)));
        assert_eq!(self.hurry, 1, "and all that follows comes without a wait");
    }
}

#[test]
fn any_sequence_of_answers_is_followed_by_a_question_that_makes_sense() {
    let least = [
        ("whole state", 500),
        ("newest", 300),
        ("around", 100),
        ("another history", 20),
        ("in one piece", 50),
        ("wait", 3000),
        ("wait that was asked for", 300),
        ("healthy watch", 50),
    ];
    check(answer(), 80, &least, |answers, tally| {
        let watch_list = answers.len() % 3 > 0;
        let config = StateConfig { page_size: 500, watch_list, backoff: BackoffConfig::default() };
        let mut world = World {
            state: State::new(config, answers.len() as u64),
            now: 1,
            last: None,
            reasons: Reasons::default(),
            hurry: 0,
            waits: 0,
            tally,
        };
        for answer in answers {
            world.turn(answer);
        }
        world.recover();
    });
}
