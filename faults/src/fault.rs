//! [`Fault`]: a fault on one request.

use std::fmt;
use std::time::Duration;

use homeostat_core::Random;

use crate::api_error::ApiError;
use crate::chaos::{Chaos, FaultClass};
use crate::conflicting_writer::ConflictingWriter;
use crate::request_info::{ClientRequest, Verb};
use crate::stream_fault::{Break, Cut, StreamFault};

/// A fault on one request.
#[derive(Debug, Clone)]
pub(crate) enum Fault {
    // Before the request is sent, or instead of sending it:
    DropRequest,
    LoseRequest,
    Hang,
    DelayRequest(Duration),
    Refuse(ApiError),
    WriteFirst(ConflictingWriter),
    // After the server has processed the request:
    LoseReply,
    WithholdReply,
    ReplaceReply(ApiError),
    DelayReply(Duration),
    TruncateReply(u64),
    CorruptReply(u64),
    // When a watch opens:
    Stream(StreamFault),
    Rewind(u64),
    /// A fault drawn at random for each request, or none.
    Chaos(Chaos),
}

// === impl Fault ===

impl Fault {
    /// Draws the fault for a request; most draws give `None`.
    pub(crate) fn drawn(
        chaos: &Chaos,
        request: &ClientRequest,
        random: &mut Random,
    ) -> Option<Self> {
        let class = chaos.draw(request, random)?;
        Some(Self::of_class(class, chaos, random))
    }

    /// Draws the details of a fault of this class.
    fn of_class(class: FaultClass, chaos: &Chaos, random: &mut Random) -> Self {
        let stream = |cut, how| Self::Stream(StreamFault::Break(cut, how));
        match class {
            FaultClass::Refused => Self::Refuse(match random.below(4) {
                0 => ApiError::too_many_requests(Duration::from_secs(1 + random.below(2))),
                1 => ApiError::internal_error(),
                2 => ApiError::unavailable(),
                _ => ApiError::timeout(),
            }),
            FaultClass::RequestLost if random.below(2) == 0 => Self::DropRequest,
            FaultClass::RequestLost => Self::LoseRequest,
            FaultClass::ReplyLost => match random.below(3) {
                0 => Self::LoseReply,
                1 => Self::ReplaceReply(ApiError::timeout()),
                _ => Self::TruncateReply(random.below(200)),
            },
            FaultClass::Delayed if random.below(2) == 0 => Self::DelayRequest(chaos.delay(random)),
            FaultClass::Delayed => Self::DelayReply(chaos.delay(random)),
            FaultClass::Hung => Self::Hang,
            FaultClass::WatchEnded => stream(Cut::Events(random.below(8)), Break::End),
            FaultClass::WatchTorn if random.below(2) == 0 => {
                stream(Cut::Events(random.below(8)), Break::Reset)
            }
            FaultClass::WatchTorn => stream(Cut::Bytes(random.below(8000)), Break::Reset),
            FaultClass::WatchExpired => match random.below(4) {
                0 => Self::Refuse(ApiError::expired()),
                1 => Self::Refuse(ApiError::too_many_requests(Duration::from_secs(1))),
                2 => stream(Cut::Events(random.below(8)), Break::Error(ApiError::internal_error())),
                _ => stream(Cut::Events(random.below(8)), Break::Error(ApiError::expired())),
            },
            FaultClass::WatchDelayed => Self::Stream(StreamFault::Delay(chaos.delay(random))),
            FaultClass::WatchWithoutBookmarks => Self::Stream(StreamFault::NoBookmarks),
            FaultClass::WatchCorrupted => Self::Stream(StreamFault::Corrupt(random.below(8000))),
            FaultClass::WatchRewound => Self::Rewind(1 + random.below(10)),
            FaultClass::WatchStalled => stream(Cut::Events(random.below(8)), Break::Stall),
        }
    }

    /// Returns true if the request reaches the server without delay.
    pub(crate) fn affects_reply_only(&self) -> bool {
        matches!(
            self,
            Self::LoseReply
                | Self::WithholdReply
                | Self::ReplaceReply(_)
                | Self::DelayReply(_)
                | Self::TruncateReply(_)
                | Self::CorruptReply(_)
        )
    }

    /// Returns true if the fault can be injected into this request.
    pub(crate) fn applies_to(&self, request: &ClientRequest) -> bool {
        match self {
            Self::Stream(_) => request.info.verb == Verb::Watch,
            Self::Rewind(by) => request.watched_from.is_some_and(|version| version > *by),
            Self::TruncateReply(_) | Self::CorruptReply(_) => request.info.verb != Verb::Watch,
            Self::WriteFirst(_) => request.info.verb.is_mutating() && request.info.name.is_some(),
            _ => true,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DropRequest => f.write_str("request dropped"),
            Self::LoseRequest => f.write_str("request lost"),
            Self::Hang => f.write_str("request never answered"),
            Self::DelayRequest(delay) => write!(f, "request delayed by {delay:?}"),
            Self::Refuse(error) => write!(f, "refused with {error}"),
            Self::WriteFirst(_) => f.write_str("another client wrote first"),
            Self::LoseReply => f.write_str("reply lost"),
            Self::WithholdReply => f.write_str("reply withheld"),
            Self::ReplaceReply(error) => write!(f, "reply replaced by {error}"),
            Self::DelayReply(delay) => write!(f, "reply delayed by {delay:?}"),
            Self::TruncateReply(at) => write!(f, "reply cut at byte {at}"),
            Self::CorruptReply(at) => write!(f, "reply corrupt at byte {at}"),
            Self::Stream(fault) => write!(f, "watch {fault}"),
            Self::Rewind(by) => write!(f, "watch starts {by} revisions earlier"),
            Self::Chaos(_) => f.write_str("chaos"),
        }
    }
}
