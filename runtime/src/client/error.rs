//! Errors of the connection between a controller and its server.
//!
//! Two moments, two types: [`ClientError`] before a client exists, [`TransportError`] for a request
//! without an answer. An answer that is a refusal is [`kube_client::Error::Api`].

use std::error::Error as StdError;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use http::Uri;
use kube_client::config::{InferConfigError, KubeconfigError};
use thiserror::Error;
use tower::BoxError;

use super::chain::describe_chain;

/// An error that keeps a client from being built.
///
/// Show it to the operator and exit: the text names the file or the server, and the reason. The
/// text contains the reason, so [`source`](StdError::source) returns `None`, and a report of the
/// whole chain prints the reason once.
///
/// # Examples
///
/// ```no_run
/// use homeostat::client::ClientError;
///
/// # async fn doc() {
/// match homeostat::client::builder().infer().await {
///     Ok(builder) => drop(builder.build()),
///     Err(ClientError::NoKubeconfig { .. }) => println!("start a cluster first"),
///     Err(error) => println!("{error}"),
/// }
/// # }
/// ```
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ClientError {
    /// No kubeconfig exists, and the process does not run in a cluster.
    #[error(
        "no kubeconfig: {} does not exist, and this process does not run in a cluster; set \
         $KUBECONFIG to the path of a kubeconfig",
        list(tried)
    )]
    #[non_exhaustive]
    NoKubeconfig {
        /// The files that were searched for.
        tried: Vec<PathBuf>,
        /// The error of the search.
        reason: Box<InferConfigError>,
    },
    /// A kubeconfig exists and cannot be used.
    #[error("failed to use kubeconfig {}: {}", list(files), first_line(reason.as_ref()))]
    #[non_exhaustive]
    Kubeconfig {
        /// The file that was read; several if `$KUBECONFIG` names several.
        files: Vec<PathBuf>,
        /// The reason.
        reason: Box<KubeconfigError>,
    },
    /// The kubeconfig has no context of the name.
    #[error(
        "context was not found for specified context: {context}; kubeconfig {} has {}",
        list(files),
        contexts(known)
    )]
    #[non_exhaustive]
    NoSuchContext {
        /// The name of the context.
        context: String,
        /// The file that was read; several if `$KUBECONFIG` names several.
        files: Vec<PathBuf>,
        /// The contexts of the kubeconfig.
        known: Vec<String>,
    },
    /// The named kubeconfig does not exist.
    #[error("there is no kubeconfig at {}", path.display())]
    #[non_exhaustive]
    NoSuchFile {
        /// The file.
        path: PathBuf,
    },
    /// Certificates, keys, credentials or the proxy cannot be used.
    #[error("failed to set up the connection to {server}: {}", describe_chain(reason.as_ref()))]
    #[non_exhaustive]
    Setup {
        /// The server's URL.
        server: String,
        /// The reason.
        reason: BoxError,
    },
}

/// The error of a request that got no answer.
///
/// A client returns it inside [`kube_client::Error::Service`]. After
/// [`Unreachable`](Self::Unreachable), [`NotProcessed`](Self::NotProcessed) and
/// [`NoCredentials`](Self::NoCredentials) a write may be sent again. After
/// [`Broken`](Self::Broken) and [`TimedOut`](Self::TimedOut) its outcome is unknown: read before
/// you write again.
///
/// [`outcome::of`](crate::outcome::of) makes this distinction for a reconciler.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TransportError {
    /// No connection was established, so nothing was sent.
    #[error("cannot reach {server}: {}", root_cause(source.as_ref()))]
    #[non_exhaustive]
    Unreachable {
        /// The server's URL.
        server: String,
        /// The reason.
        source: BoxError,
    },
    /// The server closed the connection, or refused the request, before it processed the request.
    #[error("{server} did not process the request: {}", root_cause(source.as_ref()))]
    #[non_exhaustive]
    NotProcessed {
        /// The server's URL.
        server: String,
        /// The reason.
        source: BoxError,
    },
    /// The connection broke before the answer arrived. The server may have carried the request
    /// out.
    #[error("the connection to {server} broke before the answer: {}", root_cause(source.as_ref()))]
    #[non_exhaustive]
    Broken {
        /// The server's URL.
        server: String,
        /// The reason.
        source: BoxError,
    },
    /// The answer, or its next part, did not arrive in time. The server may have carried the
    /// request out.
    #[error("no answer from {server} within {timeout:?}")]
    #[non_exhaustive]
    TimedOut {
        /// The server's URL.
        server: String,
        /// The timeout.
        timeout: Duration,
    },
    /// The path and the query of the request do not fit behind the path of the server's URL, so
    /// nothing was sent. The same request fails again.
    #[error(
        "the request's URL at {server} is invalid: {}; shorten the selectors",
        root_cause(source.as_ref())
    )]
    #[non_exhaustive]
    InvalidUrl {
        /// The server's URL.
        server: String,
        /// The reason.
        source: BoxError,
    },
    /// The credentials could not be loaded, so nothing was sent.
    #[error("getting credentials for {server}: {}", describe_chain(source.as_ref()))]
    #[non_exhaustive]
    NoCredentials {
        /// The server's URL.
        server: String,
        /// The reason.
        source: BoxError,
    },
}

/// Returns the text of the innermost error: the operating system's or the TLS library's.
fn root_cause(error: &(dyn StdError + 'static)) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    let io = cause.downcast_ref::<io::Error>();
    let text = match io.map(|io| (io.get_ref(), io.kind())) {
        Some((Some(inner), _)) => inner.to_string(),
        Some((None, kind)) if kind != io::ErrorKind::Other => kind.to_string(),
        _ => cause.to_string(),
    };
    in_upstreams_words(&text)
}

/// Returns client-go's text for a mistake in the configuration, which operators search for, in the
/// place of the library's.
fn in_upstreams_words(text: &str) -> String {
    if text.contains("InvalidContentType") {
        // rustls' words for an answer that is no TLS record.
        return "http: server gave HTTP response to HTTPS client".to_owned();
    }
    if text.contains("invalid HTTP version parsed") {
        // hyper's words for a TLS record.
        return format!("{text}: does this server need https?");
    }
    text.replace(
        "invalid peer certificate: UnknownIssuer",
        "x509: certificate signed by unknown authority",
    )
}

/// Returns the first line of the text: an error in a file may continue with a picture of the place.
fn first_line(error: &(dyn StdError + 'static)) -> String {
    describe_chain(error).lines().next().unwrap_or_default().to_owned()
}

/// Returns the URL of a server or of a proxy for errors, log lines and labels: without a user and a
/// password, and without a slash at its end.
pub(super) fn shown_url(url: &Uri) -> String {
    let scheme = url.scheme_str().unwrap_or("http");
    let authority = url.authority().map_or("", |authority| authority.as_str());
    format!("{scheme}://{}{}", without_user(authority), url.path().trim_end_matches('/'))
}

/// Returns a text without what precedes an `@`, which may be a password. The text may be no URL.
pub(super) fn without_user(text: &str) -> &str {
    text.rsplit('@').next().unwrap_or_default()
}

/// Returns the contexts for an error text.
fn contexts(known: &[String]) -> String {
    if known.is_empty() { "no contexts".to_owned() } else { known.join(", ") }
}

/// Returns the paths for an error text.
fn list(paths: &[PathBuf]) -> String {
    let paths: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    if paths.is_empty() {
        return "~/.kube/config (there is no home directory)".to_owned();
    }
    paths.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistakes_in_the_configuration_have_upstreams_texts() {
        for (text, expected) in [
            (
                "received corrupt message of type InvalidContentType",
                "HTTP response to HTTPS client",
            ),
            ("invalid HTTP version parsed", "does this server need https?"),
            ("invalid peer certificate: UnknownIssuer", "x509: certificate signed by unknown"),
            ("connection refused", "connection refused"),
        ] {
            let text = in_upstreams_words(text);
            assert!(text.contains(expected), "{text}");
        }
    }
}
