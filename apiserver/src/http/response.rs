//! Answers, as they go over the wire.

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use serde_json::Value;

use super::Body;
use crate::status::Failure;

/// What a handler answers.
#[derive(Debug)]
pub(crate) enum Reply {
    Json {
        code: u16,
        body: Bytes,
    },
    /// Discovery, whose clients insist on the media type that they asked for.
    Typed {
        media_type: &'static str,
        body: Bytes,
    },
    Watch(Body),
    Text(String),
    /// No request that the server could look at.
    Malformed,
    Failure(Failure),
    /// No such path. Not a Status: the real server's mux answers before any resource does.
    NotFound,
    /// No such document, without a word.
    Nothing,
}

const JSON: &str = "application/json";
pub(super) const TEXT: &str = "text/plain; charset=utf-8";

// === impl Reply ===

impl Reply {
    pub(crate) fn ok(body: Bytes) -> Self {
        Self::Json { code: 200, body }
    }

    pub(crate) fn value(value: &Value) -> Self {
        Self::ok(value.to_string().into())
    }

    pub(super) fn into_response(self) -> Response<Body> {
        match self {
            Self::Json { code, body } => respond(code, JSON, Body::full(body)),
            Self::Typed { media_type, body } => respond(200, media_type, Body::full(body)),
            Self::Watch(body) => respond(200, JSON, body),
            Self::Text(text) => respond(200, TEXT, Body::full(text)),
            Self::Malformed => respond(400, TEXT, Body::full("400 Bad Request")),
            Self::NotFound => respond(404, TEXT, Body::full("404 page not found\n")),
            Self::Nothing => {
                let mut response = respond(404, TEXT, Body::full(""));
                response.headers_mut().remove(header::CONTENT_TYPE);
                response
            }
            Self::Failure(failure) => {
                let body = Body::full(failure.to_json().to_string());
                let mut response = respond(failure.code, JSON, body);
                if let Some(seconds) = failure.retry_after() {
                    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
                }
                response
            }
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
