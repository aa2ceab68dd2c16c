//! Content negotiation: the form and the media type of the reply that the client accepts.

use homeostat_core::parse_go_bool;
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
    if value == "application/json" {
        // Most clients accept nothing else.
        return Ok(Accepted { form: Form::Whole, media: Media::Json });
    }
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
        let form = Parameters::read(parameters).form(media, custom);
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
    plain_media(headers).unwrap_or_default()
}

/// Fails with 406 unless the client accepts a document of discovery in its own form. Its media type
/// is that of a [`status_media`].
pub(crate) fn check_document(headers: &HeaderMap) -> Result<()> {
    if accept(headers).trim().is_empty() || plain_media(headers).is_some() {
        return Ok(());
    }
    Err(not_acceptable())
}

/// Returns the first media type that the client accepts for complete objects.
fn plain_media(headers: &HeaderMap) -> Option<Media> {
    ranges(accept(headers)).find_map(|range| {
        let (media, parameters) = media_of(range)?;
        let is_plain = parameters.server_version.is_empty()
            && parameters.form(media, false) == Some(Form::Whole);
        is_plain.then_some(media)
    })
}

/// Returns the media type of aggregated discovery, if the client accepts it: then all documents are
/// one.
pub(crate) fn aggregated_media(headers: &HeaderMap) -> Option<Media> {
    ranges(accept(headers)).find_map(|range| {
        let (media, parameters) = media_of(range)?;
        parameters.is_aggregated(media).then_some(media)
    })
}

/// Returns the media type that a range names for any kind, and the range's parameters.
fn media_of(range: &str) -> Option<(Media, Parameters<'_>)> {
    let (media_type, parameters) = range.split_once(';').unwrap_or((range, ""));
    let media = match media_type.trim() {
        "*/*" | "application/*" => Media::Json,
        other => Media::from_type(other)?,
    };
    Some((media, Parameters::read(parameters)))
}

/// Returns true if a person reads the reply: the parameter `pretty` asks for line breaks, or there
/// is none and the client is a browser or a program for the command line.
pub(crate) fn wants_indented(headers: &HeaderMap, query: &str) -> bool {
    let params = if query.contains("pretty") { Params::parse(query) } else { Params::default() };
    match params.get("pretty") {
        "" => {
            let agent = headers.get(header::USER_AGENT).and_then(|value| value.to_str().ok());
            let agent = agent.unwrap_or_default();
            ["curl", "Wget", "Mozilla/5.0"].iter().any(|name| agent.starts_with(name))
        }
        value => parse_go_bool(value) == Some(true),
    }
}

/// Fails with 406 unless the client accepts one of the media types, which commas separate, or any.
/// Parameters do not count.
pub(crate) fn check_types(headers: &HeaderMap, types: &str) -> Result<()> {
    let accept = accept(headers).trim();
    let mut accepted = accept.split(',').map(|range| range.split(';').next().unwrap_or("").trim());
    let is_offered = |range: &str| range == "*/*" || types.split(", ").any(|one| one == range);
    if accept.is_empty() || accepted.any(is_offered) {
        return Ok(());
    }
    Err(unavailable(types))
}

/// Fails with 415 if a request without a body says that it has one of another media type.
pub(crate) fn check_content_type(headers: &HeaderMap, types: &str) -> Result<()> {
    let stated = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let stated = stated.unwrap_or_default().trim();
    let is_known = |one: &str| {
        let media_type = one.split(';').next().unwrap_or_default().trim();
        types.split(", ").any(|known| known == media_type)
    };
    if stated.is_empty() || stated.split(',').any(is_known) {
        return Ok(());
    }
    Err(unknown_content())
}

/// Returns the first of some media types that a client accepts, without regard to parameters.
pub(crate) fn first_type<'a>(headers: &HeaderMap, types: &[&'a str]) -> Option<&'a str> {
    let accept = accept(headers).trim();
    ranges(if accept.is_empty() { "*/*" } else { accept }).find_map(|range| {
        let range = range.split(';').next().unwrap_or_default().trim();
        let (kind, subtype) = if range == "*" { ("*", "*") } else { range.split_once('/')? };
        let is_accepted = |offered: &&str| {
            let (of_kind, of_subtype) = offered.split_once('/').unwrap_or_default();
            (kind == "*" || kind == of_kind) && (subtype == "*" || subtype == of_subtype)
        };
        types.iter().copied().find(is_accepted)
    })
}

/// The parameters of a media range that the server knows.
#[derive(Debug, Default)]
struct Parameters<'a> {
    kind: &'a str,
    group: &'a str,
    version: &'a str,
    stream: &'a str,
    /// The version of the server's own types.
    server_version: &'a str,
}

// === impl Parameters ===

impl<'a> Parameters<'a> {
    fn read(text: &'a str) -> Self {
        let mut parameters = Self::default();
        for parameter in text.split(';') {
            let Some((name, value)) = parameter.split_once('=') else { continue };
            let slot = match name.trim() {
                "as" => &mut parameters.kind,
                "g" => &mut parameters.group,
                "v" => &mut parameters.version,
                "stream" => &mut parameters.stream,
                "sv" => &mut parameters.server_version,
                _ => continue,
            };
            *slot = value.trim();
        }
        parameters
    }

    /// Returns true if the media type has the stream that the parameters name: YAML has no events.
    fn has_stream(&self, media: Media) -> bool {
        self.stream.is_empty() || (self.stream == "watch" && media != Media::Yaml)
    }

    /// Returns the form that the parameters request, if it is known and the media type has it:
    /// tables have no protobuf, and custom objects neither.
    fn form(&self, media: Media, custom: bool) -> Option<Form> {
        if !self.has_stream(media) || !matches!(self.server_version, "" | "v1") {
            return None;
        }
        let is_protobuf = media == Media::Protobuf;
        if self.kind.is_empty() {
            // A group or a version of no form.
            if !self.group.is_empty() || !self.version.is_empty() {
                return None;
            }
            return (!(is_protobuf && custom)).then_some(Form::Whole);
        }
        let version = match (self.group, self.version) {
            ("meta.k8s.io", "v1") => "meta.k8s.io/v1",
            ("meta.k8s.io", "v1beta1") => "meta.k8s.io/v1beta1",
            _ => return None,
        };
        match self.kind {
            "Table" if is_protobuf => None,
            "Table" => Some(Form::Table { version }),
            "PartialObjectMetadata" => Some(Form::Partial { version, list: false }),
            "PartialObjectMetadataList" => Some(Form::Partial { version, list: true }),
            _ => None,
        }
    }

    /// Returns true if the parameters request aggregated discovery.
    fn is_aggregated(&self, media: Media) -> bool {
        let requested = (self.kind, self.group, self.version);
        requested == ("APIGroupDiscoveryList", "apidiscovery.k8s.io", "v2")
            && self.server_version.is_empty()
            && self.has_stream(media)
    }
}

/// The media types of objects.
pub(crate) const TYPES: &str =
    "application/json, application/yaml, application/vnd.kubernetes.protobuf";

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

/// Returns the error for a body of an unknown media type.
fn unknown_content() -> Failure {
    let message = "415: Unsupported Media Type".to_owned();
    Failure::new(415, "UnsupportedMediaType", message).with_details(serde_json::json!({}))
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
        assert!(check_types(&headers([png, json]), json).is_err());
        assert!(check_types(&headers([json, png]), json).is_ok());
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
    fn aggregated_discovery_is_taken_before_any_other_form() {
        let media = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT, value.parse().unwrap());
            aggregated_media(&headers)
        };
        let form = "as=APIGroupDiscoveryList;v=v2;g=apidiscovery.k8s.io";
        let after_json = format!("application/json, application/yaml;{form}");
        assert_eq!(media(&after_json), Some(Media::Yaml));
        assert_eq!(media(&format!("application/*;{form}")), Some(Media::Json));
        assert_eq!(media("application/json;as=APIGroupDiscoveryList;v=v2"), None);
        assert_eq!(media(&format!("application/json;{form};sv=v1")), None);
    }

    #[test]
    fn first_type_is_that_of_first_range() {
        let first = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT, value.parse().unwrap());
            first_type(&headers, &["application/json", "application/x"])
        };
        assert_eq!(first(""), Some("application/json"));
        assert_eq!(first("application/json;q=0.5, application/x"), Some("application/x"));
        assert_eq!(first("text/html, */x"), Some("application/x"));
        assert_eq!(first("*"), Some("application/json"));
        assert_eq!(first("text/*, application"), None);
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
