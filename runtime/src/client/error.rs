//! What can go wrong between a controller and its server, in words.

use std::error::Error as StdError;
use std::path::PathBuf;

use kube_client::config::{InferConfigError, KubeconfigError};
use thiserror::Error;
use tower::BoxError;

/// The client could not be set up.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ClientError {
    /// Neither a kubeconfig nor a cluster around this process.
    #[error(
        "no kubeconfig: {} does not exist, and this process does not run in a cluster; name a file with --kubeconfig or $KUBECONFIG",
        list(tried)
    )]
    #[non_exhaustive]
    NoKubeconfig {
        /// The files that were looked for.
        tried: Vec<PathBuf>,
        /// What was said when looking.
        #[source]
        source: Box<InferConfigError>,
    },
    /// A kubeconfig is there, and cannot be used.
    #[error("failed to use kubeconfig {}: {source}", list(files))]
    #[non_exhaustive]
    Kubeconfig {
        /// The file that was read; several when `$KUBECONFIG` names several.
        files: Vec<PathBuf>,
        /// What is wrong with it.
        source: Box<KubeconfigError>,
    },
    /// The file that was named is not there.
    #[error("there is no kubeconfig at {}", path.display())]
    #[non_exhaustive]
    NoSuchFile {
        /// The file.
        path: PathBuf,
    },
    /// Certificates, keys or credentials cannot be used.
    #[error("failed to set up the connection to {server}: {source}")]
    #[non_exhaustive]
    Setup {
        /// The server's URL.
        server: String,
        /// What is wrong.
        source: BoxError,
    },
}

/// A request got no answer.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TransportError {
    /// There is no connection; nothing was sent.
    #[error("cannot reach {server}: {}", root_cause(source.as_ref()))]
    #[non_exhaustive]
    Unreachable {
        /// The server's URL.
        server: String,
        /// Why not.
        source: BoxError,
    },
    /// The connection broke before the answer came. What was sent may have been carried out.
    #[error("the connection to {server} broke before the answer: {}", root_cause(source.as_ref()))]
    #[non_exhaustive]
    Broken {
        /// The server's URL.
        server: String,
        /// What happened.
        source: BoxError,
    },
}

/// Says what went wrong with a request in one line for a person: the server's own words where it answered, the root
/// cause where it did not.
///
/// ```
/// # use homeostat::client::in_words;
/// # use homeostat::kube_client::{Error, core::Status};
/// let forbidden = Status::failure("pods is forbidden: User \"bob\" cannot list resource \"pods\"", "Forbidden").with_code(403);
/// assert_eq!(
///     in_words(&Error::Api(Box::new(forbidden))),
///     "pods is forbidden: User \"bob\" cannot list resource \"pods\" (403 Forbidden)"
/// );
/// ```
pub fn in_words(error: &kube_client::Error) -> String {
    match error {
        kube_client::Error::Api(status) => {
            format!("{} ({} {})", status.message, status.code, status.reason)
        }
        kube_client::Error::Service(error) => error.to_string(),
        other => other.to_string(),
    }
}

/// The innermost error: what the operating system or the TLS library said.
fn root_cause(error: &(dyn StdError + 'static)) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    if let Some(io) = cause.downcast_ref::<std::io::Error>()
        && let Some(inner) = io.get_ref()
    {
        return inner.to_string();
    }
    match cause.downcast_ref::<std::io::Error>().map(std::io::Error::kind) {
        Some(kind) if kind != std::io::ErrorKind::Other => kind.to_string(),
        _ => cause.to_string(),
    }
}

fn list(paths: &[PathBuf]) -> String {
    let paths: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    if paths.is_empty() {
        return "~/.kube/config (there is no home directory)".to_owned();
    }
    paths.join(", ")
}
