//! An error and its causes as one line.

use std::error::Error as StdError;
use std::fmt::Write as _;
use std::sync::Arc;

use super::TransportError;

/// Describes the error of a request in one line for a log or an operator: the server's message if
/// it answered, the error with its causes if it did not.
///
/// # Examples
///
/// ```
/// # use homeostat::client::describe_error;
/// # use homeostat::kube_client::Error;
/// # use homeostat::kube_client::core::Status;
/// let message = "pods is forbidden: User \"bob\" cannot list resource \"pods\"";
/// let forbidden = Status::failure(message, "Forbidden").with_code(403);
/// assert_eq!(
///     describe_error(&Error::Api(Box::new(forbidden))),
///     "pods is forbidden: User \"bob\" cannot list resource \"pods\" (403 Forbidden)"
/// );
/// ```
pub fn describe_error(error: &kube_client::Error) -> String {
    match error {
        kube_client::Error::Api(status) => {
            format!("{} ({} {})", status.message, status.code, status.reason)
        }
        kube_client::Error::Service(error) => describe_chain(error.as_ref()),
        other => other.to_string(),
    }
}

/// Describes an error and its causes on one line: `outer: inner`. A cause whose text the line has
/// already is left out, and an error of a request, also in a `Box` or an `Arc`, is described by
/// [`describe_error`]. A [`TransportError`] names its root cause itself.
///
/// # Examples
///
/// ```
/// # use homeostat::client::describe_chain;
/// # use homeostat::kube_client::Error;
/// # use homeostat::kube_client::core::Status;
/// #[derive(Debug, thiserror::Error)]
/// #[error("failed to scale")]
/// struct ScaleError(#[source] Error);
///
/// let conflict = Status::failure("the object has been modified", "Conflict").with_code(409);
/// let error = ScaleError(Error::Api(Box::new(conflict)));
/// assert_eq!(
///     describe_chain(&error),
///     "failed to scale: the object has been modified (409 Conflict)"
/// );
/// ```
pub fn describe_chain(error: &(dyn StdError + 'static)) -> String {
    let mut line = one(error);
    let mut current = error;
    while let Some(cause) = current.source() {
        if request_error(current).is_some() || current.is::<TransportError>() {
            break; // Described with its causes.
        }
        let text = one(cause);
        // Many errors print their cause themselves.
        if !line.contains(&text) {
            // Writing to a string does not fail.
            write!(line, ": {text}").unwrap_or_default();
        }
        current = cause;
    }
    line
}

/// Returns the text of one error of a chain.
fn one(error: &(dyn StdError + 'static)) -> String {
    request_error(error).map_or_else(|| error.to_string(), describe_error)
}

/// Returns `error` as the error of a request. A field `#[source] error: Box<Error>`, which keeps a
/// `Result` small, makes the `Box` the cause.
fn request_error<'a>(error: &'a (dyn StdError + 'static)) -> Option<&'a kube_client::Error> {
    let boxed = || error.downcast_ref::<Box<kube_client::Error>>().map(AsRef::as_ref);
    let shared = || error.downcast_ref::<Arc<kube_client::Error>>().map(AsRef::as_ref);
    error.downcast_ref().or_else(boxed).or_else(shared)
}

#[cfg(test)]
mod tests {
    use kube_client::core::Status;

    use super::*;
    use crate::test_error::{Cause, Failure};

    #[test]
    fn error_is_printed_with_each_cause_once() {
        assert_eq!(describe_chain(&Failure(Cause)), "failed to do it: it is too heavy");
        let repeating = std::io::Error::other(Failure(Cause));
        assert_eq!(describe_chain(&repeating), "failed to do it: it is too heavy");
    }

    #[test]
    fn error_of_a_request_in_a_box_is_printed_once() {
        #[derive(Debug, thiserror::Error)]
        enum WriteError {
            #[error("failed to write: {}", describe_error(.0))]
            Boxed(#[source] Box<kube_client::Error>),
            #[error("failed to write")]
            Shared(#[source] Arc<kube_client::Error>),
        }
        let forbidden = || {
            let status = Status::failure("pods is forbidden", "Forbidden").with_code(403);
            kube_client::Error::Api(Box::new(status))
        };
        let line = "failed to write: pods is forbidden (403 Forbidden)";
        assert_eq!(describe_chain(&WriteError::Boxed(Box::new(forbidden()))), line);
        assert_eq!(describe_chain(&WriteError::Shared(Arc::new(forbidden()))), line);
    }

    #[test]
    fn error_of_a_request_is_printed_with_its_cause() {
        let error = kube_client::Error::Service(Failure(Cause).into());
        assert_eq!(describe_error(&error), "failed to do it: it is too heavy");
        let refused = std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
        let source = std::io::Error::new(refused.kind(), Failure(Cause)).into();
        let error = TransportError::Unreachable { server: "http://a".to_owned(), source };
        let error = kube_client::Error::Service(error.into());
        assert_eq!(describe_error(&error), "cannot reach http://a: it is too heavy");
    }
}
