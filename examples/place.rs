//! The cluster of an example (embedded, a real control plane, or that of a kubeconfig), and the
//! frame of its program.

use std::io::{IsTerminal as _, stderr};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;

use homeostat::kube_client::{Client, Config};
use homeostat_apiserver::{ApiServer, Listener};
use homeostat_testing::control_plane::ControlPlane;
use tracing_subscriber::EnvFilter;

/// The cluster of the scene. Servers that were started for it stop when this is dropped.
pub(crate) enum Place {
    Embedded(Listener),
    ControlPlane(Box<ControlPlane>),
    Cluster(PathBuf),
}

/// Starts the log and runs `scene`, whose failure is printed. `$RUST_LOG` overrides `filter`.
pub(crate) async fn run(filter: &str, scene: impl Future<Output = anyhow::Result<()>>) -> ExitCode {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(filter));
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(stderr);
    let has_colours = stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    log.with_ansi(has_colours).init();
    match scene.await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            print(&format!("\nfailed: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

/// Prints to standard output.
#[expect(clippy::print_stdout, reason = "the output of the example")]
pub(crate) fn print(line: &str) {
    println!("{line}");
}

// === impl Place ===

impl Place {
    /// Starts the cluster, unless `kubeconfig` names one.
    pub(crate) async fn open(
        kubeconfig: Option<PathBuf>,
        control_plane: bool,
    ) -> anyhow::Result<Self> {
        if let Some(kubeconfig) = kubeconfig {
            return Ok(Self::Cluster(kubeconfig));
        }
        if control_plane {
            return Ok(Self::ControlPlane(Box::new(ControlPlane::start().await?)));
        }
        let anywhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        Ok(Self::Embedded(ApiServer::builder().quota_admission().build().listen(anywhere).await?))
    }

    /// Returns a client with a higher rate limit than a deployed controller has.
    pub(crate) async fn client(&self) -> anyhow::Result<Client> {
        let builder = homeostat::client::builder().qps(1000.0).burst(2000);
        let builder = match self {
            Self::Embedded(listener) => builder.config(Config::new(listener.url().parse()?))?,
            Self::ControlPlane(plane) => builder.config(plane.config())?,
            Self::Cluster(kubeconfig) => builder.kubeconfig(kubeconfig).await?,
        };
        Ok(builder.build())
    }

    /// Returns true if the cluster was started for the scene, so that nothing else runs in it.
    pub(crate) fn is_ours(&self) -> bool {
        !matches!(self, Self::Cluster(_))
    }

    pub(crate) fn describe(&self) -> String {
        match self {
            Self::Embedded(listener) => format!("the embedded API server at {}", listener.url()),
            Self::ControlPlane(plane) => {
                format!("a real kube-apiserver at {}", plane.config().cluster_url)
            }
            Self::Cluster(kubeconfig) => format!("the cluster of {}", kubeconfig.display()),
        }
    }
}
