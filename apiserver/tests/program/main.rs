//! The program, started from a shell.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod account_tokens;
mod server;

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Node, Pod};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube_client::api::{
    ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, PostParams,
};
use kube_client::config::{KubeConfigOptions, Kubeconfig};
use kube_client::{Api, Client, Config};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::server::{Server, TIMEOUT, client, client_with, fails};

const DEFINITION: &str = r"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Widget, plural: widgets}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object}}
";

#[tokio::test]
async fn definitions_of_a_file_are_served() {
    let folder = tempfile::tempdir().unwrap();
    let (file, kubeconfig) = (folder.path().join("crd.yaml"), folder.path().join("kubeconfig"));
    fs::write(&file, DEFINITION).unwrap();
    let path = file.to_str().unwrap();
    let server = Server::start(&["--crd", path], &kubeconfig);
    let config = Kubeconfig::read_from(&kubeconfig).unwrap();
    let options = KubeConfigOptions::default();
    let config = Config::from_custom_kubeconfig(config, &options).await.unwrap();
    let client = Client::try_from(config).unwrap();
    let resources = client.list_api_group_resources("example.com/v1").await.unwrap();
    assert_eq!(resources.resources[0].name, "widgets");
    server.stop("-TERM");
    fs::write(&file, DEFINITION.replace("type: object", "type: text")).unwrap();
    let errors = fails(&["--crd", path], &kubeconfig);
    assert_eq!(errors.matches("Unsupported value").count(), 1, "{errors}");
    fs::write(&file, "# none yet\n").unwrap();
    let errors = fails(&["--crd", path], &kubeconfig);
    assert!(errors.contains("crd.yaml has no CustomResourceDefinition"), "{errors}");
}

#[tokio::test]
async fn changed_definition_of_a_file_replaces_the_stored_one() {
    let folder = tempfile::tempdir().unwrap();
    let (file, kubeconfig) = (folder.path().join("crd.yaml"), folder.path().join("kubeconfig"));
    let state = folder.path().join("state");
    let arguments = ["--crd", file.to_str().unwrap(), "--state", state.to_str().unwrap()];
    fs::write(&file, DEFINITION).unwrap();
    Server::start(&arguments, &kubeconfig).stop("-TERM");
    let schema = "type: object, properties: {size: {type: integer}}";
    fs::write(&file, DEFINITION.replace("type: object", schema)).unwrap();
    let server = Server::start(&arguments, &kubeconfig);
    let config = Kubeconfig::read_from(&kubeconfig).unwrap();
    let options = KubeConfigOptions::default();
    let config = Config::from_custom_kubeconfig(config, &options).await.unwrap();
    let client = Client::try_from(config).unwrap();
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com";
    let request = http::Request::get(path).body(Vec::new()).unwrap();
    let stored = client.request_text(request).await.unwrap();
    assert!(stored.contains("integer"), "{stored}");
    server.stop("-TERM");
}

#[test]
fn flags_of_kube_apiserver_that_mean_nothing_here_are_accepted() {
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = folder.path().join("kubeconfig");
    let plugins = "--disable-admission-plugins=ServiceAccount,ValidatingAdmissionWebhook";
    let server = Server::start(&["--feature-gates=A=true,B=false,C=1", plugins], &kubeconfig);
    assert!(server.output[0].contains("http://"), "{:?}", server.output);
    server.stop("-TERM");
    for (flag, expected) in [
        ("--feature-gates=A", "no value for A"),
        ("--disable-admission-plugins=LimitRangr", "LimitRangr is unknown"),
        ("--client-ca=nope.pem", "--secure"),
    ] {
        let errors = fails(&[flag], &kubeconfig);
        assert!(errors.contains(expected), "{flag}: {errors}");
    }
    let errors = fails(&["--secure", "--client-ca=nope.pem"], &kubeconfig);
    assert!(errors.contains("cannot read nope.pem"), "{errors}");
}

/// Writes a certificate for 127.0.0.1, its issuer's and its key; returns the certificates.
fn write_certificate(folder: &Path) -> String {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    let chain = params.signed_by(&key, &authority).unwrap().pem() + &authority.pem();
    fs::write(folder.join("apiserver.crt"), &chain).unwrap();
    fs::write(folder.join("apiserver.key"), key.serialize_pem()).unwrap();
    chain
}

#[tokio::test]
async fn program_takes_the_flags_of_envtest() {
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = folder.path().join("kubeconfig");
    let chain = write_certificate(folder.path());
    let folder = folder.path().display();
    let certificates = format!("--cert-dir={folder}");
    let authority = format!("--client-ca-file={folder}/apiserver.crt");
    let flags = [
        "--secure-port=0",
        "--bind-address=127.0.0.1",
        &certificates,
        &authority,
        "--authorization-mode=RBAC",
        "--disable-admission-plugins=ServiceAccount",
        "--etcd-servers=http://127.0.0.1:2379",
        "--service-cluster-ip-range=10.0.0.0/24",
        "--allow-privileged=true",
        "--service-account-issuer=https://127.0.0.1:6443/",
        &format!("--service-account-key-file={folder}/apiserver.crt"),
        &format!("--service-account-signing-key-file={folder}/apiserver.key"),
        "--enable-admission-plugins=ResourceQuota,PodSecurity",
        "--enable-priority-and-fairness=false",
        "--max-requests-inflight",
        "800",
    ];
    let server = Server::start(&flags, &kubeconfig);
    assert!(server.output[0].contains("https://127.0.0.1:"), "{:?}", server.output);
    let config = Kubeconfig::read_from(&kubeconfig).unwrap();
    let cluster = config.clusters[0].cluster.as_ref().unwrap();
    let shown = cluster.certificate_authority_data.as_ref().unwrap();
    assert_eq!(STANDARD.decode(shown).unwrap(), chain.as_bytes());
    assert_eq!(client(&kubeconfig).await.apiserver_version().await.unwrap().minor, "37");
    assert!(server.stop("-TERM").success());
}

#[test]
fn invalid_certificates_of_the_server_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    let (file, kubeconfig) = (folder.path().join("file"), folder.path().join("kubeconfig"));
    fs::write(&file, "no certificate").unwrap();
    let file = file.display();
    let (certificate, key) =
        (format!("--tls-cert-file={file}"), format!("--tls-private-key-file={file}"));
    let errors = fails(&["--secure", &certificate, &key], &kubeconfig);
    assert!(errors.contains("invalid certificate or key of the server"), "{errors}");
    let errors = fails(&["--secure", &certificate], &kubeconfig);
    assert!(errors.contains("--tls-private-key-file"), "{errors}");
    let errors = fails(&["--bind-address=127.0.0.1"], &kubeconfig);
    assert!(errors.contains("--secure-port"), "{errors}");
}

#[tokio::test]
async fn kubeconfig_points_to_the_server_and_is_removed_at_exit() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("config");
    let server = Server::start(&[], &path);
    assert!(
        server.output[0].starts_with("The API server is at http://127.0.0.1:"),
        "{:?}",
        server.output
    );
    assert_eq!(server.output[1], format!("export KUBECONFIG={}", path.display()));
    let version = client(&path).await.apiserver_version().await.unwrap();
    assert_eq!(version.minor, "37");
    assert!(server.stop("-INT").success());
    assert!(!path.exists());
}

#[tokio::test]
async fn cluster_actors_run_pods_and_delete_namespaces() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("config");
    let server = Server::start(&["--with", "kubelet,gc,namespaces", "--nodes", "3"], &path);
    let client = client(&path).await;
    let namespaces = Api::<Namespace>::all(client.clone());
    let shop = serde_json::from_value(json!({ "metadata": { "name": "shop" } })).unwrap();
    namespaces.create(&PostParams::default(), &shop).await.unwrap();
    let pods = Api::<Pod>::namespaced(client.clone(), "shop");
    let containers = json!([{ "name": "c", "image": "i" }]);
    let pod = json!({ "metadata": { "name": "a" }, "spec": { "containers": containers } });
    pods.create(&PostParams::default(), &serde_json::from_value(pod).unwrap()).await.unwrap();

    wait_until(async || {
        let phase = pods.get("a").await.unwrap().status.unwrap().phase;
        phase.as_deref() == Some("Running")
    })
    .await;
    let nodes = Api::<Node>::all(client.clone());
    wait_until(async || nodes.list(&ListParams::default()).await.unwrap().items.len() == 3).await;
    namespaces.delete("shop", &DeleteParams::default()).await.unwrap();
    wait_until(async || namespaces.get_opt("shop").await.unwrap().is_none()).await;
    assert!(server.stop("-TERM").success());
}

#[tokio::test]
async fn garbage_collector_follows_kinds_that_are_defined_later() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("config");
    let server = Server::start(&["--with", "gc"], &path);
    let client = client(&path).await;
    let definitions = Api::<CustomResourceDefinition>::all(client.clone());
    let definition = serde_saphyr::from_str(DEFINITION).unwrap();
    definitions.create(&PostParams::default(), &definition).await.unwrap();
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("example.com", "v1", "Widget"));
    let widgets = Api::<DynamicObject>::namespaced_with(client.clone(), "default", &kind);
    wait_until(async || widgets.list(&ListParams::default()).await.is_ok()).await;
    let owner = widgets.create(&PostParams::default(), &DynamicObject::new("a", &kind)).await;
    let maps = Api::<ConfigMap>::default_namespaced(client);
    let dependent =
        serde_json::from_value(json!({ "metadata": { "name": "b", "ownerReferences": [{
        "apiVersion": "example.com/v1", "kind": "Widget", "name": "a",
        "uid": owner.unwrap().metadata.uid,
    }] } }));
    maps.create(&PostParams::default(), &dependent.unwrap()).await.unwrap();
    widgets.delete("a", &DeleteParams::default()).await.unwrap();
    wait_until(async || maps.get_opt("b").await.unwrap().is_none()).await;
    assert!(server.stop("-TERM").success());
}

#[tokio::test]
async fn clock_is_real_for_any_seed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("config");
    let server = Server::start(&["--seed", "7"], &path);
    let default = Api::<Namespace>::all(client(&path).await).get("default").await.unwrap();
    let made = default.metadata.creation_timestamp.unwrap().0;
    let age = Timestamp::now().duration_since(made).unsigned_abs();
    assert!(age < TIMEOUT, "made at {made}");
    assert!(server.stop("-INT").success());
}

#[test]
fn errors_say_what_to_do() {
    let directory = tempfile::tempdir().unwrap();
    let mine = directory.path().join("mine");
    fs::write(&mine, "apiVersion: v1\n").unwrap();
    let output = fails(&[], &mine);
    assert!(
        output.contains("not written by this program: name another file with --kubeconfig"),
        "{output}"
    );
    assert_eq!(fs::read_to_string(&mine).unwrap(), "apiVersion: v1\n", "the file was changed");

    let nowhere = directory.path().join("no").join("where");
    assert!(fails(&[], &nowhere).contains("name another file with --kubeconfig"));
    let path = directory.path().join("config");
    assert!(
        fails(&["--listen", "127.0.0.1:99999"], &path).contains("invalid value '127.0.0.1:99999'")
    );
    let server = Server::start(&[], &path);
    let address = server.output[0].rsplit('/').next().unwrap().to_owned();
    let other = directory.path().join("other");
    let output = fails(&["--listen", &address], &other);
    assert!(output.contains(&format!("cannot listen at {address}")), "{output}");
    assert!(!other.exists());
    server.stop("-INT");
}

/// Waits until `check` returns true.
async fn wait_until(mut check: impl AsyncFnMut() -> bool) {
    let deadline = Instant::now() + TIMEOUT;
    while !check().await {
        assert!(Instant::now() < deadline, "not within {TIMEOUT:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn secure_program_asks_for_a_token() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("config");
    let server = Server::start(&["--secure"], &path);
    assert!(
        server.output[0].starts_with("The API server is at https://127.0.0.1:"),
        "{:?}",
        server.output
    );
    let mode = fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "the file has a token");
    let namespaces: Api<Namespace> = Api::all(client(&path).await);
    namespaces.get("default").await.unwrap();

    let namespaces: Api<Namespace> = Api::all(client_with(&path, None).await);
    let error = namespaces.get("default").await.unwrap_err();
    assert!(error.to_string().contains("system:anonymous"), "{error}");
    server.stop("-TERM");
}

#[tokio::test]
async fn tokens_of_a_file_name_users() {
    let folder = tempfile::tempdir().unwrap();
    let (path, tokens) = (folder.path().join("config"), folder.path().join("tokens.csv"));
    fs::write(&tokens, "secret,jane,7,\"dev,ops\"\n").unwrap();
    let file = tokens.to_str().unwrap();
    let start = |mode: &str| {
        let mode = format!("--authorization-mode={mode}");
        Server::start(&["--secure", &mode, "--token-auth-file", file], &path)
    };
    let read = async |token: Option<&str>| {
        let namespaces: Api<Namespace> = Api::all(client_with(&path, token).await);
        namespaces.get("default").await.map_err(|error| error.to_string())
    };

    let server = start("Node,RBAC");
    let error = read(Some("secret")).await.unwrap_err();
    assert!(error.contains("User \"jane\" cannot get resource \"namespaces\""), "{error}");
    let error = read(None).await.unwrap_err();
    assert!(error.contains("User \"system:anonymous\" cannot get"), "{error}");
    server.stop("-TERM");

    let server = start("AlwaysAllow");
    read(Some("secret")).await.unwrap();
    for token in [None, Some("other")] {
        let error = read(token).await.unwrap_err();
        assert!(error.contains("Unauthorized"), "{error}");
    }
    let reviews = Api::<SelfSubjectReview>::all(client_with(&path, Some("secret")).await);
    let review = reviews.create(&PostParams::default(), &SelfSubjectReview::default()).await;
    let user = review.unwrap().status.unwrap().user_info.unwrap();
    assert_eq!((user.username.as_deref(), user.uid.as_deref()), (Some("jane"), Some("7")));
    assert_eq!(user.groups.unwrap(), ["dev", "ops", "system:authenticated"]);
    server.stop("-TERM");

    fs::write(&tokens, "secret,jane\n").unwrap();
    let error = fails(&["--secure", "--token-auth-file", file], &path);
    assert!(error.contains("line 1 needs 3 columns"), "{error}");
    assert!(error.contains("tokens.csv"), "{error}");
}

/// Creates `ConfigMap`s until the server is gone, and returns the names and versions of those that
/// it has acknowledged.
async fn create_until_the_end(client: Client, writer: usize) -> Vec<(String, Option<String>)> {
    let maps = Api::<ConfigMap>::default_namespaced(client);
    let mut acknowledged = Vec::new();
    for number in 0.. {
        let name = format!("map-{writer}-{number}");
        let map = serde_json::from_value(json!({ "metadata": { "name": name } })).unwrap();
        match maps.create(&PostParams::default(), &map).await {
            Ok(made) => acknowledged.push((name, made.metadata.resource_version)),
            Err(_) => break,
        }
    }
    acknowledged
}

#[tokio::test]
async fn killed_program_has_lost_nothing_that_it_acknowledged() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("config");
    let (state, definitions) = (directory.path().join("state"), directory.path().join("crd.yaml"));
    fs::write(&definitions, DEFINITION).unwrap();
    let arguments = ["--state", state.to_str().unwrap(), "--crd", definitions.to_str().unwrap()];
    let mut acknowledged = Vec::new();
    for round in 0..3 {
        let server = Server::start(&arguments, &path);
        let mut config = Config::from_custom_kubeconfig(
            Kubeconfig::read_from(&path).unwrap(),
            &KubeConfigOptions::default(),
        )
        .await
        .unwrap();
        // A repeated create would be refused: the first one may have been carried out.
        config.default_retry = false;
        let client = Client::try_from(config).unwrap();
        let maps = Api::<ConfigMap>::default_namespaced(client.clone());
        let found = maps.list(&ListParams::default()).await.unwrap().items;
        for (name, version) in &acknowledged {
            let map = found.iter().find(|map| map.metadata.name.as_ref() == Some(name));
            let found = map.and_then(|map| map.metadata.resource_version.clone());
            assert_eq!(found, *version, "{name} of round {round}");
        }
        let resources = client.list_api_group_resources("example.com/v1").await.unwrap();
        assert_eq!(resources.resources[0].name, "widgets");
        let mut writers = JoinSet::new();
        for writer in 0..4 {
            writers.spawn(create_until_the_end(client.clone(), round * 10 + writer));
        }
        wait_until(async || {
            let count = maps.list(&ListParams::default()).await.unwrap().items.len();
            count > found.len() + 100
        })
        .await;
        server.stop("-KILL");
        acknowledged.extend(writers.join_all().await.into_iter().flatten());
    }
    assert!(acknowledged.len() > 200, "{}", acknowledged.len());
}

#[test]
fn damaged_state_is_refused_and_a_torn_end_is_reported() {
    let directory = tempfile::tempdir().unwrap();
    let (path, state) = (directory.path().join("config"), directory.path().join("state"));
    let file = state.to_str().unwrap();
    Server::start(&["--state", file], &path).stop("-TERM");
    let complete = fs::read(&state).unwrap();

    let mut damaged = complete.clone();
    let middle = damaged.len() / 2;
    damaged[middle] ^= 1;
    fs::write(&state, &damaged).unwrap();
    let output = fails(&["--state", file], &path);
    assert!(output.contains("is damaged at byte"), "{output}");
    assert_eq!(fs::read(&state).unwrap(), damaged);

    fs::write(&state, &complete[..complete.len() - 1]).unwrap();
    let mut server = Server::start(&["--state", file], &path);
    let errors = server.child.stderr.take().unwrap();
    server.stop("-TERM");
    let mut lines = BufReader::new(errors).lines().map(Result::unwrap);
    assert!(lines.any(|line| line.contains("removed the incomplete record")));
}
