//! Turns the current object and the body of a PATCH into the patched object, as the API server would.
//!
//! Three formats: JSON patch (RFC 6902), JSON merge patch (RFC 7386) and Kubernetes' strategic merge patch.
//! Everything here is pure: no store, no validation of the outcome. What a patch may not change (uid, name, spec through
//! `/status`) is the caller's to check on what comes back.
//!
//! ```
//! use homeostat_apiserver::patch::{PatchKind, apply};
//! use serde_json::json;
//!
//! let pod = json!({"status": {"conditions": [{"type": "Ready", "status": "False"}, {"type": "Initialized", "status": "True"}]}});
//! let body = br#"{"status":{"conditions":[{"type":"Ready","status":"True"}]}}"#;
//!
//! let patched = apply(PatchKind::Strategic, pod, body, "v1", "Pod").unwrap();
//! assert_eq!(
//!     patched["status"]["conditions"],
//!     json!([{"type": "Ready", "status": "True"}, {"type": "Initialized", "status": "True"}]),
//! );
//! ```

use serde_json::Value;

mod json;
mod list;
mod merge;
mod rules;
mod strategic;

pub(crate) use strategic::go_text;

/// The format of a patch's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PatchKind {
    /// A list of operations: RFC 6902.
    Json,
    /// The changed members of the object, null for those that go: RFC 7386. Lists are replaced.
    Merge,
    /// As `Merge`, but lists with a merge key are merged element by element, and directives say more.
    Strategic,
}

/// Why a patch was not applied; its text is the message of the answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PatchError {
    /// The body is not a patch of its format.
    #[error("{0}")]
    BadRequest(String),
    /// The body has more operations than a server accepts.
    #[error("Request entity too large: {0}")]
    TooLarge(String),
    /// The patch is well formed, but does not fit the object: a failed `test`, a path that leads nowhere.
    #[error("the server rejected our request due to an error in our request")]
    Unprocessable {
        /// What did not fit. Real servers keep it to themselves, so it is for logs only.
        detail: String,
    },
    /// A real server does not expect this either, and answers 500.
    #[error("{0}")]
    Internal(String),
}

/// Applies the patch in `body` to `current`.
///
/// `api_version` and `object_kind` are those of the patched object and choose the merge keys of a strategic merge patch.
/// A kind without a table has the rules of `metadata` only.
///
/// # Errors
///
/// When `body` is not a patch of this kind, or does not fit `current`.
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
    /// The kind that a `Content-Type` names, parameters aside. `None` for server-side apply and for what is not a patch.
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
    /// The HTTP status of the answer.
    pub fn code(&self) -> u16 {
        match self {
            Self::BadRequest(_) => 400,
            Self::TooLarge(_) => 413,
            Self::Unprocessable { .. } => 422,
            Self::Internal(_) => 500,
        }
    }

    /// The `reason` of the answer's `Status`; empty where servers give none.
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
    fn content_types_name_their_kind() {
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
