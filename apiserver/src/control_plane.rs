//! A real etcd and kube-apiserver, started for one test and gone with it.
//!
//! [`ControlPlane::start`] runs both programs with certificates and storage in a temporary folder of
//! their own, and returns once the server is ready. What runs is the bare API: no controller manager,
//! no scheduler, no kubelet. The actors in [`cluster`](crate::cluster) stand in for those.
//!
//! ```text
//! ControlPlane ── folder (certificates, kubeconfigs, logs, etcd's data)
//!   ├─ etcd            unix socket in the folder: no port, nobody else reaches it
//!   └─ kube-apiserver  https://127.0.0.1:<free port>, client certificate or bearer token
//! ```
//!
//! Where the programs come from is told by [`Binaries`].
//!
//! Sockets need real time: under tokio's paused clock every deadline here passes at once.

mod binaries;
mod credentials;
mod error;
mod etcd;
mod launch;
mod process;

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use kube_client::{Client, Config};
use tempfile::TempDir;

pub use self::{
    binaries::{Binaries, MissingBinaries},
    error::ControlPlaneError,
};
use self::{credentials::Credentials, process::Process};

/// How long a start may take. It takes 2 s on an idle machine with two cores; the rest is for
/// machines that compile at the same time.
const START_TIMEOUT: Duration = Duration::from_secs(120);

/// A running etcd and kube-apiserver; dropping it kills and reaps both.
///
/// Each child has a process group of its own, so that Ctrl-C reaches the test first, and a watchdog
/// that kills it when the test's process has died without dropping this value.
#[derive(Debug)]
#[must_use = "dropping it stops the control plane"]
pub struct ControlPlane {
    // Fields are dropped in this order: the server before its storage, the folder last.
    api_server: Process,
    etcd: Process,
    /// What `restart_api_server` starts: the same program, flags and port.
    launch: launch::ApiServer,
    start_timeout: Duration,
    config: Config,
    token_config: Config,
    credentials: Credentials,
    socket: PathBuf,
    _folder: TempDir,
}

/// Starts a [`ControlPlane`] with flags and limits of your own.
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
    /// The programs are missing, end early, or are not ready in time; the last two carry the end of
    /// the program's log.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future stops what it has started.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
    /// use homeostat_apiserver::control_plane::ControlPlane;
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

    /// A builder, for flags of your own.
    pub fn builder() -> Builder {
        Builder {
            binaries: None,
            api_server_args: Vec::new(),
            etcd_args: Vec::new(),
            start_timeout: START_TIMEOUT,
        }
    }

    /// How to reach the server as `admin`, a member of `system:masters`, by client certificate.
    ///
    /// kube's retry layer is off: it would repeat creates whose outcome is unknown.
    pub fn config(&self) -> Config {
        self.config.clone()
    }

    /// How to reach the server as `token-admin`, a member of `system:masters`, by bearer token.
    pub fn token_config(&self) -> Config {
        self.token_config.clone()
    }

    /// A client built from [`config`](Self::config); needs to be called inside a tokio runtime.
    ///
    /// # Errors
    ///
    /// The TLS stack cannot be set up.
    pub fn client(&self) -> Result<Client, ControlPlaneError> {
        launch::client(self.config())
    }

    /// A kubeconfig file with the same credentials as [`config`](Self::config), all of them inline.
    pub fn kubeconfig(&self) -> &Path {
        &self.credentials.kubeconfig
    }

    /// A kubeconfig file with the same credentials as [`token_config`](Self::token_config).
    pub fn token_kubeconfig(&self) -> &Path {
        &self.credentials.token_kubeconfig
    }

    /// The log of kube-apiserver; a restart appends to it.
    pub fn api_server_log(&self) -> &Path {
        self.api_server.log()
    }

    /// Kills kube-apiserver and starts it again on the same port and storage.
    ///
    /// It is a crash, not a shutdown: watches break mid-stream, replies are lost, and the new server
    /// has an empty watch cache whose history starts at its own first list.
    ///
    /// # Errors
    ///
    /// The new server ends early or is not ready in time. The control plane is then of no use.
    ///
    /// # Cancel safety
    ///
    /// When cancelled, the server may be down or not ready yet; call it again.
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

    /// Forgets etcd's history before now, and returns the revision it was compacted to.
    ///
    /// The running server's watch cache still holds recent events; after
    /// [`restart_api_server`](Self::restart_api_server) older resource versions are refused with 410.
    ///
    /// # Errors
    ///
    /// etcd cannot be reached or refuses.
    ///
    /// # Cancel safety
    ///
    /// When cancelled, the compaction may or may not have happened.
    pub async fn compact(&self) -> Result<u64, ControlPlaneError> {
        etcd::compact(&self.socket).await.map_err(ControlPlaneError::Compact)
    }
}

// === impl Builder ===

impl Builder {
    /// Uses these programs instead of those that [`Binaries::find`] finds.
    pub fn binaries(mut self, binaries: Binaries) -> Self {
        self.binaries = Some(binaries);
        self
    }

    /// Adds a flag for kube-apiserver, after (so: over) the ones given by default.
    pub fn api_server_arg(mut self, arg: impl Into<String>) -> Self {
        self.api_server_args.push(arg.into());
        self
    }

    /// Adds a flag for etcd, after the ones given by default.
    pub fn etcd_arg(mut self, arg: impl Into<String>) -> Self {
        self.etcd_args.push(arg.into());
        self
    }

    /// How long each of the two programs may take until it is ready; 120 s by default.
    pub fn start_timeout(mut self, timeout: Duration) -> Self {
        self.start_timeout = timeout;
        self
    }

    /// Starts both programs; see [`ControlPlane::start`].
    ///
    /// # Errors
    ///
    /// The programs are missing, end early, or are not ready in time; the last two carry the end of
    /// the program's log.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future stops what it has started.
    pub async fn start(self) -> Result<ControlPlane, ControlPlaneError> {
        let binaries = match self.binaries {
            Some(binaries) => binaries,
            None => Binaries::find()?,
        };
        let folder = tempfile::Builder::new()
            .prefix("homeostat-")
            .tempdir()
            .map_err(|source| ControlPlaneError::Folder { source })?;
        let credentials = Credentials::create(folder.path())?;
        let socket = folder.path().join("etcd.sock");
        let etcd = etcd::Launch { program: &binaries.etcd, args: &self.etcd_args, socket: &socket };
        let mut etcd = etcd.start(folder.path(), self.start_timeout).await?;

        let mut launch = launch::ApiServer::new(&binaries, folder.path(), &socket, &credentials);
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
            _folder: folder,
        })
    }
}
