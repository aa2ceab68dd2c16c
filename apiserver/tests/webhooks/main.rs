//! Admission and conversion webhooks: the same cases on the embedded server and on a real
//! kube-apiserver.
//!
//! A webhook server with TLS runs in this process. Each case configures webhooks, sends requests,
//! and writes down the replies and the reviews that the webhooks got. The texts in
//! `tests/webhooks/*.txt` are those of the real server: `HOMEOSTAT_RECORD=webhooks` writes them
//! again, and the name of a case in its place writes that one.

#![expect(clippy::unwrap_used, reason = "a test that fails is meant to panic")]

mod cases;
mod convert;
mod hooks;
mod play;

use std::path::{Path, PathBuf};

use homeostat_apiserver::ApiServer;
use homeostat_testing::control_plane::{Binaries, ControlPlane};
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use k8s_openapi::api::core::v1::ConfigMap;
use kube_client::api::PostParams;
use kube_client::{Api, Client};
use libtest_mimic::{Arguments, Completion, Failed, Trial};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use self::cases::Case;
use self::hooks::Hooks;

/// The case whose replies chance decides on a real server: at the end of its time, a filter and the
/// handler both end a request, and if both write, the connection breaks. It is recorded with the
/// reply of the filter, and compared with the embedded server alone.
const UNDECIDED: &str = "late";

fn main() {
    let arguments = Arguments::from_args();
    let cases = cases::all();
    let names: Vec<&'static str> = cases.iter().map(|case| case.name).collect();
    let mut trials = Vec::new();
    for name in names {
        trials.push(Trial::test(format!("embedded::{name}"), move || embedded(name)));
    }
    trials.push(Trial::test("embedded::service_at_an_address", service_at_an_address));
    trials.push(Trial::test("embedded::certificate_in_the_bundle", certificate_in_the_bundle));
    trials.push(Trial::test("embedded::connection_is_kept", connection_is_kept));
    trials.push(Trial::test("embedded::closed_connection_is_replaced", closed_connection));
    trials.push(Trial::ignorable_test("control_plane", on_control_plane));
    libtest_mimic::run(&arguments, trials).exit();
}

/// Plays a case on the embedded server, and compares it with the recording.
fn embedded(name: &str) -> Result<(), Failed> {
    Runtime::new()?.block_on(async {
        let case = cases::all().into_iter().find(|case| case.name == name).unwrap();
        let server = ApiServer::new();
        let hooks = Hooks::start().await;
        compare(&case, &play::play(&case, &server.client(), &hooks).await)
    })
}

/// A service of `Builder::webhook_service` is called at its address, under its name.
fn service_at_an_address() -> Result<(), Failed> {
    Runtime::new()?.block_on(async {
        let hooks = Hooks::start().await;
        let builder = ApiServer::builder().webhook_service("shop", "hook", 8443, hooks.socket());
        let service = json!({"namespace": "shop", "name": "hook", "port": 8443, "path": "/deny"});
        let config = json!({"service": service, "caBundle": hooks.bundle()});
        refuses_maps(&builder.build(), &config).await;
        Ok(())
    })
}

/// A certificate that the bundle contains is trusted, as by Go, even if it is that of an authority.
fn certificate_in_the_bundle() -> Result<(), Failed> {
    Runtime::new()?.block_on(async {
        let hooks = Hooks::start_self_signed().await;
        refuses_maps(&ApiServer::new(), &hooks.client_config("/deny")).await;
        Ok(())
    })
}

/// One call after the other needs one connection.
fn connection_is_kept() -> Result<(), Failed> {
    Runtime::new()?.block_on(async {
        assert_eq!(connections_of_three_calls("/allow").await, 1);
        Ok(())
    })
}

/// A connection that the server has closed is not used again.
fn closed_connection() -> Result<(), Failed> {
    Runtime::new()?.block_on(async {
        assert_eq!(connections_of_three_calls("/close").await, 3);
        Ok(())
    })
}

/// Creates three config maps, and returns how many connections the webhook's server got.
async fn connections_of_three_calls(path: &str) -> usize {
    let (hooks, server) = (Hooks::start().await, ApiServer::new());
    configure(&server, &hooks.client_config(path)).await;
    let maps = Api::<ConfigMap>::default_namespaced(server.client());
    for name in ["a", "b", "c"] {
        let map = serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
        maps.create(&PostParams::default(), &map).await.unwrap();
    }
    assert_eq!(hooks.take().len(), 3);
    hooks.connections()
}

/// Checks that a webhook with this server, which denies all, refuses a config map.
async fn refuses_maps(server: &ApiServer, config: &Value) {
    configure(server, config).await;
    let maps = Api::<ConfigMap>::default_namespaced(server.client());
    let map = serde_json::from_value(json!({"metadata": {"name": "m"}})).unwrap();
    let error = maps.create(&PostParams::default(), &map).await.unwrap_err().to_string();
    let denied = "admission webhook \"maps.example.com\" denied the request without explanation";
    assert!(error.contains(denied), "{error}");
}

/// Creates a webhook for new config maps.
async fn configure(server: &ApiServer, config: &Value) {
    let configuration = serde_json::from_value(json!({
        "metadata": {"name": "hooks"},
        "webhooks": [{
            "name": "maps.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "clientConfig": config,
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"],
                "resources": ["configmaps"]}],
        }],
    }));
    let configurations = Api::<ValidatingWebhookConfiguration>::all(server.client());
    configurations.create(&PostParams::default(), &configuration.unwrap()).await.unwrap();
}

/// Plays all cases on a real server, and compares or records them.
fn on_control_plane() -> Result<Completion, Failed> {
    if let Some(missing) = Binaries::missing_for_tests() {
        return Ok(Completion::ignored_with(missing));
    }
    let record = std::env::var("HOMEOSTAT_RECORD").unwrap_or_default();
    let records = |case: &Case| ["all", "webhooks", case.name].contains(&&*record);
    Runtime::new()?.block_on(async {
        let control_plane = ControlPlane::start().await?;
        let client = Client::try_from(control_plane.config())?;
        let hooks = Hooks::start().await;
        let mut failed = Vec::new();
        let cases = cases::all();
        for case in cases.iter().filter(|case| records(case) || case.name != UNDECIDED) {
            let played = play::play(case, &client, &hooks).await;
            if records(case) {
                std::fs::write(recording(case), &played)?;
            } else if let Err(difference) = compare(case, &played) {
                failed.push(format!("{}: {difference:?}", case.name));
            }
        }
        if failed.is_empty() { Ok(Completion::Completed) } else { Err(failed.join("\n").into()) }
    })
}

fn recording(case: &Case) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/webhooks/{}.txt", case.name))
}

fn compare(case: &Case, played: &str) -> Result<(), Failed> {
    let file = recording(case);
    let recorded = std::fs::read_to_string(&file)
        .map_err(|error| format!("{}: {error}: record it first", file.display()))?;
    if recorded == played {
        return Ok(());
    }
    let actual = std::env::temp_dir().join(format!("homeostat-webhooks-{}.txt", case.name));
    std::fs::write(&actual, played)?;
    let lines = recorded.lines().zip(played.lines()).enumerate();
    let first = lines.into_iter().find(|(_, (wanted, found))| wanted != found);
    Err(match first {
        Some((at, (wanted, found))) => format!(
            "line {} of {} differs from {}:\nwanted {wanted}\nfound  {found}",
            at + 1,
            file.display(),
            actual.display()
        )
        .into(),
        None => format!("{} and {} have other lengths", file.display(), actual.display()).into(),
    })
}
