//! Content negotiation: the form and the media type of the reply that the client accepts.

use http::{HeaderMap, header};

use super::media_ranges::ranges;
use super::params::Params;
use crate::media::Media;
use crate::status::{Failure, Result};

/// The form and the media type of a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Accepted {
    pub(crate) form: Form,
    pub(crate) media: Media,
}

/// The form of a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// The complete object.
    Whole,
    /// The metadata of the object; for a list, `PartialObjectMetadataList`.
    Partial { version: &'static str, list: bool },
    /// Rows of a table.
    Table { version: &'static str },
}

/// The forms and media types of the reply to a request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Offer {
    /// True for the objects of a definition, which have no protobuf.
    pub(crate) custom: bool,
    /// True for a list or a watch.
    pub(crate) collection: bool,
    /// True if the objects have rows of a table.
    pub(crate) tables: bool,
}

/// Returns the client's media ranges. Only the first `Accept` header counts, as on the real server.
fn accept(headers: &HeaderMap) -> &str {
    headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// Returns the first of the client's media ranges that the server can serve, in the order of
/// [`ranges`].
///
/// A client requests a Table or only metadata with parameters (`as=…;v=…;g=…`).
///
/// # Errors
///
/// Fails with 406 if there is none. Built-in kinds have a second, coarser filter before this one:
/// its text differs, and it does not know `application/*`. For a collection its text also lists the
/// media types of a watch.
pub(crate) fn accepted(headers: &HeaderMap, offer: Offer) -> Result<Accepted> {
    let Offer { custom, collection, tables } = offer;
    let mut requested = false;
    let mut of_known_type = false;
    let value = accept(headers).trim();
    for range in ranges(value) {
        // A header of only commas, for a built-in kind, asks for a type that does not exist.
        requested |= !range.is_empty() || (!custom && !value.is_empty());
        let (media_type, parameters) = range.split_once(';').unwrap_or((range, ""));
        let media = match media_type.trim() {
            "*/*" => Media::Json,
            "application/*" if custom => Media::Json,
            other => match Media::from_type(other) {
                Some(media) => media,
                None => continue,
            },
        };
        of_known_type = true;
        let form = form_of(parameters, media, custom);
        let is_served = |form: &Form| tables || !matches!(form, Form::Table { .. });
        if let Some(form) = form.filter(is_served) {
            return Ok(Accepted { form, media });
        }
    }
    if !requested {
        return Ok(Accepted { form: Form::Whole, media: Media::Json });
    }
    Err(if of_known_type || custom { not_acceptable() } else { unknown_type(collection) })
}

/// Returns the media type of a Status: the first that the client accepts for complete objects, else
/// JSON. It is not restricted for custom kinds.
pub(crate) fn status_media(headers: &HeaderMap) -> Media {
    for range in ranges(accept(headers)) {
        let (media_type, parameters) = range.split_once(';').unwrap_or((range, ""));
        let media = match media_type.trim() {
            "*/*" | "application/*" => Some(Media::Json),
            other => Media::from_type(other),
        };
        let form = media.and_then(|media| form_of(parameters, media, false));
        if let (Some(media), Some(Form::Whole)) = (media, form) {
            return media;
        }
    }
    Media::Json
}

/// Returns whether a person reads the reply: the parameter `pretty` asks for line breaks, or there
/// is none and the client is a browser or a program for the command line.
pub(crate) fn wants_indented(headers: &HeaderMap, query: &str) -> bool {
    let params = if query.contains("pretty") { Params::parse(query) } else { Params::default() };
    match params.get("pretty") {
        "" => {
            let agent = headers.get(header::USER_AGENT).and_then(|value| value.to_str().ok());
            let agent = agent.unwrap_or_default();
            ["curl", "Wget", "Mozilla/5.0"].iter().any(|name| agent.starts_with(name))
        }
        value => matches!(value, "1" | "t" | "T" | "true" | "TRUE" | "True"),
    }
}

/// Returns whether the client wants aggregated discovery.
///
/// # Errors
///
/// Fails with 406 if the server can serve none of the client's media ranges.
pub(crate) fn wants_aggregated(headers: &HeaderMap) -> Result<bool> {
    let accept = accept(headers);
    for range in ranges(accept).filter(|range| !range.is_empty()) {
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

/// Fails with 406 unless the client accepts a document that has one media type.
pub(crate) fn check_only(headers: &HeaderMap, media_type: &str) -> Result<()> {
    let mut ranges = accept(headers).split(',').peekable();
    let is_accepted = ranges.peek().is_none_or(|range| range.trim().is_empty());
    let mut types = ranges.map(|range| range.split(';').next().unwrap_or_default().trim());
    if is_accepted || types.any(|accepted| accepted == media_type || accepted == "*/*") {
        return Ok(());
    }
    Err(unavailable(media_type))
}

/// Returns the form that the parameters request, if it is known and the media type has it: tables
/// have no protobuf, custom objects neither, and YAML has no events.
fn form_of(parameters: &str, media: Media, custom: bool) -> Option<Form> {
    let (mut kind, mut group, mut version) = ("", "", "");
    for parameter in parameters.split(';') {
        let (name, value) = parameter.trim().split_once('=').unwrap_or((parameter, ""));
        match name {
            "as" => kind = value,
            "g" => group = value,
            "v" => version = value,
            "stream" if value != "watch" || media == Media::Yaml => return None,
            _ => {}
        }
    }
    let is_protobuf = media == Media::Protobuf;
    if kind.is_empty() {
        // A group or a version of no form.
        if !group.is_empty() || !version.is_empty() {
            return None;
        }
        return (!(is_protobuf && custom)).then_some(Form::Whole);
    }
    let version = match (group, version) {
        ("meta.k8s.io", "v1") => "meta.k8s.io/v1",
        ("meta.k8s.io", "v1beta1") => "meta.k8s.io/v1beta1",
        _ => return None,
    };
    match kind {
        "Table" if is_protobuf => None,
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

/// The media types of a watch.
const STREAMS: &str =
    "application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch";

/// Returns the error for a watch in YAML.
pub(crate) fn no_stream() -> Failure {
    let message = format!("only the following media types are accepted: {STREAMS}");
    Failure::not_acceptable(message)
}

fn unknown_type(collection: bool) -> Failure {
    let streams = if collection { format!(", {STREAMS}") } else { String::new() };
    unavailable(&format!("{TYPES}{streams}"))
}

/// Returns the error for a client that accepts none of these media types.
fn unavailable(types: &str) -> Failure {
    let mut failure = Failure::not_acceptable(format!(
        "406: Not Acceptable\n\nAvailable representations: {types}"
    ));
    failure.details = Some(serde_json::json!({}));
    failure
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accept(value: &str, custom: bool) -> Result<Accepted> {
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT, value.parse().unwrap());
        accepted(&headers, Offer { custom, collection: false, tables: true })
    }

    fn requested(value: &str) -> Result<Form> {
        accept(value, false).map(|accepted| accepted.form)
    }

    #[test]
    fn first_form_that_the_server_has_is_taken() {
        let table = Form::Table { version: "meta.k8s.io/v1" };
        assert_eq!(
            requested("application/json;as=Table;v=v1;g=meta.k8s.io,application/json").unwrap(),
            table
        );
        let later = "application/json;as=Table;v=v9;g=meta.k8s.io, */*;q=0.1";
        assert_eq!(requested(later).unwrap(), Form::Whole);
        let partial = "application/json;g=meta.k8s.io;v=v1beta1;as=PartialObjectMetadataList";
        let expected = Form::Partial { version: "meta.k8s.io/v1beta1", list: true };
        assert_eq!(requested(partial).unwrap(), expected);
        let json = Accepted { form: Form::Whole, media: Media::Json };
        let offer = Offer { custom: false, collection: false, tables: true };
        assert_eq!(accepted(&HeaderMap::new(), offer).unwrap(), json);
    }

    #[test]
    fn only_first_accept_header_counts() {
        let headers = |values: [&str; 2]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(header::ACCEPT, value.parse().unwrap());
            }
            headers
        };
        let offer = Offer { custom: false, collection: false, tables: true };
        let (png, json, yaml) = ("image/png", "application/json", "application/yaml");
        assert!(accepted(&headers([png, json]), offer).is_err());
        assert_eq!(accepted(&headers([yaml, json]), offer).unwrap().media, Media::Yaml);
        assert_eq!(status_media(&headers([png, yaml])), Media::Json);
        assert!(check_only(&headers([png, json]), json).is_err());
        assert!(check_only(&headers([json, png]), json).is_ok());
    }

    #[test]
    fn protobuf_is_taken_where_the_object_has_it() {
        let whole = "application/vnd.kubernetes.protobuf,application/json";
        let taken = |value, custom| accept(value, custom).map(|accepted| accepted.media);
        assert_eq!(taken(whole, false).unwrap(), Media::Protobuf);
        assert_eq!(taken(whole, true).unwrap(), Media::Json);
        let table = "application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io";
        assert!(taken(table, false).is_err());
        let rows_or_json = format!("{table},application/json");
        assert_eq!(taken(&rows_or_json, false).unwrap(), Media::Json);
        let partial = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;v=v1;\
            g=meta.k8s.io";
        assert_eq!(taken(partial, true).unwrap(), Media::Protobuf);
    }

    #[test]
    fn status_is_protobuf_for_any_kind_and_never_partial() {
        let media = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT, value.parse().unwrap());
            status_media(&headers)
        };
        assert_eq!(media("application/vnd.kubernetes.protobuf"), Media::Protobuf);
        let partial = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;v=v1;\
            g=meta.k8s.io";
        assert_eq!(media(partial), Media::Json);
        assert_eq!(media(&format!("{partial},application/yaml")), Media::Yaml);
        assert_eq!(media("image/png"), Media::Json);
    }

    #[test]
    fn reply_is_indented_for_people() {
        let wants = |agent: &str, query: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::USER_AGENT, agent.parse().unwrap());
            wants_indented(&headers, query)
        };
        assert!(wants("curl/8.5.0", "limit=5"));
        assert!(!wants("curl/8.5.0", "pretty=false"));
        assert!(wants("kubectl/v1.37.1", "pretty=true"));
        assert!(!wants("kubectl/v1.37.1", ""));
        assert!(!wants("kubectl/v1.37.1", "pretty=yes"));
    }

    #[test]
    fn unknown_form_is_rejected() {
        let refusal = requested("application/json;as=Table;v=v1;g=other").unwrap_err();
        assert!(refusal.message.starts_with("only the following"));
        let refusal = requested("application/xml").unwrap_err();
        assert!(refusal.message.starts_with("406: Not Acceptable"));
        assert!(requested("application/json;stream=other").is_err());
        assert!(requested("application/yaml;stream=watch").is_err());
    }
}
