//! Request bodies: decoded to an object of the kind in the path, or rejected with a reason.

use std::fmt::Write;
use std::sync::Arc;

use homeostat_schema::Envelope;
use http::Method;
use serde_json::{Value, json};

use super::ApiCall;
use super::options::Validation;
use crate::admission::delete::DeleteOptions;
use crate::admission::types::wrong_metadata;
use crate::admission::{meta_text, metadata_mut};
use crate::fields::Fields;
use crate::go_json::{kind_of, syntax_error, whole_numbers};
use crate::kinds::{Kind, Kinds};
use crate::media::{self, Media};
use crate::status::{Cause, Failure, Result};
use crate::types::{self, Expected, Type, Types, wrong_in_order, wrong_member};

/// The object in a body, and the problems that its decoding found.
struct DecodedBody {
    value: Fields,
    problems: Vec<String>,
}

/// The source of the real server's list of kinds, as its messages name it.
const SCHEME: &str = "pkg/runtime/scheme.go:111";
/// The media types that the real server accepts for any kind.
const ALL_TYPES: &str = "application/json, application/yaml, application/vnd.kubernetes.protobuf";

/// The media types of a custom object.
const CUSTOM_TYPES: &str = "application/json, application/yaml";

/// The type that a body is decoded as.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted<'a> {
    /// The kind's name in messages.
    pub(crate) kind: &'a str,
    pub(crate) api_version: &'a str,
    /// Older versions of the kind, with the same fields.
    pub(crate) older: &'a [&'a str],
    pub(crate) expected: Expected,
}

// === impl Wanted ===

impl Wanted<'_> {
    fn has_version(&self, version: &str) -> bool {
        version == self.api_version || self.older.contains(&version)
    }
}

// === impl ApiCall ===

impl ApiCall {
    /// Decodes the body as an object of the request's kind, and checks its name and namespace
    /// against the path.
    pub(crate) fn object(&self, kinds: &Kinds, validation: Validation) -> Result<Fields> {
        let kind = &self.target.served.kind;
        let api_version = kind.api_version();
        let expected = kind.known_type().map_or(Expected::Custom, Expected::Kind);
        let wanted = Wanted { kind: &kind.kind, api_version: &api_version, older: &[], expected };
        let DecodedBody { value, mut problems } = self.read(&wanted)?;
        let mut object = value;
        self.check_stated(kind, &object)?;
        let wrong = |known: &Type, object: &_| self.wrong_member(known, object, &problems);
        check_type(kinds, kind, &object, &|other, _| self.wrong_in_body(other))?;
        check_metadata(kind, &object, &wrong)?;
        let removed =
            prune(kind, &mut object).map_err(|detail| invalid_result(&wanted, &detail))?;
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
        let DecodedBody { value, problems } = self.read(wanted)?;
        let text = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or("");
        let (kind, version) = (text("kind"), text("apiVersion"));
        let is_other_kind = !kind.is_empty() && kind != wanted.kind;
        if is_other_kind || !(version.is_empty() || wanted.has_version(version)) {
            let said = if version.is_empty() { wanted.api_version } else { version };
            return Err(Failure::bad_request(format!(
                "{kind} in version \"{}\" cannot be handled as a {}: no kind \"{kind}\" is \
                 registered for version \"{version}\" in scheme \"{SCHEME}\"",
                version_of(said),
                wanted.kind
            )));
        }
        if let Expected::Kind(known) = wanted.expected
            && let Some(wrong) = self.wrong_member(known, &value, &problems)
        {
            return Err(invalid_result(wanted, &wrong));
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
        if self.media() != Some(Media::Json) {
            return None;
        }
        let body = types::read_in_order(&self.body)?;
        Some(wrong_in_order(known, &body)?.decoded)
    }

    /// Returns the media type of the body, if the server knows it.
    fn media(&self) -> Option<Media> {
        let media_type = self.content_type().to_ascii_lowercase();
        if media_type.is_empty() { Some(Media::Json) } else { Media::from_type(&media_type) }
    }

    fn read(&self, wanted: &Wanted<'_>) -> Result<DecodedBody> {
        let Some(media) = self.media().filter(|_| self.is_well_typed()) else {
            return Err(Failure::unsupported_media_type(ALL_TYPES));
        };
        match (media, wanted.expected) {
            // The real server closes the connection.
            (Media::Protobuf, Expected::Custom) => {
                return Err(Failure::unsupported_media_type(CUSTOM_TYPES));
            }
            (Media::Protobuf, _) => return self.read_protobuf(wanted),
            (Media::Json | Media::Yaml, _) => {}
        }
        let refuse = |detail: &str| {
            let detail = format!("couldn't get version/kind; json parse error: {detail}");
            unreadable(wanted.kind, &detail, &self.body)
        };
        let types::Decoded { value, problems } = self.read_text(media, wanted)?;
        let value = match value {
            Value::Object(object) => object,
            // Go decodes null as a value without members.
            Value::Null => Fields::new(),
            other => {
                let found = kind_of(&other);
                let detail =
                    format!("json: cannot unmarshal {found} into Go value of type {TYPE_META}");
                return Err(refuse(&detail));
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
        Ok(DecodedBody { value, problems })
    }

    /// Checks that a custom object states its type: the real server fills it in for built-in kinds
    /// alone.
    fn check_stated(&self, kind: &Kind, object: &Fields) -> Result<()> {
        let is_stated = |name: &str| object.get(name).is_some_and(|value| *value != json!(""));
        if kind.definition.is_none() || is_stated("kind") {
            return Ok(());
        }
        let body = String::from_utf8_lossy(&self.body);
        let detail = format!("Object 'Kind' is missing in '{body}'");
        Err(unreadable(&kind.kind, &detail, &self.body))
    }

    /// Decodes JSON or YAML.
    fn read_text(&self, media: Media, wanted: &Wanted<'_>) -> Result<types::Decoded> {
        if media == Media::Yaml {
            return types::read_yaml(&self.body, wanted.expected)
                .map_err(|error| unreadable(wanted.kind, &format!("yaml: {error}"), &self.body));
        }
        types::read_json(&self.body, wanted.expected).map_err(|error| {
            let error = syntax_error(&self.body).unwrap_or_else(|| error.to_string());
            let detail = format!("couldn't get version/kind; json parse error: {error}");
            unreadable(wanted.kind, &detail, &self.body)
        })
    }

    /// Decodes protobuf, which has no unknown and no duplicate fields.
    fn read_protobuf(&self, wanted: &Wanted<'_>) -> Result<DecodedBody> {
        if self.body.is_empty() {
            return Err(unreadable(wanted.kind, "empty data", &self.body));
        }
        let envelope = Envelope::read(&self.body)
            .map_err(|error| unreadable(wanted.kind, &error.to_string(), &self.body))?;
        let or =
            |said: String, wanted: &str| if said.is_empty() { wanted.to_owned() } else { said };
        let kind = or(envelope.kind, wanted.kind);
        let api_version = or(envelope.api_version, wanted.api_version);
        let known =
            if wanted.has_version(&api_version) { wanted.api_version } else { &*api_version };
        let mut value = match media::schema_of(known, &kind) {
            Some(schema) => schema.decode_protobuf(&envelope.raw).map_err(|error| {
                let wanted = Wanted { api_version: &api_version, ..*wanted };
                invalid_result(&wanted, &error.to_string())
            })?,
            // The caller rejects the kind.
            None => Value::Object(Fields::new()),
        };
        value["kind"] = json!(kind);
        value["apiVersion"] = json!(api_version);
        let value = match value {
            Value::Object(fields) => fields,
            _ => Fields::new(),
        };
        Ok(DecodedBody { value, problems: Vec::new() })
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
            Some(detail) => Err(invalid_result(wanted, &detail)),
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

    fn check_place(&self, kind: &Kind, object: &mut Fields) -> Result<()> {
        let (namespace, name) = (self.namespace(), self.target.info.name.as_deref());
        let metadata = metadata_mut(object);
        let text = |metadata: &Fields, key: &str| {
            metadata.get(key).and_then(Value::as_str).unwrap_or("").to_owned()
        };
        if kind.namespaced {
            let own = text(metadata, "namespace");
            check_same_namespace(&own, namespace)?;
            metadata.insert("namespace".to_owned(), json!(namespace));
        } else {
            metadata.remove("namespace");
        }
        // A create ignores the name in the path: only that of a custom resource can have one.
        let Some(name) = name.filter(|_| self.method != Method::POST) else { return Ok(()) };
        match text(metadata, "name").as_str() {
            own if own == name => Ok(()),
            "" => {
                let message = format!(
                    "the name of the object ({name} based on URL) was undeterminable: name must be \
                     provided"
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

    /// Decodes the options of a delete: from the body, or from the query if there is none.
    pub(crate) fn delete_options(&self) -> Result<DeleteOptions> {
        let options = if self.body.is_empty() {
            self.params.delete_options()?
        } else {
            let known = Types::all().named("meta.DeleteOptions").expect("the table has it");
            let expected = Expected::Kind(known);
            let DecodedBody { value, problems } =
                self.read(&Wanted { kind: OPTIONS, api_version: "", older: &[], expected })?;
            let said = value.get("kind").and_then(Value::as_str).unwrap_or("");
            if !matches!(said, "" | OPTIONS) {
                let version = value.get("apiVersion").and_then(Value::as_str).unwrap_or("");
                return Err(Failure::bad_request(format!(
                    "no kind \"{said}\" is registered for version \"{version}\" in scheme \
                     \"{SCHEME}\""
                )));
            }
            if let Some(wrong) = self.wrong_member(known, &value, &problems) {
                return Err(Failure::bad_request(wrong));
            }
            DeleteOptions::read(value).map_err(|error| {
                let detail = format!("couldn't get version/kind; json parse error: {error}");
                unreadable(OPTIONS, &detail, &self.body)
            })?
        };
        options.check()?;
        Ok(options)
    }
}

/// Fails if the client sent another namespace than that of the request or of the object.
pub(crate) fn check_same_namespace(namespace: &str, expected: &str) -> Result<()> {
    // A cluster-scoped object has none, and loses the one that the client sent.
    if !namespace.is_empty() && !expected.is_empty() && namespace != expected {
        let message =
            "the namespace of the provided object does not match the namespace sent on the request";
        return Err(Failure::bad_request(message));
    }
    Ok(())
}

/// The kind of the options of a delete.
const OPTIONS: &str = "DeleteOptions";
/// The type that the real server decodes first, to find the kind.
const TYPE_META: &str = "struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind \
    string \"json:\\\"kind,omitempty\\\"\" }";
/// The number of bytes of the body that the real server's message repeats.
const REPEATED: usize = 30;

fn unreadable(kind: &str, detail: &str, body: &[u8]) -> Failure {
    if kind == OPTIONS {
        return Failure::bad_request(detail.to_owned());
    }
    // A body that is not an object may be anything: it is shown byte by byte.
    let shown = match body {
        [] => "<empty>".to_owned(),
        [b'{', ..] if body.len() > REPEATED => {
            format!("{} ...", String::from_utf8_lossy(&body[..REPEATED]))
        }
        [b'{', ..] => String::from_utf8_lossy(body).into_owned(),
        bytes => {
            let mut hex = bytes.iter().take(REPEATED).fold(String::new(), |mut hex, byte| {
                let _ = write!(hex, "{byte:02x}");
                hex
            });
            if bytes.len() > REPEATED {
                hex.push_str(" ...");
            }
            hex
        }
    };
    Failure::bad_request(format!(
        "the object provided is unrecognized (must be of type {kind}): {detail} ({shown})"
    ))
}

/// Checks the type of each member: all members of a built-in kind, and the metadata of a custom
/// one. `wrong` returns the error about an object of a type.
fn check_metadata(
    kind: &Kind,
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
        Some(detail) => Err(Failure::bad_request(format!(
            "{} in version \"{}\" cannot be handled as a {}: {detail}",
            kind.kind, kind.version, kind.kind
        ))),
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

/// Returns the version in an `apiVersion`.
fn version_of(api_version: &str) -> &str {
    api_version.rsplit('/').next().unwrap_or("")
}

fn invalid_result(wanted: &Wanted<'_>, detail: &str) -> Failure {
    let kind = wanted.kind;
    let version = version_of(wanted.api_version);
    Failure::bad_request(format!(
        "{kind} in version \"{version}\" cannot be handled as a {kind}: {detail}"
    ))
}

/// Checks `kind` and `apiVersion` of the body; both may be missing.
///
/// `wrong` returns the error about a member of a wrong type.
fn check_type(
    kinds: &Kinds,
    kind: &Kind,
    object: &Fields,
    wrong: &dyn Fn(&Type, &Fields) -> Option<String>,
) -> Result<()> {
    let text = |key: &str| object.get(key).and_then(Value::as_str).unwrap_or("");
    let (said, version) = (text("kind"), text("apiVersion"));
    if kind.custom {
        return check_custom_type(kind, object, said, version);
    }
    let said = if said.is_empty() { &*kind.kind } else { said };
    let Some(detail) = other_type(kinds, kind, object, wrong) else { return Ok(()) };
    let version = if version.is_empty() { kind.api_version() } else { version.to_owned() };
    let version = version_of(&version);
    let wanted = &kind.kind;
    Err(Failure::bad_request(format!(
        "{said} in version \"{version}\" cannot be handled as a {wanted}: {detail}"
    )))
}

/// Returns the error for an object whose `kind` or `apiVersion` is another one. `wrong` returns the
/// error about a member of a wrong type.
pub(crate) fn other_type(
    kinds: &Kinds,
    kind: &Kind,
    object: &Fields,
    wrong: &dyn Fn(&Type, &Fields) -> Option<String>,
) -> Option<String> {
    let text = |key: &str| object.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
    let expected = kind.api_version();
    let said = text("kind").unwrap_or(&kind.kind);
    let version = text("apiVersion").unwrap_or(&expected);
    // The core group is empty: `/v1`.
    let version = version.strip_prefix('/').unwrap_or(version);
    if said == kind.kind && version == expected {
        return None;
    }
    let row = |row: &&Arc<Kind>| !row.custom && row.kind == said && row.api_version() == version;
    let Some(other) = kinds.built_in_rows().find(row) else {
        return Some(format!(
            "no kind \"{said}\" is registered for version \"{version}\" in scheme \"{SCHEME}\""
        ));
    };
    if let Some(wrong) = other.known_type().and_then(|known| wrong(known, object)) {
        return Some(wrong);
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

/// Checks the type that a custom object states.
pub(crate) fn check_custom_type(
    kind: &Kind,
    object: &Fields,
    said: &str,
    version: &str,
) -> Result<()> {
    let expected = kind.api_version();
    // An object without a kind has been rejected, unless the kind has no definition.
    let may_lack = kind.definition.is_none();
    if version != expected && !(may_lack && version.is_empty()) {
        return Err(Failure::bad_request(format!(
            "the API version in the data ({version}) does not match the expected API version \
             ({expected})"
        )));
    }
    if said.is_empty() || said == kind.kind {
        return Ok(());
    }
    let name = meta_text(object, "name");
    let cause = Cause::invalid("kind", &json!(said), &format!("must be {}", kind.kind));
    Err(Failure::invalid_as(&kind.group, said, name, &[cause]))
}
