//! Signals that end a process: the first one drains, the second one exits at once.
//!
//! Kubernetes sends SIGTERM, waits for `terminationGracePeriodSeconds` (30 s by default), and then
//! sends SIGKILL. The manager's drain timeout must be shorter. A second SIGTERM or Ctrl-C is from a
//! person who does not want to wait: the process exits at once, as with controller-runtime's
//! `SetupSignalHandler`.

use std::future::Future;

use tokio::task::JoinSet;

/// A signal that ends the process.
///
/// The platform's module maps its own signals to these two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Signal {
    /// SIGINT, or Ctrl-C on Windows.
    Interrupt,
    /// SIGTERM, or Ctrl-Break on Windows.
    Terminate,
}

/// Returns a future that is ready at the first SIGTERM or SIGINT, for
/// [`Manager::run_until`](crate::Manager::run_until). A second signal exits the process at once,
/// with exit code 143 or 130.
///
/// The signal handlers are installed when the function returns, before the future is polled. On
/// Windows the signals are Ctrl-C and Ctrl-Break.
///
/// Call it once per process, early: a signal that arrives before the call kills the process without
/// a drain.
///
/// # Panics
///
/// Panics outside of a tokio runtime with I/O enabled.
///
/// # Cancel safety
///
/// After the future is dropped, signals are ignored: tokio does not restore the operating system's
/// default, which ends the process.
///
/// # Examples
///
/// ```no_run
/// # async fn doc(manager: homeostat::Manager) -> Result<(), homeostat::RunError> {
/// manager.run_until(homeostat::shutdown_signal()).await
/// # }
/// ```
#[doc(alias = "SetupSignalHandler")]
pub fn shutdown_signal() -> impl Future<Output = ()> + Send + 'static {
    let mut signals = Signals::install();
    async move {
        let first = signals.next().await;
        let signal = first.name();
        tracing::info!(%signal, "shutting down, a second signal exits at once");
        // The task lives as long as the process: the caller's task may end before the second
        // signal.
        let mut of_the_process = JoinSet::new();
        of_the_process.spawn(async move {
            let second = signals.next().await;
            let signal = second.name();
            tracing::error!(%signal, "second signal, exiting at once without draining");
            std::process::exit(second.exit_code());
        });
        of_the_process.detach_all();
    }
}

// === impl Signal ===

impl Signal {
    /// Returns the name for log lines.
    fn name(self) -> &'static str {
        match self {
            Self::Interrupt => "SIGINT",
            Self::Terminate => "SIGTERM",
        }
    }

    /// Returns the code that a shell reports for a process that the signal killed: 128 plus its
    /// number.
    fn exit_code(self) -> i32 {
        match self {
            Self::Interrupt => 128 + 2,
            Self::Terminate => 128 + 15,
        }
    }
}

#[cfg(unix)]
use unix::Signals;
#[cfg(windows)]
use windows::Signals;

#[cfg(unix)]
mod unix {
    use tokio::signal::unix::{self, SignalKind};

    use super::Signal;

    /// The handlers stay installed for the rest of the process, also after this is dropped.
    #[derive(Debug)]
    pub(super) struct Signals {
        interrupt: unix::Signal,
        terminate: unix::Signal,
    }

    impl Signals {
        /// Installs the handlers.
        ///
        /// # Panics
        ///
        /// If tokio cannot install a handler: outside of a runtime with I/O.
        pub(super) fn install() -> Self {
            let handler = |kind| {
                unix::signal(kind).expect(
                    "handlers can be installed for SIGINT and SIGTERM in a tokio runtime with I/O",
                )
            };
            Self {
                interrupt: handler(SignalKind::interrupt()),
                terminate: handler(SignalKind::terminate()),
            }
        }

        /// Waits for the next signal. Of two that came meanwhile, SIGTERM is first.
        pub(super) async fn next(&mut self) -> Signal {
            tokio::select! {
                biased;
                _ = self.terminate.recv() => Signal::Terminate,
                _ = self.interrupt.recv() => Signal::Interrupt,
            }
        }
    }
}

#[cfg(windows)]
mod windows {
    use tokio::signal::windows::{self, CtrlBreak, CtrlC};

    use super::Signal;

    /// The handlers stay installed for the rest of the process, also after this is dropped.
    #[derive(Debug)]
    pub(super) struct Signals {
        interrupt: CtrlC,
        terminate: CtrlBreak,
    }

    impl Signals {
        pub(super) fn install() -> Self {
            Self {
                interrupt: windows::ctrl_c().expect("a Ctrl-C handler can be installed"),
                terminate: windows::ctrl_break().expect("a Ctrl-Break handler can be installed"),
            }
        }

        pub(super) async fn next(&mut self) -> Signal {
            tokio::select! {
                biased;
                _ = self.terminate.recv() => Signal::Terminate,
                _ = self.interrupt.recv() => Signal::Interrupt,
            }
        }
    }
}
