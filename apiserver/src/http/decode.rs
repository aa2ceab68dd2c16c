//! Bodies: an object of the kind that the path names, or the reason why not.

use std::fmt::Write;

use serde_json::{Value, json};

use super::Call;
use crate::admission::delete::DeleteOptions;
use crate::admission::metadata_mut;
use crate::admission::types::wrong_metadata;
use crate::go_json::{kind_of, syntax_error};
use crate::kinds::Kind;
use crate::object::Fields;
use crate::status::{Cause, Failure, Result};

/// What the real server reads in any kind's body.
const ALL_TYPES: &str = "application/json, application/yaml, application/vnd.kubernetes.protobuf";
/// What this one reads.
const JSON: &str = "application/json";

// === impl Call ===

impl Call {
    /// The body as an object of the kind, its name and namespace checked against the path.
    pub(crate) fn object(&self) -> Result<Fields> {
        let kind = &self.target.served.kind;
        let mut object = self.any_object(&kind.kind)?;
        check_type(kind, &object)?;
        check_metadata(kind, &object)?;
        self.check_place(kind, &mut object)?;
        kind.rename_for_storage(&mut object);
        Ok(object)
    }

    /// The body as an object, whatever its kind.
    pub(crate) fn any_object(&self, expected: &str) -> Result<Fields> {
        match self.content_type() {
            "" | "application/json" => {}
            // Honest about what would help: these the real server reads, and this one does not.
            "application/yaml" | "application/vnd.kubernetes.protobuf" => {
                return Err(Failure::unsupported_media_type(JSON));
            }
            _ => return Err(Failure::unsupported_media_type(ALL_TYPES)),
        }
        if let Some(why) = syntax_error(&self.body) {
            return Err(unreadable(expected, &why, &self.body));
        }
        match serde_json::from_slice(&self.body) {
            Ok(Value::Object(object)) => Ok(object),
            // Go reads it as a value without members.
            Ok(Value::Null) => Ok(Fields::new()),
            Ok(other) => {
                let found = kind_of(&other);
                let why =
                    format!("json: cannot unmarshal {found} into Go value of type {TYPE_META}");
                Err(unreadable(expected, &why, &self.body))
            }
            Err(error) => Err(unreadable(expected, &error.to_string(), &self.body)),
        }
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
                metadata.insert("name".to_owned(), json!(name));
                Ok(())
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
            let body = self.any_object("DeleteOptions")?;
            let said = body.get("kind").and_then(Value::as_str).unwrap_or("");
            if !matches!(said, "" | "DeleteOptions") {
                let version = body.get("apiVersion").and_then(Value::as_str).unwrap_or("");
                return Err(Failure::bad_request(format!(
                    "no kind \"{said}\" is registered for version \"{version}\" in scheme \"pkg/runtime/scheme.go:111\""
                )));
            }
            serde_json::from_value(Value::Object(body))
                .map_err(|error| unreadable("DeleteOptions", &error.to_string(), &self.body))?
        };
        options.check()?;
        Ok(options)
    }
}

/// Where the real server first looks for a kind.
const TYPE_META: &str = "struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }";
/// As much of the body the real server repeats.
const REPEATED: usize = 30;

fn unreadable(kind: &str, why: &str, body: &[u8]) -> Failure {
    if kind == "DeleteOptions" {
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
    let wrong = wrong_metadata(object);
    match wrong.or_else(|| kind.wrong_member(object).map(|wrong| wrong.decoded)) {
        None => Ok(()),
        Some(why) => Err(Failure::bad_request(format!(
            "{} in version \"{}\" cannot be handled as a {}: {why}",
            kind.kind, kind.version, kind.kind
        ))),
    }
}

/// Checks what the body says that it is; it need not say anything.
fn check_type(kind: &Kind, object: &Fields) -> Result<()> {
    let text = |key: &str| object.get(key).and_then(Value::as_str).unwrap_or("");
    let (said, version) = (text("kind"), text("apiVersion"));
    let expected = kind.api_version();
    if !version.is_empty() && version != expected {
        return Err(Failure::bad_request(format!(
            "the API version in the data ({version}) does not match the expected API version ({expected})"
        )));
    }
    if said.is_empty() || said == kind.kind {
        return Ok(());
    }
    if kind.custom {
        let name = object
            .get("metadata")
            .and_then(|m| m.get("name"))
            .and_then(Value::as_str)
            .unwrap_or("");
        let cause = Cause::invalid("kind", &json!(said), &format!("must be {}", kind.kind));
        return Err(Failure::invalid_as(&kind.group, said, name, &[cause]));
    }
    Err(Failure::bad_request(format!(
        "{said} in version \"{}\" cannot be handled as a {}: no kind \"{said}\" is registered for version \"{expected}\"",
        kind.version, kind.kind
    )))
}
