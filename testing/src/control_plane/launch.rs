//! The flags, the port and the readiness probes of kube-apiserver.

use std::net::{Ipv4Addr, TcpListener};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use std::{io, process};

use http::Request;
use kube_client::{Client, Config};
use tokio::time::{Instant, sleep, timeout};

use super::binaries::Binaries;
use super::credentials::Credentials;
use super::error::ControlPlaneError;
use super::process::Process;

/// Timeout of one probe: a starting server may accept a connection and not respond.
pub(super) const PROBE_TIMEOUT: Duration = Duration::from_secs(2);

/// Pause between two probes, short in relation to a start of 2 s.
const PROBE_PAUSE: Duration = Duration::from_millis(25);

/// Number of ports to try. A try fails if another process takes the port before the server binds
/// it.
const PORT_TRIES: u32 = 5;

/// The ports of servers. None of them is ephemeral: while a server restarts, the kernel could give
/// an ephemeral port to a connection of any other program.
const PORTS: Range<u16> = 10_000..32_768;

/// Distance of the first ports of two processes: a test program starts fewer servers.
const PORTS_OF_A_PROCESS: usize = 100;

/// The program, flags and port with which kube-apiserver is started and restarted.
#[derive(Debug)]
pub(super) struct ApiServer {
    program: PathBuf,
    log: PathBuf,
    args: Vec<String>,
    /// The flags of the caller. They replace those of the same name.
    pub(super) extra_args: Vec<String>,
    pub(super) port: u16,
}

/// Pauses between probes, up to a start timeout.
pub(super) struct Probing {
    started: Instant,
    start_timeout: Duration,
}

// === impl ApiServer ===

impl ApiServer {
    pub(super) fn new(
        binaries: &Binaries,
        directory: &Path,
        etcd: &Path,
        credentials: &Credentials,
    ) -> Self {
        let flag = |name: &str, path: &Path| format!("--{name}={}", path.display());
        let fixed = [
            "--bind-address=127.0.0.1",
            "--authorization-mode=RBAC",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--allow-privileged=true",
            // No controller creates the service account `default`; with this plugin, pods without
            // it are rejected.
            "--disable-admission-plugins=ServiceAccount",
            // A cluster without nodes does not use the endpoints of the server.
            "--endpoint-reconciler-type=none",
            "--service-account-issuer=https://kubernetes.default.svc",
        ];
        let mut args: Vec<String> = fixed.map(str::to_owned).into();
        args.extend([
            format!("--etcd-servers=unix://{}", etcd.display()),
            flag("cert-dir", directory),
            flag("client-ca-file", &credentials.authority),
            flag("tls-cert-file", &credentials.serving_certificate),
            flag("tls-private-key-file", &credentials.serving_key),
            flag("service-account-key-file", &credentials.account_public_key),
            flag("service-account-signing-key-file", &credentials.account_key),
            flag("token-auth-file", &credentials.tokens),
        ]);
        Self {
            program: binaries.kube_apiserver.clone(),
            log: directory.join("kube-apiserver.log"),
            args,
            extra_args: Vec::new(),
            port: 0,
        }
    }

    /// Starts the server on a free port. If another process takes the port meanwhile, tries another
    /// one.
    pub(super) async fn start_on_free_port(
        &mut self,
        etcd: &mut Process,
        credentials: &Credentials,
        start_timeout: Duration,
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
            match wait_until_ready(&mut process, etcd, &config, start_timeout).await {
                Ok(()) => return Ok(process),
                Err(error) if error.is_port_taken() && tries < PORT_TRIES => {}
                Err(error) => return Err(error),
            }
        }
    }

    pub(super) fn spawn(&self) -> Result<Process, ControlPlaneError> {
        fn name(arg: &str) -> &str {
            arg.split('=').next().unwrap_or_default()
        }
        // A list would grow if its flag were repeated.
        let is_replaced = |arg: &&String| self.extra_args.iter().any(|own| name(own) == name(arg));
        let mut args: Vec<String> =
            self.args.iter().filter(|arg| !is_replaced(arg)).cloned().collect();
        args.push(format!("--secure-port={}", self.port));
        args.extend_from_slice(&self.extra_args);
        Process::spawn("kube-apiserver", &self.program, &args, self.log.clone())
    }
}

// === impl Probing ===

impl Probing {
    pub(super) fn new(start_timeout: Duration) -> Self {
        Self { started: Instant::now(), start_timeout }
    }

    /// Pauses after a failed probe with the response `answer`. Fails after the start timeout.
    pub(super) async fn wait(
        &mut self,
        process: &Process,
        answer: String,
    ) -> Result<(), ControlPlaneError> {
        let waited = self.started.elapsed();
        if waited >= self.start_timeout {
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

/// Waits until `/readyz` succeeds and the namespace `default` exists, which the server creates
/// shortly after.
///
/// A foreign server on the same port fails the probe: its certificate has another authority.
pub(super) async fn wait_until_ready(
    api_server: &mut Process,
    etcd: &mut Process,
    config: &Config,
    start_timeout: Duration,
) -> Result<(), ControlPlaneError> {
    let client = client(config.clone())?;
    let mut probing = Probing::new(start_timeout);
    for path in ["/readyz", "/api/v1/namespaces/default"] {
        loop {
            etcd.check_running()?;
            api_server.check_running()?;
            let request = Request::get(path).body(Vec::new()).map_err(ControlPlaneError::client)?;
            let answer = match timeout(PROBE_TIMEOUT, client.request_text(request)).await {
                Ok(Ok(_)) => break,
                Ok(Err(error)) => error.to_string(),
                Err(_) => format!("no response within {PROBE_TIMEOUT:?}"),
            };
            probing.wait(api_server, answer).await?;
        }
    }
    Ok(())
}

/// Returns a free port. Processes that run at the same time begin their search at different ports.
fn free_port() -> io::Result<u16> {
    static SEARCHES: AtomicUsize = AtomicUsize::new(0);
    let before = SEARCHES.fetch_add(1, Ordering::Relaxed);
    let first = (process::id() as usize * PORTS_OF_A_PROCESS + before) % PORTS.len();
    let is_free = |port: &u16| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok();
    let mut ports = PORTS.cycle().skip(first).take(PORTS.len());
    ports.find(is_free).ok_or_else(|| io::ErrorKind::AddrInUse.into())
}
