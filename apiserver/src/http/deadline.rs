//! The parameter `timeout`: the time that a client gives to a request.

use std::pin::Pin;
use std::time::Duration;

use homeostat_faults::{RequestInfo, Verb};
use http::Response;
use http::request::Parts;

use crate::access::Attributes;
use crate::clock::check_go_duration;
use crate::reply::Body;
use crate::request::params::{Params, decode_lossy};
use crate::status::{Failure, Result};

/// Returns the time that the client gives to a request; `None` if it sets none, or if the request
/// may last for long.
///
/// # Errors
///
/// Fails if the parameter is no duration.
pub(super) fn limit(parts: &Parts) -> Result<Option<Duration>> {
    let query = parts.uri.query().unwrap_or_default();
    if !query.contains("timeout=") {
        return Ok(None);
    }
    let params = Params::parse(query);
    let timeout = params.get("timeout");
    if timeout.is_empty() || is_long_running(parts, query) {
        return Ok(None);
    }
    check_go_duration(timeout).map_err(|why| {
        Failure::bad_request(format!("invalid timeout specified in the request URL - {why}"))
    })?;
    Ok(params.time_limit())
}

/// Returns a response, or `None` once its time is over.
///
/// The future is borrowed: each function that takes it by value has room for it, too.
///
/// # Cancel safety
///
/// A request that is over has no effect: it waits before it changes anything. The exception is the
/// deletion of a collection, which stops between two objects.
pub(super) async fn within(
    limit: Option<Duration>,
    response: Pin<&mut impl Future<Output = Response<Body>>>,
) -> Option<Response<Body>> {
    match limit {
        None => Some(response.await),
        Some(limit) => tokio::time::timeout(limit, response).await.ok(),
    }
}

fn is_long_running(parts: &Parts, query: &str) -> bool {
    let Some(path) = decode_lossy(parts.uri.path()) else { return false };
    let info = RequestInfo::parse(&parts.method, &path, query);
    // A path below a proxy belongs to the proxy, too.
    let part = info.subresource.as_deref().and_then(|part| part.split('/').next());
    info.verb == Verb::Watch || part.is_some_and(|part| Attributes::LONG_RUNNING.contains(&part))
}
