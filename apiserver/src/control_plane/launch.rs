//! kube-apiserver: its flags, its port, and when it is ready.

use std::{
    io,
    net::{Ipv4Addr, TcpListener},
    path::{Path, PathBuf},
    time::Duration,
};

use http::Request;
use kube_client::{Client, Config};
use tokio::time::{Instant, sleep, timeout};

use super::{
    binaries::Binaries, credentials::Credentials, error::ControlPlaneError, process::Process,
};

/// How long one probe may hang: a server that is starting may accept and not answer.
pub(super) const PROBE_TIMEOUT: Duration = Duration::from_secs(2);

/// Time between probes: small beside the 2 s that a start takes.
const PROBE_PAUSE: Duration = Duration::from_millis(25);

/// How many ports are tried. Each try fails only when another process takes the port in the seconds
/// between its choice and its use.
const PORT_TRIES: u32 = 5;

/// How kube-apiserver is started, and started again.
#[derive(Debug)]
pub(super) struct ApiServer {
    program: PathBuf,
    log: PathBuf,
    args: Vec<String>,
    /// The caller's flags, which come last and so win.
    pub(super) extra_args: Vec<String>,
    pub(super) port: u16,
}

/// Waits between probes until time is up.
pub(super) struct Probing {
    started: Instant,
    limit: Duration,
}

// === impl ApiServer ===

impl ApiServer {
    pub(super) fn new(
        binaries: &Binaries,
        folder: &Path,
        etcd: &Path,
        credentials: &Credentials,
    ) -> Self {
        let flag = |name: &str, path: &Path| format!("--{name}={}", path.display());
        let fixed = [
            "--bind-address=127.0.0.1",
            "--authorization-mode=RBAC",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--allow-privileged=true",
            // Nobody makes the service account `default`, without which no pod could be created.
            "--disable-admission-plugins=ServiceAccount",
            // The server's own address is of no use to anybody in a cluster without nodes.
            "--endpoint-reconciler-type=none",
            "--service-account-issuer=https://kubernetes.default.svc",
        ];
        let mut args: Vec<String> = fixed.map(str::to_owned).into();
        args.extend([
            format!("--etcd-servers=unix://{}", etcd.display()),
            flag("cert-dir", folder),
            flag("client-ca-file", &credentials.authority),
            flag("tls-cert-file", &credentials.serving_certificate),
            flag("tls-private-key-file", &credentials.serving_key),
            flag("service-account-key-file", &credentials.account_public_key),
            flag("service-account-signing-key-file", &credentials.account_key),
            flag("token-auth-file", &credentials.tokens),
        ]);
        Self {
            program: binaries.kube_apiserver.clone(),
            log: folder.join("kube-apiserver.log"),
            args,
            extra_args: Vec::new(),
            port: 0,
        }
    }

    /// Starts it on a port that was free a moment ago, and again on another when it was taken since.
    pub(super) async fn start_on_free_port(
        &mut self,
        etcd: &mut Process,
        credentials: &Credentials,
        limit: Duration,
    ) -> Result<Process, ControlPlaneError> {
        let mut tries = 0;
        loop {
            tries += 1;
            self.port = free_port().map_err(|source| ControlPlaneError::Spawn {
                program: self.program.clone(),
                source,
            })?;
            let (config, _) = credentials.configs(self.port).await?;
            let mut process = self.spawn()?;
            match wait_until_ready(&mut process, etcd, &config, limit).await {
                Ok(()) => return Ok(process),
                Err(error) if error.is_port_taken() && tries < PORT_TRIES => {}
                Err(error) => return Err(error),
            }
        }
    }

    pub(super) fn spawn(&self) -> Result<Process, ControlPlaneError> {
        let mut args = self.args.clone();
        args.push(format!("--secure-port={}", self.port));
        args.extend_from_slice(&self.extra_args);
        Process::spawn("kube-apiserver", &self.program, &args, self.log.clone())
    }
}

// === impl Probing ===

impl Probing {
    pub(super) fn new(limit: Duration) -> Self {
        Self { started: Instant::now(), limit }
    }

    /// Pauses after a probe that was answered by `answer`; fails when the time is up.
    pub(super) async fn wait(
        &mut self,
        process: &Process,
        answer: String,
    ) -> Result<(), ControlPlaneError> {
        let waited = self.started.elapsed();
        if waited >= self.limit {
            let (program, log) = (process.name(), process.log_tail());
            return Err(ControlPlaneError::NotReady { program, waited, answer, log });
        }
        sleep(PROBE_PAUSE).await;
        Ok(())
    }
}

pub(super) fn client(config: Config) -> Result<Client, ControlPlaneError> {
    Client::try_from(config).map_err(ControlPlaneError::client)
}

/// Waits until the server says that it is ready and the namespace `default` exists, which the server
/// makes itself a moment later.
///
/// Another server on the same port cannot be mistaken for ours: its certificate is not signed by our
/// authority.
pub(super) async fn wait_until_ready(
    api_server: &mut Process,
    etcd: &mut Process,
    config: &Config,
    limit: Duration,
) -> Result<(), ControlPlaneError> {
    let client = client(config.clone())?;
    let mut probing = Probing::new(limit);
    for path in ["/readyz", "/api/v1/namespaces/default"] {
        loop {
            etcd.check_running()?;
            api_server.check_running()?;
            let request = Request::get(path).body(Vec::new()).map_err(ControlPlaneError::client)?;
            let answer = match timeout(PROBE_TIMEOUT, client.request_text(request)).await {
                Ok(Ok(_)) => break,
                Ok(Err(error)) => error.to_string(),
                Err(_) => format!("nothing within {PROBE_TIMEOUT:?}"),
            };
            probing.wait(api_server, answer).await?;
        }
    }
    Ok(())
}

fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}
