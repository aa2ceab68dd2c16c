//! In which form the client wants its answer.

use http::{HeaderMap, header};

use crate::status::{Failure, Result};

/// The form of what is answered. The media type is always JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// The object itself.
    Whole,
    /// Its metadata; for a list, `PartialObjectMetadataList`.
    Partial { version: &'static str, list: bool },
    /// Rows of cells.
    Table { version: &'static str },
}

/// The first of the client's ranges that can be served.
///
/// A client that would rather have a Table, or only metadata, says so with parameters (`as=…;v=…;g=…`).
///
/// # Errors
///
/// When there is none: 406. Built-in kinds have a second, coarser filter in front, whose text differs, and which does not
/// know `application/*`; for a collection it also names what a watch may be.
pub(super) fn form(headers: &HeaderMap, custom: bool, collection: bool) -> Result<Form> {
    let mut asked = false;
    let mut of_known_type = false;
    for value in headers.get_all(header::ACCEPT) {
        let value = value.to_str().unwrap_or("").trim();
        for range in value.split(',').map(str::trim) {
            // Nothing but commas asks a built-in kind for nothing that there is.
            asked |= !range.is_empty() || (!custom && !value.is_empty());
            let (media_type, parameters) = range.split_once(';').unwrap_or((range, ""));
            let known = match media_type.trim() {
                "application/json" | "*/*" => true,
                "application/*" => custom,
                _ => false,
            };
            if !known {
                continue;
            }
            of_known_type = true;
            if let Some(form) = form_of(parameters) {
                return Ok(form);
            }
        }
    }
    if !asked {
        return Ok(Form::Whole);
    }
    Err(if of_known_type || custom { not_acceptable() } else { unknown_type(collection) })
}

/// Whether a client wants discovery in one piece; it may insist on a form that nobody serves.
///
/// # Errors
///
/// When none of its ranges can be served: 406.
pub(super) fn wants_aggregated(headers: &HeaderMap) -> Result<bool> {
    let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or("");
    for range in accept.split(',').map(str::trim).filter(|range| !range.is_empty()) {
        let (media_type, parameters) = range.split_once(';').unwrap_or((range, ""));
        let has = |wanted: &str| parameters.split(';').any(|one| one.trim() == wanted);
        let whole = !parameters.contains("as=");
        let json = matches!(media_type.trim(), "application/json" | "application/*" | "*/*");
        if json && (whole || (has("as=APIGroupDiscoveryList") && has("v=v2"))) {
            return Ok(!whole);
        }
    }
    if accept.trim().is_empty() { Ok(false) } else { Err(not_acceptable()) }
}

/// The form that the parameters ask for, if it is known.
fn form_of(parameters: &str) -> Option<Form> {
    let (mut kind, mut group, mut version) = ("", "", "");
    for parameter in parameters.split(';') {
        let (name, value) = parameter.trim().split_once('=').unwrap_or((parameter, ""));
        match name {
            "as" => kind = value,
            "g" => group = value,
            "v" => version = value,
            "stream" if value != "watch" => return None,
            _ => {}
        }
    }
    if kind.is_empty() {
        return Some(Form::Whole);
    }
    let version = match (group, version) {
        ("meta.k8s.io", "v1") => "meta.k8s.io/v1",
        ("meta.k8s.io", "v1beta1") => "meta.k8s.io/v1beta1",
        _ => return None,
    };
    match kind {
        "Table" => Some(Form::Table { version }),
        "PartialObjectMetadata" => Some(Form::Partial { version, list: false }),
        "PartialObjectMetadataList" => Some(Form::Partial { version, list: true }),
        _ => None,
    }
}

const TYPES: &str = "application/json, application/yaml, application/vnd.kubernetes.protobuf";

fn not_acceptable() -> Failure {
    let message = format!("only the following media types are accepted: {TYPES}");
    Failure::not_acceptable(message)
}

/// What a watch may be besides.
const STREAMS: &str =
    ", application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch";

fn unknown_type(collection: bool) -> Failure {
    let streams = if collection { STREAMS } else { "" };
    let mut failure = Failure::not_acceptable(format!(
        "406: Not Acceptable\n\nAvailable representations: {TYPES}{streams}"
    ));
    failure.details = Some(serde_json::json!({}));
    failure
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(value: &str) -> Result<Form> {
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT, value.parse().unwrap());
        form(&headers, false, false)
    }

    #[test]
    fn the_first_form_that_can_be_served_is_taken() {
        let table = Form::Table { version: "meta.k8s.io/v1" };
        assert_eq!(
            asked("application/json;as=Table;v=v1;g=meta.k8s.io,application/json").unwrap(),
            table
        );
        assert_eq!(
            asked("application/vnd.kubernetes.protobuf,application/json").unwrap(),
            Form::Whole
        );
        let later = "application/json;as=Table;v=v9;g=meta.k8s.io, */*;q=0.1";
        assert_eq!(asked(later).unwrap(), Form::Whole);
        let partial = "application/json;g=meta.k8s.io;v=v1beta1;as=PartialObjectMetadataList";
        let expected = Form::Partial { version: "meta.k8s.io/v1beta1", list: true };
        assert_eq!(asked(partial).unwrap(), expected);
        assert_eq!(form(&HeaderMap::new(), false, false).unwrap(), Form::Whole);
    }

    #[test]
    fn a_form_that_nobody_knows_is_refused() {
        let refusal = asked("application/json;as=Table;v=v1;g=other").unwrap_err();
        assert!(refusal.message.starts_with("only the following"));
        let refusal = asked("application/xml").unwrap_err();
        assert!(refusal.message.starts_with("406: Not Acceptable"));
        assert!(asked("application/json;stream=other").is_err());
    }
}
