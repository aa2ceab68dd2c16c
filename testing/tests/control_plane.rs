//! Tests of `ControlPlane` with the real programs.
//!
//! On a machine without the programs every test is `ignored`, unless
//! `HOMEOSTAT_REQUIRE_CONTROL_PLANE=1` requires them.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use homeostat_testing::control_plane::{Binaries, ControlPlane, ControlPlaneError};
use http::Request;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod, ServiceAccount};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube_client::api::{DeleteParams, ListParams, PostParams};
use kube_client::config::{KubeConfigOptions, Kubeconfig};
use kube_client::{Api, Client, Config, Error};
use kube_core::params::VersionMatch;
use libtest_mimic::{Arguments, Completion, Trial};
use tokio::runtime::Runtime;
use tokio::time::Instant;

fn main() {
    let mut arguments = Arguments::from_args();
    // Each test starts its own server, which uses a full core during its start.
    arguments.test_threads = arguments.test_threads.or(Some(1));
    let trials = vec![
        trial("clients_with_certificate_and_token_are_served", || async {
            serves_certificate_and_token().await;
        }),
        trial("restart_keeps_port_and_objects", || async { restart_keeps_objects().await }),
        trial("compacted_history_is_gone_after_a_restart", || async {
            compacted_history_is_gone().await;
        }),
        trial("drop_ends_both_programs", || async { drop_kills_both().await }),
        trial("unknown_flag_is_reported_with_the_log", || async {
            unknown_flag_is_reported().await;
        }),
        trial("two_control_planes_are_independent", || async { two_at_once().await }),
    ];
    libtest_mimic::run(&arguments, trials).exit();
}

/// Creates a test with its own runtime. It is ignored if the programs are missing.
fn trial<F: Future<Output = ()>>(name: &str, test: impl FnOnce() -> F + Send + 'static) -> Trial {
    Trial::ignorable_test(name, move || {
        if let Some(missing) = Binaries::missing_for_tests() {
            return Ok(Completion::ignored_with(missing));
        }
        Runtime::new()?.block_on(test());
        Ok(Completion::Completed)
    })
}

async fn serves_certificate_and_token() {
    let control_plane = ControlPlane::start().await.unwrap();
    for config in [control_plane.config(), control_plane.token_config()] {
        let client = Client::try_from(config).unwrap();
        Api::<Namespace>::all(client).get("default").await.unwrap();
    }
    for path in [control_plane.kubeconfig(), control_plane.token_kubeconfig()] {
        let config = config_of(path).await;
        let client = Client::try_from(config).unwrap();
        let version = client.apiserver_version().await.unwrap();
        assert_eq!(version.major, "1", "{version:?}");
    }
    let anonymous = {
        let mut config = control_plane.config();
        config.auth_info = kube_client::config::AuthInfo::default();
        Client::try_from(config).unwrap()
    };
    let refused = Api::<Namespace>::all(anonymous).get("default").await.unwrap_err();
    assert!(matches!(&refused, Error::Api(status) if status.is_forbidden()), "{refused}");

    // The service account admission is off: a pod needs no account.
    let client = control_plane.client().unwrap();
    let accounts = Api::<ServiceAccount>::default_namespaced(client.clone());
    assert!(accounts.list(&ListParams::default()).await.unwrap().items.is_empty());
    let pods = Api::<Pod>::default_namespaced(client);
    pods.create(&PostParams::default(), &pod("p")).await.unwrap();
    pods.delete("p", &DeleteParams::default()).await.unwrap();
}

async fn restart_keeps_objects() {
    let mut control_plane = ControlPlane::start().await.unwrap();
    let before = control_plane.config();
    let maps = Api::<ConfigMap>::default_namespaced(control_plane.client().unwrap());
    let made = maps.create(&PostParams::default(), &config_map("kept", "1")).await.unwrap();

    control_plane.restart_api_server().await.unwrap();

    assert_eq!(before.cluster_url, control_plane.config().cluster_url);
    // The connection of the client broke with the old server; the client reconnects.
    let kept = maps.get("kept").await.unwrap();
    assert_eq!(kept.metadata.uid, made.metadata.uid);
}

async fn compacted_history_is_gone() {
    let mut control_plane = ControlPlane::start().await.unwrap();
    let maps = Api::<ConfigMap>::default_namespaced(control_plane.client().unwrap());
    let first = maps.create(&PostParams::default(), &config_map("a", "1")).await.unwrap();
    let second = maps.create(&PostParams::default(), &config_map("b", "1")).await.unwrap();
    let old = first.metadata.resource_version.unwrap();
    let second: u64 = second.metadata.resource_version.unwrap().parse().unwrap();

    let compacted = control_plane.compact().await.unwrap();
    assert!(compacted >= second, "compacted to {compacted}, the last write was {second}");
    control_plane.restart_api_server().await.unwrap();

    let exact = ListParams { resource_version: Some(old), ..ListParams::default() }
        .matching(VersionMatch::Exact);
    let gone = maps.list(&exact).await.unwrap_err();
    assert!(matches!(&gone, Error::Api(status) if status.code == 410), "{gone}");
}

async fn drop_kills_both() {
    let control_plane = ControlPlane::start().await.unwrap();
    let client = control_plane.client().unwrap();
    let directory = control_plane.kubeconfig().parent().unwrap().to_owned();
    assert_eq!(processes_of(&directory).len(), 2);

    let started = Instant::now();
    drop(control_plane);
    assert!(started.elapsed() < Duration::from_secs(10), "took {:?}", started.elapsed());
    assert_eq!(processes_of(&directory), Vec::<String>::new());
    assert!(!directory.exists(), "the directory still exists");
    let request = Request::get("/readyz").body(Vec::new()).unwrap();
    client.request_text(request).await.unwrap_err();
}

async fn unknown_flag_is_reported() {
    let error = ControlPlane::builder().api_server_arg("--no-such-flag").start().await.unwrap_err();
    assert!(matches!(error, ControlPlaneError::Ended { program: "kube-apiserver", .. }), "{error}");
    assert!(error.to_string().contains("unknown flag: --no-such-flag"), "{error}");
}

async fn two_at_once() {
    let (one, two) = tokio::join!(ControlPlane::start(), ControlPlane::start());
    let (one, two) = (one.unwrap(), two.unwrap());
    let in_one = Api::<ConfigMap>::default_namespaced(one.client().unwrap());
    in_one.create(&PostParams::default(), &config_map("mine", "1")).await.unwrap();
    let in_two = Api::<ConfigMap>::default_namespaced(two.client().unwrap());
    assert!(in_two.get_opt("mine").await.unwrap().is_none());
    // A server does not accept the credentials of the other.
    let mut mixed = one.config();
    mixed.auth_info = two.config().auth_info;
    let client = Client::try_from(mixed).unwrap();
    Api::<Namespace>::all(client).get("default").await.unwrap_err();
}

async fn config_of(path: &Path) -> Config {
    let kubeconfig = Kubeconfig::read_from(path).unwrap();
    Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap()
}

/// Returns the command lines of running programs that contain `directory`, without watchdogs.
fn processes_of(directory: &Path) -> Vec<String> {
    let directory = directory.to_str().unwrap();
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let command_lines = processes.filter_map(|process| {
        // A process may end between the two reads.
        fs::read(process.path().join("cmdline")).ok()
    });
    command_lines
        .map(|line| String::from_utf8_lossy(&line).replace('\0', " "))
        .filter(|line| line.contains(directory))
        .collect()
}

fn pod(name: &str) -> Pod {
    serde_json::from_value(serde_json::json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": { "name": name },
        "spec": { "containers": [{ "name": "c", "image": "i" }] },
    }))
    .unwrap()
}

fn config_map(name: &str, value: &str) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
        data: Some(BTreeMap::from([("key".to_owned(), value.to_owned())])),
        ..ConfigMap::default()
    }
}
