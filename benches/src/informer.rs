//! Reports of the consumers: those of `peers/informer` and ours.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

mod burst;
mod consume;
mod consumer;
mod full_state;
pub mod parts;
pub mod projection;
mod recorder;

pub use self::burst::{Burst, Moment};
pub use self::consume::{Consume, Weight};
pub use self::consumer::Consumer;
pub use self::full_state::FullState;

/// Report of a consumer: a phase `sync`, and one for each [`Trial`].
pub type Report = BTreeMap<String, Phase>;

/// Cost of one phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    /// Number of objects or events.
    pub count: u32,
    /// Seconds.
    pub wall: f64,
    /// Seconds of user time, of all threads.
    pub user: f64,
    /// Seconds of system time, of all threads.
    pub system: f64,
    /// The peak since the process began, in bytes.
    pub peak_rss: f64,
    /// Resident memory at the end of the phase, in bytes; 0 if not measured.
    #[serde(default)]
    pub rss: f64,
    /// Median latency from the wire to the handler in microseconds; 0 if not measured.
    #[serde(default)]
    pub p50_us: f64,
    /// The 99th percentile of the latency, in the same unit.
    #[serde(default)]
    pub p99_us: f64,
}

/// A load for a consumer that has synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trial {
    /// Updates: `50000@0` is 50,000 at full speed, `500@100` is 500 at 100 per second.
    Updates {
        /// Number of updates.
        count: u32,
        /// Updates per second; 0 means full speed.
        rate: u32,
    },
    /// The watch expires, and the consumer relists: `relist`, or `relist@10` if 10 % of the objects
    /// have changed.
    Relist {
        /// The part of the objects that has changed, in percent.
        changed: u32,
    },
}

// === impl Trial ===

impl std::str::FromStr for Trial {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Some(changed) = text.strip_prefix("relist") {
            let changed = changed.strip_prefix('@').unwrap_or("0").parse()?;
            return Ok(Self::Relist { changed });
        }
        let (count, rate) = text.split_once('@').unwrap_or((text, "0"));
        Ok(Self::Updates { count: count.parse()?, rate: rate.parse()? })
    }
}

impl std::fmt::Display for Trial {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Updates { count, rate } => write!(f, "{count}@{rate}"),
            Self::Relist { changed: 0 } => f.write_str("relist"),
            Self::Relist { changed } => write!(f, "relist@{changed}"),
        }
    }
}
