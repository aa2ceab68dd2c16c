//! Random faults: a mix of classes, each with its probability.

use std::collections::BTreeMap;
use std::time::Duration;

use homeostat_core::Random;

use crate::api_error::ApiError;
use crate::request_info::{ClientRequest, Verb};
use crate::rules::Fault;
use crate::stream::{Break, Cut, StreamFault};

/// A mix of fault classes, each with the probability that it hits a request.
///
/// It serves tests of convergence: the mix of [`Chaos::of`] contains only faults that a client can
/// overcome by itself. The class and its details (status code, byte, delay) are drawn from the seed
/// of the [`Faults`](crate::Faults).
///
/// # Examples
///
/// ```
/// use homeostat_faults::{Calls, Chaos, FaultClass, Faults};
///
/// let faults = Faults::seeded(7);
/// // The kubelet's requests are not affected.
/// let chaos =
///     Chaos::of(0.1).with(FaultClass::Refused, 0.3).without(FaultClass::WatchCorrupted);
/// faults.chaos(Calls::any().by("controller"), chaos);
/// ```
#[derive(Debug, Clone, PartialEq)]
#[must_use = "a mix does nothing until it is passed to `Faults::chaos`"]
pub struct Chaos {
    rates: BTreeMap<FaultClass, f64>,
    max_delay: Duration,
}

/// A class of random faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum FaultClass {
    /// The request is not processed; the reply is a 429, 500, 503 or 504.
    Refused,
    /// The request is not processed; the connection is refused or reset.
    RequestLost,
    /// The request is processed; the reply is a reset, a 504, or incomplete.
    ReplyLost,
    /// The request or its reply is delayed.
    Delayed,
    /// The request is neither processed nor answered. [`Chaos::of`] leaves this class out: a client
    /// without a timeout does not overcome it.
    Hung,
    /// The watch ends without an error after 0 to 7 events.
    WatchEnded,
    /// The watch is reset in the middle of a line or at a random byte.
    WatchTorn,
    /// The watch gets a 410, 429 or 500, as its reply or as an `ERROR` event.
    WatchExpired,
    /// The events of the watch are delayed.
    WatchDelayed,
    /// The watch gets no bookmarks.
    WatchWithoutBookmarks,
    /// One byte of the watch is wrong.
    WatchCorrupted,
    /// The watch starts 1 to 10 revisions earlier than requested, so that events are repeated.
    WatchRewound,
    /// The watch delivers nothing after 0 to 7 events, and does not end. [`Chaos::of`] leaves this
    /// class out: the client must detect the silence by a timeout of its own.
    WatchStalled,
}

// === impl Chaos ===

impl Chaos {
    /// Creates the mix of every class that a client can overcome by itself.
    ///
    /// `rate` is the probability that a request meets one of the request classes, and the
    /// probability that a watch meets one of the watch classes. Delays are shorter than 2 s.
    pub fn of(rate: f64) -> Self {
        use FaultClass::{
            Delayed, Refused, ReplyLost, RequestLost, WatchCorrupted, WatchDelayed, WatchEnded,
            WatchExpired, WatchRewound, WatchTorn, WatchWithoutBookmarks,
        };
        let requests = [Refused, RequestLost, ReplyLost, Delayed].map(|class| (class, rate / 4.0));
        let watches = [
            WatchEnded,
            WatchTorn,
            WatchExpired,
            WatchDelayed,
            WatchWithoutBookmarks,
            WatchCorrupted,
            WatchRewound,
        ]
        .map(|class| (class, rate / 7.0));
        let rates = requests.into_iter().chain(watches).collect();
        Self { rates, max_delay: Duration::from_secs(2) }
    }

    /// Sets the probability of one class.
    pub fn with(mut self, class: FaultClass, rate: f64) -> Self {
        self.rates.insert(class, rate);
        self
    }

    /// Removes a class from the mix.
    pub fn without(mut self, class: FaultClass) -> Self {
        self.rates.remove(&class);
        self
    }

    /// Sets the upper bound of delays; the default is 2 s.
    pub fn max_delay(mut self, delay: Duration) -> Self {
        self.max_delay = delay;
        self
    }

    /// Draws the fault for a request; most draws give `None`.
    pub(crate) fn draw(&self, request: &ClientRequest, random: &mut Random) -> Option<Fault> {
        let is_watch = request.info.verb == Verb::Watch;
        let mut left = random.fraction();
        for (class, rate) in &self.rates {
            if class.is_watch_fault() && !is_watch {
                continue;
            }
            left -= rate;
            if left < 0.0 {
                return Some(self.fault(*class, random));
            }
        }
        None
    }

    fn fault(&self, class: FaultClass, random: &mut Random) -> Fault {
        let stream = |cut, how| Fault::Stream(StreamFault::Break(cut, how));
        match class {
            FaultClass::Refused => Fault::Refuse(match random.below(4) {
                0 => ApiError::too_many_requests(Duration::from_secs(1 + random.below(2))),
                1 => ApiError::internal_error(),
                2 => ApiError::unavailable(),
                _ => ApiError::timeout(),
            }),
            FaultClass::RequestLost if random.below(2) == 0 => Fault::DropRequest,
            FaultClass::RequestLost => Fault::LoseRequest,
            FaultClass::ReplyLost => match random.below(3) {
                0 => Fault::LoseReply,
                1 => Fault::ReplaceReply(ApiError::timeout()),
                _ => Fault::TruncateReply(random.below(200)),
            },
            FaultClass::Delayed if random.below(2) == 0 => Fault::DelayRequest(self.delay(random)),
            FaultClass::Delayed => Fault::DelayReply(self.delay(random)),
            FaultClass::Hung => Fault::Hang,
            FaultClass::WatchEnded => stream(Cut::Events(random.below(8)), Break::End),
            FaultClass::WatchTorn if random.below(2) == 0 => {
                stream(Cut::Events(random.below(8)), Break::Reset)
            }
            FaultClass::WatchTorn => stream(Cut::Bytes(random.below(8000)), Break::Reset),
            FaultClass::WatchExpired => match random.below(4) {
                0 => Fault::Refuse(ApiError::expired()),
                1 => Fault::Refuse(ApiError::too_many_requests(Duration::from_secs(1))),
                2 => stream(Cut::Events(random.below(8)), Break::Error(ApiError::internal_error())),
                _ => stream(Cut::Events(random.below(8)), Break::Error(ApiError::expired())),
            },
            FaultClass::WatchDelayed => Fault::Stream(StreamFault::Delay(self.delay(random))),
            FaultClass::WatchWithoutBookmarks => Fault::Stream(StreamFault::NoBookmarks),
            FaultClass::WatchCorrupted => Fault::Stream(StreamFault::Corrupt(random.below(8000))),
            FaultClass::WatchRewound => Fault::Rewind(1 + random.below(10)),
            FaultClass::WatchStalled => stream(Cut::Events(random.below(8)), Break::Stall),
        }
    }

    /// Draws a delay in whole milliseconds, the resolution of tokio's timers.
    fn delay(&self, random: &mut Random) -> Duration {
        let max_millis = u64::try_from(self.max_delay.as_millis()).unwrap_or(u64::MAX).max(1);
        Duration::from_millis(random.below(max_millis))
    }
}

// === impl FaultClass ===

impl FaultClass {
    fn is_watch_fault(self) -> bool {
        !matches!(
            self,
            Self::Refused | Self::RequestLost | Self::ReplyLost | Self::Delayed | Self::Hung
        )
    }
}
