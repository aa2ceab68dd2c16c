//! The headers by which clients cache the documents that describe the server.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use jiff::{SignedDuration, Timestamp};

use super::openapi::{self, Edition};
use super::route::Wanted;
use crate::reply::Document;

/// The time for which a client may keep an edition that it asked for by its hash.
const YEAR: SignedDuration = SignedDuration::from_hours(365 * 24);

/// Returns a document of aggregated discovery, whose hash is that of its JSON.
pub(super) fn discovery(
    media_type: &'static str,
    (body, hash): (Bytes, u64),
    request: &HeaderMap,
) -> Document {
    let etag = etag(hash);
    let headers = vec![
        (header::ETAG, etag.clone()),
        (header::VARY, HeaderValue::from_static("Accept")),
        (header::CACHE_CONTROL, HeaderValue::from_static("public")),
    ];
    // Only one tag, in the form in which it was sent.
    let code = if request.get(header::IF_NONE_MATCH) == Some(&etag) { 304 } else { 200 };
    reply(code, media_type, body, headers)
}

/// Returns the document of `OpenAPI` v2 in a media type.
pub(super) fn swagger(
    media_type: &'static str,
    body: Bytes,
    edition: Edition,
    request: &HeaderMap,
) -> Document {
    let mut headers = vary_of_swagger();
    headers.push((header::ETAG, etag(edition.hash)));
    of_edition(media_type, body, edition, headers, request)
}

/// Returns the reply to a client that accepts no media type of `OpenAPI` v2.
pub(super) fn no_swagger() -> Document {
    Document { headers: vary_of_swagger(), ..Document::empty(406) }
}

/// Returns the reply to a client that accepts no media type of `OpenAPI` v3.
pub(super) fn no_schemas() -> Document {
    let headers = vec![(header::VARY, HeaderValue::from_static("Accept"))];
    Document { headers, ..Document::empty(406) }
}

/// Returns a document that a client may keep for an hour.
pub(super) fn public(media_type: &'static str, body: Bytes) -> Document {
    let hour = HeaderValue::from_static("public, max-age=3600");
    reply(200, media_type, body, vec![(header::CACHE_CONTROL, hour)])
}

/// Returns the index of the documents of `OpenAPI` v3, which is made for each request.
pub(super) fn index(media_type: &'static str, body: Bytes, now: Timestamp) -> Document {
    reply(200, media_type, body, vec![(header::LAST_MODIFIED, time(now, "GMT"))])
}

/// Returns a document of `OpenAPI` v3. A client that names another edition is sent to this one.
pub(super) fn schemas(name: &str, body: Bytes, edition: Edition, wanted: &Wanted<'_>) -> Document {
    const JSON: &str = "application/json";
    let mut headers = vec![
        (header::VARY, HeaderValue::from_static("Accept")),
        (header::ETAG, etag(edition.hash)),
    ];
    if wanted.hash.is_empty() {
        return of_edition(JSON, body, edition, headers, wanted.headers);
    }
    if wanted.hash != openapi::hash_text(edition.hash) {
        headers.push((header::LOCATION, ascii(&openapi::url(name, edition.hash))));
        return reply(301, JSON, Bytes::new(), headers);
    }
    headers.push((header::CACHE_CONTROL, HeaderValue::from_static("public, immutable")));
    headers.push((header::EXPIRES, time(wanted.now + YEAR, "UTC")));
    of_edition(JSON, body, edition, headers, wanted.headers)
}

/// Returns the document, or 304 if the client has this edition of it.
fn of_edition(
    media_type: &'static str,
    body: Bytes,
    edition: Edition,
    mut headers: Vec<(HeaderName, HeaderValue)>,
    request: &HeaderMap,
) -> Document {
    let has_edition = is_known(request, &etag(edition.hash));
    if !has_edition {
        headers.push((header::LAST_MODIFIED, time(edition.made, "GMT")));
    }
    reply(if has_edition { 304 } else { 200 }, media_type, body, headers)
}

fn reply(
    code: u16,
    media_type: &'static str,
    body: Bytes,
    headers: Vec<(HeaderName, HeaderValue)>,
) -> Document {
    if code == 304 {
        return Document { headers, ..Document::empty(code) };
    }
    Document { code, media_type: Some(media_type), body, headers }
}

fn vary_of_swagger() -> Vec<(HeaderName, HeaderValue)> {
    ["Accept-Encoding", "Accept"].map(|name| (header::VARY, HeaderValue::from_static(name))).into()
}

/// Returns true if the client has the edition with this tag: `If-None-Match` lists it, strong or
/// weak, or is `*`.
fn is_known(request: &HeaderMap, etag: &HeaderValue) -> bool {
    let Ok(etag) = etag.to_str() else { return false };
    let known = request.get(header::IF_NONE_MATCH).and_then(|value| value.to_str().ok());
    let mut tags = known.unwrap_or_default().split(',').map(str::trim);
    tags.any(|tag| tag == "*" || tag.strip_prefix("W/").unwrap_or(tag) == etag)
}

fn etag(hash: u64) -> HeaderValue {
    ascii(&format!("\"{}\"", openapi::hash_text(hash)))
}

/// Returns a time as HTTP has it.
fn time(time: Timestamp, zone: &str) -> HeaderValue {
    ascii(&time.strftime(&format!("%a, %d %b %Y %H:%M:%S {zone}")).to_string())
}

fn ascii(text: &str) -> HeaderValue {
    HeaderValue::from_str(text).expect("the text is ASCII")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edition_is_known_by_any_of_several_tags() {
        let tag = etag(7);
        let is_known = |value: &'static str| {
            let value = HeaderValue::from_static(value);
            is_known(&HeaderMap::from_iter([(header::IF_NONE_MATCH, value)]), &tag)
        };
        assert_eq!(tag, "\"0000000000000007\"");
        for known in ["\"0000000000000007\"", "\"a\", W/\"0000000000000007\"", "*"] {
            assert!(is_known(known), "{known}");
        }
        for unknown in ["", "0000000000000007", "\"7\"", "\"a\", \"b\""] {
            assert!(!is_known(unknown), "{unknown}");
        }
    }

    #[test]
    fn times_are_those_of_http() {
        let at = "2026-01-02T03:04:05.678Z".parse().unwrap();
        assert_eq!(time(at, "GMT"), "Fri, 02 Jan 2026 03:04:05 GMT");
    }
}
