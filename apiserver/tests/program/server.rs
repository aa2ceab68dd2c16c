//! The running program, and its clients.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use kube_client::config::{KubeConfigOptions, Kubeconfig};
use kube_client::{Client, Config};
use tokio::time::Instant;

/// Timeout of steps that take no time on an idle machine.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(20);

/// The running program and the first two lines of its output.
pub(crate) struct Server {
    pub(crate) child: Child,
    pub(crate) output: Vec<String>,
}

pub(crate) fn command(arguments: &[&str], kubeconfig: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_homeostat-apiserver"));
    command.args(arguments).arg("--kubeconfig").arg(kubeconfig);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs the program until it fails, and returns its error output.
pub(crate) fn fails(arguments: &[&str], kubeconfig: &Path) -> String {
    let output = command(arguments, kubeconfig).output().unwrap();
    assert!(!output.status.success());
    String::from_utf8(output.stderr).unwrap()
}

// === impl Server ===

impl Server {
    pub(crate) fn start(arguments: &[&str], kubeconfig: &Path) -> Self {
        let mut child = command(arguments, kubeconfig).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let output = lines.by_ref().take(2).map(Result::unwrap).collect();
        Self { child, output }
    }

    /// Sends a signal and waits until the program has ended.
    pub(crate) fn stop(mut self, signal: &str) -> ExitStatus {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
        let since = Instant::now();
        let status = self.child.wait().unwrap();
        assert!(since.elapsed() < TIMEOUT, "{:?}", since.elapsed());
        status
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Has an effect only after a failed assertion; otherwise the program has ended.
        drop(self.child.kill());
    }
}

// === clients ===

pub(crate) async fn client(kubeconfig: &Path) -> Client {
    let kubeconfig = Kubeconfig::read_from(kubeconfig).unwrap();
    let options = KubeConfigOptions::default();
    Client::try_from(Config::from_custom_kubeconfig(kubeconfig, &options).await.unwrap()).unwrap()
}

/// Returns a client with this token in place of that of the administrator.
pub(crate) async fn client_with(kubeconfig: &Path, token: Option<&str>) -> Client {
    let mut config = Kubeconfig::read_from(kubeconfig).unwrap();
    config.auth_infos[0].auth_info.as_mut().unwrap().token = token.map(Into::into);
    let options = KubeConfigOptions::default();
    Client::try_from(Config::from_custom_kubeconfig(config, &options).await.unwrap()).unwrap()
}
