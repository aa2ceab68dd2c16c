//! The command line of the API server.

mod account_token_flags;
mod definitions;
mod garbage;
mod ignored_flags;
mod kubeconfig;
mod token_file;
mod upstream_flags;

use std::io::{IsTerminal as _, stderr};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use clap::{ArgGroup, Parser, ValueEnum};
use homeostat_apiserver::cluster::{
    DeploymentController, Kubelet, NamespaceController, RoleAggregator, VolumeProtection,
};
use homeostat_apiserver::{ApiServer, Builder, State};
use jiff::Timestamp;
use kube_client::Client;
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;

use crate::garbage::Garbage;
use crate::kubeconfig::Kubeconfig;
use crate::upstream_flags::{Flags, OPTIONAL, QUOTAS, SERVICE_ACCOUNTS};

/// Interval between heartbeats of a node, as real kubelets send them.
const HEARTBEAT: Duration = Duration::from_secs(10);

/// Log filter used when `RUST_LOG` is not set.
const LOG: &str = "warn";

/// Default file of the kubeconfig.
const KUBECONFIG: &str = "homeostat.kubeconfig";

/// The end of the help.
const IGNORED: &str = "Flags of kube-apiserver that tune what this server does not have, such as \
    --etcd-servers, --kubelet-timeout, --max-requests-inflight or --v, are accepted and ignored.";

/// Default address: a free port of the loopback interface.
const LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// A Kubernetes API server in memory: it starts at once. It keeps nothing when it ends, unless
/// --state names a file.
///
/// It prints the command that points kubectl at it. Without --secure there is no authentication:
/// any client that can reach the address has full access.
#[derive(Debug, Parser)]
#[command(version, group(ArgGroup::new("tls").multiple(true)), after_help = IGNORED)]
struct Arguments {
    /// Address to listen on. Port 0 picks a free port.
    #[arg(long, value_name = "IP:PORT", default_value_t = LISTEN)]
    listen: SocketAddr,

    /// File to write the kubeconfig to. It is removed at exit. The default is
    /// homeostat.kubeconfig; with --secure-port no file is written by default.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,

    /// Cluster components to start, separated by commas. Without them no pod runs and nothing is
    /// garbage-collected.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    with: Vec<Helper>,

    /// Number of nodes of the simulated kubelet.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = at_least_one)]
    nodes: usize,

    /// Seconds from the start of a pod until it is ready.
    #[arg(long, value_name = "SECONDS", default_value_t = 0.0, value_parser = seconds)]
    ready_after: f64,

    /// Enforce resource quotas: refuse what does not fit, and charge the rest. Off by default.
    #[arg(long)]
    quota_admission: bool,

    /// Give pods their service accounts and tokens, and refuse a pod whose account is missing. A
    /// controller has to create the account `default` of each namespace. Off by default.
    #[arg(long)]
    service_account_admission: bool,

    /// Serve TLS, require tokens, and check each request against roles (RBAC). The kubeconfig has
    /// the certificate and the token of an administrator. Off by default; --secure-port implies it.
    #[arg(long, group = "tls")]
    secure: bool,

    /// File with definitions of custom resources, in YAML or JSON. They are served before the
    /// address is printed. Can be given several times.
    #[arg(long, value_name = "FILE")]
    crd: Vec<PathBuf>,

    /// Address of the server behind a service that webhooks name, such as
    /// `shop/checks:443=127.0.0.1:9443`. Can be given several times.
    #[arg(long, value_name = "NAMESPACE/NAME:PORT=ADDRESS", value_parser = webhook_service)]
    webhook_service: Vec<WebhookService>,

    /// File to keep the objects in. The server starts with the objects that the file has. Each
    /// write is in it before its reply is sent, so that a killed server loses none.
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,

    /// Seed of uids and generated names: equal seeds give equal names. Timestamps are real ones in
    /// any case.
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,

    #[command(flatten)]
    upstream: Flags,
}

/// A service that webhooks name, and the address of the server behind it.
#[derive(Debug, Clone)]
struct WebhookService {
    namespace: String,
    name: String,
    port: u16,
    address: SocketAddr,
}

/// A simulated component of the cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Helper {
    /// Nodes. Pods on them become ready, fail or finish as their annotations say, and end when they
    /// are deleted.
    Kubelet,
    /// Garbage collector: deletes the dependents of deleted owners.
    Gc,
    /// Namespace controller: empties deleted namespaces, then removes them.
    Namespaces,
    /// Protection of volume claims: deleted claims go once no pod uses them.
    Volumes,
    /// Aggregation of roles: fills in the rules of `admin`, `edit`, `view` and their like.
    Roles,
    /// Deployment controller, without rollouts. It makes no pods: run homeostat-replicaset too.
    Deployments,
}

/// The components that run beside the server.
#[derive(Debug, Default)]
struct Helpers {
    kubelet: Option<Kubelet>,
    garbage: Option<Garbage>,
    namespaces: Option<NamespaceController>,
    deployments: Option<DeploymentController>,
    roles: Option<RoleAggregator>,
    volumes: Option<VolumeProtection>,
}

fn main() -> ExitCode {
    let (arguments, ignored) = ignored_flags::take(std::env::args_os());
    let arguments = Arguments::parse_from(arguments);
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(LOG));
    let colours = stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(stderr).with_ansi(colours).init();
    for flag in ignored {
        tracing::info!(flag, "the flag is ignored: the server does not have what it tunes");
    }
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("failed to start the runtime")?;
    runtime.block_on(serve(arguments))?;
    // Does not wait for open watches: nothing is stored that they could lose.
    runtime.shutdown_background();
    Ok(())
}

#[expect(clippy::print_stdout, reason = "the address is what the program has to say")]
async fn serve(arguments: &Arguments) -> anyhow::Result<()> {
    // Installed first, so that an early signal is not lost.
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot listen for Ctrl-C")?;
    let mut terminate = signal(SignalKind::terminate()).context("cannot listen for SIGTERM")?;

    let (secure, address) = (arguments.is_secure(), arguments.upstream.address(arguments.listen));
    let server = arguments.builder()?.build();
    let listener =
        if secure { server.listen_tls(address).await } else { server.listen(address).await };
    let listener = listener.with_context(|| format!("cannot listen at {address}"))?;
    let kubeconfig = arguments.kubeconfig();
    let kubeconfig = kubeconfig.map(|file| Kubeconfig::write(file, &listener.kubeconfig()));
    let kubeconfig = kubeconfig.transpose()?;
    let client = server.client_as("homeostat-apiserver");
    for file in &arguments.crd {
        definitions::create(&client, file).await?;
    }
    let helpers = Helpers::start(&server.client_as("homeostat-helpers"), arguments);

    println!("The API server is at {}", listener.url());
    if let Some(kubeconfig) = &kubeconfig {
        println!("export KUBECONFIG={}", kubeconfig.path().display());
    }
    let ended = tokio::select! {
        biased;
        _ = interrupt.recv() => Ok(()),
        _ = terminate.recv() => Ok(()),
        () = server.wait_for_failure() => Err(anyhow!("the state file cannot be written")),
    };
    // The components stop before their server.
    helpers.stop().await;
    ended
}

// === impl Arguments ===

impl Arguments {
    /// Returns the names of the optional admission plugins that are on.
    fn enabled_plugins(&self) -> Vec<&'static str> {
        let switches = [self.quota_admission, self.service_account_admission];
        let plugins = OPTIONAL.iter().zip(switches);
        let enabled =
            plugins.filter(|((plugin, _), is_on)| *is_on || self.upstream.enables(plugin));
        enabled.map(|((plugin, _), _)| *plugin).collect()
    }

    /// Returns the settings of the server. Logs what it does not have.
    fn builder(&self) -> anyhow::Result<Builder> {
        let (upstream, enabled) = (&self.upstream, self.enabled_plugins());
        for plugin in upstream.absent_plugins()? {
            tracing::warn!(plugin, "the server does not have the admission plugin");
        }
        for gate in upstream.ignored_gates()? {
            tracing::warn!(gate, "the feature gate is ignored: the server has no gates");
        }
        // The seed would also fix the start time; users of a program expect the real time.
        let mut builder = ApiServer::builder().seed(self.seed).epoch(Timestamp::now());
        for plugin in upstream.added_plugins() {
            builder = builder.with_plugin(plugin);
        }
        for plugin in upstream.disabled_plugins(&enabled)? {
            builder = builder.without_plugin(plugin);
        }
        if enabled.contains(&QUOTAS) {
            builder = builder.quota_admission();
        }
        if enabled.contains(&SERVICE_ACCOUNTS) {
            builder = builder.service_account_admission();
        }
        builder = self.access(builder)?;
        if let Some(pem) = upstream.client_authority()? {
            builder = builder.client_authority(pem);
        }
        if let Some((certificate, key)) = upstream.serving_certificate()? {
            builder = builder.serving_certificate(certificate, key);
        }
        for WebhookService { namespace, name, port, address } in &self.webhook_service {
            builder = builder.webhook_service(namespace, name, *port, *address);
        }
        if let Some(file) = &self.state {
            builder = builder.state(State::open(file)?);
        }
        Ok(builder)
    }

    /// Sets who may do what.
    fn access(&self, mut builder: Builder) -> anyhow::Result<Builder> {
        let upstream = &self.upstream;
        if self.is_secure() && upstream.allows_all() {
            builder = builder.authentication();
        } else if self.is_secure() {
            builder = builder.authorization();
        }
        if upstream.refuses_anonymous() {
            builder = builder.without_anonymous();
        }
        builder = upstream.account_tokens(builder)?;
        for (token, user) in upstream.tokens()? {
            builder = builder.token(token, user);
        }
        Ok(builder)
    }

    fn is_secure(&self) -> bool {
        self.secure || self.upstream.has_secure_port()
    }

    /// Returns the file to write the kubeconfig to.
    fn kubeconfig(&self) -> Option<&Path> {
        let default = (!self.upstream.has_secure_port()).then_some(Path::new(KUBECONFIG));
        self.kubeconfig.as_deref().or(default)
    }
}

// === impl Helpers ===

impl Helpers {
    fn start(client: &Client, arguments: &Arguments) -> Self {
        let mut helpers = Self::default();
        for helper in &arguments.with {
            match helper {
                Helper::Kubelet => {
                    let kubelet = Kubelet::builder(client.clone())
                        .nodes(arguments.nodes)
                        .heartbeat(HEARTBEAT)
                        .ready_delay(Duration::from_secs_f64(arguments.ready_after));
                    helpers.kubelet = Some(kubelet.start());
                }
                Helper::Gc => helpers.garbage = Some(Garbage::start(client.clone())),
                Helper::Namespaces => {
                    helpers.namespaces = Some(NamespaceController::start(client.clone()));
                }
                Helper::Volumes => {
                    helpers.volumes = Some(VolumeProtection::start(client.clone()));
                }
                Helper::Roles => helpers.roles = Some(RoleAggregator::start(client.clone())),
                Helper::Deployments => {
                    helpers.deployments = Some(DeploymentController::start(client.clone()));
                }
            }
        }
        helpers
    }

    async fn stop(self) {
        if let Some(kubelet) = self.kubelet {
            kubelet.stop().await;
        }
        if let Some(garbage) = self.garbage {
            garbage.stop().await;
        }
        if let Some(namespaces) = self.namespaces {
            namespaces.stop().await;
        }
        if let Some(deployments) = self.deployments {
            deployments.stop().await;
        }
        if let Some(roles) = self.roles {
            roles.stop().await;
        }
        if let Some(volumes) = self.volumes {
            volumes.stop().await;
        }
    }
}

fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("at least 1 is needed".to_owned()),
        Ok(n) => Ok(n),
        Err(error) => Err(format!("{error}")),
    }
}

fn webhook_service(text: &str) -> Result<WebhookService, String> {
    let wrong = || format!("`{text}` is not of the form NAMESPACE/NAME:PORT=ADDRESS");
    let (service, address) = text.split_once('=').ok_or_else(wrong)?;
    let (namespace, rest) = service.split_once('/').ok_or_else(wrong)?;
    let (name, port) = rest.split_once(':').ok_or_else(wrong)?;
    Ok(WebhookService {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        port: port.parse().map_err(|_| wrong())?,
        address: address.parse().map_err(|_| wrong())?,
    })
}

fn seconds(text: &str) -> Result<f64, String> {
    let seconds: f64 = text.parse().map_err(|error| format!("{error}"))?;
    match Duration::try_from_secs_f64(seconds) {
        Ok(_) => Ok(seconds),
        Err(error) => Err(format!("{error}")),
    }
}
