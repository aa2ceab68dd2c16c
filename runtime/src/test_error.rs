//! For unit tests: an error with a cause.

#[derive(Debug, thiserror::Error)]
#[error("failed to do it")]
pub(crate) struct Failure(#[source] pub(crate) Cause);

#[derive(Debug, thiserror::Error)]
#[error("it is too heavy")]
pub(crate) struct Cause;
