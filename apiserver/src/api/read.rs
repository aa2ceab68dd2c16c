//! Reading one object, and writing objects down for the client.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;

use crate::core::Core;
use crate::http::{Answer, Call};
use crate::kinds::Served;
use crate::object::{Encoded, Stored};
use crate::status::{Failure, Result};

pub(super) async fn get(core: &Arc<Core>, call: &Call, name: &str) -> Result<Answer> {
    let served = &call.target.served;
    if let Some(revision) = parse_version(call.params.get("resourceVersion"))? {
        core.reach(revision, &call.sight).await?;
    }
    let key = served.kind.key(call.namespace(), name);
    match core.get_in_sight(call, &key) {
        Some(stored) => Ok(Answer::ok(render(served, &stored))),
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

/// An object in the form of the kind that was asked for.
pub(super) fn render(served: &Served, stored: &Stored) -> Bytes {
    in_form(served, stored).map_or_else(|| stored.bytes().clone(), |other| other.bytes().clone())
}

/// The object in the asked form, if that is not the stored one.
fn in_form(served: &Served, stored: &Stored) -> Option<Stored> {
    if served.is_home() {
        return None;
    }
    let mut fields = stored.fields();
    served.kind.rename_from_storage(&mut fields);
    Some(Encoded::new(&served.kind, fields).at(stored.revision))
}

/// Appends an object as an item of a list. Items of built-in kinds do not say what they are: the list does.
pub(super) fn append_item(into: &mut Vec<u8>, served: &Served, stored: &Stored) {
    let other = in_form(served, stored);
    let stored = other.as_ref().unwrap_or(stored);
    if served.kind.custom {
        into.extend_from_slice(stored.bytes());
    } else {
        into.push(b'{');
        into.extend_from_slice(stored.item());
    }
}

/// A list of a kind, as JSON.
pub(super) fn render_list<'a>(
    served: &Served,
    metadata: &Value,
    items: impl Iterator<Item = &'a Arc<Stored>>,
) -> Bytes {
    let kind = &served.kind;
    let head = format!(
        "{{\"kind\":\"{}List\",\"apiVersion\":\"{}\",\"metadata\":{metadata},\"items\":[",
        kind.kind,
        kind.api_version()
    );
    let mut body = head.into_bytes();
    for (at, item) in items.enumerate() {
        if at > 0 {
            body.push(b',');
        }
        append_item(&mut body, served, item);
    }
    body.extend_from_slice(b"]}");
    body.into()
}
