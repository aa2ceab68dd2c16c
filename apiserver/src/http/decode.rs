//! Bodies: an object of the kind that the path names, or the reason why not.

use std::fmt::Write;
use std::sync::Arc;

use serde_json::{Value, json};

use super::Call;
use super::options::Validation;
use crate::admission::delete::DeleteOptions;
use crate::admission::types::wrong_metadata;
use crate::admission::{meta_text, metadata_mut};
use crate::go_json::{kind_of, syntax_error};
use crate::kinds::{Kind, Kinds};
use crate::object::Fields;
use crate::status::{Cause, Failure, Result};
use crate::types::{self, Expected, Types, wrong_member};

/// A body that is an object, and what is odd about it.
struct Body {
    value: Fields,
    oddities: Vec<String>,
}

/// Where the real server's list of kinds comes from.
const SCHEME: &str = "pkg/runtime/scheme.go:111";
/// What the real server reads in any kind's body.
const ALL_TYPES: &str = "application/json, application/yaml, application/vnd.kubernetes.protobuf";
/// What this one reads.
const JSON: &str = "application/json";

/// What a body is read as.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted<'a> {
    /// What messages call it.
    pub(crate) kind: &'a str,
    pub(crate) api_version: &'a str,
    pub(crate) expected: Expected,
}

// === impl Call ===

impl Call {
    /// The body as an object of the kind, its name and namespace checked against the path.
    pub(crate) fn object(&self, kinds: &Kinds, validation: Validation) -> Result<Fields> {
        let kind = &self.target.served.kind;
        let api_version = kind.api_version();
        let expected = kind.known_type().map_or(Expected::Custom, Expected::Kind);
        let wanted = Wanted { kind: &kind.kind, api_version: &api_version, expected };
        let Body { value, oddities } = self.read(&wanted)?;
        let mut object = value;
        check_type(kinds, kind, &object)?;
        check_metadata(kind, &object)?;
        self.heed(&wanted, validation, oddities)?;
        self.check_place(kind, &mut object)?;
        kind.rename_for_storage(&mut object);
        Ok(object)
    }

    /// The body as an object of a type that is no kind with objects: a binding, a scale.
    pub(crate) fn any_object(&self, wanted: &Wanted<'_>, validation: Validation) -> Result<Fields> {
        let Body { value, oddities } = self.read(wanted)?;
        let text = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or("");
        let (kind, version) = (text("kind"), text("apiVersion"));
        let other = |said: &str, wanted: &str| !said.is_empty() && said != wanted;
        if other(kind, wanted.kind) || other(version, wanted.api_version) {
            return Err(Failure::bad_request(format!(
                "{kind} in version \"v1\" cannot be handled as a {}: no kind \"{kind}\" is registered for version \
                 \"{version}\" in scheme \"{SCHEME}\"",
                wanted.kind
            )));
        }
        if let Expected::Kind(known) = wanted.expected
            && let Some(wrong) = wrong_member(known, &value)
        {
            return Err(unfit(wanted, &wrong.decoded));
        }
        self.heed(wanted, validation, oddities)?;
        Ok(value)
    }

    fn read(&self, wanted: &Wanted<'_>) -> Result<Body> {
        match self.content_type().to_ascii_lowercase().as_str() {
            "" | "application/json" if self.is_well_typed() => {}
            // Honest about what would help: these the real server reads, and this one does not.
            "application/yaml" | "application/vnd.kubernetes.protobuf" => {
                return Err(Failure::unsupported_media_type(JSON));
            }
            _ => return Err(Failure::unsupported_media_type(ALL_TYPES)),
        }
        let refuse = |why: &str| unreadable(wanted.kind, why, &self.body);
        let types::Body { value, oddities } = types::read_json(&self.body, wanted.expected)
            .map_err(|error| {
                refuse(&syntax_error(&self.body).unwrap_or_else(|| error.to_string()))
            })?;
        let value = match value {
            Value::Object(object) => object,
            // Go reads it as a value without members.
            Value::Null => Fields::new(),
            other => {
                let found = kind_of(&other);
                let why =
                    format!("json: cannot unmarshal {found} into Go value of type {TYPE_META}");
                return Err(refuse(&why));
            }
        };
        for name in ["apiVersion", "kind"] {
            match value.get(name) {
                None | Some(Value::Null | Value::String(_)) => {}
                Some(other) => {
                    let found = kind_of(other);
                    return Err(refuse(&format!(
                        "json: cannot unmarshal {found} into Go struct field .{name} of type string"
                    )));
                }
            }
        }
        Ok(Body { value, oddities })
    }

    /// Refuses what is odd about a body, warns of it, or lets it be.
    fn heed(
        &self,
        wanted: &Wanted<'_>,
        validation: Validation,
        oddities: Vec<String>,
    ) -> Result<()> {
        match self.warn(validation, oddities) {
            None => Ok(()),
            Some(why) => Err(unfit(wanted, &why)),
        }
    }

    /// Warns of what is odd; if it is to be refused, says so.
    pub(crate) fn warn(&self, validation: Validation, oddities: Vec<String>) -> Option<String> {
        match validation {
            Validation::Strict if !oddities.is_empty() => {
                return Some(format!("strict decoding error: {}", oddities.join(", ")));
            }
            Validation::Warn => self.warnings.extend(oddities),
            Validation::Ignore | Validation::Strict => {}
        }
        None
    }

    fn check_place(&self, kind: &Kind, object: &mut Fields) -> Result<()> {
        let (namespace, name) = (self.namespace(), self.target.name.as_deref());
        let metadata = metadata_mut(object);
        let text = |metadata: &Fields, key: &str| {
            metadata.get(key).and_then(Value::as_str).unwrap_or("").to_owned()
        };
        if kind.namespaced {
            let own = text(metadata, "namespace");
            if !own.is_empty() && own != namespace {
                let message = "the namespace of the provided object does not match the namespace sent on the request";
                return Err(Failure::bad_request(message));
            }
            metadata.insert("namespace".to_owned(), json!(namespace));
        }
        let Some(name) = name else { return Ok(()) };
        match text(metadata, "name").as_str() {
            own if own == name => Ok(()),
            "" => {
                let message = format!(
                    "the name of the object ({name} based on URL) was undeterminable: name must be provided"
                );
                Err(Failure::bad_request(message))
            }
            own => {
                let message = format!(
                    "the name of the object ({own}) does not match the name on the URL ({name})"
                );
                Err(Failure::bad_request(message))
            }
        }
    }

    /// The options of a delete: from the body, or from the query when there is none.
    pub(crate) fn delete_options(&self) -> Result<DeleteOptions> {
        let options = if self.body.is_empty() {
            self.params.delete_options()?
        } else {
            let known = Types::all().named("meta.DeleteOptions").expect("the table has it");
            let expected = Expected::Kind(known);
            let Body { value, .. } =
                self.read(&Wanted { kind: OPTIONS, api_version: "", expected })?;
            let said = value.get("kind").and_then(Value::as_str).unwrap_or("");
            if !matches!(said, "" | OPTIONS) {
                let version = value.get("apiVersion").and_then(Value::as_str).unwrap_or("");
                return Err(Failure::bad_request(format!(
                    "no kind \"{said}\" is registered for version \"{version}\" in scheme \"{SCHEME}\""
                )));
            }
            if let Some(wrong) = wrong_member(known, &value) {
                return Err(Failure::bad_request(wrong.decoded));
            }
            serde_json::from_value(Value::Object(value))
                .map_err(|error| unreadable(OPTIONS, &error.to_string(), &self.body))?
        };
        options.check()?;
        Ok(options)
    }
}

/// What the options of a delete are called.
const OPTIONS: &str = "DeleteOptions";
/// Where the real server first looks for a kind.
const TYPE_META: &str = "struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }";
/// As much of the body the real server repeats.
const REPEATED: usize = 30;

fn unreadable(kind: &str, why: &str, body: &[u8]) -> Failure {
    if kind == OPTIONS {
        return Failure::bad_request(format!("couldn't get version/kind; json parse error: {why}"));
    }
    // What is no object might be anything: it is shown byte by byte.
    let shown = match body {
        [] => "<empty>".to_owned(),
        [b'{', ..] if body.len() > REPEATED => {
            format!("{} ...", String::from_utf8_lossy(&body[..REPEATED]))
        }
        [b'{', ..] => String::from_utf8_lossy(body).into_owned(),
        bytes => bytes.iter().take(REPEATED).fold(String::new(), |mut hex, byte| {
            let _ = write!(hex, "{byte:02x}");
            hex
        }),
    };
    Failure::bad_request(format!(
        "the object provided is unrecognized (must be of type {kind}): couldn't get version/kind; json parse error: \
         {why} ({shown})"
    ))
}

/// Checks that each member is of its type: those of the metadata, and all that are known of a built-in kind.
pub(crate) fn check_metadata(kind: &Kind, object: &Fields) -> Result<()> {
    let wrong = if kind.custom {
        wrong_metadata(object)
    } else {
        kind.wrong_member(object).map(|wrong| wrong.decoded)
    };
    match wrong {
        None => Ok(()),
        Some(why) => Err(Failure::bad_request(format!(
            "{} in version \"{}\" cannot be handled as a {}: {why}",
            kind.kind, kind.version, kind.kind
        ))),
    }
}

fn unfit(wanted: &Wanted<'_>, why: &str) -> Failure {
    let kind = wanted.kind;
    let version = wanted.api_version.rsplit('/').next().unwrap_or("");
    Failure::bad_request(format!(
        "{kind} in version \"{version}\" cannot be handled as a {kind}: {why}"
    ))
}

/// Checks what the body says that it is; it need not say anything.
fn check_type(kinds: &Kinds, kind: &Kind, object: &Fields) -> Result<()> {
    let text = |key: &str| object.get(key).and_then(Value::as_str).unwrap_or("");
    let (said, version) = (text("kind"), text("apiVersion"));
    if kind.custom {
        return check_custom_type(kind, object, said, version);
    }
    let said = if said.is_empty() { &*kind.kind } else { said };
    let Some(why) = other_type(kinds, kind, object) else { return Ok(()) };
    let version = if version.is_empty() { kind.api_version() } else { version.to_owned() };
    let version = version.rsplit('/').next().unwrap_or("");
    let wanted = &kind.kind;
    Err(Failure::bad_request(format!(
        "{said} in version \"{version}\" cannot be handled as a {wanted}: {why}"
    )))
}

/// Why an object that says to be of another kind cannot be of this one.
pub(crate) fn other_type(kinds: &Kinds, kind: &Kind, object: &Fields) -> Option<String> {
    let text = |key: &str| object.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
    let expected = kind.api_version();
    let said = text("kind").unwrap_or(&kind.kind);
    let version = text("apiVersion").unwrap_or(&expected);
    if said == kind.kind && version == expected {
        return None;
    }
    let row = |row: &&Arc<Kind>| !row.custom && row.kind == said && row.api_version() == version;
    let Some(other) = kinds.rows().iter().find(row) else {
        return Some(format!(
            "no kind \"{said}\" is registered for version \"{version}\" in scheme \"{SCHEME}\""
        ));
    };
    if let Some(wrong) = other.wrong_member(object) {
        return Some(wrong.decoded);
    }
    let package = match kind.group.split('.').next() {
        None | Some("" | "events") => "core",
        Some(first) => first,
    };
    let wanted = &kind.kind;
    Some(format!(
        "converting ({}.{said}) to ({package}.{wanted}): unknown conversion",
        other.version
    ))
}

fn check_custom_type(kind: &Kind, object: &Fields, said: &str, version: &str) -> Result<()> {
    let expected = kind.api_version();
    if !version.is_empty() && version != expected {
        return Err(Failure::bad_request(format!(
            "the API version in the data ({version}) does not match the expected API version ({expected})"
        )));
    }
    if said.is_empty() || said == kind.kind {
        return Ok(());
    }
    let name = meta_text(object, "name");
    let cause = Cause::invalid("kind", &json!(said), &format!("must be {}", kind.kind));
    Err(Failure::invalid_as(&kind.group, said, name, &[cause]))
}
