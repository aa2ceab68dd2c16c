//! The server of one run, and the faults between it and an informer.

use homeostat::kube_client::Client;

use super::dice::Dice;
use super::real::Real;
use super::troubles::Embedded;
use super::{Convergence, Tally, Wire};

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

    /// Returns a client without faults.
    pub(super) fn user(&self) -> Client {
        match self {
            Self::Embedded(embedded) => embedded.user(),
            Self::Real(real) => real.user(),
        }
    }

    /// Returns a client with faults.
    pub(super) fn informer(&self) -> anyhow::Result<Client> {
        match self {
            Self::Embedded(embedded) => embedded.informer(),
            Self::Real(real) => real.informer(),
        }
    }

    /// Injects or heals one fault.
    pub(super) async fn step(&mut self) -> anyhow::Result<()> {
        match self {
            Self::Embedded(embedded) => embedded.step(),
            Self::Real(real) => real.step().await?,
        }
        Ok(())
    }

    /// Ends all faults. Returns `true` if the server was restored just before, so that versions go
    /// back.
    pub(super) fn end(&mut self) -> bool {
        match self {
            Self::Embedded(embedded) => embedded.end(),
            Self::Real(real) => {
                real.end();
                false
            }
        }
    }

    /// Returns the trace of all faults.
    pub(super) fn trace(&self) -> String {
        match self {
            Self::Embedded(embedded) => embedded.faults().trace().to_string(),
            Self::Real(real) => real.trace().join("\n"),
        }
    }

    /// Counts the informer's requests. Must be called before another client sends one.
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
