//! Reads of one object.

use std::sync::Arc;

use homeostat_core::go_quote;

use super::renderer::Renderer;
use super::shown;
use crate::core::Core;
use crate::go_json::{GoInteger, parse_integer};
use crate::reply::Reply;
use crate::request::ApiCall;
use crate::status::{Failure, Result};

pub(super) async fn get(core: &Arc<Core>, call: &ApiCall, name: &str) -> Result<Reply> {
    let served = &call.target.served;
    if call.params.flag("export") {
        let detail = "the export parameter, deprecated since v1.14, is no longer supported";
        return Err(Failure::bad_request(detail));
    }
    let version = call.params.get("resourceVersion");
    if !version.is_empty() {
        // A list rejects this with 400. A get from the cache answers 500, also in the real server.
        if served.kind.cached {
            let revision = revision(version).map_err(Failure::internal)?;
            core.wait_for_revision(revision, &call.client_view).await?;
        } else if let Some(revision) = parse_version(version)? {
            core.check_revision(revision)?;
        }
    }
    let key = served.kind.key(call.namespace(), name);
    let from_cache = served.kind.cached && !version.is_empty();
    match core.get_visible(served.resource, &key, &call.client_view, from_cache) {
        // The real server looks at the form of the reply once it has the object.
        Some(stored) => {
            let stored = shown::object(core, call, stored).await?;
            Ok(Reply::ok(Renderer::of_object(core, call)?.object(&stored)))
        }
        None => Err(Failure::not_found(&served.kind, name)),
    }
}

/// Parses the resourceVersion of a read; `None` if it is unset.
pub(super) fn parse_version(text: &str) -> Result<Option<u64>> {
    if text.is_empty() {
        return Ok(None);
    }
    let refusal = |detail| Failure::bad_request(format!("invalid resource version: {detail}"));
    revision(text).map(Some).map_err(refusal)
}

/// Parses a resourceVersion.
pub(super) fn revision(text: &str) -> std::result::Result<u64, String> {
    parse_integer(text, GoInteger::Uint)
        .map_err(|detail| format!("resourceVersion: Invalid value: {}: {detail}", go_quote(text)))
}
