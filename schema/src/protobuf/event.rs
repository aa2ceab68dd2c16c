//! Events of a watch: a length in four bytes, then a `WatchEvent` around a body.

use super::ProtobufError;
use super::wire::{Reader, Writer};

/// An event of a watch.
///
/// # Examples
///
/// ```
/// use homeostat_schema::{Envelope, ProtobufEvent};
///
/// let body = Envelope::new("v1", "ConfigMap", Vec::new()).to_bytes();
/// let mut stream = ProtobufEvent::new("ADDED", body).to_frame();
/// stream.extend(ProtobufEvent::new("DELETED", Vec::new()).to_frame());
///
/// let (event, rest) = ProtobufEvent::read_frame(&stream)?.unwrap();
/// assert_eq!(event.event_type, "ADDED");
/// assert_eq!(Envelope::read(&event.object)?.kind, "ConfigMap");
/// let (event, rest) = ProtobufEvent::read_frame(rest)?.unwrap();
/// assert_eq!((event.event_type.as_str(), rest), ("DELETED", &[][..]));
/// # Ok::<(), homeostat_schema::ProtobufError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProtobufEvent {
    /// `ADDED`, `MODIFIED`, `DELETED`, `BOOKMARK` or `ERROR`.
    pub event_type: String,
    /// The body of the object, with its prefix.
    pub object: Vec<u8>,
}

/// The bytes of a frame's length.
const LENGTH: usize = 4;

// === impl ProtobufEvent ===

impl ProtobufEvent {
    /// Creates an event with the body of an object.
    pub fn new(event_type: impl Into<String>, object: Vec<u8>) -> Self {
        Self { event_type: event_type.into(), object }
    }

    /// Returns the bytes of the event, with its length.
    ///
    /// # Panics
    ///
    /// Panics when the event is larger than 4 GiB.
    pub fn to_frame(&self) -> Vec<u8> {
        let mut extension = Writer::default();
        extension.bytes(1, &self.object);
        let mut event = Writer::default();
        event.bytes(1, self.event_type.as_bytes());
        event.bytes(2, &extension.into_bytes());
        let event = event.into_bytes();
        let length = u32::try_from(event.len()).expect("an event is smaller than 4 GiB");
        [&length.to_be_bytes()[..], &event].concat()
    }

    /// Reads the first event of a stream. Returns it with the rest of the bytes, or `None` if they
    /// hold no complete frame.
    ///
    /// # Errors
    ///
    /// Fails if the frame holds no event.
    pub fn read_frame(stream: &[u8]) -> Result<Option<(Self, &[u8])>, ProtobufError> {
        let Some((length, rest)) = stream.split_first_chunk::<LENGTH>() else { return Ok(None) };
        let length = usize::try_from(u32::from_be_bytes(*length)).unwrap_or(usize::MAX);
        let Some((frame, rest)) = rest.split_at_checked(length) else { return Ok(None) };
        Self::read(frame).map(|event| Some((event, rest)))
    }

    fn read(frame: &[u8]) -> Result<Self, ProtobufError> {
        let mut event = Self::new("", Vec::new());
        let mut reader = Reader::new(frame);
        while let Some(tag) = reader.tag()? {
            match tag.number {
                1 => event.event_type = reader.text(tag)?,
                2 => event.read_object(reader.bytes(tag)?)?,
                _ => reader.skip(tag)?,
            }
        }
        Ok(event)
    }

    fn read_object(&mut self, extension: &[u8]) -> Result<(), ProtobufError> {
        let mut reader = Reader::new(extension);
        while let Some(tag) = reader.tag()? {
            match tag.number {
                1 => self.object = reader.bytes(tag)?.to_vec(),
                _ => reader.skip(tag)?,
            }
        }
        Ok(())
    }
}
