//! What the consumers of `peers/informer` report, and our own ones.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

mod consumer;
pub mod parts;
pub mod projection;

pub use self::consumer::Consumer;

/// What a consumer reports: a phase for the synchronisation, `sync`, and one for each [`Trial`].
pub type Report = BTreeMap<String, Phase>;

/// What one phase took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    /// How many objects or events there were.
    pub count: u32,
    /// Seconds.
    pub wall: f64,
    /// Seconds of user time, of all threads.
    pub user: f64,
    /// Seconds of system time, of all threads.
    pub system: f64,
    /// The peak since the process began, in bytes.
    pub peak_rss: f64,
    /// Half of the events were handled within so many microseconds after they went on the wire; 0 if nobody looked.
    #[serde(default)]
    pub p50_us: f64,
    /// 99 in a hundred were.
    #[serde(default)]
    pub p99_us: f64,
}

/// What a consumer is put through once it is synchronised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trial {
    /// Updates: `50000@0` is 50,000 as fast as they are taken, `500@100` is 500 at 100 per second.
    Updates {
        /// How many.
        count: u32,
        /// How many per second; 0 for as fast as they are taken.
        rate: u32,
    },
    /// Its watch expires, and it has to ask for everything again; nothing has changed.
    Relist,
}

// === impl Trial ===

impl std::str::FromStr for Trial {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "relist" {
            return Ok(Self::Relist);
        }
        let (count, rate) = text.split_once('@').unwrap_or((text, "0"));
        Ok(Self::Updates { count: count.parse()?, rate: rate.parse()? })
    }
}

impl std::fmt::Display for Trial {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Updates { count, rate } => write!(f, "{count}@{rate}"),
            Self::Relist => f.write_str("relist"),
        }
    }
}
