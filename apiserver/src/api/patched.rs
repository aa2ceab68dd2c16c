//! PATCH bodies: which formats a kind takes, and how a refusal is told.

use serde_json::{Value, json};

use crate::http::Call;
use crate::http::decode::{check_metadata, other_type};
use crate::http::options::Validation;
use crate::kinds::Kinds;
use crate::object::Fields;
use crate::patch::{self, PatchError, PatchKind};
use crate::status::{Cause, Failure, Result};
use crate::types::{Expected, Type, Wrong, read_json, unknown_members, wrong_member};

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

/// What a patch is of.
pub(super) struct Patch<'a> {
    pub(super) call: &'a Call,
    pub(super) format: PatchKind,
    pub(super) validation: Validation,
    pub(super) api_version: &'a str,
    pub(super) kind: &'a str,
    /// The members of what is patched; none if nobody knows them.
    pub(super) known: Option<&'static Type>,
}

// === impl Patch ===

impl Patch<'_> {
    /// The patched object. `other_type` says why it can no longer be what it was.
    pub(super) fn apply(
        &self,
        object: Fields,
        other_type: impl Fn(&Fields) -> Option<String>,
    ) -> Result<Fields> {
        let body = &self.call.body;
        let patched =
            patch::apply(self.format, Value::Object(object), body, self.api_version, self.kind);
        let object = match patched.map_err(refusal)? {
            Value::Object(object) => object,
            other => {
                return Err(refusal(PatchError::Unprocessable {
                    detail: format!("{other} is no object"),
                }));
            }
        };
        let wrong = match self.format {
            PatchKind::Strategic => self.wrong_member(&object).map(|wrong| wrong.restored),
            _ => other_type(&object)
                .or_else(|| self.wrong_member(&object).map(|wrong| wrong.decoded)),
        };
        if let Some(why) = wrong.or_else(|| self.heed(&object)) {
            return Err(self.unfit(&object, &why));
        }
        Ok(object)
    }

    fn wrong_member(&self, object: &Fields) -> Option<Wrong> {
        wrong_member(self.known?, object)
    }

    /// What is odd about the patch or about what comes of it, if that is a reason to refuse it.
    fn heed(&self, object: &Fields) -> Option<String> {
        if self.validation == Validation::Ignore {
            return None;
        }
        let mut oddities = self.duplicates();
        if let Some(known) = self.known {
            oddities.extend(unknown_members(known, object));
        }
        self.call.warn(self.validation, oddities)
    }

    /// What stands twice in the patch itself.
    fn duplicates(&self) -> Vec<String> {
        let (expected, prefix) = match self.format {
            PatchKind::Json => (Expected::Operations, "json patch "),
            _ => (Expected::Any, ""),
        };
        let oddities = read_json(&self.call.body, expected).map(|body| body.oddities);
        oddities.unwrap_or_default().iter().map(|text| format!("{prefix}{text}")).collect()
    }

    /// A patch of which comes no object of the kind.
    fn unfit(&self, patched: &Fields, why: &str) -> Failure {
        let shown = if self.format == PatchKind::Strategic {
            patch::go_text(&serde_json::from_slice(&self.call.body).unwrap_or_default())
        } else {
            Value::Object(patched.clone()).to_string()
        };
        Failure::invalid_as("", "", "", &[Cause::invalid("patch", &json!(shown), why)])
    }
}

/// The patched object of the call's kind.
pub(super) fn apply(
    kinds: &Kinds,
    call: &Call,
    (format, validation): (PatchKind, Validation),
    object: Fields,
) -> Result<Fields> {
    let kind = &call.target.served.kind;
    let api_version = &kind.api_version();
    let known = kind.known_type();
    let patch = Patch { call, format, validation, api_version, kind: &kind.kind, known };
    if kind.custom {
        let object = patch.apply(object, |_| None)?;
        check_metadata(kind, &object)?;
        return Ok(object);
    }
    patch.apply(object, |object| other_type(kinds, kind, object))
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
