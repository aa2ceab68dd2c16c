//! Answers and events in a few words: what they are, how long, and a hash that tells them apart.

use bytes::{Bytes, BytesMut};
use serde::Deserialize;

/// As much of an event as is told.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Event<'a> {
    #[serde(borrow, rename = "type")]
    kind: std::borrow::Cow<'a, str>,
    #[serde(borrow)]
    object: Object<'a>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Object<'a> {
    #[serde(borrow)]
    metadata: Metadata<'a>,
    code: Option<u16>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct Metadata<'a> {
    #[serde(borrow)]
    namespace: std::borrow::Cow<'a, str>,
    #[serde(borrow)]
    name: std::borrow::Cow<'a, str>,
    #[serde(borrow)]
    resource_version: std::borrow::Cow<'a, str>,
}

pub(super) fn is_bookmark(line: &[u8]) -> bool {
    // Whoever writes `type` later in the line has an event that is parsed.
    line.starts_with(br#"{"type":"BOOKMARK""#)
        || serde_json::from_slice::<Event<'_>>(line).is_ok_and(|event| event.kind == "BOOKMARK")
}

/// An event of a watch.
pub(super) fn event(line: &[u8]) -> String {
    let Ok(event) = serde_json::from_slice::<Event<'_>>(line) else {
        return format!("no event, {}", bytes(line));
    };
    let metadata = event.object.metadata;
    let mut words = event.kind.into_owned();
    if let Some(code) = event.object.code {
        words = format!("{words} {code}");
    }
    if !metadata.name.is_empty() {
        let slash = if metadata.namespace.is_empty() { "" } else { "/" };
        words = format!("{words} {}{slash}{}", metadata.namespace, metadata.name);
    }
    format!("{words} at {}, {}", metadata.resource_version, bytes(line))
}

/// How many bytes, and a hash of them (FNV-1a: the same on every machine, and short).
pub(super) fn bytes(bytes: &[u8]) -> String {
    let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    format!("{} bytes ({hash:016x})", bytes.len())
}

/// The bytes with one of them changed, so that they are no UTF-8 and hence no JSON.
pub(super) fn corrupt(bytes: &Bytes, at: usize) -> Bytes {
    let mut bytes = BytesMut::from(&bytes[..]);
    if let Some(last) = bytes.len().checked_sub(1) {
        bytes[at.min(last)] = 0xff;
    }
    bytes.freeze()
}
