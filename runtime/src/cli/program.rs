//! [`Program`]: the frame of a controller program, from the log to the exit code.

use std::io::{IsTerminal as _, stderr};
use std::pin::pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kube_client::Client;
use tower::BoxError;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::ParseError;

use super::{Flags, LogFormat};
use crate::client::{self, ClientBuilder, NoServer, describe_chain};
use crate::manager::Manager;
use crate::observe::{Diagnostics, ObserveServer, serve};
use crate::prometheus::install_prometheus_recorder_with;
use crate::run_error::RunError;
use crate::shutdown::shutdown_signal;

/// The threads of the runtime. A controller mostly waits: one thread carries thousands of requests
/// per second. With a second one, each request wakes the other thread and goes on in its cold
/// cache, and each thread costs memory.
const DEFAULT_THREADS: usize = 1;

/// The time for tasks that the program has left to end. One that blocks its thread never does.
const END_TIMEOUT: Duration = Duration::from_secs(1);

/// The exit code for wrong flags, as clap's.
const WRONG_FLAGS: u8 = 2;

/// Runs a controller program with the shared [`Flags`], from the log to the exit code.
///
/// 1. The log starts, on the standard error output, unless the program has set a `tracing`
///    subscriber of its own.
/// 2. With `--bind-address`, health, readiness, metrics and the debug page are served.
/// 3. The client connects as the flags say. With `--leader-elect` it carries the fence of the
///    election.
/// 4. `build` returns the manager, which runs until SIGTERM or Ctrl-C.
///
/// A program that needs another order uses the same parts: [`Flags::client`], [`Flags::elector`],
/// [`Manager::diagnostics`], [`shutdown_signal`].
///
/// The runtime has 1 thread by default; the log goes to the standard error output; the exit code
/// is 0 after a signal and 1 after an error.
///
/// # Examples
///
/// ```no_run
/// use std::process::ExitCode;
///
/// use clap::Parser;
/// use homeostat::cli::{Flags, Program};
/// # use homeostat::{Manager, kube_client::Client};
/// # fn manager(client: Client) -> Manager { todo!() }
///
/// /// My controller.
/// #[derive(Debug, Parser)]
/// #[command(version)]
/// struct Arguments {
///     #[command(flatten)]
///     flags: Flags,
/// }
///
/// fn main() -> ExitCode {
///     let arguments = Arguments::parse();
///     let program = Program::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"));
///     program.run(&arguments.flags, async |client| Ok(manager(client)))
/// }
/// ```
#[derive(Debug, Clone)]
#[must_use = "a program does nothing until `run`"]
pub struct Program {
    name: &'static str,
    version: &'static str,
    threads: usize,
    histograms: Vec<(&'static str, &'static [f64])>,
}

// === impl Program ===

impl Program {
    /// Returns a program of this name and version. Both are in the `User-Agent` of its requests;
    /// the name is also the default name of its Lease.
    ///
    /// No thread starts before [`run`](Self::run).
    pub const fn new(name: &'static str, version: &'static str) -> Self {
        Self { name, version, threads: DEFAULT_THREADS, histograms: Vec::new() }
    }

    /// Sets the number of threads (default and least 1). The thread of the caller runs `build`, so
    /// that one that blocks does not stop the listener.
    ///
    /// More of them serve a reconciler that computes for long, and caches of very many objects
    /// whose initial lists have to be there soon. They cost CPU time and memory.
    pub const fn threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    /// Adds a histogram of the program's own, with the upper bounds of its buckets. Without them it
    /// is exported as a summary.
    ///
    /// # Examples
    ///
    /// ```
    /// use homeostat::cli::Program;
    ///
    /// let program = Program::new("shop-controller", "1.0.0")
    ///     .threads(4)
    ///     .histogram("shop_checkout_seconds", &[0.1, 1.0, 10.0]);
    /// # let _ = program;
    /// ```
    pub fn histogram(mut self, name: &'static str, buckets: &'static [f64]) -> Self {
        self.histograms.push((name, buckets));
        self
    }

    /// Runs the manager that `build` returns for the client of the flags, until SIGTERM or Ctrl-C.
    ///
    /// `build` may use the client, for example to install a definition; a signal drops it at its
    /// next await. An error of `build`, of the connection or of the manager is logged with its
    /// causes and gives [`ExitCode::FAILURE`]. Durations of an election that do not fit each other
    /// are printed as clap prints a wrong flag, and give the code 2. Keys that are left after the
    /// drain timeout give a warning: the next process lists all objects at its start. A thread that
    /// a task blocks is left after a second.
    ///
    /// # Panics
    ///
    /// Panics in a tokio runtime.
    pub fn run<F>(self, flags: &Flags, build: F) -> ExitCode
    where
        F: AsyncFnOnce(Client) -> Result<Manager, BoxError>,
    {
        if let Err(error) = flags.check() {
            drop(error.print());
            return ExitCode::from(WRONG_FLAGS);
        }
        start_log(flags);
        match self.start(flags, build) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                tracing::error!("{}", describe_chain(error.as_ref()));
                ExitCode::FAILURE
            }
        }
    }

    /// Creates the runtime, runs the program in it, and ends it.
    ///
    /// Dropping the runtime would wait without an end for a thread that a task blocks, and ignore
    /// the second signal.
    ///
    /// # Errors
    ///
    /// The first error of a step, for the log.
    fn start<F>(&self, flags: &Flags, build: F) -> Result<(), BoxError>
    where
        F: AsyncFnOnce(Client) -> Result<Manager, BoxError>,
    {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(self.threads.max(1))
            .enable_all()
            .build()
            .map_err(|error| format!("failed to start threads: {error}"))?;
        let ended = runtime.block_on(self.work(flags, build));
        runtime.shutdown_timeout(END_TIMEOUT);
        ended
    }

    /// Runs the program in the runtime: the listener, the client, the manager. The listener starts
    /// before the client connects, so that a probe gets an answer while the caches sync.
    async fn work<F>(&self, flags: &Flags, build: F) -> Result<(), BoxError>
    where
        F: AsyncFnOnce(Client) -> Result<Manager, BoxError>,
    {
        // First of all: the first process of a container ignores a signal without a handler.
        let mut shutdown = pin!(shutdown_signal());
        tracing::info!(version = self.version, "starting {}", self.name);
        let diagnostics = Diagnostics::new();
        let is_built = Arc::new(AtomicBool::new(false));
        diagnostics.readiness(self.name, starting_unless(&is_built));
        let server = observe(flags, &diagnostics, &self.histograms).await?;
        let manager = tokio::select! {
            biased;
            () = shutdown.as_mut() => None,
            connected = Box::pin(self.connect(flags, build)) => Some(connected?),
        };
        // Without a listener nothing is kept for its pages.
        let manager = match &server {
            Some(_) => manager.map(|manager| manager.diagnostics(&diagnostics)),
            None => manager,
        };
        let ended = match manager {
            Some(manager) => {
                is_built.store(true, Ordering::Relaxed);
                Box::pin(manager.run_until(shutdown)).await
            }
            None => Ok(()),
        };
        drop(server);
        tracing::info!("stopped {}", self.name);
        accept_undrained(ended)
    }

    /// Returns the manager, with leader election if the flags ask for it.
    async fn connect<F>(&self, flags: &Flags, build: F) -> Result<Manager, BoxError>
    where
        F: AsyncFnOnce(Client) -> Result<Manager, BoxError>,
    {
        let builder: ClientBuilder<NoServer> = client::builder();
        let builder = builder.user_agent(format!("{}/{}", self.name, self.version));
        let builder = flags.client(builder).await?;
        // The lease has a client of its own: a burst of the controller's requests delays no
        // renewal.
        match flags.elector(builder.clone().build(), self.name)? {
            Some(elector) => {
                let client = builder.layer(&elector.fence()).build();
                Ok(build(client).await?.leader_election(elector))
            }
            None => build(builder.build()).await,
        }
    }
}

/// `RUST_LOG` has precedence over the flags. Colours need a terminal and are off with `NO_COLOR`.
///
/// A global subscriber that the process has already is kept.
fn start_log(flags: &Flags) {
    let variable = std::env::var_os(EnvFilter::DEFAULT_ENV).unwrap_or_default();
    let (filter, invalid) = filter(flags, &variable.to_string_lossy());
    let colours = stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    // A log whose reader has gone must not end the controller: the report of the failed write would
    // panic.
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(stderr)
        .log_internal_errors(false);
    // An error means that the program has a subscriber of its own.
    drop(match flags.log_format {
        LogFormat::Text => log.with_ansi(colours).try_init(),
        LogFormat::Json => log.json().try_init(),
    });
    if let Some(error) = invalid {
        tracing::warn!(%error, "ignoring RUST_LOG: it is no filter of log lines");
    }
}

/// Returns the filter of the variable `RUST_LOG`, or that of the flags if the variable is empty or
/// invalid, with the error of an invalid one.
fn filter(flags: &Flags, variable: &str) -> (EnvFilter, Option<ParseError>) {
    let of_flags = || EnvFilter::new(flags.log_filter());
    if variable.trim().is_empty() {
        return (of_flags(), None);
    }
    match EnvFilter::try_new(variable) {
        Ok(filter) => (filter, None),
        Err(error) => (of_flags(), Some(error)),
    }
}

/// Serves the pages of `--bind-address`. Without a listener no metrics are recorded.
///
/// # Errors
///
/// If a metrics recorder is installed already, or the address cannot be bound.
async fn observe(
    flags: &Flags,
    diagnostics: &Diagnostics,
    histograms: &[(&str, &[f64])],
) -> Result<Option<ObserveServer>, BoxError> {
    let Some(address) = flags.bind_address else { return Ok(None) };
    let recorder = install_prometheus_recorder_with(histograms)?;
    diagnostics.metrics(move || recorder.render());
    let server = serve(address, diagnostics).await?;
    tracing::info!(address = %server.address(), "serving health, metrics and debug pages");
    Ok(Some(server))
}

/// Returns a check that fails until `is_built` is true: without it, a listener without parts would
/// be ready.
fn starting_unless(is_built: &Arc<AtomicBool>) -> impl Fn() -> Result<(), String> + use<> {
    let is_built = Arc::clone(is_built);
    move || if is_built.load(Ordering::Relaxed) { Ok(()) } else { Err("starting".to_owned()) }
}

fn accept_undrained(ended: Result<(), RunError>) -> Result<(), BoxError> {
    match ended {
        Err(error @ RunError::Undrained { .. }) => {
            tracing::warn!(%error, "shut down before all keys were reconciled");
            Ok(())
        }
        ended => Ok(ended?),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Arguments {
        #[command(flatten)]
        flags: Flags,
    }

    #[test]
    fn empty_or_invalid_variable_leaves_the_filter_of_the_flags() {
        let Arguments { flags } = Arguments::parse_from(["program", "-v=4"]);
        let of_flags = EnvFilter::new(flags.log_filter()).to_string();
        for (variable, is_invalid) in [("", false), (" ", false), ("info,a=loud", true)] {
            let (filter, error) = filter(&flags, variable);
            let seen = (filter.to_string(), error.is_some());
            assert_eq!(seen, (of_flags.clone(), is_invalid), "{variable:?}");
        }
        assert_eq!(filter(&flags, "warn").0.to_string(), "warn");
    }
}
