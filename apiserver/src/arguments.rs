//! The command line's arguments.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{ArgGroup, Parser};
use homeostat_apiserver::{ApiServer, Builder, State};
use jiff::Timestamp;

use crate::components::Component;
use crate::upstream_flags::{Flags, OPTIONAL, QUOTAS, SERVICE_ACCOUNTS};

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
pub(crate) struct Arguments {
    /// Address to listen on. Port 0 picks a free port.
    #[arg(long, value_name = "IP:PORT", default_value_t = LISTEN)]
    pub(crate) listen: SocketAddr,

    /// File to write the kubeconfig to. It is removed at exit. The default is
    /// homeostat.kubeconfig; with --secure-port no file is written by default.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,

    /// Cluster components to start, separated by commas. Without them no pod runs and nothing is
    /// garbage-collected.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) with: Vec<Component>,

    /// Number of nodes of the simulated kubelet.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = at_least_one)]
    pub(crate) nodes: usize,

    /// Seconds from the start of a pod until it is ready.
    #[arg(long, value_name = "SECONDS", default_value_t = 0.0, value_parser = seconds)]
    pub(crate) ready_after: f64,

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
    pub(crate) crd: Vec<PathBuf>,

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
    pub(crate) upstream: Flags,
}

/// A service that webhooks name, and the address of the server behind it.
#[derive(Debug, Clone)]
struct WebhookService {
    namespace: String,
    name: String,
    port: u16,
    address: SocketAddr,
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
    pub(crate) fn builder(&self) -> anyhow::Result<Builder> {
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
        if let Some(value) = upstream.transport_security()? {
            builder = builder.strict_transport_security(value);
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

    pub(crate) fn is_secure(&self) -> bool {
        self.secure || self.upstream.has_secure_port()
    }

    /// Returns the file to write the kubeconfig to.
    pub(crate) fn kubeconfig(&self) -> Option<&Path> {
        let default = (!self.upstream.has_secure_port()).then_some(Path::new(KUBECONFIG));
        self.kubeconfig.as_deref().or(default)
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
