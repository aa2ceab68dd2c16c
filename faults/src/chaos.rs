//! Random faults: a mix of classes, each with its probability.

use std::collections::BTreeMap;
use std::time::Duration;

use homeostat_core::Random;

use crate::request_info::{ClientRequest, Verb};

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

    /// Draws the class of the fault for a request; most draws give `None`.
    pub(crate) fn draw(&self, request: &ClientRequest, random: &mut Random) -> Option<FaultClass> {
        let is_watch = request.info.verb == Verb::Watch;
        let mut left = random.fraction();
        for (class, rate) in &self.rates {
            if class.is_watch_fault() && !is_watch {
                continue;
            }
            left -= rate;
            if left < 0.0 {
                return Some(*class);
            }
        }
        None
    }

    /// Draws a delay in whole milliseconds, the resolution of tokio's timers.
    pub(crate) fn delay(&self, random: &mut Random) -> Duration {
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
