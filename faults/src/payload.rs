//! Describes and corrupts reply bodies and watch events.

use std::borrow::Cow;

use bytes::{Bytes, BytesMut};
use serde::Deserialize;

/// The parts of a watch event that the trace shows.
#[derive(Deserialize, Default)]
#[serde(default)]
struct EventSummary<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    object: ObjectSummary<'a>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct ObjectSummary<'a> {
    #[serde(borrow)]
    metadata: MetadataSummary<'a>,
    code: Option<u16>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct MetadataSummary<'a> {
    #[serde(borrow)]
    namespace: Cow<'a, str>,
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    resource_version: Cow<'a, str>,
}

pub(crate) fn is_bookmark(line: &[u8]) -> bool {
    // A server may write `type` later in the line; such a line is parsed.
    line.starts_with(br#"{"type":"BOOKMARK""#)
        || serde_json::from_slice::<EventSummary<'_>>(line)
            .is_ok_and(|event| event.kind == "BOOKMARK")
}

/// Describes a watch event: its type, object, resource version, length and hash.
pub(crate) fn describe_event(line: &[u8]) -> String {
    let Ok(event) = serde_json::from_slice::<EventSummary<'_>>(line) else {
        return format!("invalid event, {}", describe_bytes(line));
    };
    let metadata = event.object.metadata;
    let mut text = event.kind.into_owned();
    if let Some(code) = event.object.code {
        text = format!("{text} {code}");
    }
    if !metadata.name.is_empty() {
        let slash = if metadata.namespace.is_empty() { "" } else { "/" };
        text = format!("{text} {}{slash}{}", metadata.namespace, metadata.name);
    }
    format!("{text} at {}, {}", metadata.resource_version, describe_bytes(line))
}

/// Describes bytes by their number and an FNV-1a hash, which is the same on every machine.
pub(crate) fn describe_bytes(bytes: &[u8]) -> String {
    let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    format!("{} bytes ({hash:016x})", bytes.len())
}

/// Replaces the byte at `at`, or the last one, so that the bytes are neither UTF-8 nor JSON.
pub(crate) fn corrupt(bytes: &Bytes, at: usize) -> Bytes {
    let mut bytes = BytesMut::from(&bytes[..]);
    if let Some(last) = bytes.len().checked_sub(1) {
        bytes[at.min(last)] = 0xff;
    }
    bytes.freeze()
}
