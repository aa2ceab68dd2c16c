//! PATCH bodies: which formats a kind takes, and how a refusal is told.

use serde_json::{Value, json};

use crate::http::Call;
use crate::http::decode::check_metadata;
use crate::kinds::Kind;
use crate::object::Fields;
use crate::patch::{self, PatchError, PatchKind};
use crate::status::{Failure, Result};

/// The format of the call's patch, if the kind takes it.
pub(super) fn format(call: &Call) -> Result<PatchKind> {
    let kind = &call.target.served.kind;
    match PatchKind::from_content_type(call.content_type()) {
        Some(PatchKind::Strategic) | None if kind.custom => {
            Err(Failure::unsupported_media_type(CUSTOM))
        }
        None => Err(Failure::unknown_patch()),
        Some(format) => Ok(format),
    }
}

/// What custom resources take: they have no merge keys.
const CUSTOM: &str = "application/json-patch+json, application/merge-patch+json";

/// The patched object.
pub(super) fn apply(format: PatchKind, kind: &Kind, object: Fields, body: &[u8]) -> Result<Fields> {
    let patched =
        patch::apply(format, Value::Object(object), body, &kind.api_version(), &kind.kind);
    match patched.map_err(refusal)? {
        Value::Object(object) => {
            check_metadata(kind, &object)?;
            Ok(object)
        }
        other => {
            Err(refusal(PatchError::Unprocessable { detail: format!("{other} is no object") }))
        }
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it is what `map_err` gives")]
fn refusal(error: PatchError) -> Failure {
    let mut failure = Failure::new(error.code(), error.reason(), error.to_string());
    if matches!(error, PatchError::Unprocessable { .. }) {
        // The real server has details to give, and nothing in them.
        failure.details = Some(json!({}));
    }
    failure
}
