//! PATCH bodies: which formats a kind takes, and how a refusal is told.

use serde_json::{Value, json};

use crate::http::Call;
use crate::http::decode::check_metadata;
use crate::kinds::Kind;
use crate::object::Fields;
use crate::patch::{self, PatchError, PatchKind};
use crate::status::{Cause, Failure, Result};
use crate::types::Wrong;

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
        Value::Object(object) if kind.custom => {
            check_metadata(kind, &object)?;
            Ok(object)
        }
        Value::Object(object) => match kind.wrong_member(&object) {
            None => Ok(object),
            Some(wrong) => Err(unfit(format, &object, &wrong, body)),
        },
        other => {
            Err(refusal(PatchError::Unprocessable { detail: format!("{other} is no object") }))
        }
    }
}

/// A patch of which comes no object of the kind.
fn unfit(format: PatchKind, patched: &Fields, wrong: &Wrong, body: &[u8]) -> Failure {
    let (shown, why) = if format == PatchKind::Strategic {
        let patch = serde_json::from_slice(body).unwrap_or_default();
        (patch::go_text(&patch), &wrong.restored)
    } else {
        (Value::Object(patched.clone()).to_string(), &wrong.decoded)
    };
    Failure::invalid_as("", "", "", &[Cause::invalid("patch", &json!(shown), why)])
}

#[expect(clippy::needless_pass_by_value, reason = "it is what `map_err` gives")]
pub(super) fn refusal(error: PatchError) -> Failure {
    let mut failure = Failure::new(error.code(), error.reason(), error.to_string());
    if matches!(error, PatchError::Unprocessable { .. }) {
        // The real server has details to give, and nothing in them.
        failure.details = Some(json!({}));
    }
    failure
}
