//! What time it is: the wall's, or, for a run that is to be repeated, tokio's from an agreed beginning on.

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// A source of wall time.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Clock {
    /// The machine's clock, with its corrections.
    Wall,
    /// `epoch`, and the time that tokio's clock has counted since.
    Counted { epoch: Timestamp, since: Instant },
}

// === impl Clock ===

impl Clock {
    pub(crate) fn new(epoch: Option<Timestamp>) -> Self {
        epoch.map_or(Self::Wall, |epoch| Self::Counted { epoch, since: Instant::now() })
    }

    pub(crate) fn now(self) -> Timestamp {
        match self {
            Self::Wall => Timestamp::now(),
            Self::Counted { epoch, since } => {
                let elapsed =
                    SignedDuration::try_from(since.elapsed()).unwrap_or(SignedDuration::MAX);
                epoch.saturating_add(elapsed).unwrap_or(Timestamp::MAX)
            }
        }
    }
}
