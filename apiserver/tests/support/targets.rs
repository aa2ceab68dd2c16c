//! The target servers of a scenario: embedded, over a socket, and a real kube-apiserver.

use std::fmt::Display;
use std::net::Ipv4Addr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use homeostat_apiserver::ApiServer;
use homeostat_testing::control_plane::{Binaries, ControlPlane};
use k8s_openapi::api::core::v1::Namespace;
use kube_client::api::PostParams;
use kube_client::{Api, Client, Config};
use libtest_mimic::{Arguments, Completion, Failed, Trial};
use parking_lot::Mutex;
use serde_json::json;
use tokio::runtime::{self, Runtime};
use tokio::time::{Instant, sleep};

/// Timeout of a wait. A busy machine may need seconds.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);

/// A server, and a namespace that only this scenario uses.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) client: Client,
    pub(crate) namespace: String,
}

/// The body of a scenario.
pub(crate) type Body = fn(World) -> Pin<Box<dyn Future<Output = ()>>>;

/// A scenario: its name and its body.
pub(crate) type Scenario = (&'static str, Body);

/// Runs each scenario on every server that this machine has, and exits.
pub(crate) fn run(scenarios: &[Scenario]) -> ! {
    let mut arguments = Arguments::from_args();
    // The actors of a scenario act on the whole server.
    arguments.test_threads = Some(1);
    let shared = Arc::new(Mutex::new(None));
    let mut trials = Vec::new();
    for (name, scenario) in scenarios {
        let (shared, scenario) = (Arc::clone(&shared), *scenario);
        let namespace = name.replace('_', "-").chars().take(63).collect::<String>();
        let namespace = namespace.trim_end_matches('-').to_owned();
        let namespaces = [namespace.clone(), namespace.clone(), namespace];
        let [embedded, socket, real] = namespaces;
        trials.push(Trial::test(format!("embedded::{name}"), move || {
            in_virtual_time(embedded, scenario)
        }));
        trials.push(Trial::test(format!("socket::{name}"), move || over_socket(socket, scenario)));
        trials.push(Trial::ignorable_test(format!("control_plane::{name}"), move || {
            on_control_plane(&shared, real, scenario)
        }));
    }
    let conclusion = libtest_mimic::run(&arguments, trials);
    // `exit` runs no destructors.
    drop(shared.lock().take());
    conclusion.exit()
}

/// Runs a scenario on the server in this process, without a socket, under a paused clock.
fn in_virtual_time(namespace: String, scenario: Body) -> Result<(), Failed> {
    let mut runtime = runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().start_paused(true).build()?;
    runtime.block_on(async {
        let server = ApiServer::new();
        run_scenario(server.client(), namespace, scenario).await;
    });
    Ok(())
}

/// Runs a scenario on the server in this process over a socket, in real time.
fn over_socket(namespace: String, scenario: Body) -> Result<(), Failed> {
    Runtime::new()?.block_on(async {
        let server = ApiServer::new();
        let listener = server.listen((Ipv4Addr::LOCALHOST, 0).into()).await?;
        let mut config = Config::new(listener.url().parse()?);
        config.default_retry = false;
        run_scenario(Client::try_from(config)?, namespace, scenario).await;
        Ok(())
    })
}

async fn run_scenario(client: Client, namespace: String, scenario: Body) {
    let object = json!({ "metadata": { "name": namespace } });
    let object: Namespace = serde_json::from_value(object).unwrap();
    let namespaces = Api::<Namespace>::all(client.clone());
    namespaces.create(&PostParams::default(), &object).await.unwrap();
    scenario(World { client, namespace }).await;
}

/// Runs a scenario on a real kube-apiserver, which the first scenario starts.
fn on_control_plane(
    shared: &Mutex<Option<ControlPlane>>,
    namespace: String,
    scenario: Body,
) -> Result<Completion, Failed> {
    if let Some(missing) = Binaries::missing_for_tests() {
        return Ok(Completion::ignored_with(missing));
    }
    let runtime = Runtime::new()?;
    if shared.lock().is_none() {
        let started = runtime.block_on(ControlPlane::start())?;
        *shared.lock() = Some(started);
    }
    let config = shared.lock().as_ref().map(ControlPlane::config).unwrap();
    runtime.block_on(async {
        let client = Client::try_from(config).unwrap();
        run_scenario(client, namespace, scenario).await;
    });
    Ok(Completion::Completed)
}

/// Calls `check` every 50 ms until it returns `Ok`. Panics with the last error after the timeout.
pub(crate) async fn wait_until_ok<T, E: Display, F>(mut check: impl FnMut() -> F) -> T
where
    F: Future<Output = Result<T, E>>,
{
    let deadline = Instant::now() + TIMEOUT;
    loop {
        match check().await {
            Ok(answer) => return answer,
            Err(error) => assert!(Instant::now() < deadline, "not within {TIMEOUT:?}: {error}"),
        }
        sleep(Duration::from_millis(50)).await;
    }
}
