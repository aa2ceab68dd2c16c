//! The servers a scenario runs on.

use std::{env, fmt::Display, net::Ipv4Addr, pin::Pin, sync::Arc, time::Duration};

use homeostat_apiserver::{
    ApiServer,
    control_plane::{Binaries, ControlPlane},
};
use k8s_openapi::api::core::v1::Namespace;
use kube_client::{Api, Client, Config, api::PostParams};
use libtest_mimic::{Arguments, Completion, Failed, Trial};
use parking_lot::Mutex;
use serde_json::json;
use tokio::{
    runtime::{self, Runtime},
    time::{Instant, sleep},
};

/// How long a scenario waits for what must come. A busy machine may need seconds, no more.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server, and a namespace on it that nobody else uses.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) client: Client,
    pub(crate) namespace: String,
}

/// What happens in a scenario.
pub(crate) type Play = fn(World) -> Pin<Box<dyn Future<Output = ()>>>;

/// A scenario: a name, and what happens.
pub(crate) type Scenario = (&'static str, Play);

/// Runs each scenario on every server that there is on this machine, and exits.
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

/// On the server in this process, called without a socket, under a clock that waits for nobody.
fn in_virtual_time(namespace: String, scenario: Play) -> Result<(), Failed> {
    let mut runtime = runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().start_paused(true).build()?;
    runtime.block_on(async {
        let server = ApiServer::new();
        play(server.client(), namespace, scenario).await;
    });
    Ok(())
}

/// On the server in this process, behind a socket and a kubeconfig, in real time.
fn over_socket(namespace: String, scenario: Play) -> Result<(), Failed> {
    Runtime::new()?.block_on(async {
        let server = ApiServer::new();
        let listener = server.listen((Ipv4Addr::LOCALHOST, 0).into()).await?;
        let mut config = Config::new(listener.url().parse()?);
        config.default_retry = false;
        play(Client::try_from(config)?, namespace, scenario).await;
        Ok(())
    })
}

async fn play(client: Client, namespace: String, scenario: Play) {
    let object = json!({ "metadata": { "name": namespace } });
    let object: Namespace = serde_json::from_value(object).unwrap();
    let namespaces = Api::<Namespace>::all(client.clone());
    namespaces.create(&PostParams::default(), &object).await.unwrap();
    scenario(World { client, namespace }).await;
}

/// On a real kube-apiserver, started by the first scenario that needs it.
fn on_control_plane(
    shared: &Mutex<Option<ControlPlane>>,
    namespace: String,
    scenario: Play,
) -> Result<Completion, Failed> {
    if let Err(missing) = Binaries::find() {
        if env::var("HOMEOSTAT_REQUIRE_CONTROL_PLANE").is_ok_and(|value| value == "1") {
            return Err(missing.into());
        }
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
        play(client, namespace, scenario).await;
    });
    Ok(Completion::Completed)
}

/// Asks again and again until the answer is `Ok`; panics with the last `Err` when patience is over.
pub(crate) async fn eventually<T, E: Display, F>(mut ask: impl FnMut() -> F) -> T
where
    F: Future<Output = Result<T, E>>,
{
    let deadline = Instant::now() + PATIENCE;
    loop {
        match ask().await {
            Ok(answer) => return answer,
            Err(error) => assert!(Instant::now() < deadline, "still not, after a minute: {error}"),
        }
        sleep(Duration::from_millis(50)).await;
    }
}
