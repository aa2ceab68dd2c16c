//! One run of a story, with or without a fault.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::future::{Future, pending};

use homeostat_apiserver::LaggingView;
use homeostat_faults::{Crash, Trace};
use kube_client::Client;
use serde_json::Value;

use super::kind::Kind;
use super::plan::{Injected, PAUSE};
use super::{CONTROLLER, Outcome, Plan, SweepBuilder};
use crate::Simulation;

/// One run.
pub(super) struct Run {
    pub(super) outcome: Result<Value, String>,
    pub(super) calls: u64,
    /// The events that the controller received, by resource and group; empty unless they are
    /// recorded.
    pub(super) events: BTreeMap<String, u64>,
    /// True if the event of the plan did not arrive.
    pub(super) is_missed: bool,
    pub(super) trace: Trace,
}

/// Runs `world` and `controller` on a server of their own, with the fault of `plan`.
pub(super) async fn run(
    builder: &SweepBuilder<'_>,
    kind: Kind,
    plan: Option<&Plan>,
    world: &impl AsyncFn(&Simulation) -> Outcome,
    controller: &impl AsyncFn(Client),
) -> Run {
    let simulation = builder.simulation();
    let faults = simulation.faults();
    if plan.is_none() && kind == Kind::Events {
        faults.trace_traffic();
    }
    let injected = plan.map(|plan| plan.inject(&simulation));
    let crash = injected.as_ref().and_then(|injected| injected.crash.as_ref());
    let outcome = tokio::select! {
        biased;
        outcome = world(&simulation) => outcome.map_err(|error| error.to_string()),
        never = run_controllers(&simulation, plan, crash, controller) => match never {},
    };
    let is_missed = injected.as_ref().is_some_and(Injected::is_missed);
    let missed = || Err("the controller did not make this call again".to_owned());
    let outcome = outcome.and_then(|state| if is_missed { missed() } else { Ok(state) });
    let trace = faults.trace();
    let is_missed = injected.as_ref().is_some_and(Injected::is_event_missed);
    let events = trace.events_by(CONTROLLER).into_iter();
    let events = events.map(|(resource, count)| (resource.to_owned(), count)).collect();
    Run { outcome, calls: faults.mutations(CONTROLLER), events, is_missed, trace }
}

/// Runs the controller, and its successor after a crash. Never returns: the story decides when a
/// run ends.
async fn run_controllers(
    simulation: &Simulation,
    plan: Option<&Plan>,
    crash: Option<&Crash>,
    controller: &impl AsyncFn(Client),
) -> Infallible {
    let first = controller(simulation.client_as(CONTROLLER));
    match crash {
        None => first.await,
        Some(crash) => {
            run_until(crash, first).await;
            let is_stale = matches!(plan, Some(Plan::StaleSuccessor(_)));
            let stale = is_stale.then(|| simulation.server().lagging_view_by(1));
            if let Some(view) = &stale {
                simulation.server().move_client(CONTROLLER, view);
            }
            let successor = controller(simulation.client_as(CONTROLLER));
            tokio::join!(biased; successor, catch_up(stale));
        }
    }
    // A controller that returns has nothing left to do.
    pending().await
}

/// Runs `controller` until it crashes. If it returns, it may have left tasks, which go on until
/// the crash.
async fn run_until(crash: &Crash, controller: impl Future<Output = ()>) {
    let controller = async {
        controller.await;
        pending::<()>().await;
    };
    tokio::select! { biased; () = crash.reached() => {}, () = controller => {} }
}

/// Ends the lag of a stale cache after a pause.
async fn catch_up(stale: Option<LaggingView>) {
    if let Some(view) = stale {
        tokio::time::sleep(PAUSE).await;
        view.catch_up();
    }
}
