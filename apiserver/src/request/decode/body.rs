//! Bodies in JSON, YAML and protobuf, decoded to the members of an object.

use std::fmt::Write;

use homeostat_schema::Envelope;
use serde_json::{Value, json};

use super::wanted::Wanted;
use crate::fields::Fields;
use crate::go_json::{kind_of, syntax_error};
use crate::media::{self, Media};
use crate::request::{ApiCall, negotiate};
use crate::status::{Failure, Result};
use crate::types::{self, Expected};

/// The object in a body, and the problems that its decoding found.
pub(super) struct DecodedBody {
    pub(super) value: Fields,
    pub(super) problems: Vec<String>,
}

/// The kind of the options of a delete.
pub(super) const OPTIONS: &str = "DeleteOptions";

/// The media types of a custom object.
const CUSTOM_TYPES: &str = "application/json, application/yaml";

/// The type that the real server decodes first, to find the kind.
const TYPE_META: &str = "struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind \
    string \"json:\\\"kind,omitempty\\\"\" }";
/// The number of bytes of the body that the real server's message repeats.
const REPEATED: usize = 30;

// === impl ApiCall ===

impl ApiCall {
    /// Returns the media type of the body, if the server knows it.
    pub(super) fn body_media(&self) -> Option<Media> {
        let media_type = self.content_type().to_ascii_lowercase();
        if media_type.is_empty() { Some(Media::Json) } else { Media::from_type(&media_type) }
    }

    /// Decodes the body. Its type is not checked yet, apart from the texts that state it.
    pub(super) fn read_body(&self, wanted: &Wanted<'_>) -> Result<DecodedBody> {
        let Some(media) = self.body_media().filter(|_| self.is_well_typed()) else {
            return Err(Failure::unsupported_media_type(negotiate::TYPES));
        };
        match (media, wanted.expected) {
            // The real server closes the connection.
            (Media::Protobuf, Expected::Custom) => {
                return Err(Failure::unsupported_media_type(CUSTOM_TYPES));
            }
            (Media::Protobuf, _) => return self.read_protobuf(wanted),
            (Media::Json | Media::Yaml, _) => {}
        }
        let types::Decoded { value, problems } = self.read_text(media, wanted)?;
        let value = members(value)
            .map_err(|detail| unreadable(wanted.kind, &parse_error(&detail), &self.body))?;
        let version = value.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
        if version.matches('/').nth(1).is_some() {
            let detail = format!("unexpected GroupVersion string: {version}");
            return Err(unreadable(wanted.kind, &detail, &self.body));
        }
        Ok(DecodedBody { value, problems })
    }

    /// Decodes JSON or YAML.
    fn read_text(&self, media: Media, wanted: &Wanted<'_>) -> Result<types::Decoded> {
        if media == Media::Yaml {
            return types::read_yaml(&self.body, wanted.expected)
                .map_err(|error| unreadable(wanted.kind, &format!("yaml: {error}"), &self.body));
        }
        types::read_json(&self.body, wanted.expected).map_err(|error| {
            let error = syntax_error(&self.body).unwrap_or_else(|| error.to_string());
            unreadable(wanted.kind, &parse_error(&error), &self.body)
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
                wanted.invalid(&error.to_string())
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
}

/// Returns the members of an object.
///
/// # Errors
///
/// Fails with Go's text if it is no object, or if its type is no text.
fn members(value: Value) -> std::result::Result<Fields, String> {
    let members = match value {
        Value::Object(members) => members,
        // Go decodes null as a value without members.
        Value::Null => Fields::new(),
        other => {
            let found = kind_of(&other);
            return Err(format!(
                "json: cannot unmarshal {found} into Go value of type {TYPE_META}"
            ));
        }
    };
    match wrong_stated_type(&members) {
        Some(detail) => Err(detail),
        None => Ok(members),
    }
}

/// Returns the error text for an object whose `apiVersion` or `kind` is no text.
pub(crate) fn stated_type_error(object: &Fields) -> Option<String> {
    wrong_stated_type(object).map(|detail| parse_error(&detail))
}

fn wrong_stated_type(members: &Fields) -> Option<String> {
    ["apiVersion", "kind"].into_iter().find_map(|name| match members.get(name) {
        None | Some(Value::Null | Value::String(_)) => None,
        Some(other) => {
            let found = kind_of(other);
            Some(format!(
                "json: cannot unmarshal {found} into Go struct field .{name} of type string"
            ))
        }
    })
}

/// Returns the error text for a body whose syntax or type cannot be read.
pub(super) fn parse_error(detail: &str) -> String {
    format!("couldn't get version/kind; json parse error: {detail}")
}

/// Returns the error for a body that cannot be decoded; it repeats the first bytes of the body.
pub(super) fn unreadable(kind: &str, detail: &str, body: &[u8]) -> Failure {
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
