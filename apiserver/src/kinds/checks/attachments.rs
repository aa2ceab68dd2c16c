//! Attachments of volumes to nodes.

use serde_json::{Value, json};

use super::Test::{Between, By, Has, Required};
use super::{Causes, Check, check_text, is_empty, join, member, persistent_volume, text};
use crate::fields::Fields;
use crate::names;
use crate::status::Cause;

/// The longest message of an error.
const MAX_MESSAGE: usize = 1024;
/// The largest size of the metadata, in bytes.
const MAX_METADATA: usize = 256 * 1024;

pub(crate) fn attachment(attachment: &Fields, old: Option<&Fields>, causes: Causes<'_>) {
    const SPEC: &[Check] = &[("source", By(source)), ("nodeName", By(node))];
    const STATUS: &[Check] = &[
        ("attachmentMetadata", By(metadata)),
        ("attachError", Has(ERROR)),
        ("detachError", Has(ERROR)),
    ];
    let spec = attachment.get("spec").unwrap_or(&Value::Null);
    if old.is_some() {
        super::run(&[("attacher", Required(""))], spec, "spec", causes);
    }
    super::run(SPEC, spec, "spec", causes);
    super::run(STATUS, attachment.get("status").unwrap_or(&Value::Null), "status", causes);
    let name = member(member(spec, "source"), "persistentVolumeName");
    check_text(name, names::dns_subdomain, "spec.source.persistentVolumeName", causes);
    if old.is_none() {
        driver(member(spec, "attacher"), "spec.attacher", causes);
    }
    super::unchanged(&["spec"], attachment, old, causes);
}

const ERROR: &[Check] = &[("message", By(message)), ("errorCode", Between(0, i32::MAX as i64))];

/// Checks the name of a driver by rules that other kinds state in other words.
pub(super) fn driver(name: &Value, at: &str, causes: Causes<'_>) {
    const LONGEST: usize = 63;
    if is_empty(name) {
        causes.push(Cause::required(at, ""));
        return;
    }
    check_text(name, names::any_subdomain, at, causes);
    if name.as_str().is_some_and(|name| name.chars().count() > LONGEST) {
        causes.push(Cause::too_many_characters(at, LONGEST));
    }
}

fn node(spec: &Value, _: &Value, at: &str, causes: Causes<'_>) {
    check_text(&json!(text(spec, "nodeName")), names::dns_subdomain, at, causes);
}

/// Checks the volume: a persistent one, or one that the attachment describes.
fn source(_: &Value, source: &Value, at: &str, causes: Causes<'_>) {
    const DETAIL: &str = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
    let (inline, name) =
        (member(source, "inlineVolumeSpec"), member(source, "persistentVolumeName"));
    match (inline.is_null(), name.is_null()) {
        (true, true) => causes.push(Cause::required(at, DETAIL)),
        (false, false) => causes.push(Cause::forbidden(at, DETAIL)),
        (true, false) => {
            const NAME: &[Check] = &[(
                "persistentVolumeName",
                Required("must specify non empty persistentVolumeName"),
            )];
            super::run(NAME, source, at, causes);
        }
        (false, true) => persistent_volume::inline(inline, &join(at, "inlineVolumeSpec"), causes),
    }
}

fn metadata(_: &Value, metadata: &Value, at: &str, causes: Causes<'_>) {
    let members = metadata.as_object().into_iter().flatten();
    let sizes = members.map(|(key, value)| key.len() + value.as_str().map_or(0, str::len));
    if sizes.sum::<usize>() > MAX_METADATA {
        causes.push(Cause::too_long(at, MAX_METADATA));
    }
}

fn message(_: &Value, message: &Value, at: &str, causes: Causes<'_>) {
    if message.as_str().is_some_and(|message| message.len() > MAX_MESSAGE) {
        causes.push(Cause::too_long(at, MAX_MESSAGE));
    }
}
