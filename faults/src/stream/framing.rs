//! The events in the body of a watch: lines of JSON, or protobuf messages after their lengths.

use bytes::Bytes;
use http::{HeaderMap, header};
use memchr::{memchr, memrchr};
use serde_json::Value;

use crate::api_error::ApiError;
use crate::payload;
use crate::request_info::ClientRequest;

/// The form of the events in the body of a watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    /// JSON, each event on a line.
    Lines,
    /// Protobuf, each event after its length in four bytes.
    Lengths,
}

/// The bytes of a length.
const LENGTH: usize = 4;
/// The start of an event that is never completed, in JSON and in protobuf.
const TORN_LINE: &[u8] = br#"{"type":"MODIFIED","object":{"kind":"#;
const TORN_MESSAGE: &[u8] = b"\0\0\x01\0\x0a\x08MODIFIED";
/// The type of a bookmark, as a message starts with it.
const BOOKMARK: &[u8] = b"\x0a\x08BOOKMARK";

// === impl Framing ===

impl Framing {
    /// Returns the form that the headers of a response declare.
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let media_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let is_protobuf = |name: &str| name.starts_with("application/vnd.kubernetes.protobuf");
        if media_type.is_some_and(is_protobuf) { Self::Lengths } else { Self::Lines }
    }

    /// Returns the length of the first event, if it is complete.
    pub(super) fn first_event(self, bytes: &[u8]) -> Option<usize> {
        match self {
            Self::Lines => memchr(b'\n', bytes).map(|end| end + 1),
            Self::Lengths => {
                let (length, rest) = bytes.split_first_chunk::<LENGTH>()?;
                let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
                (rest.len() >= length).then_some(LENGTH + length)
            }
        }
    }

    /// Returns true if the bytes end no event. A message may end in any of them.
    pub(super) fn ends_nothing(self, bytes: &[u8]) -> bool {
        self == Self::Lines && memchr(b'\n', bytes).is_none()
    }

    /// Returns the length of all complete events at the start of the bytes.
    pub(super) fn complete_events(self, bytes: &[u8]) -> usize {
        if self == Self::Lines {
            return memrchr(b'\n', bytes).map_or(0, |end| end + 1);
        }
        let mut end = 0;
        while let Some(length) = self.first_event(&bytes[end..]) {
            end += length;
        }
        end
    }

    pub(super) fn is_bookmark(self, event: &[u8]) -> bool {
        match self {
            Self::Lines => payload::is_bookmark(event),
            Self::Lengths => event.get(LENGTH..).is_some_and(|event| event.starts_with(BOOKMARK)),
        }
    }

    /// Describes an event for the trace.
    pub(super) fn describe(self, event: &[u8]) -> String {
        match self {
            Self::Lines => payload::describe_event(event),
            Self::Lengths => format!("protobuf event, {}", payload::describe_bytes(event)),
        }
    }

    /// Returns the start of an event that is never completed.
    pub(super) fn torn_event(self) -> Bytes {
        Bytes::from_static(match self {
            Self::Lines => TORN_LINE,
            Self::Lengths => TORN_MESSAGE,
        })
    }

    /// Returns the `ERROR` event that reports an error.
    pub(super) fn error_event(self, error: &ApiError, request: &ClientRequest) -> Bytes {
        match self {
            Self::Lines => error.event(request),
            Self::Lengths => error_message(&error.status(request)).into(),
        }
    }
}

/// Encodes an `ERROR` event: a `WatchEvent` around a `runtime.Unknown` around a `Status`.
fn error_message(status: &Value) -> Vec<u8> {
    let text = |name: &str| status[name].as_str().unwrap_or_default().as_bytes();
    let mut object = [field(2, text("status")), field(3, text("message"))].concat();
    object.extend(field(4, text("reason")));
    object.push(6 << 3);
    object.extend(varint(status["code"].as_u64().unwrap_or_default()));
    let kind = [field(1, b"v1"), field(2, b"Status")].concat();
    let body = [&b"k8s\0"[..], &field(1, &kind), &field(2, &object)].concat();
    let event = [field(1, b"ERROR"), field(2, &field(1, &body))].concat();
    let length = u32::try_from(event.len()).unwrap_or(u32::MAX);
    [&length.to_be_bytes()[..], &event].concat()
}

/// Encodes a protobuf field that has a length.
fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    [&[number << 3 | 2][..], &varint(bytes.len() as u64), bytes].concat()
}

fn varint(mut number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number >= 0x80 {
        bytes.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    bytes.push((number & 0x7f) as u8);
    bytes
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn protobuf_events_are_split_by_their_lengths() {
        let stream = b"\0\0\0\x0a\x0a\x08BOOKMARK\0\0\0\x02\n\n\0\0\0";
        let framing = Framing::Lengths;
        assert_eq!(framing.first_event(stream), Some(14));
        assert_eq!(framing.complete_events(stream), 20);
        assert!(framing.is_bookmark(&stream[..14]));
        assert!(!framing.is_bookmark(&stream[14..20]));
        assert_eq!(framing.first_event(&stream[20..]), None);
        assert_eq!(framing.first_event(&framing.torn_event()), None);
    }

    #[test]
    fn error_is_a_complete_protobuf_event() {
        let message = "m".repeat(200);
        let status = json!({"status": "Failure", "message": message, "code": 410});
        let event = error_message(&status);
        assert_eq!(Framing::Lengths.first_event(&event), Some(event.len()));
        assert!(event[4..].starts_with(b"\x0a\x05ERROR\x12"));
        assert!(event.ends_with(&[6 << 3, 0x9a, 0x03]), "the code is 410: {event:?}");
    }
}
