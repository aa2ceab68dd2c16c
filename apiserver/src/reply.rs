//! The reply of a handler, and its form in HTTP.

mod body;

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use serde_json::Value;

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
    /// A discovery document, with the media type that the client asked for.
    Typed {
        media_type: &'static str,
        body: Bytes,
    },
    /// The events of a watch, in the media type of the request.
    Watch(Body),
    Text(String),
    /// A malformed request.
    Malformed,
    Failure(Failure),
    /// An unknown path. The reply is not a Status: the real server's mux answers before any
    /// resource does.
    NotFound,
    /// An unknown document: an empty 404.
    Nothing,
    /// A document that does not exist in the requested media type: an empty 406.
    NotAcceptable,
}

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
            Self::Typed { media_type, body } => respond(200, media_type, Body::full(body)),
            Self::Watch(body) => respond(200, media.stream_type(), body),
            Self::Text(text) => respond(200, TEXT, Body::full(text)),
            Self::Malformed => respond(400, TEXT, Body::full("400 Bad Request")),
            Self::NotFound => respond(404, TEXT, Body::full("404 page not found\n")),
            Self::Nothing => empty(404),
            Self::NotAcceptable => empty(406),
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

/// Returns a response with an object, given as JSON. An object that does not exist in the media
/// type becomes a Status in JSON.
fn encoded(code: u16, json: Bytes, media: Media) -> Response<Body> {
    match media.encode(json) {
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

fn empty(code: u16) -> Response<Body> {
    let mut response = respond(code, TEXT, Body::full(""));
    response.headers_mut().remove(header::CONTENT_TYPE);
    response
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
