//! Ends a process as Kubernetes expects: politely when first asked, at once when asked again.

use std::future::Future;

use tokio::task::JoinSet;

/// What ends a process from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Signal {
    Interrupt,
    Terminate,
}

/// Resolves at the first SIGTERM or SIGINT, which lets a `Manager` drain. A second one ends the process
/// at once, with exit code 143 or 130: whoever asks twice does not want to wait.
///
/// The handlers are in place when this returns, not only when the future is polled. On Windows the signals are Ctrl-C's.
///
/// # Panics
///
/// Outside of a tokio runtime with I/O enabled.
///
/// # Cancel safety
///
/// Dropped, no signal is watched any more. But the operating system's default (the process ends) does not come back: that is how
/// tokio handles signals.
pub fn shutdown_signal() -> impl Future<Output = ()> + Send + 'static {
    let mut signals = Signals::install();
    async move {
        let first = signals.next().await;
        tracing::info!("{}: shutting down; a second signal ends the process at once", first.name());
        // It belongs to the process, not to whoever awaited the first signal: nobody is left who could join it.
        let mut of_the_process = JoinSet::new();
        of_the_process.spawn(async move {
            let second = signals.next().await;
            tracing::error!(
                "{}: asked a second time, ending at once; work that was under way is abandoned",
                second.name()
            );
            std::process::exit(second.exit_code());
        });
        of_the_process.detach_all();
    }
}

// === impl Signal ===

impl Signal {
    fn name(self) -> &'static str {
        match self {
            Self::Interrupt => "SIGINT",
            Self::Terminate => "SIGTERM",
        }
    }

    /// What a shell reports for a process that the signal killed: 128 and its number.
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

    #[derive(Debug)]
    pub(super) struct Signals {
        interrupt: unix::Signal,
        terminate: unix::Signal,
    }

    impl Signals {
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
