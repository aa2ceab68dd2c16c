//! Starts a real etcd and kube-apiserver for one test.
//!
//! [`ControlPlane::start`] runs both programs with certificates and storage in a temporary
//! directory and returns once the server is ready. No controller manager, scheduler or kubelet
//! runs; the actors in [`cluster`](homeostat_apiserver::cluster) stand in for them.
//!
//! ```text
//! ControlPlane ── directory (certificates, kubeconfigs, logs, etcd's data)
//!   ├─ etcd            Unix socket in the directory, no port
//!   └─ kube-apiserver  https://127.0.0.1:<free port>, client certificate or bearer token
//! ```
//!
//! [`Binaries`] finds the programs.
//!
//! Sockets need real time: under tokio's paused clock every timeout in this module expires at once.

mod binaries;
mod credentials;
mod error;
mod etcd;
mod launch;
mod process;

use std::path::{Path, PathBuf};
use std::time::Duration;

use kube_client::{Client, Config};
use tempfile::TempDir;

pub use self::binaries::{Binaries, MissingBinaries};
pub use self::error::ControlPlaneError;

use self::credentials::Credentials;
use self::process::Process;

/// Default start timeout. A start takes 2 s on an idle machine with two cores; the margin is for
/// machines that compile at the same time.
const START_TIMEOUT: Duration = Duration::from_secs(120);

/// A running etcd and kube-apiserver. Dropping it kills and reaps both.
///
/// Each child has its own process group, so that Ctrl-C reaches the test first, and a watchdog that
/// kills the child if the test process dies without dropping this value.
#[derive(Debug)]
#[must_use = "dropping the handle stops the control plane"]
pub struct ControlPlane {
    // Fields are dropped in this order: the server before its storage, the directory last.
    api_server: Process,
    etcd: Process,
    /// The program, flags and port for `restart_api_server`.
    launch: launch::ApiServer,
    start_timeout: Duration,
    config: Config,
    token_config: Config,
    credentials: Credentials,
    socket: PathBuf,
    _directory: TempDir,
}

/// A builder for a [`ControlPlane`] with other binaries, flags or timeouts.
///
/// # Examples
///
/// ```no_run
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// use std::time::Duration;
///
/// use homeostat_testing::control_plane::ControlPlane;
///
/// let control_plane = ControlPlane::builder()
///     .api_server_arg("--max-requests-inflight=20")
///     .start_timeout(Duration::from_secs(300))
///     .start()
///     .await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
#[must_use = "nothing runs until `start` is awaited"]
pub struct Builder {
    binaries: Option<Binaries>,
    api_server_args: Vec<String>,
    etcd_args: Vec<String>,
    start_timeout: Duration,
}

// === impl ControlPlane ===

impl ControlPlane {
    /// Starts etcd and kube-apiserver and waits until the namespace `default` exists.
    ///
    /// # Errors
    ///
    /// Returns an error if a program is missing, ends early, or is not ready in time. The last two
    /// errors contain the end of the program's log.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future stops the programs.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
    /// use homeostat_testing::control_plane::ControlPlane;
    ///
    /// let control_plane = ControlPlane::start().await?;
    /// let version = control_plane.client()?.apiserver_version().await?;
    /// assert_eq!(version.major, "1");
    /// # Ok(())
    /// # }
    /// ```
    pub async fn start() -> Result<Self, ControlPlaneError> {
        Self::builder().start().await
    }

    /// Returns a builder with the default flags.
    pub fn builder() -> Builder {
        Builder {
            binaries: None,
            api_server_args: Vec::new(),
            etcd_args: Vec::new(),
            start_timeout: START_TIMEOUT,
        }
    }

    /// Returns the configuration of a client for `admin`, a member of `system:masters`, with a
    /// client certificate.
    ///
    /// The retry layer of kube is off, since it repeats creates whose outcome is unknown.
    pub fn config(&self) -> Config {
        self.config.clone()
    }

    /// Returns the configuration of a client for `token-admin`, a member of `system:masters`, with
    /// a bearer token.
    pub fn token_config(&self) -> Config {
        self.token_config.clone()
    }

    /// Creates a client from [`config`](Self::config).
    ///
    /// # Errors
    ///
    /// Returns an error if the TLS setup fails.
    ///
    /// # Panics
    ///
    /// Panics outside a tokio runtime.
    pub fn client(&self) -> Result<Client, ControlPlaneError> {
        launch::client(self.config())
    }

    /// Returns the path of a kubeconfig file with the credentials of [`config`](Self::config)
    /// inline.
    pub fn kubeconfig(&self) -> &Path {
        &self.credentials.kubeconfig
    }

    /// Returns the path of a kubeconfig file with the credentials of
    /// [`token_config`](Self::token_config).
    pub fn token_kubeconfig(&self) -> &Path {
        &self.credentials.token_kubeconfig
    }

    /// Returns the path of the log of kube-apiserver. A restart appends to it.
    pub fn api_server_log(&self) -> &Path {
        self.api_server.log()
    }

    /// Kills kube-apiserver and starts it again on the same port and storage.
    ///
    /// This is a crash and not a shutdown: watches break, replies are lost, and the new server has
    /// an empty watch cache.
    ///
    /// # Errors
    ///
    /// Returns an error if the new server ends early or is not ready in time. The control plane
    /// cannot be used then.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the server may be down or not ready; call the method again.
    pub async fn restart_api_server(&mut self) -> Result<(), ControlPlaneError> {
        self.api_server.kill();
        self.api_server = self.launch.spawn()?;
        launch::wait_until_ready(
            &mut self.api_server,
            &mut self.etcd,
            &self.config,
            self.start_timeout,
        )
        .await
    }

    /// Compacts the history of etcd and returns the revision of the compaction.
    ///
    /// The watch cache of the running server still holds recent events. After
    /// [`restart_api_server`](Self::restart_api_server), older resource versions get a 410.
    ///
    /// # Errors
    ///
    /// Returns an error if etcd cannot be reached or rejects the request.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the compaction may or may not have happened.
    pub async fn compact(&self) -> Result<u64, ControlPlaneError> {
        etcd::compact(&self.socket).await.map_err(ControlPlaneError::Compact)
    }
}

// === impl Builder ===

impl Builder {
    /// Sets the programs; the default is [`Binaries::find`].
    pub fn binaries(mut self, binaries: Binaries) -> Self {
        self.binaries = Some(binaries);
        self
    }

    /// Adds a flag for kube-apiserver. It overrides a default flag of the same name.
    pub fn api_server_arg(mut self, arg: impl Into<String>) -> Self {
        self.api_server_args.push(arg.into());
        self
    }

    /// Adds a flag for etcd. It overrides a default flag of the same name.
    pub fn etcd_arg(mut self, arg: impl Into<String>) -> Self {
        self.etcd_args.push(arg.into());
        self
    }

    /// Sets the time that each of the two programs may take until it is ready; the default is 120
    /// s.
    pub fn start_timeout(mut self, timeout: Duration) -> Self {
        self.start_timeout = timeout;
        self
    }

    /// Starts both programs; see [`ControlPlane::start`].
    ///
    /// # Errors
    ///
    /// Returns an error if a program is missing, ends early, or is not ready in time. The last two
    /// errors contain the end of the program's log.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future stops the programs.
    pub async fn start(self) -> Result<ControlPlane, ControlPlaneError> {
        let binaries = match self.binaries {
            Some(binaries) => binaries,
            None => Binaries::find()?,
        };
        let directory = tempfile::Builder::new()
            .prefix("homeostat-")
            .tempdir()
            .map_err(|source| ControlPlaneError::Directory { source })?;
        let credentials = Credentials::create(directory.path())?;
        let socket = directory.path().join("etcd.sock");
        let etcd = etcd::Launch { program: &binaries.etcd, args: &self.etcd_args, socket: &socket };
        let mut etcd = etcd.start(directory.path(), self.start_timeout).await?;

        let mut launch = launch::ApiServer::new(&binaries, directory.path(), &socket, &credentials);
        launch.extra_args = self.api_server_args;
        let api_server =
            launch.start_on_free_port(&mut etcd, &credentials, self.start_timeout).await?;
        let (config, token_config) = credentials.configs(launch.port).await?;
        credentials.write_kubeconfigs(launch.port)?;
        Ok(ControlPlane {
            api_server,
            etcd,
            launch,
            start_timeout: self.start_timeout,
            config,
            token_config,
            credentials,
            socket,
            _directory: directory,
        })
    }
}
