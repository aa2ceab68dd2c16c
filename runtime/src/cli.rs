//! The flags that controller programs share (feature `cli`).
//!
//! [`Flags`] is a group of clap arguments: flatten it into the program's own. [`Program::run`] does
//! what they say: log, client, leader election, listener, shutdown. Names and defaults are
//! kube-controller-manager's and controller-runtime's.
//!
//! # Examples
//!
//! ```
//! use clap::Parser;
//! use homeostat::cli::Flags;
//!
//! /// My controller.
//! #[derive(Debug, Parser)]
//! struct Arguments {
//!     #[command(flatten)]
//!     flags: Flags,
//!     /// Number of widgets reconciled concurrently.
//!     #[arg(long, default_value_t = 1)]
//!     workers: usize,
//! }
//!
//! let arguments = Arguments::parse_from(["my-controller", "--leader-elect", "-v", "4"]);
//! assert!(arguments.flags.leader_election.leader_elect);
//! let filter = "debug,kube_client=error,hyper=info,h2=info,rustls=info";
//! assert_eq!(arguments.flags.log_filter(), filter);
//! ```

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use kube_client::Client;

pub use self::duration::{DurationError, parse_duration};
pub use self::gates::{GateError, GateList};
pub use self::program::Program;
use crate::client::{ClientBuilder, ClientError, NoServer, Server};
use crate::events::EventRecorder;
use crate::leader_election::{InvalidElection, LeaderElector, Timing, check};

mod duration;
mod gates;
mod program;

/// The flags of every controller program.
#[expect(clippy::doc_markdown, reason = "these comments are the text of --help")]
#[derive(Debug, Clone, Args)]
pub struct Flags {
    /// Path of the kubeconfig. Default: $KUBECONFIG, else ~/.kube/config, else the cluster that
    /// this process runs in.
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,

    /// Context of the kubeconfig. Default: its current context.
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,

    /// URL of the API server. Overrides the kubeconfig's.
    #[arg(long, value_name = "URL", value_parser = parse_url)]
    pub master: Option<http::Uri>,

    /// Namespace whose objects are reconciled. The flag may be repeated. Default: all namespaces.
    #[arg(long = "namespace", value_name = "NAME", value_parser = parse_namespace)]
    pub namespaces: Vec<String>,

    /// Average number of requests per second. 0 means no limit.
    #[arg(long, value_name = "X", default_value_t = 20.0, value_parser = parse_qps)]
    #[arg(allow_negative_numbers = true)]
    pub kube_api_qps: f32,

    /// Number of requests that may be sent at once after an idle period.
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = parse_burst)]
    #[arg(allow_negative_numbers = true)]
    pub kube_api_burst: u32,

    /// Address of the listener for metrics, health and debug pages, as 127.0.0.1:8080 or
    /// `[::]:8080`. There is no listener without it.
    #[arg(long, value_name = "IP:PORT", value_parser = parse_address)]
    pub bind_address: Option<SocketAddr>,

    /// Verbosity of the log: 0 to 3 is info, 4 to 7 debug, 8 and more trace. $RUST_LOG overrides
    /// it.
    #[arg(short, long, value_name = "N", default_value_t = 0)]
    pub v: u8,

    /// Format of the log lines on the standard error output.
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = LogFormat::Text)]
    pub log_format: LogFormat,

    /// The leader election.
    #[command(flatten)]
    pub leader_election: LeaderElectionFlags,
}

/// The format of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[non_exhaustive]
pub enum LogFormat {
    /// Lines for people, with colours on a terminal.
    Text,
    /// One JSON object per line.
    Json,
}

/// The flags of the leader election.
#[derive(Debug, Clone, Args)]
pub struct LeaderElectionFlags {
    /// Let only one of several replicas work, with a Lease as their lock.
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    #[arg(default_value_t = false, action = clap::ArgAction::Set, value_name = "BOOL")]
    pub leader_elect: bool,

    /// Time after which other replicas take over from a leader that does not renew.
    #[arg(long, value_name = "DURATION", default_value = "15s", value_parser = parse_duration)]
    pub leader_elect_lease_duration: Duration,

    /// Time after which a leader that cannot renew stops. Shorter than the lease duration.
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = parse_duration)]
    pub leader_elect_renew_deadline: Duration,

    /// Time between two attempts to acquire or renew.
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = parse_duration)]
    pub leader_elect_retry_period: Duration,

    /// Name of the Lease. Default: the program's name.
    #[arg(long, value_name = "NAME")]
    pub leader_elect_resource_name: Option<String>,

    /// Namespace of the Lease. Default: that of the kubeconfig's context or of this pod.
    #[arg(long, value_name = "NAME")]
    pub leader_elect_resource_namespace: Option<String>,
}

// === impl Flags ===

impl Flags {
    /// Returns the builder of the controller's client: the server, the rate limit and the burst
    /// are those of the flags.
    ///
    /// # Errors
    ///
    /// Returns an error if the kubeconfig or one of its contexts cannot be used, or if there is
    /// neither a kubeconfig nor a cluster.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future kills a credential plugin that runs, and has no other effect.
    pub async fn client(
        &self,
        builder: ClientBuilder<NoServer>,
    ) -> Result<ClientBuilder<Server>, ClientError> {
        let mut builder = builder.qps(self.kube_api_qps).burst(self.kube_api_burst);
        if let Some(context) = &self.context {
            builder = builder.context(context);
        }
        if let Some(master) = &self.master {
            builder = builder.master(master.to_string());
        }
        match &self.kubeconfig {
            Some(path) => builder.kubeconfig(path).await,
            None => builder.infer().await,
        }
    }

    /// Returns the elector if `--leader-elect` is given. `client` should be one of its own, so that
    /// no other request delays a renewal; `program` is the default name of the Lease, and the
    /// component of the events about it.
    ///
    /// # Errors
    ///
    /// Returns an error if the durations do not fit each other.
    ///
    /// # Panics
    ///
    /// Panics outside of a tokio runtime.
    pub fn elector(
        &self,
        client: Client,
        program: &str,
    ) -> Result<Option<LeaderElector>, InvalidElection> {
        let flags = &self.leader_election;
        if !flags.leader_elect {
            return Ok(None);
        }
        let name = flags.leader_elect_resource_name.as_deref().unwrap_or(program);
        let own = client.default_namespace().to_owned();
        let namespace = flags.leader_elect_resource_namespace.clone().unwrap_or(own);
        // Two events in the life of a leader do not delay its renewals.
        let events = EventRecorder::new(client.clone(), program);
        let elector = LeaderElector::builder(client, namespace, name)
            .events(&events)
            .lease_duration(flags.leader_elect_lease_duration)
            .renew_deadline(flags.leader_elect_renew_deadline)
            .retry_period(flags.leader_elect_retry_period)
            .build()?;
        Ok(Some(elector))
    }

    /// Returns the namespaces of `--namespace`, sorted and each of them once. Empty means all
    /// namespaces.
    ///
    /// Controllers that wait for their own writes need one cache per namespace: the version of a
    /// merged cache is that of its quietest namespace. Build a factory and a controller for each
    /// namespace, and give them one [`WorkLimit`](crate::WorkLimit).
    pub fn sorted_namespaces(&self) -> Vec<String> {
        let mut namespaces = self.namespaces.clone();
        namespaces.sort();
        namespaces.dedup();
        namespaces
    }

    /// Returns the namespace of `--namespace`, for a program that works in one namespace or in all.
    ///
    /// # Errors
    ///
    /// Returns the text for the user if the flag names several namespaces. `error.exit()` prints it
    /// and ends the program with code 2.
    pub fn at_most_one_namespace(&self) -> Result<Option<String>, clap::Error> {
        let mut namespaces = self.sorted_namespaces();
        let namespace = namespaces.pop();
        if namespaces.is_empty() {
            return Ok(namespace);
        }
        Err(conflict(
            "--namespace cannot be repeated: this controller works in one namespace, or in all",
        ))
    }

    /// Checks that `--namespace` is not given, for a program that works in all namespaces.
    ///
    /// # Errors
    ///
    /// Returns the text for the user, as
    /// [`at_most_one_namespace`](Self::at_most_one_namespace) does.
    ///
    /// # Examples
    ///
    /// ```
    /// use clap::Parser;
    /// use homeostat::cli::Flags;
    ///
    /// #[derive(Debug, Parser)]
    /// struct Arguments {
    ///     #[command(flatten)]
    ///     flags: Flags,
    /// }
    ///
    /// let flags = Arguments::parse_from(["my-controller", "--namespace=shop"]).flags;
    /// assert!(flags.all_namespaces().is_err());
    /// assert_eq!(flags.at_most_one_namespace()?.as_deref(), Some("shop"));
    /// # Ok::<_, clap::Error>(())
    /// ```
    pub fn all_namespaces(&self) -> Result<(), clap::Error> {
        if self.namespaces.is_empty() {
            return Ok(());
        }
        Err(conflict("--namespace cannot be used: this controller works in all namespaces"))
    }

    /// Checks what clap does not check: the durations of an election depend on each other.
    fn check(&self) -> Result<(), clap::Error> {
        let flags = &self.leader_election;
        let timing = Timing {
            lease_duration: flags.leader_elect_lease_duration,
            renew_deadline: flags.leader_elect_renew_deadline,
            retry_period: flags.leader_elect_retry_period,
        };
        let checked = if flags.leader_elect { check(&timing) } else { Ok(()) };
        checked.map_err(|error| conflict(&error.to_string()))
    }

    /// Returns the filter of the log for `tracing_subscriber::EnvFilter`.
    ///
    /// kube-client prints complete objects that do not decode, so it logs errors only.
    pub fn log_filter(&self) -> &'static str {
        match self.v {
            0..=3 => "info,kube_client=error",
            4..=7 => "debug,kube_client=error,hyper=info,h2=info,rustls=info",
            8.. => "trace,kube_client=error,hyper=debug,h2=debug",
        }
    }
}

/// Parses a number that is at least 1, for example of workers: a value parser for clap.
///
/// # Errors
///
/// Returns an error if the text is no number, or 0.
pub fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("must be at least 1".to_owned()),
        Ok(number) => Ok(number),
        Err(_) => Err("write a whole number, at least 1".to_owned()),
    }
}

fn parse_qps(text: &str) -> Result<f32, String> {
    text.parse().map_err(|_| "write a number, as 20 or 0.5; 0 means no limit".to_owned())
}

fn parse_burst(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| format!("write a whole number from 0 to {}", u32::MAX))
}

fn parse_address(text: &str) -> Result<SocketAddr, String> {
    let allowed = "write an IP address and a port up to 65535, as 127.0.0.1:8080 or [::]:8080";
    text.parse().map_err(|_| allowed.to_owned())
}

fn conflict(text: &str) -> clap::Error {
    clap::Error::raw(clap::error::ErrorKind::ArgumentConflict, format!("{text}\n"))
}

/// Accepts a DNS label, as the API server does.
fn parse_namespace(text: &str) -> Result<String, String> {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let ends = [text.bytes().next(), text.bytes().last()];
    let is_label = text.len() <= 63
        && text.bytes().all(|byte| plain(byte) || byte == b'-')
        && ends.into_iter().all(|byte| byte.is_some_and(plain));
    if is_label {
        Ok(text.to_owned())
    } else {
        Err("a namespace has 1 to 63 characters: lower case letters, digits and '-'".to_owned())
    }
}

fn parse_url(text: &str) -> Result<http::Uri, String> {
    let url: http::Uri = text.parse().map_err(|error| format!("{error}"))?;
    match url.scheme_str() {
        Some("http" | "https") => Ok(url),
        _ => Err("a URL begins with http:// or https://".to_owned()),
    }
}

#[cfg(test)]
mod tests;
