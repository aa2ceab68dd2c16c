//! PATCH bodies: the formats that a kind accepts, the texts of their errors, and the check that an
//! object keeps its identity.

use memchr::memmem;
use serde_json::{Value, json};

use crate::admission::types::wrong_metadata;
use crate::admission::{meta_text, metadata_mut};
use crate::fields::Fields;
use crate::go_json::go_text;
use crate::kinds::{Kind, Kinds};
use crate::object::unpack_owners;
use crate::patch::{self, PatchError, PatchKind};
use crate::request::ApiCall;
use crate::request::decode::{
    check_custom_type, check_same_namespace, other_type, prune, stated_type_error,
};
use crate::request::options::Validation;
use crate::status::{Cause, Failure, Result};
use crate::types::{
    Expected, Type, TypeMismatch, Types, may_have_long_integers, may_repeat_members,
    normalize_type, read_json, unknown_members, unknown_metadata, wrap_integers, wrong_change,
    wrong_member, wrong_type_meta,
};

/// Returns the format of the request's patch, if the kind accepts it.
pub(super) fn format(call: &ApiCall) -> Result<PatchKind> {
    let kind = &call.target.served.kind;
    match PatchKind::from_content_type(call.content_type()) {
        Some(PatchKind::Strategic) | None if kind.custom => {
            Err(Failure::unsupported_media_type(CUSTOM))
        }
        None => Err(Failure::unknown_patch()),
        Some(format) => Ok(format),
    }
}

/// The formats that custom resources accept: they have no merge keys.
const CUSTOM: &str =
    "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml";

/// The error for a custom object whose version is null.
const NULL_VERSION: &str =
    ".apiVersion accessor error: <nil> is of the type <nil>, expected string";

/// A patch, and the type of the object that it applies to.
pub(super) struct Patch<'a> {
    pub(super) call: &'a ApiCall,
    pub(super) format: PatchKind,
    pub(super) validation: Validation,
    pub(super) api_version: &'a str,
    pub(super) kind: &'a str,
    /// The members of the patched object, if its type is known.
    pub(super) known: Option<&'static Type>,
    /// The object before the patch, if it is known to fit its type: what it has needs no check.
    pub(super) before: Option<&'a Fields>,
}

// === impl Patch ===

impl Patch<'_> {
    /// Returns the patched object. `other_type` explains why the result is no longer an object of
    /// its type.
    pub(super) fn apply(
        &self,
        object: Fields,
        other_type: impl Fn(&Fields) -> Option<String>,
    ) -> Result<Fields> {
        let object = self.apply_unchecked(object, other_type)?;
        match self.problems(&object, Vec::new()) {
            Some(why) => Err(self.invalid_result(&object, &why)),
            None => Ok(object),
        }
    }

    /// Returns the patched object. Its unknown and duplicate fields are not reported yet.
    fn apply_unchecked(
        &self,
        object: Fields,
        other_type: impl Fn(&Fields) -> Option<String>,
    ) -> Result<Fields> {
        let body = &self.call.body;
        let patched =
            patch::apply(self.format, Value::Object(object), body, self.api_version, self.kind);
        let mut object = match patched.map_err(refusal)? {
            Value::Object(object) => object,
            other => {
                return Err(refusal(PatchError::Unprocessable {
                    detail: format!("{other} is no object"),
                }));
            }
        };
        // The object before the patch has none.
        if let (PatchKind::Strategic, Some(known)) = (self.format, self.known)
            && may_have_long_integers(body)
        {
            wrap_integers(known, &mut object);
        }
        let wrong = match self.format {
            PatchKind::Strategic => wrong_type_meta(&object)
                .or_else(|| self.wrong_member(&object).map(|wrong| wrong.restored)),
            _ => stated_type_error(&object)
                .or_else(|| other_type(&object))
                .or_else(|| self.wrong_member(&object).map(|wrong| wrong.decoded)),
        };
        match wrong {
            Some(why) => Err(self.invalid_result(&object, &why)),
            None => Ok(object),
        }
    }

    fn wrong_member(&self, object: &Fields) -> Option<TypeMismatch> {
        wrong_change(self.known?, object, self.before)
    }

    /// Warns of the problems of the patch and of its result. Returns the error if they are to be
    /// rejected. `others` are those that the caller has found.
    fn problems(&self, object: &Fields, others: Vec<String>) -> Option<String> {
        if self.validation == Validation::Ignore {
            return None;
        }
        let mut problems = self.duplicates();
        if let Some(known) = self.known {
            problems.extend(unknown_members(known, object, self.before));
        }
        problems.extend(others);
        self.call.warn(self.validation, problems)
    }

    /// Returns the patched custom object, completed as the decoder does it. `live` returns the
    /// object that the patch applies to; it is needed again for the text of an error alone.
    fn apply_to_custom(&self, kind: &Kind, live: &dyn Fn() -> Fields) -> Result<Fields> {
        let patched = || self.apply_unchecked(live(), |_| None);
        let mut object = patched()?;
        let stated = |name| object.get(name).and_then(Value::as_str).unwrap_or_default();
        if kind.definition.is_some() && stated("kind").is_empty() {
            let why = format!("Object 'Kind' is missing in '{}'", Value::Object(object.clone()));
            return Err(self.invalid_result(&object, &why));
        }
        let wrong = match object.get("apiVersion") {
            Some(Value::Null) => Some(NULL_VERSION.to_owned()),
            _ => wrong_metadata(&object),
        };
        if let Some(why) = wrong {
            return Err(self.invalid_result(&object, &why));
        }
        if stated("apiVersion").is_empty() {
            let detail = "Object 'apiVersion' is missing in 'object has no apiVersion field'";
            return Err(Failure::internal_error(detail));
        }
        if stated("kind") == kind.kind && stated("apiVersion") != kind.api_version() {
            let known = ["apiVersion", "kind", "metadata"];
            if let Some(why) = self.foreign_members(&object, &known) {
                return Err(self.invalid_result(&object, &why));
            }
            let cause = Cause::invalid(
                "apiVersion",
                &json!(stated("apiVersion")),
                &format!("must be {}", kind.api_version()),
            );
            let name = meta_text(&object, "name");
            return Err(Failure::invalid_as(&kind.group, &kind.kind, name, &[cause]));
        }
        check_custom_type(kind, &object, stated("apiVersion"))?;
        let mut problems = unknown_metadata(&object);
        if !problems.is_empty() {
            normalize_type(Types::all().metadata(), metadata_mut(&mut object));
        }
        let why = match prune(kind, &mut object) {
            Ok(removed) => {
                problems.extend(removed);
                self.problems(&object, problems)
            }
            Err(why) => Some(why),
        };
        match why {
            Some(why) => Err(self.invalid_result(&patched()?, &why)),
            None => Ok(object),
        }
    }

    /// Warns of the members of an object of a version that does not exist: it has only those that
    /// are `known`. Returns the error if they are to be rejected.
    fn foreign_members(&self, object: &Fields, known: &[&str]) -> Option<String> {
        if self.validation == Validation::Ignore {
            return None;
        }
        let unknown = object.keys().filter(|name| !known.contains(&name.as_str()));
        let problems = unknown.map(|name| format!("unknown field \"{name}\"")).collect();
        self.call.warn(self.validation, problems)
    }

    /// Returns the duplicate fields of the patch itself.
    fn duplicates(&self) -> Vec<String> {
        let (expected, prefix) = match self.format {
            PatchKind::Json => (Expected::Operations, "json patch "),
            _ if !may_repeat_members(&self.call.body) => return Vec::new(),
            _ => (Expected::Any, ""),
        };
        let problems = read_json(&self.call.body, expected).map(|body| body.problems);
        problems.unwrap_or_default().iter().map(|text| format!("{prefix}{text}")).collect()
    }

    /// Returns the error for a patch whose result is not an object of the kind.
    fn invalid_result(&self, patched: &Fields, why: &str) -> Failure {
        let shown = if self.format == PatchKind::Strategic {
            go_text(&serde_json::from_slice(&self.call.body).unwrap_or_default())
        } else {
            Value::Object(patched.clone()).to_string()
        };
        Failure::invalid_as("", "", "", &[Cause::invalid("patch", &json!(shown), why)])
    }
}

/// Shows the owners of an object to a patch that may read or change them. Otherwise they stay
/// packed, as in the object before the patch, so that the checks find no difference.
pub(super) fn ready_owners(call: &ApiCall, format: PatchKind, object: &mut Fields) {
    // An escape may hide the name. The error of the other formats shows the complete object.
    let may_name_them = memmem::find(&call.body, b"managedFields").is_some()
        || memchr::memchr(b'\\', &call.body).is_some();
    if format != PatchKind::Strategic || may_name_them {
        unpack_owners(object);
    } else if call.target.served.kind.stored_as.is_some() {
        // The checks do not know the object before the patch.
        remove_packed_owners(object);
    }
}

/// Removes packed owners, which leaves them as they are.
fn remove_packed_owners(object: &mut Fields) {
    if let Some(Value::Object(metadata)) = object.get_mut("metadata")
        && metadata.get("managedFields").is_some_and(Value::is_string)
    {
        metadata.remove("managedFields");
    }
}

/// Returns the patched object of the request's kind. `live` returns the object to patch, which is
/// `old` as the kind shows it.
pub(super) fn apply(
    kinds: &Kinds,
    call: &ApiCall,
    (format, validation): (PatchKind, Validation),
    (old, live): (&Fields, &dyn Fn() -> Fields),
) -> Result<Fields> {
    let kind = &call.target.served.kind;
    let api_version = &kind.api_version();
    let known = kind.known_type();
    // An object that is stored as another kind has the types of that kind.
    let before = kind.stored_as.is_none().then_some(old);
    let patch = Patch { call, format, validation, api_version, kind: &kind.kind, known, before };
    if kind.custom {
        return patch.apply_to_custom(kind, live);
    }
    let mut patched = patch.apply(live(), |object| {
        let wrong = |known: &_, object: &_| Some(wrong_member(known, object)?.decoded);
        other_type(kinds, kind, object, &wrong)
    })?;
    remove_packed_owners(&mut patched);
    let version = patched.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
    if version.is_empty() && format != PatchKind::Strategic {
        // As upstream, the object is decoded in the server's own version, where it has no name.
        if let Some(why) = patch.foreign_members(&patched, &["apiVersion", "kind"]) {
            return Err(patch.invalid_result(&patched, &why));
        }
        let name = meta_text(&live(), "name").to_owned();
        return Err(Failure::bad_request(format!(
            "the name of the object ({name} based on URL) was undeterminable: name must be provided"
        )));
    }
    Ok(patched)
}

#[expect(clippy::needless_pass_by_value, reason = "it is what `map_err` gives")]
pub(super) fn refusal(error: PatchError) -> Failure {
    let mut failure = Failure::new(error.code(), error.reason(), error.to_string());
    if matches!(error, PatchError::Unprocessable { .. }) {
        // The real server sends details without content.
        failure.details = Some(json!({}));
    }
    failure
}

/// Fails if a patch changes the identity of the object.
pub(super) fn check_identity(old: &Fields, new: &Fields, name: &str) -> Result<()> {
    let own = meta_text(new, "name");
    if own.is_empty() {
        let message = format!(
            "the name of the object ({name} based on URL) was undeterminable: name must be provided"
        );
        return Err(Failure::bad_request(message));
    }
    if own != name {
        let message =
            format!("the name of the object ({own}) does not match the name on the URL ({name})");
        return Err(Failure::bad_request(message));
    }
    check_same_namespace(meta_text(new, "namespace"), meta_text(old, "namespace"))
}
