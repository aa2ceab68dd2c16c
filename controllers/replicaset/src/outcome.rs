//! What an answer, or its absence, says about a write: done, certainly not done, or unknown. Pure.

use std::error::Error as StdError;

use homeostat::client::{TransportError, in_words};
use homeostat::kube_client::Error;

/// Whether a write that did not succeed may have been carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The server, or the lack of one, says that it was not.
    Refused,
    /// Nobody can tell: the reply was lost, or the server could not say itself.
    Unknown,
}

/// Reads an error.
pub(crate) fn of(error: &Error) -> Outcome {
    match error {
        // A server that gave up half-way (408, 5xx) may have stored the object first.
        Error::Api(status) if (400..500).contains(&status.code) && status.code != 408 => {
            Outcome::Refused
        }
        Error::Service(error) if never_left(error.as_ref()) => Outcome::Refused,
        Error::BuildRequest(_) => Outcome::Refused,
        _ => Outcome::Unknown,
    }
}

fn never_left(error: &(dyn StdError + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(TransportError::Unreachable { .. }) = error.downcast_ref() {
            return true;
        }
        cause = error.source();
    }
    false
}

pub(crate) fn is_not_found(error: &Error) -> bool {
    has_code(error, 404)
}

pub(crate) fn is_conflict(error: &Error) -> bool {
    has_code(error, 409)
}

/// The object's uid is not the one that the patch names, or there is nothing to remove.
pub(crate) fn is_invalid(error: &Error) -> bool {
    has_code(error, 422)
}

/// Whether the object cannot be made because its namespace is going away.
pub(crate) fn is_namespace_terminating(error: &Error) -> bool {
    let Error::Api(status) = error else { return false };
    let causes = status.details.as_ref().map_or(&[][..], |details| &details.causes);
    causes.iter().any(|cause| cause.reason == "NamespaceTerminating")
}

/// The error as Kubernetes' events and conditions show it: the server's words, and nothing around them.
pub(crate) fn words(error: &Error) -> String {
    match error {
        Error::Api(status) if !status.message.is_empty() => status.message.clone(),
        other => in_words(other),
    }
}

fn has_code(error: &Error, code: u16) -> bool {
    matches!(error, Error::Api(status) if status.code == code)
}

#[cfg(test)]
mod tests {
    use homeostat::kube_client::core::Status;
    use homeostat::kube_client::core::response::{StatusCause, StatusDetails};

    use super::*;

    fn answered(code: u16) -> Error {
        Error::Api(Status::failure("why", "Reason").with_code(code).boxed())
    }

    #[test]
    fn only_a_definite_no_is_a_refusal() {
        for code in [400, 401, 403, 404, 409, 410, 413, 422, 429] {
            assert_eq!(of(&answered(code)), Outcome::Refused, "{code}");
        }
        for code in [408, 500, 502, 503, 504, 0] {
            assert_eq!(of(&answered(code)), Outcome::Unknown, "{code}");
        }
        let reset = std::io::Error::from(std::io::ErrorKind::ConnectionReset);
        assert_eq!(of(&Error::Service(reset.into())), Outcome::Unknown);
        let reset = std::io::Error::from(std::io::ErrorKind::ConnectionReset);
        assert_eq!(of(&Error::ReadEvents(reset)), Outcome::Unknown, "the answer broke off");
    }

    #[test]
    fn a_terminating_namespace_is_told_by_the_cause() {
        let mut status = Status::failure("forbidden", "Forbidden").with_code(403);
        assert!(!is_namespace_terminating(&Error::Api(status.clone().boxed())));
        status = status.with_details(StatusDetails {
            name: String::new(),
            group: String::new(),
            kind: String::new(),
            uid: String::new(),
            causes: vec![StatusCause {
                reason: "NamespaceTerminating".to_owned(),
                message: String::new(),
                field: String::new(),
            }],
            retry_after_seconds: 0,
        });
        assert!(is_namespace_terminating(&Error::Api(status.boxed())));
    }

    #[test]
    fn events_show_the_servers_own_words() {
        let status = Status::failure("pods \"a-\" is forbidden: exceeded quota", "Forbidden");
        let error = Error::Api(status.with_code(403).boxed());
        assert_eq!(words(&error), "pods \"a-\" is forbidden: exceeded quota");
    }
}
