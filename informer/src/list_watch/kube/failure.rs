//! [`Failure`]: a request without a successful answer.

use std::sync::Arc;
use std::time::Duration;

use http::{Response, header};
use http_body_util::BodyExt;
use kube_client::client::Body;

use super::decode;
use crate::list_watch::{ApiError, BoxError, ListError, WatchError};

/// The failure of a list or watch request. The caller adds the resource.
pub(super) enum Failure {
    /// The server refused the request, or would refuse it.
    Refused(ApiError),
    /// The connection failed before an answer arrived.
    Unreachable(BoxError),
}

/// The limit of an error response body in bytes: 64 KiB.
///
/// A Status takes less than 1 KiB in most cases. A proxy may send a page of its own.
const MAX_ERROR_BODY: usize = 64 << 10;

// === impl Failure ===

impl Failure {
    /// A request that cannot be built, for example with a version of 100 KB: the status that a
    /// server would send for it.
    ///
    /// The reflector then sends a request without a version. If it took the server for unreachable,
    /// it would repeat the same request and never recover.
    pub(super) fn unsendable(error: &http::Error) -> Self {
        Self::Refused(ApiError::new(400, "BadRequest", error.to_string()))
    }

    /// A request for which the client has no answer.
    pub(super) fn unanswered(error: kube_client::Error) -> Self {
        match error {
            kube_client::Error::HttpError(error) => Self::unsendable(&error),
            error => Self::Unreachable(cause(error)),
        }
    }

    /// A request to which the server answered with an error. Reads the body of the answer.
    pub(super) async fn refused(response: Response<Body>) -> Self {
        Self::Refused(api_error(response).await)
    }

    /// Returns the error of a list of `target`.
    pub(super) fn of_list(self, target: Arc<str>) -> ListError {
        match self {
            Self::Refused(error) => ListError::Refused { target, error },
            Self::Unreachable(source) => ListError::Unreachable { target, source },
        }
    }

    /// Returns the error of a watch of `target`.
    pub(super) fn of_watch(self, target: Arc<str>) -> WatchError {
        match self {
            Self::Refused(error) => WatchError::Refused { target, error },
            Self::Unreachable(source) => WatchError::Unreachable { target, source },
        }
    }
}

/// Returns the cause of `error` without kube-client's name for the layer that reported it.
pub(super) fn cause(error: kube_client::Error) -> BoxError {
    match error {
        kube_client::Error::Service(source) => source,
        kube_client::Error::HyperError(source) => Box::new(source),
        other => Box::new(other),
    }
}

/// Reads the complete body, up to `limit` bytes.
///
/// # Errors
///
/// If the connection breaks, or if the body is longer than `limit`.
async fn collect(response: Response<Body>, limit: usize) -> Result<Vec<u8>, kube_client::Error> {
    let mut body = response.into_body();
    let mut bytes = Vec::new();
    while let Some(frame) = body.frame().await {
        let Ok(chunk) = frame?.into_data() else { continue };
        if chunk.len() > limit - bytes.len() {
            return Err(kube_client::Error::Service(
                format!("response body exceeds {limit} bytes").into(),
            ));
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

/// Decodes the Status of an error response. For a body that is not a Status, such as the page of a
/// proxy, only the HTTP status is known.
async fn api_error(response: Response<Body>) -> ApiError {
    let code = response.status().as_u16();
    let retry_after = retry_after(response.headers());
    let mut error = match collect(response, MAX_ERROR_BODY).await {
        Ok(body) => decode::status(&body).unwrap_or_else(|| ApiError::new(code, "", "")),
        Err(_) => ApiError::new(code, "", ""),
    };
    error.code = code;
    error.retry_after = retry_after.or(error.retry_after);
    error
}

/// Returns the time of `Retry-After`, which is a number of seconds or a date.
///
/// A date is compared with the `Date` header of the same response, because the local clock may
/// differ from the server's.
pub(super) fn retry_after(headers: &header::HeaderMap) -> Option<Duration> {
    let text = |name| headers.get(name)?.to_str().ok();
    homeostat_core::retry_after(text(header::RETRY_AFTER)?, text(header::DATE))
}
