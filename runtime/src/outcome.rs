//! The outcome of a write that returned an error: refused, or unknown. Pure.
//!
//! A controller that creates objects needs the difference: after a refusal nothing exists, and
//! after a lost reply the object may exist.
//!
//! # Examples
//!
//! ```
//! use homeostat::kube_client::{Error, core::Status};
//! use homeostat::outcome::{self, Outcome};
//!
//! let answered = |code| Error::Api(Status::failure("no", "Reason").with_code(code).boxed());
//! assert_eq!(outcome::of(&answered(403)), Outcome::Refused);
//! assert_eq!(outcome::of(&answered(504)), Outcome::Unknown);
//! ```

use std::error::Error as StdError;

use kube_client::Error;

use crate::client::{TransportError, describe_error};

/// The outcome of a write that returned an error.
///
/// After `Refused`, lower an expectation and count the failure. After `Unknown`, keep the
/// expectation: the cache decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The server refused the write, or was never reached: it was not carried out.
    Refused,
    /// The reply was lost, or the server reports an internal error: it may have been carried out.
    Unknown,
}

/// Returns the outcome that `error` means.
///
/// An answer of 429 is a refusal: the request was not carried out. An error that this function does
/// not know is `Unknown`, which is the safe side.
pub fn of(error: &Error) -> Outcome {
    match error {
        // The webhook is called before the object is stored.
        Error::Api(status) if is_webhook_failure(&status.message) => Outcome::Refused,
        // A server that answers 408 or 5xx may have stored the object before.
        Error::Api(status) if (400..500).contains(&status.code) && status.code != 408 => {
            Outcome::Refused
        }
        Error::Service(error) if was_not_sent(error.as_ref()) => Outcome::Refused,
        Error::BuildRequest(_) => Outcome::Refused,
        _ => Outcome::Unknown,
    }
}

/// Returns true if the request was not sent, or not processed by the server.
///
/// It searches the chain of causes, because layers of the client wrap the error.
fn was_not_sent(error: &(dyn StdError + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if matches!(
            error.downcast_ref(),
            Some(
                TransportError::Unreachable { .. }
                    | TransportError::NotProcessed { .. }
                    | TransportError::NoCredentials { .. }
                    | TransportError::InvalidUrl { .. }
            )
        ) {
            return true;
        }
        cause = error.source();
    }
    false
}

/// Returns true if the server answered that the object does not exist.
///
/// Use it after a deletion, where it means success, and after an update of an object that the cache
/// still shows.
pub fn is_not_found(error: &Error) -> bool {
    has_code(error, 404)
}

/// Returns true if the object's UID is not that of the request's precondition: another object has
/// the name. An admission webhook may answer 409 for any other reason.
///
/// # Examples
///
/// A deletion with the UID as a precondition, which another object of the same name does not meet:
///
/// ```
/// use homeostat::kube_client::{Error, core::Status};
/// use homeostat::outcome::is_uid_conflict;
///
/// let text = "Precondition failed: UID in precondition: 1, UID in object meta: 2";
/// let status = Status::failure(text, "Conflict").with_code(409);
/// assert!(is_uid_conflict(&Error::Api(status.boxed())));
/// ```
pub fn is_uid_conflict(error: &Error) -> bool {
    let is_about_uid = |status: &kube_client::core::Status| {
        // The first text is the storage's, the second that of kinds with a strategy for deletion.
        status.message.contains("Precondition failed: UID in precondition")
            || status.message.contains("the UID in the precondition (")
    };
    has_code(error, 409) && matches!(error, Error::Api(status) if is_about_uid(status))
}

/// Returns true for the message of a server that could not call an admission webhook. It answers
/// 500 then.
///
/// The text is that of `apiserver/pkg/admission/plugin/webhook`. With `failurePolicy: Ignore` the
/// server carries the request out instead.
fn is_webhook_failure(message: &str) -> bool {
    message.contains("failed calling webhook")
}

/// Returns true if the object cannot be created because its namespace is being deleted.
///
/// A create is then pointless until the namespace exists again: log it at debug level and wait for
/// a change, as the `ReplicaSet` controller does.
pub fn is_namespace_terminating(error: &Error) -> bool {
    let Error::Api(status) = error else { return false };
    let causes = status.details.as_ref().map_or(&[][..], |details| &details.causes);
    causes.iter().any(|cause| cause.reason == "NamespaceTerminating")
}

/// Returns the error's text for events and conditions: the server's message without any addition.
///
/// # Examples
///
/// ```
/// use homeostat::kube_client::{Error, core::Status};
/// use homeostat::outcome::message;
///
/// let status = Status::failure("exceeded quota: pods", "Forbidden").with_code(403);
/// assert_eq!(message(&Error::Api(status.boxed())), "exceeded quota: pods");
/// ```
pub fn message(error: &Error) -> String {
    match error {
        Error::Api(status) if !status.message.is_empty() => status.message.clone(),
        other => describe_error(other),
    }
}

/// Returns true if the server answered with this status code.
///
/// An error without an answer has no code.
pub fn has_code(error: &Error, code: u16) -> bool {
    matches!(error, Error::Api(status) if status.code == code)
}

#[cfg(test)]
mod tests {
    use kube_client::core::Status;
    use kube_client::core::response::{StatusCause, StatusDetails};

    use super::*;

    fn answered(code: u16) -> Error {
        Error::Api(Status::failure("why", "Reason").with_code(code).boxed())
    }

    #[test]
    fn only_a_definite_answer_is_a_refusal() {
        for code in [400, 401, 403, 404, 409, 410, 413, 422, 429] {
            assert_eq!(of(&answered(code)), Outcome::Refused, "{code}");
        }
        for code in [408, 500, 502, 503, 504, 0] {
            assert_eq!(of(&answered(code)), Outcome::Unknown, "{code}");
        }
        let reset = std::io::Error::from(std::io::ErrorKind::ConnectionReset);
        assert_eq!(of(&Error::Service(reset.into())), Outcome::Unknown);
        let reset = std::io::Error::from(std::io::ErrorKind::ConnectionReset);
        assert_eq!(of(&Error::ReadEvents(reset)), Outcome::Unknown, "the answer was cut off");
    }

    #[test]
    fn dead_webhook_is_a_refusal() {
        let message = "Internal error occurred: failed calling webhook \"pods.example.com\": \
                       connection refused";
        let status = Status::failure(message, "InternalError").with_code(500);
        assert_eq!(of(&Error::Api(status.boxed())), Outcome::Refused);
    }

    #[test]
    fn conflict_is_about_the_uid_only_if_it_says_so() {
        let conflict = |message: &str| {
            let status = Status::failure(message, "Conflict").with_code(409);
            is_uid_conflict(&Error::Api(status.boxed()))
        };
        assert!(conflict(
            "Operation cannot be fulfilled on pods \"a\": Precondition failed: UID in \
             precondition: 1, UID in object meta: 2"
        ));
        assert!(conflict(
            "Operation cannot be fulfilled on ResourceClaim.resource.k8s.io \"c\": the UID in the \
             precondition (1) does not match the UID in record (2). The object might have been \
             deleted and then recreated"
        ));
        assert!(!conflict("admission webhook \"pods.example.com\" denied the request: busy"));
    }

    #[test]
    fn terminating_namespace_is_recognized_by_the_cause() {
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
    fn message_is_the_servers_own_text() {
        let status = Status::failure("pods \"a-\" is forbidden: exceeded quota", "Forbidden");
        let error = Error::Api(status.with_code(403).boxed());
        assert_eq!(message(&error), "pods \"a-\" is forbidden: exceeded quota");
    }
}
