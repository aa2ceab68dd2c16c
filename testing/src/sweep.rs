//! Runs a story once per fault that a controller may meet, and compares the end states.

mod choice;
mod failure;
mod kind;
mod plan;
mod run;

use std::fmt;

use homeostat_apiserver::{ApiServer, Builder};
use kube_client::Client;
use serde_json::Value;

use self::choice::{only, select};
use self::failure::{Failed, NamedPanic};
use self::kind::Kind;
use self::run::run;
use crate::{Simulation, in_virtual_time};

pub use self::failure::SweepFailure;
pub use self::plan::{Disturbance, Plan};

/// The name of the client of the swept controller.
pub const CONTROLLER: &str = "controller";

/// The result of a story: an end state, or the reason why the story failed.
pub type Outcome = Result<Value, Box<dyn std::error::Error>>;

/// A finished sweep.
#[derive(Debug, Clone, PartialEq)]
pub struct Sweep {
    /// The end state of every run.
    pub state: Value,
    /// The number of mutating calls of the controller in the run without faults.
    pub calls: u64,
    /// The number of runs, the one without faults included.
    pub runs: usize,
    /// The number of runs whose event did not arrive: the controller opened another watch.
    pub missed: usize,
}

/// A sweep around a server with other settings: one that serves custom resources, has quotas, or
/// checks roles. [`crash_at_every_call`] and [`disturb_every_event`] are its methods with the
/// default server.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
///
/// use homeostat_testing::{Outcome, Simulation, SweepBuilder, oracle};
/// use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1;
/// use kube_client::api::{ApiResource, DynamicObject, GroupVersionKind, PostParams};
/// use kube_client::{Api, Client};
///
/// fn resource() -> ApiResource {
///     ApiResource::from_gvk(&GroupVersionKind::gvk("example.com", "v1", "Foo"))
/// }
///
/// /// Keeps a Foo of the name `a`.
/// async fn controller(client: Client) {
///     let foos = Api::<DynamicObject>::default_namespaced_with(client, &resource());
///     loop {
///         if matches!(foos.get_opt("a").await, Ok(None)) {
///             let foo = DynamicObject::new("a", &resource());
///             drop(foos.create(&PostParams::default(), &foo).await);
///         }
///         tokio::time::sleep(Duration::from_secs(5)).await;
///     }
/// }
///
/// async fn world(simulation: &Simulation) -> Outcome {
///     tokio::time::sleep(Duration::from_secs(60)).await;
///     Ok(oracle::end_state(simulation, &[resource()]).await?)
/// }
///
/// // With kube's derive: `Foo::crd()`.
/// let definition: v1::CustomResourceDefinition = serde_json::from_value(serde_json::json!({
///     "metadata": { "name": "foos.example.com" },
///     "spec": { "group": "example.com", "scope": "Namespaced",
///         "names": { "plural": "foos", "kind": "Foo" },
///         "versions": [{ "name": "v1", "served": true, "storage": true,
///             "schema": { "openAPIV3Schema": { "type": "object" } } }] },
/// }))?;
/// let builder = SweepBuilder::new(7).server(|server| server.definition(definition.clone()));
/// let sweep = builder.crash_at_every_call(world, controller).unwrap();
/// assert_eq!(sweep.state["foos.example.com"][0]["metadata"]["name"], "a");
/// # Ok::<_, serde_json::Error>(())
/// ```
#[must_use = "nothing runs until a sweep is started"]
pub struct SweepBuilder<'a> {
    seed: u64,
    configure: Box<dyn Fn(Builder) -> Builder + 'a>,
}

/// Runs `world` once without faults, and once per mutating call of the controller with a crash
/// before it, a crash after it, and a lost reply. Every run must end in the same state.
///
/// `world` is the story of the user: it acts, waits until the controller has done its work, and
/// returns the state to compare; [`oracle::end_state`](crate::oracle::end_state) collects it.
/// `controller` runs until its future is dropped. It gets a client that retries as a deployed one
/// does; after a crash it is called again, with a new client and without any state.
///
/// Each run has its own runtime with a paused clock, which also ends the tasks that the controller
/// spawned. From the crash on these tasks get no reply and no event.
///
/// # Errors
///
/// Fails with the first plan whose run fails or ends in another state. The message has the trace of
/// the faults and the environment variable that repeats this plan alone. Fails also if the
/// controller makes no mutating call in the run without faults, or if the variable names no plan:
/// the sweep would try nothing. A plan of [`disturb_every_event`] is accepted, and selects none
/// here: a test may run both.
///
/// # Panics
///
/// Panics within another runtime, such as that of `#[tokio::test]`.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
///
/// use homeostat_testing::{Outcome, Simulation, crash_at_every_call, oracle};
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube_client::api::{ApiResource, ObjectMeta, PostParams};
/// use kube_client::{Api, Client};
///
/// /// Creates two config maps. It tolerates that they exist.
/// async fn controller(client: Client) {
///     let maps = Api::<ConfigMap>::default_namespaced(client);
///     for name in ["a", "b"] {
///         let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
///         let map = ConfigMap { metadata, ..ConfigMap::default() };
///         while maps.get_opt(name).await.ok().flatten().is_none() {
///             drop(maps.create(&PostParams::default(), &map).await);
///         }
///     }
///     std::future::pending().await
/// }
///
/// async fn world(simulation: &Simulation) -> Outcome {
///     tokio::time::sleep(Duration::from_secs(60)).await;
///     Ok(oracle::end_state(simulation, &[ApiResource::erase::<ConfigMap>(&())]).await?)
/// }
///
/// let sweep = crash_at_every_call(7, world, controller).unwrap();
/// assert_eq!((sweep.calls, sweep.runs), (2, 7));
/// ```
pub fn crash_at_every_call(
    seed: u64,
    world: impl AsyncFn(&Simulation) -> Outcome,
    controller: impl AsyncFn(Client),
) -> Result<Sweep, SweepFailure> {
    SweepBuilder::new(seed).crash_at_every_call(world, controller)
}

/// Runs `world` once without faults, and then once per fault that delays, repeats or hides events.
/// Every run must end in the same state. The faults are
///
/// - per mutating call, a crash after it and a [successor that reads stale
///   state](Plan::StaleSuccessor);
/// - per event that the first watch of a resource delivers to the controller, that it is
///   [held](Disturbance::Held), [repeated](Disturbance::Repeated), or [lost](Disturbance::Lost).
///
/// Sieve, a tester of controllers, finds bugs with these patterns: stale, late and unobserved
/// states. `world` and `controller` are those of [`crash_at_every_call`]. The story must go on for
/// longer than 10 s after its last change.
///
/// # Errors
///
/// Fails as [`crash_at_every_call`] does, but a controller without mutating calls is an error only
/// if it receives no event, either.
///
/// # Panics
///
/// Panics as [`crash_at_every_call`] does.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
///
/// use homeostat_testing::{Outcome, Simulation, disturb_every_event, oracle};
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube_client::api::{ApiResource, PostParams};
/// use kube_client::{Api, Client};
///
/// /// Creates a config map, and polls it from the watch cache.
/// async fn controller(client: Client) {
///     let maps = Api::<ConfigMap>::default_namespaced(client);
///     let mut map = ConfigMap::default();
///     map.metadata.name = Some("a".to_owned());
///     loop {
///         if !matches!(maps.get_opt("a").await, Ok(Some(_))) {
///             drop(maps.create(&PostParams::default(), &map).await);
///         }
///         tokio::time::sleep(Duration::from_secs(5)).await;
///     }
/// }
///
/// async fn world(simulation: &Simulation) -> Outcome {
///     tokio::time::sleep(Duration::from_secs(60)).await;
///     Ok(oracle::end_state(simulation, &[ApiResource::erase::<ConfigMap>(&())]).await?)
/// }
///
/// // One call, and no watch: a stale successor is the only fault.
/// let sweep = disturb_every_event(7, world, controller).unwrap();
/// assert_eq!((sweep.calls, sweep.runs), (1, 2));
/// ```
pub fn disturb_every_event(
    seed: u64,
    world: impl AsyncFn(&Simulation) -> Outcome,
    controller: impl AsyncFn(Client),
) -> Result<Sweep, SweepFailure> {
    SweepBuilder::new(seed).disturb_every_event(world, controller)
}

// === impl SweepBuilder ===

impl<'a> SweepBuilder<'a> {
    /// Creates a builder with the default server. Its uids, names and faults follow from `seed`.
    pub fn new(seed: u64) -> Self {
        Self { seed, configure: Box::new(|builder| builder) }
    }

    /// Sets what each run changes on the builder of its server. The seed is set already.
    pub fn server(self, configure: impl Fn(Builder) -> Builder + 'a) -> Self {
        Self { configure: Box::new(configure), ..self }
    }

    /// Runs the sweep [`crash_at_every_call`].
    ///
    /// # Errors
    ///
    /// Fails as that function does.
    #[expect(clippy::needless_pass_by_value, reason = "callers pass closures")]
    pub fn crash_at_every_call(
        &self,
        world: impl AsyncFn(&Simulation) -> Outcome,
        controller: impl AsyncFn(Client),
    ) -> Result<Sweep, SweepFailure> {
        sweep(self, Kind::Calls, only().as_deref(), &world, &controller)
    }

    /// Runs the sweep [`disturb_every_event`].
    ///
    /// # Errors
    ///
    /// Fails as that function does.
    #[expect(clippy::needless_pass_by_value, reason = "callers pass closures")]
    pub fn disturb_every_event(
        &self,
        world: impl AsyncFn(&Simulation) -> Outcome,
        controller: impl AsyncFn(Client),
    ) -> Result<Sweep, SweepFailure> {
        sweep(self, Kind::Events, only().as_deref(), &world, &controller)
    }

    fn simulation(&self) -> Simulation {
        let server = (self.configure)(ApiServer::builder().seed(self.seed));
        Simulation::around(self.seed, server.build())
    }
}

impl fmt::Debug for SweepBuilder<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SweepBuilder").field("seed", &self.seed).finish_non_exhaustive()
    }
}

/// Runs every plan, or the one with the name `only`.
fn sweep(
    builder: &SweepBuilder<'_>,
    kind: Kind,
    only: Option<&str>,
    world: &impl AsyncFn(&Simulation) -> Outcome,
    controller: &impl AsyncFn(Client),
) -> Result<Sweep, SweepFailure> {
    let seed = builder.seed;
    let reference = in_virtual_time(run(builder, kind, None, world, controller));
    let calls = reference.calls;
    let state = match reference.outcome {
        Ok(state) => state,
        Err(why) => return Err(SweepFailure::new(Failed::Reference, seed, why, reference.trace)),
    };
    let plans = match kind {
        Kind::Calls => Plan::of_calls(calls),
        Kind::Events => Plan::of_events(calls, &reference.events),
    };
    if plans.is_empty() {
        let why = kind.without_plans();
        return Err(SweepFailure::new(Failed::Reference, seed, why, reference.trace));
    }
    let selected = match only {
        Some(only) => select(plans, kind, only),
        None => Ok(plans),
    };
    let plans =
        selected.map_err(|why| SweepFailure::new(Failed::Choice, seed, why, reference.trace))?;
    let mut sweep = Sweep { state, calls, runs: 1, missed: 0 };
    for plan in plans {
        let named = NamedPanic(&plan);
        let run = in_virtual_time(run(builder, kind, Some(&plan), world, controller));
        drop(named);
        sweep.runs += 1;
        sweep.missed += usize::from(run.is_missed);
        if let Err(why) = compare(&sweep.state, run.outcome) {
            return Err(SweepFailure::new(Failed::Run(plan), seed, why, run.trace));
        }
    }
    Ok(sweep)
}

/// Returns the reason for which a run failed or ended in another state than `expected`.
fn compare(expected: &Value, outcome: Result<Value, String>) -> Result<(), String> {
    match outcome? {
        end if end == *expected => Ok(()),
        end => Err(format!("the end state differs\n  expected {expected}\n  got      {end}")),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use homeostat_faults::CrashPoint;
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube_client::Api;
    use kube_client::api::PostParams;

    use super::*;

    async fn world(_: &Simulation) -> Outcome {
        tokio::time::sleep(Duration::from_secs(20)).await;
        Ok(Value::Null)
    }

    async fn controller(client: Client) {
        let maps = Api::<ConfigMap>::default_namespaced(client);
        drop(maps.create(&PostParams::default(), &ConfigMap::default()).await);
    }

    #[test]
    fn name_of_a_plan_selects_it_alone() {
        let runs = |kind, plan: &Plan| {
            let plan = plan.to_string();
            sweep(&SweepBuilder::new(1), kind, Some(&plan), &world, &controller).unwrap().runs
        };
        let stale = Plan::StaleSuccessor(1);
        assert_eq!(runs(Kind::Events, &stale), 2);
        assert_eq!(runs(Kind::Calls, &stale), 1, "a plan of the other sweep");
        assert_eq!(runs(Kind::Calls, &Plan::Crash(CrashPoint::Before(1))), 2);
    }

    #[test]
    fn name_of_no_plan_fails_with_the_names_of_the_plans() {
        let builder = SweepBuilder::new(1);
        let failure = |kind, name: &str| {
            sweep(&builder, kind, Some(name), &world, &controller).unwrap_err().to_string()
        };
        for name in ["crash before mutating call 2", "crash before mutating call one", "1", ""] {
            assert_eq!(
                failure(Kind::Calls, name),
                format!(
                    "HOMEOSTAT_PLAN={name:?} is no plan of this sweep; unset it, or set it to one \
                     of: crash before mutating call 1, crash after mutating call 1, lost reply to \
                     mutating call 1"
                )
            );
        }
        let unknown = failure(Kind::Events, "held event 1 of nodes");
        assert!(unknown.ends_with("one of: stale successor after mutating call 1"), "{unknown}");
    }

    #[test]
    fn plan_of_the_other_sweep_is_known_by_its_name() {
        let events = BTreeMap::from([("pods".to_owned(), 1), ("replicasets.apps".to_owned(), 2)]);
        for (kind, plans) in
            [(Kind::Calls, Plan::of_calls(12)), (Kind::Events, Plan::of_events(2, &events))]
        {
            assert!(!plans.is_empty());
            for plan in plans {
                assert_eq!(Plan::named(&plan.to_string()), Some(plan.clone()));
                assert_eq!(Kind::of(&plan), kind);
            }
        }
        for name in
            ["", "crash", "crash at mutating call 1", "held event x of pods", "lost event 1"]
        {
            assert_eq!(Plan::named(name), None, "{name}");
        }
    }
}
