//! What the starter of the real control plane promises, shown on the real programs.
//!
//! Every test is reported as `ignored` on a machine without them, unless
//! `HOMEOSTAT_REQUIRE_CONTROL_PLANE=1` says that they must be there.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::{collections::BTreeMap, env, fs, path::Path, time::Duration};

use homeostat_apiserver::control_plane::{Binaries, ControlPlane, ControlPlaneError};
use http::Request;
use k8s_openapi::{
    api::core::v1::{ConfigMap, Namespace, Pod, ServiceAccount},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube_client::{
    Api, Client, Config, Error,
    api::{DeleteParams, ListParams, PostParams},
    config::{KubeConfigOptions, Kubeconfig},
};
use kube_core::params::VersionMatch;
use libtest_mimic::{Arguments, Completion, Failed, Trial};
use tokio::{runtime::Runtime, time::Instant};

fn main() {
    let mut arguments = Arguments::from_args();
    // Each test runs a server of its own, which keeps a core busy while it starts.
    arguments.test_threads = arguments.test_threads.or(Some(1));
    let trials = vec![
        trial("it_serves_clients_with_a_certificate_and_with_a_token", || async {
            serves_certificate_and_token().await;
        }),
        trial("a_restart_keeps_port_and_objects", || async { restart_keeps_objects().await }),
        trial("history_that_was_compacted_is_gone_after_a_restart", || async {
            compacted_history_is_gone().await;
        }),
        trial("both_programs_are_gone_when_it_is_dropped", || async { drop_kills_both().await }),
        trial("a_flag_that_does_not_exist_is_reported_with_the_log", || async {
            unknown_flag_is_reported().await;
        }),
        trial("two_control_planes_do_not_disturb_each_other", || async { two_at_once().await }),
    ];
    libtest_mimic::run(&arguments, trials).exit();
}

/// A test in a runtime of its own; ignored when the programs are missing.
fn trial<F: Future<Output = ()>>(name: &str, test: impl FnOnce() -> F + Send + 'static) -> Trial {
    Trial::ignorable_test(name, move || {
        if let Err(missing) = Binaries::find() {
            if env::var("HOMEOSTAT_REQUIRE_CONTROL_PLANE").is_ok_and(|value| value == "1") {
                return Err(Failed::from(missing));
            }
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
    let nobody = {
        let mut config = control_plane.config();
        config.auth_info = kube_client::config::AuthInfo::default();
        Client::try_from(config).unwrap()
    };
    let refused = Api::<Namespace>::all(nobody).get("default").await.unwrap_err();
    assert!(matches!(&refused, Error::Api(status) if status.is_forbidden()), "{refused}");

    // No service account admission: a pod can be created though nobody made an account.
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
    // The old client's connection broke with the old server; it makes a new one.
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
    let folder = control_plane.kubeconfig().parent().unwrap().to_owned();
    assert_eq!(processes_of(&folder).len(), 2);

    let started = Instant::now();
    drop(control_plane);
    assert!(started.elapsed() < Duration::from_secs(2), "took {:?}", started.elapsed());
    assert_eq!(processes_of(&folder), Vec::<String>::new());
    assert!(!folder.exists(), "the folder goes too");
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
    // Nor does one accept the credentials of the other.
    let mut mixed = one.config();
    mixed.auth_info = two.config().auth_info;
    let client = Client::try_from(mixed).unwrap();
    Api::<Namespace>::all(client).get("default").await.unwrap_err();
}

async fn config_of(path: &Path) -> Config {
    let kubeconfig = Kubeconfig::read_from(path).unwrap();
    Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap()
}

/// The command lines of the running programs (not of their watchdogs) that name `folder`.
fn processes_of(folder: &Path) -> Vec<String> {
    let folder = folder.to_str().unwrap();
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let command_lines = processes.filter_map(|process| {
        // A process may end between the two reads; then it does not run.
        fs::read(process.path().join("cmdline")).ok()
    });
    command_lines
        .map(|line| String::from_utf8_lossy(&line).replace('\0', " "))
        .filter(|line| line.contains(folder))
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
