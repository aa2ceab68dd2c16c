//! [`SyncError`]: the reasons for which a pass fails.

use homeostat::client::describe_error;
use homeostat::kube_client::Error;
use homeostat::outcome::has_code;

/// The error of a pass over one Foo.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SyncError {
    /// The Foo names no Deployment. The text is upstream's.
    #[error("Deployment name missing from object reference")]
    Unnamed,
    /// Another owner has the Deployment. The text is upstream's, and the event's message.
    #[error("Resource {0:?} already exists and is not managed by Foo")]
    Taken(String),
    /// The Deployment in the cache does not decode.
    #[error("Deployment {0:?} does not decode, leaving it alone")]
    Undecodable(String),
    /// The server answers 422: the name or the number is invalid.
    #[error("{}", describe_error(.0))]
    Invalid(#[source] Error),
    /// The status could not be written.
    #[error("failed to write the status of the Foo: {}", describe_error(.0))]
    Status(#[source] Error),
    /// The definition has no status subresource, or the Foo is gone.
    #[error("failed to write the status of the Foo, does its definition have /status: {}",
        describe_error(.0))]
    NoStatus(#[source] Error),
    /// Another request failed.
    #[error("{}", describe_error(.0))]
    Request(#[source] Error),
}

// === impl SyncError ===

impl SyncError {
    /// Returns true if a retry cannot succeed: the Foo waits for a change of its own, or of the
    /// Deployment.
    pub(crate) fn is_terminal(&self) -> bool {
        match self {
            Self::Unnamed | Self::Taken(_) | Self::Undecodable(_) | Self::Invalid(_) => true,
            Self::Status(_) | Self::NoStatus(_) | Self::Request(_) => false,
        }
    }

    /// Returns the error of a status that could not be written.
    pub(crate) fn of_status(error: Error) -> Self {
        if has_code(&error, 404) { Self::NoStatus(error) } else { Self::Status(error) }
    }
}

impl From<Error> for SyncError {
    fn from(error: Error) -> Self {
        if has_code(&error, 422) { Self::Invalid(error) } else { Self::Request(error) }
    }
}
