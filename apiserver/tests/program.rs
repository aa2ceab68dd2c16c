//! The program, as somebody starts it from a shell.

#![cfg(feature = "program")]
#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Namespace, Node, Pod};
use kube_client::api::{DeleteParams, ListParams, PostParams};
use kube_client::config::{KubeConfigOptions, Kubeconfig};
use kube_client::{Api, Client, Config};
use serde_json::json;
use tokio::time::Instant;

/// How long the program may take to do what it does at once. A busy machine may need seconds.
const AT_ONCE: Duration = Duration::from_secs(20);

/// The program, until it is stopped.
struct Server {
    child: Child,
    said: Vec<String>,
}

fn command(arguments: &[&str], kubeconfig: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_homeostat-apiserver"));
    command.args(arguments).arg("--kubeconfig").arg(kubeconfig);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs the program until it ends by itself; what it said of the error.
fn fails(arguments: &[&str], kubeconfig: &Path) -> String {
    let output = command(arguments, kubeconfig).output().unwrap();
    assert!(!output.status.success());
    String::from_utf8(output.stderr).unwrap()
}

// === impl Server ===

impl Server {
    fn start(arguments: &[&str], kubeconfig: &Path) -> Self {
        let mut child = command(arguments, kubeconfig).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let said = lines.by_ref().take(2).map(Result::unwrap).collect();
        Self { child, said }
    }

    /// Sends a signal, and waits until the program has ended.
    fn stop(mut self, signal: &str) -> ExitStatus {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
        let since = Instant::now();
        let status = self.child.wait().unwrap();
        assert!(since.elapsed() < AT_ONCE, "{:?}", since.elapsed());
        status
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Only after a failed assertion: otherwise it has ended, and there is nothing to kill.
        drop(self.child.kill());
    }
}

async fn client(kubeconfig: &Path) -> Client {
    let kubeconfig = Kubeconfig::read_from(kubeconfig).unwrap();
    let options = KubeConfigOptions::default();
    Client::try_from(Config::from_custom_kubeconfig(kubeconfig, &options).await.unwrap()).unwrap()
}

#[tokio::test]
async fn the_kubeconfig_leads_to_the_server_and_goes_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config");
    let server = Server::start(&[], &path);
    assert!(
        server.said[0].starts_with("The API server is at http://127.0.0.1:"),
        "{:?}",
        server.said
    );
    assert_eq!(server.said[1], format!("export KUBECONFIG={}", path.display()));
    let version = client(&path).await.apiserver_version().await.unwrap();
    assert_eq!(version.minor, "37");
    assert!(server.stop("-INT").success());
    assert!(!path.exists());
}

#[tokio::test]
async fn with_its_helpers_pods_run_and_namespaces_go() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config");
    let server = Server::start(&["--with", "kubelet,gc,namespaces", "--nodes", "3"], &path);
    let client = client(&path).await;
    let namespaces = Api::<Namespace>::all(client.clone());
    let shop = serde_json::from_value(json!({ "metadata": { "name": "shop" } })).unwrap();
    namespaces.create(&PostParams::default(), &shop).await.unwrap();
    let pods = Api::<Pod>::namespaced(client.clone(), "shop");
    let pod = json!({ "metadata": { "name": "a" }, "spec": { "containers": [{ "name": "c", "image": "i" }] } });
    pods.create(&PostParams::default(), &serde_json::from_value(pod).unwrap()).await.unwrap();

    until(async || {
        let phase = pods.get("a").await.unwrap().status.unwrap().phase;
        phase.as_deref() == Some("Running")
    })
    .await;
    let nodes = Api::<Node>::all(client.clone());
    until(async || nodes.list(&ListParams::default()).await.unwrap().items.len() == 3).await;
    namespaces.delete("shop", &DeleteParams::default()).await.unwrap();
    until(async || namespaces.get_opt("shop").await.unwrap().is_none()).await;
    assert!(server.stop("-TERM").success());
}

#[tokio::test]
async fn its_clock_is_the_real_one_whatever_the_seed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config");
    let server = Server::start(&["--seed", "7"], &path);
    let default = Api::<Namespace>::all(client(&path).await).get("default").await.unwrap();
    let made = default.metadata.creation_timestamp.unwrap().0;
    let age = Timestamp::now().duration_since(made).unsigned_abs();
    assert!(age < AT_ONCE, "made at {made}");
    assert!(server.stop("-INT").success());
}

#[test]
fn what_cannot_be_is_said_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let mine = folder.path().join("mine");
    fs::write(&mine, "apiVersion: v1\n").unwrap();
    let said = fails(&[], &mine);
    assert!(
        said.contains("not written by this program: name another file with --kubeconfig"),
        "{said}"
    );
    assert_eq!(fs::read_to_string(&mine).unwrap(), "apiVersion: v1\n", "it is left as it was");

    let nowhere = folder.path().join("no").join("where");
    assert!(fails(&[], &nowhere).contains("name another file with --kubeconfig"));
    let path = folder.path().join("config");
    assert!(
        fails(&["--listen", "127.0.0.1:99999"], &path).contains("invalid value '127.0.0.1:99999'")
    );
    let server = Server::start(&[], &path);
    let address = server.said[0].rsplit('/').next().unwrap().to_owned();
    let other = folder.path().join("other");
    let said = fails(&["--listen", &address], &other);
    assert!(said.contains(&format!("cannot listen at {address}")), "{said}");
    assert!(!other.exists());
    server.stop("-INT");
}

/// Asks again and again until the answer is yes.
async fn until(mut ask: impl AsyncFnMut() -> bool) {
    let deadline = Instant::now() + AT_ONCE;
    while !ask().await {
        assert!(Instant::now() < deadline, "still not");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
