//! Runs an informer through a random workload and random network faults. Once they stop, its store
//! and every event that it has delivered must agree with the server.

mod dice;
mod ground;
mod handler;
mod informer_client;
mod mirror;
mod proxy;
mod real;
mod source;
mod tally;
mod troubles;
mod weight;
mod witness;
mod workload;

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, bail};
use homeostat::kube_client::api::ListParams;
use homeostat::kube_client::{Api, Client};
use k8s_openapi::api::core::v1::ConfigMap;
use tokio::time::{Instant, sleep};

use self::dice::Dice;
use self::ground::Ground;
use self::mirror::Watching;
pub use self::tally::Tally;
use self::weight::number_of;
use self::workload::Workload;

/// The server of an informer, and the connection to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wire {
    /// The embedded server, by function calls, in virtual time: the fastest.
    InProcess,
    /// The embedded server, over HTTP/1.1 through pipes in memory, in virtual time.
    Pipe,
    /// The embedded server, over TCP connections that are cut at any byte, in real time.
    Socket,
    /// A real etcd and kube-apiserver, over TLS on connections that are cut at any byte, in real
    /// time.
    ControlPlane,
}

/// One run.
///
/// In virtual time the seed determines everything that happens; in real time only the operations
/// and faults.
#[derive(Debug, Clone, Copy)]
pub struct Convergence {
    /// The seed of every random decision.
    pub seed: u64,
    /// The connection of the informer.
    pub wire: Wire,
}

/// An object as every observer must see it: its uid, its version, and its number if it fits its
/// type.
type Truth = (String, String, Option<u64>);

/// Objects by `namespace/name`.
type State = BTreeMap<String, Truth>;

/// The timing of a run.
#[derive(Debug, Clone, Copy)]
struct Pace {
    /// `true` if waiting takes real time.
    is_real: bool,
    /// The maximum pause between two operations of the user, in milliseconds; one of these is
    /// chosen.
    pauses: &'static [u64],
    /// The maximum pause between two faults, in milliseconds.
    troubles: u64,
    /// The resync period of a handler that has one.
    resyncs: &'static [Duration],
    /// The interval and the timeout of the final comparison.
    looks: Duration,
    patience: Duration,
}

/// Only objects with this label are watched, so that objects appear and disappear without being
/// created or deleted.
const SELECTOR: &str = "watched=yes";

/// Operations come in bursts, with pauses that are longer than a back-off. A silent watch ends
/// after the informer's longest timeout, 10 minutes, and a back-off may follow.
const VIRTUAL: Pace = Pace {
    is_real: false,
    pauses: &[0, 0, 5, 200, 3000, 30_000],
    troubles: 6000,
    resyncs: &[Duration::from_secs(7), Duration::from_secs(40)],
    looks: Duration::from_secs(5),
    patience: Duration::from_secs(20 * 60),
};

/// A server with `Retry-After` asks for at least one second.
const REAL: Pace = Pace {
    is_real: true,
    pauses: &[0, 0, 1, 5, 50, 150],
    troubles: 80,
    resyncs: &[Duration::from_secs(1)],
    looks: Duration::from_millis(50),
    patience: Duration::from_secs(60),
};

/// The real server takes longer to answer, and seconds to restart.
const CONTROL_PLANE: Pace = Pace { pauses: &[0, 5, 20, 50, 100, 400], troubles: 300, ..REAL };

// === impl Convergence ===

impl Convergence {
    /// Runs it and returns counts of what happened. In process and through a pipe it needs a paused
    /// clock.
    ///
    /// # Errors
    ///
    /// Returns the first disagreement, with the trace of every fault.
    pub async fn run(self) -> anyhow::Result<Tally> {
        let before = alive_tasks();
        let run = async {
            let mut dice = Dice::new(self.seed);
            let mut ground = Ground::start(self, &mut dice).await?;
            let played = self.play(&mut ground, &mut dice).await;
            played.with_context(|| ground.trace())
        };
        let name = || format!("seed {} over {:?}", self.seed, self.wire);
        let tally = run.await.with_context(name)?;
        settle(before).await.with_context(name)?;
        Ok(tally)
    }

    async fn play(self, ground: &mut Ground, dice: &mut Dice) -> anyhow::Result<Tally> {
        let pace = self.wire.pace();
        let mut mirrors = self.mirrors(&ground.informer()?, dice);
        let workload = Workload::new(ground.user(), dice.fork(), pace);
        for mirror in &mirrors {
            mirror.start();
        }
        let work = workload.run();
        tokio::pin!(work);
        loop {
            tokio::select! {
                biased;
                () = &mut work => break,
                () = sleep(dice.millis(pace.troubles)) => {
                    for mirror in &mut mirrors {
                        mirror.change_handlers().await;
                    }
                    ground.step().await?;
                }
            }
        }
        let set_back = ground.end();
        let mut tally = Tally::default();
        ground.count_requests(&mut tally);
        for mirror in &mirrors {
            agree(&**mirror, &ground.user(), set_back, pace).await?;
            mirror.count(&mut tally);
        }
        ground.count_faults(&mut tally);
        for mirror in mirrors {
            mirror.stop().await;
        }
        Ok(tally)
    }

    /// The real server takes seconds to start, so all informers run against it together.
    fn mirrors(self, client: &Client, dice: &mut Dice) -> Vec<Box<dyn Watching>> {
        let pace = self.wire.pace();
        match self.wire {
            Wire::ControlPlane => mirror::all(client, dice, pace),
            _ => vec![mirror::any(client, dice.fork(), pace)],
        }
    }
}

// === impl Wire ===

impl Wire {
    fn pace(self) -> Pace {
        match self {
            Self::InProcess | Self::Pipe => VIRTUAL,
            Self::Socket => REAL,
            Self::ControlPlane => CONTROL_PLANE,
        }
    }
}

/// Waits until the informer and all of its observers have the server's state.
async fn agree(
    mirror: &dyn Watching,
    user: &Client,
    set_back: bool,
    pace: Pace,
) -> anyhow::Result<()> {
    let deadline = Instant::now() + pace.patience;
    loop {
        let (truth, version) = truth(user).await?;
        mirror.is_valid(set_back)?;
        match mirror.agrees_with(&truth) {
            Ok(()) => return Ok(()),
            Err(error) if Instant::now() >= deadline => {
                return Err(error.context(format!("there is never agreement with {version}")));
            }
            Err(_) => sleep(pace.looks).await,
        }
    }
}

/// Returns the server's state and version.
async fn truth(user: &Client) -> anyhow::Result<(State, String)> {
    let maps = Api::<ConfigMap>::all(user.clone());
    let list = maps.list(&ListParams::default().labels(SELECTOR)).await?;
    let truth = list.items.into_iter().map(|map| {
        let number = number_of(map.data.as_ref());
        let metadata = map.metadata;
        let key = [metadata.namespace, metadata.name].map(Option::unwrap_or_default).join("/");
        let (uid, version) = (metadata.uid, metadata.resource_version);
        (key, (uid.unwrap_or_default(), version.unwrap_or_default(), number))
    });
    Ok((truth.collect(), list.metadata.resource_version.unwrap_or_default()))
}

fn alive_tasks() -> usize {
    tokio::runtime::Handle::current().metrics().num_alive_tasks()
}

/// Waits until there are no more tasks than `before`: every spawned task was joined, and the server
/// has noticed that its clients are gone.
async fn settle(before: usize) -> anyhow::Result<()> {
    for _ in 0..100 {
        if alive_tasks() <= before {
            return Ok(());
        }
        sleep(Duration::from_millis(10)).await;
    }
    bail!("{} tasks are left, {before} were there before", alive_tasks())
}
