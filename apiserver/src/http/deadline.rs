//! The parameter `timeout`: the time that a client gives to a request.
//!
//! The server answers sooner than any client waits, so that it only checks the parameter.

use homeostat_faults::{RequestInfo, Verb};
use http::request::Parts;

use crate::clock::check_go_duration;
use crate::request::params::{Params, decode_lossy};
use crate::status::{Failure, Result};

/// Subresources whose requests last as long as their client wants.
const LONG_RUNNING: [&str; 5] = ["attach", "exec", "log", "portforward", "proxy"];

/// Fails if the timeout of a request is no duration, unless the request may last for long.
pub(super) fn check(parts: &Parts) -> Result<()> {
    let query = parts.uri.query().unwrap_or_default();
    if !query.contains("timeout=") {
        return Ok(());
    }
    let params = Params::parse(query);
    let timeout = params.get("timeout");
    if timeout.is_empty() || is_long_running(parts, query) {
        return Ok(());
    }
    check_go_duration(timeout).map_err(|why| {
        Failure::bad_request(format!("invalid timeout specified in the request URL - {why}"))
    })
}

fn is_long_running(parts: &Parts, query: &str) -> bool {
    let Some(path) = decode_lossy(parts.uri.path()) else { return false };
    let info = RequestInfo::parse(&parts.method, &path, query);
    // A path below a proxy belongs to the proxy, too.
    let part = info.subresource.as_deref().and_then(|part| part.split('/').next());
    info.verb == Verb::Watch || part.is_some_and(|part| LONG_RUNNING.contains(&part))
}
