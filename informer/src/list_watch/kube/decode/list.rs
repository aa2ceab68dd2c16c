//! Decodes a list while its body arrives: each item is parsed as soon as it is complete, and its
//! bytes are dropped.
//!
//! The decoder is pure: the caller feeds chunks and calls [`ListDecoder::decode`]. Memory holds the
//! decoded items and at most one incomplete item, so the size of a list has no limit. An item is
//! decoded straight from the buffer. One that is incomplete costs a look at its tokens.
//!
//! The states of the parser are in [`Place`]. A token is punctuation, the name of a member, the
//! value of a member, or an item; each is read in one step or not at all, so that an incomplete
//! token is read again when more bytes have arrived. `serde_json` parses the values; the frame of
//! the list is parsed here, because `serde_json` cannot suspend.
//!
//! Two costs are bounded. An incomplete token at the end of the buffer is parsed again only when
//! the buffer has doubled. A call of `decode` stops after 64 KiB, so that the runtime's thread is
//! not kept for longer than about 1 ms.

use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::value::RawValue;

use super::Decoder;
use crate::json::{Key, Outline, WHITE_SPACE, describe};
use crate::list_watch::{Decoded, Page};
use crate::object::ResourceVersion;

/// The decoder of one list.
pub(in crate::list_watch::kube) struct ListDecoder<K> {
    /// The text that has arrived.
    buffer: String,
    /// The length of the text that is decoded. It leaves the buffer when the rest is incomplete, so
    /// that the bytes of a large chunk are moved once.
    decoded: usize,
    /// The first bytes of the character after the text.
    tail: Vec<u8>,
    /// The reason why the bytes after the text are not UTF-8.
    invalid: Option<String>,
    /// The size of the buffer from which the next attempt is worth its cost. It doubles with each
    /// attempt that finds an incomplete value, so that a huge item costs linear time.
    enough: usize,
    /// The limit of one value in bytes.
    limit: usize,
    reader: Reader<K>,
}

/// The position in the text, and the parts read so far.
struct Reader<K> {
    decoder: Decoder<K>,
    place: Place,
    metadata: ListMetadata,
    /// `None` before the items.
    items: Option<Vec<Decoded<K>>>,
    /// The number of items without a name. No key can refer to them, and they must not hide the
    /// other items.
    skipped_nameless: usize,
    /// The error of the first of these.
    first_error: Option<String>,
    /// The tokens of an item. Its memory serves the next one.
    outline: Outline,
}

/// The next token of the text.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Place {
    /// `{`. → `FirstMember`.
    Start,
    /// `}` or a member. → `End`, `Colon`.
    FirstMember,
    /// A member. → `Colon`.
    Member,
    /// The colon after the name of a member. → `Value`.
    Colon(Member),
    /// The value of a member. → `AfterMember`, `FirstItem`.
    Value(Member),
    /// `,` or `}`. → `Member`, `End`.
    AfterMember,
    /// `]` or an item. → `AfterMember`, `AfterItem`.
    FirstItem,
    /// An item. → `AfterItem`.
    Item,
    /// `,` or `]`. → `Item`, `AfterMember`.
    AfterItem,
    /// Only white space may follow.
    End,
}

/// A member of a list. `kind` and `apiVersion` are skipped with the others.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Member {
    Metadata,
    Items,
    Other,
}

/// The metadata of a list.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct ListMetadata {
    #[serde(default)]
    resource_version: Option<String>,
    #[serde(default, rename = "continue")]
    continue_token: Option<String>,
}

/// The result of decoding what has arrived.
#[derive(Debug, PartialEq)]
pub(in crate::list_watch::kube) enum Progress {
    /// More bytes are needed, or the list is complete.
    Idle,
    /// 64 KiB were decoded, and more can be: the caller should yield.
    Busy,
}

/// The number of bytes that are collected before they are decoded: 256 KiB. The incomplete item at
/// the end is parsed twice, which is a few percent of this.
const FILL: usize = 256 << 10;

/// The number of bytes after which the decoder yields: 64 KiB, which takes about 1 ms.
const TURN: usize = 64 << 10;

// === impl ListDecoder ===

impl<K: DeserializeOwned> ListDecoder<K> {
    /// Starts a list, a value of which may have up to `limit` bytes.
    pub(in crate::list_watch::kube) fn new(decoder: Decoder<K>, limit: usize) -> Self {
        let reader = Reader {
            decoder,
            place: Place::Start,
            metadata: ListMetadata::default(),
            items: None,
            skipped_nameless: 0,
            first_error: None,
            outline: Outline::default(),
        };
        Self {
            buffer: String::new(),
            decoded: 0,
            tail: Vec::new(),
            invalid: None,
            enough: FILL,
            limit,
            reader,
        }
    }

    /// Adds bytes that have arrived.
    ///
    /// It does not parse: the caller decides when, by [`is_filled`](Self::is_filled). It checks
    /// each byte once.
    pub(in crate::list_watch::kube) fn feed(&mut self, chunk: &[u8]) {
        if self.tail.is_empty() {
            return self.append(chunk);
        }
        let mut bytes = std::mem::take(&mut self.tail);
        bytes.extend_from_slice(chunk);
        self.append(&bytes);
    }

    /// Adds bytes that follow the text, without an incomplete character at their end.
    fn append(&mut self, bytes: &[u8]) {
        match std::str::from_utf8(bytes) {
            Ok(text) => self.buffer.push_str(text),
            Err(error) => {
                let (valid, rest) = bytes.split_at(error.valid_up_to());
                self.buffer.push_str(std::str::from_utf8(valid).unwrap_or_default());
                match error.error_len() {
                    Some(_) => self.invalid = Some(error.to_string()),
                    None => self.tail = rest.to_vec(),
                }
            }
        }
    }

    /// Returns true if enough bytes have arrived to decode them.
    pub(in crate::list_watch::kube) fn is_filled(&self) -> bool {
        self.left() >= self.enough
    }

    /// Returns the number of bytes that are not decoded.
    fn left(&self) -> usize {
        self.buffer.len() - self.decoded + self.tail.len()
    }

    /// Decodes the values that have arrived, up to 64 KiB of them.
    ///
    /// After an error the decoder must not be used any more.
    ///
    /// # Errors
    /// Returns the reason if the bytes are no list, or if a value exceeds the limit.
    pub(in crate::list_watch::kube) fn decode(&mut self) -> Result<Progress, String> {
        if let Some(invalid) = &self.invalid {
            return Err(invalid.clone());
        }
        let end = self.decoded + TURN;
        let progress = loop {
            if self.decoded >= end {
                break Progress::Busy;
            }
            match self.reader.read(&self.buffer[self.decoded..])? {
                Some(length) if length > self.limit => return Err(too_long(self.limit)),
                Some(length) => self.decoded += length,
                None => break Progress::Idle,
            }
        };
        if progress == Progress::Idle {
            self.buffer.drain(..std::mem::take(&mut self.decoded));
            let rest = self.left();
            if rest > self.limit {
                return Err(too_long(self.limit));
            }
            self.enough = FILL.max(2 * rest).min(self.limit.saturating_add(1)).max(rest + 1);
        }
        Ok(progress)
    }

    /// Returns the page after the last byte has arrived and was decoded.
    ///
    /// Items without a name are reported once per page, with the error of the first.
    ///
    /// # Errors
    /// Returns the reason if the list is incomplete, or lacks its version or its items.
    pub(in crate::list_watch::kube) fn finish(self) -> Result<Page<K>, String> {
        if self.reader.place != Place::End || self.left() > 0 {
            return Err("it is incomplete".to_owned());
        }
        let reader = self.reader;
        let version = reader.metadata.resource_version.map(ResourceVersion::from);
        let version = version.filter(ResourceVersion::is_point);
        let items = reader.items.ok_or("items are missing")?;
        let mut page = Page::new(items, version.ok_or("resourceVersion is missing or 0")?);
        page.continue_token = reader.metadata.continue_token.filter(|token| !token.is_empty());
        page.skipped_nameless = reader.skipped_nameless;
        if let Some(error) = reader.first_error {
            let skipped_nameless = page.skipped_nameless;
            tracing::warn!(skipped_nameless, %error, "list items without a name are skipped");
        }
        Ok(page)
    }
}

// === impl Reader ===

impl<K: DeserializeOwned> Reader<K> {
    /// Reads the next token of `text` and returns its length, or `None` if it is incomplete.
    ///
    /// White space before a token belongs to it.
    ///
    /// # Errors
    ///
    /// If no JSON of a list continues with this character, or if a value is malformed.
    fn read(&mut self, text: &str) -> Result<Option<usize>, String> {
        let token = text.trim_start_matches(WHITE_SPACE);
        let space = text.len() - token.len();
        let Some(first) = token.bytes().next() else {
            return Ok((space > 0).then_some(space));
        };
        let length = match (self.place, first) {
            (Place::Start, b'{') => self.punctuation(Place::FirstMember),
            (Place::FirstMember | Place::AfterMember, b'}') => self.punctuation(Place::End),
            (Place::FirstMember | Place::Member, b'"') => self.member(token)?,
            (Place::Colon(member), b':') => self.punctuation(Place::Value(member)),
            (Place::Value(Member::Items), b'[') => {
                self.items = Some(Vec::new());
                self.punctuation(Place::FirstItem)
            }
            (Place::Value(member), _) => self.value(member, token)?,
            (Place::AfterMember, b',') => self.punctuation(Place::Member),
            (Place::FirstItem | Place::AfterItem, b']') => self.punctuation(Place::AfterMember),
            (Place::AfterItem, b',') => self.punctuation(Place::Item),
            (Place::FirstItem | Place::Item, _) => self.item(token)?,
            _ => return Err("is no JSON of a list".to_owned()),
        };
        Ok(length.map(|length| space + length))
    }

    /// Reads one character.
    #[expect(clippy::unnecessary_wraps, reason = "has the type of the other readers")]
    fn punctuation(&mut self, next: Place) -> Option<usize> {
        self.place = next;
        Some(1)
    }

    /// Reads the name of a member.
    ///
    /// A second `items` is an error: it is unknown which of them is the list. Of other members the
    /// last one counts.
    fn member(&mut self, text: &str) -> Result<Option<usize>, String> {
        let Some((Key(name), length)) = value::<Key<'_>>(text)? else { return Ok(None) };
        let member = match &*name {
            "metadata" => Member::Metadata,
            "items" if self.items.is_some() => return Err("duplicate field `items`".to_owned()),
            "items" => Member::Items,
            _ => Member::Other,
        };
        self.place = Place::Colon(member);
        Ok(Some(length))
    }

    /// Reads the value of a member other than an array of items.
    ///
    /// `items` can be `null`, which is an empty list.
    fn value(&mut self, member: Member, text: &str) -> Result<Option<usize>, String> {
        let length = match member {
            Member::Metadata => value::<ListMetadata>(text)?.map(|(metadata, length)| {
                self.metadata = metadata;
                length
            }),
            // Go encodes a nil slice as `null`.
            Member::Items => value::<()>(text)?.map(|((), length)| {
                self.items = Some(Vec::new());
                length
            }),
            Member::Other => value::<IgnoredAny>(text)?.map(|(_, length)| length),
        };
        if length.is_some() {
            self.place = Place::AfterMember;
        }
        Ok(length)
    }

    /// Reads an item. An item that does not fit its type is opaque, and skipped if it has no name.
    ///
    /// The item is first decoded by its outline, straight into its type. If that fails, it may just
    /// be incomplete at the end of the buffer; otherwise it is decoded again, alone.
    fn item(&mut self, text: &str) -> Result<Option<usize>, String> {
        let items = self.items.get_or_insert_default();
        let length = match self.decoder.usual_object(text, &mut self.outline) {
            // A value that ends with the text may be longer.
            Some((object, length)) if length < text.len() => {
                items.push(Decoded::Fits(object));
                length
            }
            _ => {
                let Some((item, length)) = value::<&RawValue>(text)? else { return Ok(None) };
                match self.decoder.isolated(item.get()) {
                    Ok(item) => items.push(item),
                    Err(error) => {
                        self.skipped_nameless += 1;
                        self.first_error.get_or_insert(error);
                    }
                }
                length
            }
        };
        self.place = Place::AfterItem;
        Ok(Some(length))
    }
}

// === parts ===

/// Parses the value at the start of `text` and returns it with its length, or `None` if the text
/// ends within it or directly after it.
///
/// A value that ends with the buffer counts as incomplete: `12` may be the start of `123`.
fn value<'de, T: Deserialize<'de>>(text: &'de str) -> Result<Option<(T, usize)>, String> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<T>();
    match values.next() {
        None => Ok(None),
        Some(Ok(value)) => {
            let length = values.byte_offset();
            Ok((length < text.len()).then_some((value, length)))
        }
        Some(Err(error)) if error.is_eof() || ends_in_number(text) => Ok(None),
        Some(Err(error)) => Err(describe(error)),
    }
}

/// Returns true if the text is incomplete and ends within a number. `serde_json` reports `1.`, `-`
/// and `1e+` at the end of a text as invalid numbers.
fn ends_in_number(text: &str) -> bool {
    let before = text.trim_end_matches(|c: char| c.is_ascii_digit() || "+-.eE".contains(c));
    let is_incomplete = || serde_json::from_str::<IgnoredAny>(before).is_err_and(|e| e.is_eof());
    before.len() < text.len() && is_incomplete()
}

/// The text of the error for a value above the limit.
fn too_long(limit: usize) -> String {
    format!("an object exceeds {limit} bytes")
}
