//! The errors of a control plane.

use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

use tower::BoxError;

use super::binaries::MissingBinaries;

/// The error of a [`ControlPlane`](super::ControlPlane) that failed to start, restart or compact.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ControlPlaneError {
    /// etcd or kube-apiserver was not found.
    #[error(transparent)]
    Missing(#[from] MissingBinaries),
    /// The temporary directory or a file in it could not be created.
    #[error("failed to create the directory of the control plane")]
    Directory {
        /// The error of the file system.
        #[source]
        source: io::Error,
    },
    /// The certificates could not be created.
    #[error("failed to create the certificates of the control plane")]
    Certificates {
        /// The error of the certificate library.
        #[source]
        source: BoxError,
    },
    /// A program could not be executed.
    #[error("failed to run {}", program.display())]
    Spawn {
        /// The program.
        program: PathBuf,
        /// The error of the operating system.
        #[source]
        source: io::Error,
    },
    /// A program ended before it was ready.
    #[error("{program} ended with {status}; the end of its log:\n{log}")]
    Ended {
        /// The name of the program.
        program: &'static str,
        /// The exit status.
        status: ExitStatus,
        /// The last lines of its log.
        log: String,
    },
    /// A program runs and was not ready within the timeout.
    #[error(
        "{program} is not ready after {waited:?} (last response: {answer}); the end of its \
         log:\n{log}"
    )]
    NotReady {
        /// The name of the program.
        program: &'static str,
        /// The timeout.
        waited: Duration,
        /// The response to the last probe.
        answer: String,
        /// The last lines of its log.
        log: String,
    },
    /// A client could not be built.
    #[error("failed to build a client for the control plane")]
    Client {
        /// The error of kube.
        #[source]
        source: BoxError,
    },
    /// The history of etcd could not be compacted.
    #[error("failed to compact the history of etcd")]
    Compact(#[source] BoxError),
}

// === impl ControlPlaneError ===

impl ControlPlaneError {
    /// Returns true if a program was not found. Tests use it to skip.
    pub fn is_missing_binaries(&self) -> bool {
        matches!(self, Self::Missing(_))
    }

    /// Returns true if the program ended because another process took its port.
    pub(super) fn is_port_taken(&self) -> bool {
        matches!(self, Self::Ended { log, .. } if log.contains("address already in use"))
    }

    pub(super) fn client(source: impl Into<BoxError>) -> Self {
        Self::Client { source: source.into() }
    }

    pub(super) fn certificates(source: impl Into<BoxError>) -> Self {
        Self::Certificates { source: source.into() }
    }
}
