//! The server of one run, with what goes wrong between it and an informer.

use anyhow::Context as _;
use homeostat::kube_client::{Client, Config};

use super::{Convergence, Tally, Wire, dice::Dice, real::Real, troubles::Embedded};

/// A server, embedded or real.
pub(super) enum Ground {
    Embedded(Box<Embedded>),
    Real(Box<Real>),
}

// === impl Ground ===

impl Ground {
    pub(super) async fn start(run: Convergence, dice: &mut Dice) -> anyhow::Result<Self> {
        Ok(match run.wire {
            Wire::ControlPlane => Self::Real(Box::new(Real::start(dice.fork()).await?)),
            _ => Self::Embedded(Box::new(Embedded::start(run, dice.fork()).await?)),
        })
    }

    /// A client that no fault touches.
    pub(super) fn user(&self) -> Client {
        match self {
            Self::Embedded(embedded) => embedded.user(),
            Self::Real(real) => real.user(),
        }
    }

    /// A client that every fault may touch.
    pub(super) fn informer(&self) -> anyhow::Result<Client> {
        match self {
            Self::Embedded(embedded) => embedded.informer(),
            Self::Real(real) => real.informer(),
        }
    }

    /// One more thing goes wrong, or is well again.
    pub(super) async fn step(&mut self) -> anyhow::Result<()> {
        match self {
            Self::Embedded(embedded) => embedded.step(),
            Self::Real(real) => real.step().await?,
        }
        Ok(())
    }

    /// Nothing goes wrong any more. Says whether, just before, the server was set back: then versions go back, too.
    pub(super) fn end(&mut self) -> bool {
        match self {
            Self::Embedded(embedded) => embedded.end(),
            Self::Real(real) => {
                real.end();
                false
            }
        }
    }

    /// What went wrong.
    pub(super) fn trace(&self) -> String {
        match self {
            Self::Embedded(embedded) => embedded.faults().trace().to_string(),
            Self::Real(real) => real.trace().join("\n"),
        }
    }

    /// To be called before anybody but the informer asks.
    pub(super) fn count_requests(&self, tally: &mut Tally) {
        if let Self::Embedded(embedded) = self {
            tally.count_requests(embedded.faults());
        }
    }

    pub(super) fn count_faults(&self, tally: &mut Tally) {
        match self {
            Self::Embedded(embedded) => tally.count_faults(embedded.faults()),
            Self::Real(real) => {
                real.trace().iter().for_each(|fault| tally.add(&format!("fault: {fault}"), 1));
            }
        }
    }
}

/// A client as a controller has it; faster, for what is waited for is not its budget.
pub(super) fn client(config: Config) -> anyhow::Result<Client> {
    let builder = homeostat::client::builder().qps(1000.0).burst(2000).user_agent("informer");
    Ok(builder.config(config).context("no client for the informer")?.build())
}
