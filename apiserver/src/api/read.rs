//! Reading one object.

use std::sync::Arc;

use super::view::View;
use crate::core::Core;
use crate::go_json::{Whole, whole};
use crate::http::{Answer, Call};
use crate::status::{Failure, Result};
use crate::types::quote;

pub(super) async fn get(core: &Arc<Core>, call: &Call, name: &str) -> Result<Answer> {
    let served = &call.target.served;
    let view = View::of_object(core, call)?;
    let version = call.params.get("resourceVersion");
    if !version.is_empty() {
        // A list refuses this with 400; a get really says 500.
        let revision = revision(version).map_err(Failure::internal)?;
        core.reach(revision, &call.sight).await?;
    }
    let key = served.kind.key(call.namespace(), name);
    match core.get_in_sight(call, &key) {
        Some(stored) => Ok(Answer::ok(view.object(&stored))),
        None => Err(Failure::not_found(&served.kind, name)),
    }
}

/// A resourceVersion of a read; none if it is unset.
pub(super) fn parse_version(text: &str) -> Result<Option<u64>> {
    if text.is_empty() {
        return Ok(None);
    }
    let refusal = |why| Failure::bad_request(format!("invalid resource version: {why}"));
    revision(text).map(Some).map_err(refusal)
}

/// The number of a resourceVersion.
pub(super) fn revision(text: &str) -> std::result::Result<u64, String> {
    whole(text, Whole::Uint)
        .map_err(|why| format!("resourceVersion: Invalid value: {}: {why}", quote(text)))
}
