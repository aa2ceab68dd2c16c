//! Reading one object.

use std::sync::Arc;

use super::view::View;
use crate::core::Core;
use crate::http::{Answer, Call};
use crate::status::{Failure, Result};

pub(super) async fn get(core: &Arc<Core>, call: &Call, name: &str) -> Result<Answer> {
    let served = &call.target.served;
    let view = View::of_object(core, call)?;
    let version = call.params.get("resourceVersion");
    if !version.is_empty() {
        // A list refuses this with 400; a get really says 500.
        let revision = version.parse().map_err(|_| Failure::internal(not_a_version(version)))?;
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
    let refusal =
        |_| Failure::bad_request(format!("invalid resource version: {}", not_a_version(text)));
    text.parse().map(Some).map_err(refusal)
}

pub(super) fn not_a_version(text: &str) -> String {
    format!(
        "resourceVersion: Invalid value: \"{text}\": strconv.ParseUint: parsing \"{text}\": invalid syntax"
    )
}
