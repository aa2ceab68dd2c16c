//! Faults by chance: a mix of classes, each with its probability.

use std::collections::BTreeMap;
use std::time::Duration;

use super::call::{Call, Verb};
use super::refusal::Refusal;
use super::rules::Fault;
use super::stream::{Break, Cut, StreamFault};
use crate::clock::Chance;

/// A mix of faults, each with the probability that it hits a request; for tests that things come right in the end.
///
/// The mix of [`Chaos::of`] has everything that a client can be expected to overcome by itself. Which fault, and its
/// details (which code, which byte, how long), come from the seed of the [`Faults`](super::Faults).
///
/// # Examples
///
/// ```
/// use homeostat_apiserver::faults::{Calls, Chaos, Class, Faults};
///
/// let faults = Faults::seeded(7);
/// // One request in ten meets a fault, one watch in ten breaks; requests of the kubelet are spared.
/// let chaos = Chaos::of(0.1).with(Class::Refused, 0.3).without(Class::Corrupted);
/// faults.chaos(Calls::any().by("controller"), chaos);
/// ```
#[derive(Debug, Clone, PartialEq)]
#[must_use = "give it to `Faults::chaos`"]
pub struct Chaos {
    rates: BTreeMap<Class, f64>,
    longest_delay: Duration,
}

/// A class of faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Class {
    /// The request is not carried out, and refused with 429, 500, 503 or 504.
    Refused,
    /// The request is not carried out: no connection, or a reset one.
    RequestLost,
    /// The request is carried out; its reply is a reset, a 504, or half of it.
    ReplyLost,
    /// The request, or its reply, takes longer.
    Delayed,
    /// The request is not carried out, nor answered. Clients without a time limit do not overcome it: in no mix by
    /// itself.
    Hung,
    /// A watch ends cleanly after a few events.
    WatchEnded,
    /// A watch breaks in the middle of a line, or at any byte.
    WatchTorn,
    /// A watch is told 410 (or 500, or 429) in the stream, or when it opens.
    WatchExpired,
    /// The events of a watch come late.
    WatchDelayed,
    /// A watch gets no bookmarks.
    NoBookmarks,
    /// One byte of a watch is wrong.
    Corrupted,
    /// A watch starts a few revisions before the one that was asked for: events come twice.
    Rewound,
    /// A watch goes silent after a few events and never ends. In no mix by itself: how soon that is noticed is the
    /// client's affair.
    WatchStalled,
}

// === impl Chaos ===

impl Chaos {
    /// Every class that a client can overcome by itself; a request, or a watch, meets one of them with this
    /// probability.
    pub fn of(rate: f64) -> Self {
        use Class::{
            Corrupted, Delayed, NoBookmarks, Refused, ReplyLost, RequestLost, Rewound,
            WatchDelayed, WatchEnded, WatchExpired, WatchTorn,
        };
        let requests = [Refused, RequestLost, ReplyLost, Delayed].map(|class| (class, rate / 4.0));
        let watches =
            [WatchEnded, WatchTorn, WatchExpired, WatchDelayed, NoBookmarks, Corrupted, Rewound]
                .map(|class| (class, rate / 7.0));
        let rates = requests.into_iter().chain(watches).collect();
        Self { rates, longest_delay: Duration::from_secs(2) }
    }

    /// Sets the probability of one class.
    pub fn with(mut self, class: Class, rate: f64) -> Self {
        self.rates.insert(class, rate);
        self
    }

    /// Leaves a class out.
    pub fn without(mut self, class: Class) -> Self {
        self.rates.remove(&class);
        self
    }

    /// Delays are shorter than this; unless told, than two seconds.
    pub fn longest_delay(mut self, delay: Duration) -> Self {
        self.longest_delay = delay;
        self
    }

    /// What happens to this request: nothing, mostly.
    pub(super) fn draw(&self, call: &Call, chance: &Chance) -> Option<Fault> {
        let is_watch = call.verb == Verb::Watch;
        let mut left = chance.fraction();
        for (class, rate) in &self.rates {
            if class.is_of_watches() && !is_watch {
                continue;
            }
            left -= rate;
            if left < 0.0 {
                return Some(self.fault(*class, chance));
            }
        }
        None
    }

    fn fault(&self, class: Class, chance: &Chance) -> Fault {
        let stream = |cut, how| Fault::Stream(StreamFault::Break(cut, how));
        match class {
            Class::Refused => Fault::Refuse(match chance.below(4) {
                0 => Refusal::too_many_requests(Duration::from_secs(1 + chance.below(2))),
                1 => Refusal::internal_error(),
                2 => Refusal::unavailable(),
                _ => Refusal::timeout(),
            }),
            Class::RequestLost if chance.below(2) == 0 => Fault::DropRequest,
            Class::RequestLost => Fault::LoseRequest,
            Class::ReplyLost => match chance.below(3) {
                0 => Fault::LoseReply,
                1 => Fault::ReplaceReply(Refusal::timeout()),
                _ => Fault::TruncateReply(chance.below(200)),
            },
            Class::Delayed if chance.below(2) == 0 => Fault::DelayRequest(self.delay(chance)),
            Class::Delayed => Fault::DelayReply(self.delay(chance)),
            Class::Hung => Fault::Hang,
            Class::WatchEnded => stream(Cut::Events(chance.below(8)), Break::End),
            Class::WatchTorn if chance.below(2) == 0 => {
                stream(Cut::Events(chance.below(8)), Break::Reset)
            }
            Class::WatchTorn => stream(Cut::Bytes(chance.below(8000)), Break::Reset),
            Class::WatchExpired => match chance.below(4) {
                0 => Fault::Refuse(Refusal::expired()),
                1 => Fault::Refuse(Refusal::too_many_requests(Duration::from_secs(1))),
                2 => stream(Cut::Events(chance.below(8)), Break::Error(Refusal::internal_error())),
                _ => stream(Cut::Events(chance.below(8)), Break::Error(Refusal::expired())),
            },
            Class::WatchDelayed => Fault::Stream(StreamFault::Delay(self.delay(chance))),
            Class::NoBookmarks => Fault::Stream(StreamFault::NoBookmarks),
            Class::Corrupted => Fault::Stream(StreamFault::Corrupt(chance.below(8000))),
            Class::Rewound => Fault::Rewind(1 + chance.below(10)),
            Class::WatchStalled => stream(Cut::Events(chance.below(8)), Break::Stall),
        }
    }

    /// A whole number of milliseconds: tokio's timers know nothing finer.
    fn delay(&self, chance: &Chance) -> Duration {
        let longest = u64::try_from(self.longest_delay.as_millis()).unwrap_or(u64::MAX).max(1);
        Duration::from_millis(chance.below(longest))
    }
}

// === impl Class ===

impl Class {
    fn is_of_watches(self) -> bool {
        !matches!(
            self,
            Self::Refused | Self::RequestLost | Self::ReplyLost | Self::Delayed | Self::Hung
        )
    }
}
