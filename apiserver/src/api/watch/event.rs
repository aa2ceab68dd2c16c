//! The encoding of events.

use bytes::Bytes;
use serde_json::Value;

use crate::media::Media;
use crate::reply::{Body, Reply};
use crate::status::Failure;

/// Returns a watch that ends with an error. It is a stream: events have no line breaks for people.
pub(super) fn ended(media: Media, failure: &Failure) -> Reply {
    let error = event(media, "ERROR", &failure.to_json());
    Reply::Watch(Body::stream(futures::stream::iter([error])))
}

/// Encodes one event.
pub(super) fn event(media: Media, kind: &str, object: &Value) -> Bytes {
    let mut stream = Vec::new();
    append(&mut stream, media, kind, object.to_string().as_bytes());
    stream.into()
}

/// Appends an event. An object that cannot be encoded becomes an ERROR event.
pub(super) fn append(chunk: &mut Vec<u8>, media: Media, kind: &str, object: &[u8]) {
    if let Err(error) = media.append_event(chunk, kind, object) {
        let status = Failure::internal(error.to_string()).to_json().to_string();
        let appended = media.append_event(chunk, "ERROR", status.as_bytes());
        debug_assert!(appended.is_ok(), "a Status has every encoding");
    }
}
