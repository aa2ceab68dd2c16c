//! [`Reader`]: the parser of a list, which can stop between any two tokens.
//!
//! Its states are in [`Place`]. A token is punctuation, the name of a member, the value of a
//! member, or an item; each is read in one step or not at all, so that an incomplete token is read
//! again when more bytes have arrived. `serde_json` parses the values; the frame of the list is
//! parsed here, because `serde_json` cannot suspend.

use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::value::RawValue;

use super::Decoder;
use crate::json::{Key, WHITE_SPACE, describe};
use crate::list_watch::{Decoded, Page};
use crate::object::ResourceVersion;

/// The position in the text, and the parts read so far.
pub(super) struct Reader<K> {
    decoder: Decoder<K>,
    place: Place,
    metadata: ListMetadata,
    /// `None` before the items.
    pub(super) items: Option<Vec<Decoded<K>>>,
    /// The number of items without a name. No key can refer to them, and they must not hide the
    /// other items.
    skipped_nameless: usize,
    /// The error of the first of these.
    first_error: Option<String>,
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

// === impl Reader ===

impl<K: DeserializeOwned> Reader<K> {
    /// Starts before the first token of a list.
    pub(super) fn new(decoder: Decoder<K>) -> Self {
        Self {
            decoder,
            place: Place::Start,
            metadata: ListMetadata::default(),
            items: None,
            skipped_nameless: 0,
            first_error: None,
        }
    }

    /// Returns true if the last token of the list was read.
    pub(super) fn is_complete(&self) -> bool {
        self.place == Place::End
    }

    /// Returns the page after the last token.
    ///
    /// Items without a name are reported once per page, with the error of the first.
    ///
    /// # Errors
    /// Returns the reason if the list lacks its version or its items.
    pub(super) fn finish(self) -> Result<Page<K>, String> {
        let version = self.metadata.resource_version.map(ResourceVersion::from);
        let version = version.filter(ResourceVersion::is_point);
        let items = self.items.ok_or("items are missing")?;
        let mut page = Page::new(items, version.ok_or("resourceVersion is missing or 0")?);
        page.continue_token = self.metadata.continue_token.filter(|token| !token.is_empty());
        page.skipped_nameless = self.skipped_nameless;
        if let Some(error) = self.first_error {
            let skipped_nameless = page.skipped_nameless;
            tracing::warn!(skipped_nameless, %error, "list items without a name are skipped");
        }
        Ok(page)
    }

    /// Reads the next token of `text` and returns its length, or `None` if it is incomplete.
    ///
    /// White space before a token belongs to it.
    ///
    /// # Errors
    ///
    /// If no JSON of a list continues with this character, or if a value is malformed.
    pub(super) fn read(&mut self, text: &str) -> Result<Option<usize>, String> {
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
    /// The item is first decoded in one pass, straight into its type. If that fails, it may just be
    /// incomplete at the end of the buffer; otherwise it is decoded again, alone.
    fn item(&mut self, text: &str) -> Result<Option<usize>, String> {
        let items = self.items.get_or_insert_default();
        let length = match self.decoder.usual_object(text) {
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
