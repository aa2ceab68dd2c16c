//! Why a control plane did not start.

use std::{io, path::PathBuf, process::ExitStatus, time::Duration};

use tower::BoxError;

use super::binaries::MissingBinaries;

/// Why a [`ControlPlane`](super::ControlPlane) did not start, restart or compact.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ControlPlaneError {
    /// etcd or kube-apiserver is not on this machine.
    #[error(transparent)]
    Missing(#[from] MissingBinaries),
    /// The temporary folder could not be made or filled.
    #[error("failed to prepare the control plane's folder")]
    Folder {
        /// What the file system answered.
        #[source]
        source: io::Error,
    },
    /// The certificates could not be made.
    #[error("failed to make the control plane's certificates")]
    Certificates {
        /// What the certificate library answered.
        #[source]
        source: BoxError,
    },
    /// A program could not be executed.
    #[error("failed to run {}", program.display())]
    Spawn {
        /// The program.
        program: PathBuf,
        /// What the operating system answered.
        #[source]
        source: io::Error,
    },
    /// A program ended instead of becoming ready.
    #[error("{program} ended with {status}; the end of its log:\n{log}")]
    Ended {
        /// Which program.
        program: &'static str,
        /// How it ended.
        status: ExitStatus,
        /// The last lines of its log.
        log: String,
    },
    /// A program runs, but was not ready when the time was up.
    #[error(
        "{program} is not ready after {waited:?} (last answer: {answer}); the end of its log:\n{log}"
    )]
    NotReady {
        /// Which program.
        program: &'static str,
        /// How long it was waited for.
        waited: Duration,
        /// What the last probe was answered.
        answer: String,
        /// The last lines of its log.
        log: String,
    },
    /// A client could not be built.
    #[error("failed to build a client for the control plane")]
    Client {
        /// What kube answered.
        #[source]
        source: BoxError,
    },
    /// etcd's history could not be compacted.
    #[error("failed to compact etcd's history")]
    Compact(#[source] BoxError),
}

// === impl ControlPlaneError ===

impl ControlPlaneError {
    /// Whether nothing is wrong but that the programs are not on this machine.
    pub fn is_missing_binaries(&self) -> bool {
        matches!(self, Self::Missing(_))
    }

    /// Whether a program ended because its port was taken between its choice and its use.
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
