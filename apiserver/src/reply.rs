//! The reply of a handler, and its form in HTTP.

mod body;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Response, StatusCode, header};
use serde_json::Value;

use crate::json_text;
use crate::media::{EncodeError, Media};
use crate::status::Failure;

pub use body::Body;

/// The reply of a handler.
#[derive(Debug)]
pub(crate) enum Reply {
    Json {
        code: u16,
        body: Bytes,
    },
    /// A document that describes the server.
    Document(Document),
    /// The events of a watch, in the media type of the request.
    Watch(Body),
    Text(String),
    /// A text whose media type the real server finds out from its bytes.
    Sniffed(&'static str),
    /// A malformed request.
    Malformed,
    /// The time that the client gave to the request is over.
    Late,
    Failure(Failure),
    /// An unknown path. The reply is not a Status: the real server's mux answers before any
    /// resource does.
    NotFound,
}

/// A document that describes the server, with the headers by which clients cache it.
#[derive(Debug)]
pub(crate) struct Document {
    pub(crate) code: u16,
    /// None for a reply without a body.
    pub(crate) media_type: Option<&'static str>,
    pub(crate) body: Bytes,
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
}

/// The real server's filter writes a status without its type, and finds out the media type.
const LATE: &str = "{\"metadata\":{},\"status\":\"Failure\",\"message\":\"Timeout: request did not \
    complete within the allotted timeout\",\"reason\":\"Timeout\",\"details\":{},\"code\":504}\n";

pub(crate) const TEXT: &str = "text/plain; charset=utf-8";

// === impl Reply ===

impl Reply {
    pub(crate) fn ok(body: Bytes) -> Self {
        Self::Json { code: 200, body }
    }

    pub(crate) fn value(value: &Value) -> Self {
        Self::ok(value.to_string().into())
    }

    /// Returns the response, with its object in this media type.
    pub(crate) fn into_response(self, media: Media) -> Response<Body> {
        match self {
            Self::Json { code, body } => encoded(code, body, media),
            Self::Document(document) => document.into_response(),
            Self::Watch(body) => respond(200, media.stream_type(), body),
            Self::Text(text) => respond(200, TEXT, Body::full(text)),
            Self::Sniffed(text) => {
                let mut response = respond(200, TEXT, Body::full(text));
                response.headers_mut().remove(header::X_CONTENT_TYPE_OPTIONS);
                response
            }
            Self::Malformed => {
                let mut response = respond(400, TEXT, Body::full("400 Bad Request"));
                response.headers_mut().remove(header::X_CONTENT_TYPE_OPTIONS);
                response.headers_mut().remove(header::CACHE_CONTROL);
                response
            }
            Self::Late => {
                let mut response = respond(504, TEXT, Body::full(LATE));
                response.headers_mut().remove(header::X_CONTENT_TYPE_OPTIONS);
                response
            }
            Self::NotFound => respond(404, TEXT, Body::full("404 page not found\n")),
            Self::Failure(failure) => {
                let mut response =
                    encoded(failure.code, failure.to_json().to_string().into(), media);
                if let Some(seconds) = failure.retry_after() {
                    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
                }
                response
            }
        }
    }
}

// === impl Document ===

impl Document {
    /// Returns a reply without a body.
    pub(crate) fn empty(code: u16) -> Self {
        Self { code, media_type: None, body: Bytes::new(), headers: Vec::new() }
    }

    fn into_response(self) -> Response<Body> {
        let media_type = self.media_type.unwrap_or_default();
        let mut response = respond(self.code, media_type, Body::full(self.body));
        let headers = response.headers_mut();
        headers.remove(header::X_CONTENT_TYPE_OPTIONS);
        if self.media_type.is_none() {
            headers.remove(header::CONTENT_TYPE);
        }
        for (name, value) in self.headers {
            if name == header::VARY {
                headers.append(name, value);
            } else {
                headers.insert(name, value);
            }
        }
        response
    }
}

/// Returns a response whose body has line breaks and indentation, if it is JSON and no stream.
pub(crate) fn indented(response: Response<Body>) -> Response<Body> {
    let is_json = |value: &HeaderValue| value.as_bytes().starts_with(b"application/json");
    if !response.headers().get(header::CONTENT_TYPE).is_some_and(is_json) {
        return response;
    }
    response.map(|body| body.map_full(|json| json_text::indented(&json).into()))
}

/// Returns a response with an object, given as JSON. An object that does not exist in the media
/// type becomes a Status in JSON.
fn encoded(code: u16, json: Bytes, media: Media) -> Response<Body> {
    match media.encode(json) {
        // As upstream, JSON ends with a line feed, except for what people read.
        Ok(body) if media == Media::Json && !body.starts_with(b"{\n") => {
            respond(code, media.content_type(), Body::line(body))
        }
        Ok(body) => respond(code, media.content_type(), Body::full(body)),
        Err(error) => {
            let failure = match error {
                EncodeError::NoSchema(_) => Failure::not_acceptable(error.to_string()),
                EncodeError::Value(_) => Failure::internal(error.to_string()),
            };
            Reply::Failure(failure).into_response(Media::Json)
        }
    }
}

fn respond(code: u16, media_type: &'static str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() =
        StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    if media_type == TEXT {
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    }
    response
}
