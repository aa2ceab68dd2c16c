//! Patches: computes the patched object from the current one and the body of a PATCH, as the API
//! server does.
//!
//! Three formats: JSON patch (RFC 6902), JSON merge patch (RFC 7386) and Kubernetes' strategic
//! merge patch. The functions are pure: they do not validate the result. The caller checks that a
//! patch changes nothing that it may not change (uid, name, the spec through `/status`).
//!
//! ```
//! use homeostat_apiserver::patch::{PatchKind, apply};
//! use serde_json::json;
//!
//! let pod = json!({"status": {"conditions": [
//!     {"type": "Ready", "status": "False"},
//!     {"type": "Initialized", "status": "True"},
//! ]}});
//! let body = br#"{"status":{"conditions":[{"type":"Ready","status":"True"}]}}"#;
//!
//! let patched = apply(PatchKind::Strategic, pod, body, "v1", "Pod").unwrap();
//! assert_eq!(
//!     patched["status"]["conditions"],
//!     json!([{"type": "Ready", "status": "True"}, {"type": "Initialized", "status": "True"}]),
//! );
//! ```

use serde_json::Value;

mod directives;
mod json;
mod list;
mod merge;
mod operations;
mod rules;
mod strategic;

pub(crate) use self::operations::{OperationError, apply_operations, read_operations};

/// The format of a patch's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PatchKind {
    /// A list of operations: RFC 6902.
    Json,
    /// The changed members of the object, with null for removed ones: RFC 7386. Lists are replaced.
    Merge,
    /// As `Merge`, but lists with a merge key are merged by element, and directives can do more.
    Strategic,
}

/// A patch was not applied. The error's text is the message of the reply.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PatchError {
    /// The body is not a patch of its format.
    #[error("{0}")]
    BadRequest(String),
    /// The body has more operations than the API server accepts.
    #[error("Request entity too large: {0}")]
    TooLarge(String),
    /// The patch is well formed but does not fit the object: a `test` failed, or a path does not
    /// exist.
    #[error("the server rejected our request due to an error in our request")]
    Unprocessable {
        /// The part that did not fit. The real server does not report it, so it is for logs only.
        detail: String,
    },
    /// A failure that the real server answers with 500.
    #[error("{0}")]
    Internal(String),
}

/// Applies the patch in `body` to `current`.
///
/// `api_version` and `object_kind` are those of the patched object; they select the merge keys of a
/// strategic merge patch. A kind that is not built in has only the merge keys of `metadata`.
///
/// # Errors
///
/// Fails if `body` is not a patch of this format, or does not fit `current`.
pub fn apply(
    kind: PatchKind,
    current: Value,
    body: &[u8],
    api_version: &str,
    object_kind: &str,
) -> Result<Value, PatchError> {
    match kind {
        PatchKind::Json => json::apply(current, body),
        PatchKind::Merge => merge::apply(current, body),
        PatchKind::Strategic => {
            strategic::apply(rules::of_kind(api_version, object_kind), current, body)
        }
    }
}

// === impl PatchKind ===

impl PatchKind {
    /// Returns the format that a `Content-Type` names, regardless of its parameters. `None` for
    /// server-side apply and for other media types.
    pub fn from_content_type(content_type: &str) -> Option<Self> {
        let (media_type, _parameters) = content_type.split_once(';').unwrap_or((content_type, ""));
        match media_type.trim() {
            "application/json-patch+json" => Some(Self::Json),
            "application/merge-patch+json" => Some(Self::Merge),
            "application/strategic-merge-patch+json" => Some(Self::Strategic),
            _ => None,
        }
    }
}

// === impl PatchError ===

impl PatchError {
    /// Returns the HTTP status of the reply.
    pub fn code(&self) -> u16 {
        match self {
            Self::BadRequest(_) => 400,
            Self::TooLarge(_) => 413,
            Self::Unprocessable { .. } => 422,
            Self::Internal(_) => 500,
        }
    }

    /// Returns the `reason` of the reply's `Status`; empty where the API server gives none.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::BadRequest(_) => "BadRequest",
            Self::TooLarge(_) => "RequestEntityTooLarge",
            Self::Unprocessable { .. } => "Invalid",
            Self::Internal(_) => "",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_types_name_their_format() {
        for (content_type, kind) in [
            ("application/json-patch+json", Some(PatchKind::Json)),
            ("application/merge-patch+json; charset=utf-8", Some(PatchKind::Merge)),
            ("application/strategic-merge-patch+json", Some(PatchKind::Strategic)),
            ("application/apply-patch+yaml", None),
            ("application/json", None),
            ("", None),
        ] {
            assert_eq!(PatchKind::from_content_type(content_type), kind, "{content_type}");
        }
    }
}
