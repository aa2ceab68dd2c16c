//! Request bodies: decoded to an object of the kind in the path, or rejected with a reason.

mod body;
mod place;
mod stated_type;
mod wanted;

use http::Method;
use serde_json::{Value, json};

use super::ApiCall;
use super::options::Validation;
use crate::admission::delete::DeleteOptions;
use crate::admission::meta_text;
use crate::admission::types::wrong_metadata;
use crate::fields::Fields;
use crate::go_json::whole_numbers;
use crate::kinds::{Kind, Kinds};
use crate::media::Media;
use crate::status::{Failure, Result};
use crate::types::{self, Expected, Type, Types, wrong_in_order, wrong_member};
use body::{DecodedBody, OPTIONS, parse_error, unreadable};
use stated_type::{check_type, unconvertible};

pub(crate) use body::stated_type_error;
pub(crate) use place::check_same_namespace;
pub(crate) use stated_type::{check_custom_kind, check_custom_type, not_registered, other_type};
pub(crate) use wanted::Wanted;

// === impl ApiCall ===

impl ApiCall {
    /// Decodes the body as an object of the request's kind, and checks its name and namespace
    /// against the path.
    pub(crate) fn object(&self, kinds: &Kinds, validation: Validation) -> Result<Fields> {
        let kind = &self.target.served.kind;
        let api_version = kind.api_version();
        let expected = kind.known_type().map_or(Expected::Custom, Expected::Kind);
        let wanted = Wanted { kind: &kind.kind, api_version: &api_version, older: &[], expected };
        let DecodedBody { value, mut problems } = self.read_body(&wanted)?;
        let mut object = value;
        self.check_stated(kind, &object)?;
        let wrong = |known: &Type, object: &_| self.wrong_member(known, object, &problems);
        check_type(kinds, (kind, &wanted), &object, &|other, _| self.wrong_as(other))?;
        if self.method != Method::PUT {
            // An update is checked once its object is found.
            check_custom_kind(kind, &object)?;
        }
        check_metadata((kind, &wanted), &object, &wrong)?;
        let removed = prune(kind, &mut object).map_err(|detail| wanted.invalid(&detail))?;
        if kind.custom {
            // The real server decodes the metadata later than the rest.
            problems.sort_by_key(|problem| problem.starts_with("unknown field"));
        }
        problems.extend(removed);
        self.check_problems(&wanted, validation, problems)?;
        self.check_place(kind, &mut object)?;
        kind.rename_for_storage(&mut object);
        Ok(object)
    }

    /// Decodes the body as an object of a type that is not a stored kind: a binding, a scale.
    pub(crate) fn any_object(&self, wanted: &Wanted<'_>, validation: Validation) -> Result<Fields> {
        let DecodedBody { value, problems } = self.read_body(wanted)?;
        let text = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or("");
        let (kind, version) = (text("kind"), text("apiVersion"));
        let is_other_kind = !kind.is_empty() && kind != wanted.kind;
        let said = if version.is_empty() { wanted.api_version } else { version };
        if is_other_kind || !(version.is_empty() || wanted.has_version(version)) {
            let detail = unconvertible(wanted, kind, said);
            return Err(wanted.invalid_as(kind, said, &detail));
        }
        let wanted = &Wanted { api_version: said, ..*wanted };
        if let Expected::Kind(known) = wanted.expected
            && let Some(wrong) = self.wrong_member(known, &value, &problems)
        {
            return Err(wanted.invalid(&wrong));
        }
        self.check_problems(wanted, validation, problems)?;
        if self.target.served.kind.namespaced {
            check_same_namespace(meta_text(&value, "namespace"), self.namespace())?;
        }
        Ok(value)
    }

    /// Returns Go's error about a member of a wrong type. JSON is decoded in the order of the text,
    /// and of a repeated member each value.
    fn wrong_member(&self, known: &Type, value: &Fields, problems: &[String]) -> Option<String> {
        let found = wrong_member(known, value);
        let repeats = problems.iter().any(|problem| problem.starts_with("duplicate field"));
        if found.is_none() && !repeats {
            return None;
        }
        self.wrong_in_body(known).or_else(|| Some(found?.decoded))
    }

    /// Returns Go's error about a member of a wrong type, if the body is JSON.
    fn wrong_in_body(&self, known: &Type) -> Option<String> {
        if self.body_media() != Some(Media::Json) {
            return None;
        }
        let body = types::read_in_order(&self.body)?;
        Some(wrong_in_order(known, &body)?.decoded)
    }

    /// Returns Go's error about a member of a wrong type, for a body that states another kind than
    /// that of the request. The body is read again: the first time the members of that kind may
    /// have been left out.
    fn wrong_as(&self, stated: &Type) -> Option<String> {
        if self.body_media() != Some(Media::Yaml) {
            return self.wrong_in_body(stated);
        }
        let body = types::yaml_value(&self.body).ok()?;
        Some(wrong_member(stated, body.as_object()?)?.decoded)
    }

    /// Checks that a custom object states its type: the real server fills it in for built-in kinds
    /// alone.
    fn check_stated(&self, kind: &Kind, object: &Fields) -> Result<()> {
        let is_stated =
            |name: &str| object.get(name).is_some_and(|it| *it != json!("") && !it.is_null());
        if kind.definition.is_none() || is_stated("kind") {
            return Ok(());
        }
        let body = String::from_utf8_lossy(&self.body);
        let detail = format!("Object 'Kind' is missing in '{body}'");
        Err(unreadable(&kind.kind, &detail, &self.body))
    }

    /// Rejects the problems of a body, warns of them, or ignores them.
    fn check_problems(
        &self,
        wanted: &Wanted<'_>,
        validation: Validation,
        problems: Vec<String>,
    ) -> Result<()> {
        match self.warn(validation, problems) {
            None => Ok(()),
            Some(detail) => Err(wanted.invalid(&detail)),
        }
    }

    /// Warns of problems; returns an error text if they are to be rejected.
    pub(crate) fn warn(&self, validation: Validation, problems: Vec<String>) -> Option<String> {
        match validation {
            Validation::Strict if !problems.is_empty() => {
                return Some(format!("strict decoding error: {}", problems.join(", ")));
            }
            Validation::Warn => {
                self.warnings.extend(problems.into_iter().flat_map(types::warnings_of));
            }
            Validation::Ignore | Validation::Strict => {}
        }
        None
    }

    /// Decodes the options of a delete: from the body, or from the query if there is none.
    pub(crate) fn delete_options(&self) -> Result<DeleteOptions> {
        let options = if self.body.is_empty() {
            self.params.delete_options()?
        } else {
            let known = Types::all().named("meta.DeleteOptions").expect("the table has it");
            let expected = Expected::Kind(known);
            let DecodedBody { value, problems } =
                self.read_body(&Wanted { kind: OPTIONS, api_version: "", older: &[], expected })?;
            let said = value.get("kind").and_then(Value::as_str).unwrap_or("");
            if !matches!(said, "" | OPTIONS) {
                let version = value.get("apiVersion").and_then(Value::as_str).unwrap_or("");
                return Err(Failure::bad_request(no_options(said, version)));
            }
            if let Some(wrong) = self.wrong_member(known, &value, &problems) {
                return Err(Failure::bad_request(wrong));
            }
            DeleteOptions::read(value)
                .map_err(|error| Failure::bad_request(parse_error(&error.to_string())))?
        };
        options.check()?;
        Ok(options)
    }
}

/// Returns the error for a body that states another kind than that of the options of a delete.
fn no_options(said: &str, version: &str) -> String {
    // It is known in all versions.
    if said == "Status" {
        return format!("converting (v1.{said}) to (v1.{OPTIONS}): unknown conversion");
    }
    not_registered(said, if version.is_empty() { "meta.k8s.io/v1" } else { version })
}

/// Checks the type of each member: all members of a built-in kind, and the metadata of a custom
/// one. `wrong` returns the error about an object of a type.
fn check_metadata(
    (kind, wanted): (&Kind, &Wanted<'_>),
    object: &Fields,
    wrong: &dyn Fn(&Type, &Fields) -> Option<String>,
) -> Result<()> {
    let wrong = match kind.known_type() {
        // The real server sorts the metadata of a custom object before it decodes it.
        None => wrong_metadata(object),
        Some(known) => wrong(known, object),
    };
    match wrong {
        None => Ok(()),
        Some(detail) => Err(wanted.invalid(&detail)),
    }
}

/// Completes an object by the schema of its definition. Returns the fields that are unknown.
///
/// # Errors
///
/// Fails with a text if an object inside has metadata of a wrong type.
pub(crate) fn prune(kind: &Kind, object: &mut Fields) -> std::result::Result<Vec<String>, String> {
    object.values_mut().for_each(whole_numbers);
    let Some(definition) = &kind.definition else { return Ok(Vec::new()) };
    definition.complete(object).map_err(|error| error.to_string())
}
