//! The encoding of events.

use bytes::Bytes;

use crate::media::Media;
use crate::reply::{Body, Reply};
use crate::status::Failure;

/// Returns a watch that ends with an error. It is a stream: events have no line breaks for people.
pub(super) fn ended(media: Media, failure: &Failure) -> Reply {
    let mut error = Vec::new();
    append(&mut error, media, "ERROR", failure.to_json().to_string().as_bytes());
    Reply::Watch(Body::stream(futures::stream::iter([Bytes::from(error)])))
}

/// Appends an event. An object that cannot be encoded becomes an ERROR event.
pub(super) fn append(chunk: &mut Vec<u8>, media: Media, kind: &str, object: &[u8]) {
    if let Err(error) = media.append_event(chunk, kind, object) {
        let status = Failure::internal(error.to_string()).to_json().to_string();
        let appended = media.append_event(chunk, "ERROR", status.as_bytes());
        debug_assert!(appended.is_ok(), "a Status has every encoding");
    }
}
