//! One page of a list.

use std::{fmt, sync::Arc};

use serde::{
    Deserialize,
    de::{
        DeserializeOwned, DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess,
        SeqAccess, Visitor,
    },
};
use serde_json::value::RawValue;

use super::Decoder;
use crate::list_watch::Decoded;

pub(super) struct PageSeed<K> {
    pub(super) decoder: Decoder<K>,
    pub(super) items: ReadItems,
}

/// How the items of a list are read.
#[derive(Clone, Copy)]
pub(super) enum ReadItems {
    /// Straight into their type; the first that does not fit spoils the pass.
    Typed,
    /// Cut out first, so that each stands for itself; one that has not even a name is left out.
    OneByOne,
}

pub(super) struct List<K> {
    pub(super) metadata: ListMetadata,
    pub(super) items: Option<Items<K>>,
}

pub(super) struct Items<K> {
    pub(super) decoded: Vec<Decoded<K>>,
    /// How many have no name: nobody can refer to them, and they must not hide all others.
    pub(super) left_out: usize,
    /// What is wrong with the first of these.
    pub(super) first_error: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
pub(super) struct ListMetadata {
    #[serde(default)]
    pub(super) resource_version: Option<String>,
    #[serde(default, rename = "continue")]
    pub(super) continue_token: Option<String>,
}

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "lowercase")]
enum ListField {
    Metadata,
    Items,
    #[serde(other)]
    Other,
}

struct ItemsSeed<K>(PageSeed<K>);

struct ItemSeed<K>(Decoder<K>);

// === impl PageSeed ===

impl<K> Clone for PageSeed<K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K> Copy for PageSeed<K> {}

impl<'de, K: DeserializeOwned> DeserializeSeed<'de> for PageSeed<K> {
    type Value = List<K>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<List<K>, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de, K: DeserializeOwned> Visitor<'de> for PageSeed<K> {
    type Value = List<K>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of objects")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<List<K>, A::Error> {
        let mut list = List { metadata: ListMetadata::default(), items: None };
        while let Some(field) = map.next_key()? {
            match field {
                ListField::Metadata => list.metadata = map.next_value()?,
                ListField::Items if list.items.is_some() => {
                    return Err(A::Error::duplicate_field("items"));
                }
                ListField::Items => list.items = Some(map.next_value_seed(ItemsSeed(self))?),
                ListField::Other => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(list)
    }
}

// === impl ItemsSeed ===

impl<K: DeserializeOwned> ItemsSeed<K> {
    /// The next item, or why it is left out.
    fn next<'de, A: SeqAccess<'de>>(
        &self,
        access: &mut A,
    ) -> Result<Option<Result<Decoded<K>, String>>, A::Error> {
        let PageSeed { decoder, items } = self.0;
        Ok(match items {
            ReadItems::Typed => {
                access.next_element_seed(ItemSeed(decoder))?.map(|object| Ok(Decoded::Fits(object)))
            }
            ReadItems::OneByOne => {
                access.next_element::<&'de RawValue>()?.map(|item| decoder.isolated(item.get()))
            }
        })
    }
}

impl<'de, K: DeserializeOwned> DeserializeSeed<'de> for ItemsSeed<K> {
    type Value = Items<K>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Items<K>, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, K: DeserializeOwned> Visitor<'de> for ItemsSeed<K> {
    type Value = Items<K>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the items of a list")
    }

    fn visit_unit<E>(self) -> Result<Items<K>, E> {
        // Go's nil slice.
        Ok(Items::new())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Items<K>, A::Error> {
        let mut items = Items::new();
        while let Some(item) = self.next(&mut access)? {
            match item {
                Ok(item) => items.decoded.push(item),
                Err(error) => {
                    items.left_out += 1;
                    items.first_error.get_or_insert(error);
                }
            }
        }
        Ok(items)
    }
}

impl<'de, K: DeserializeOwned> DeserializeSeed<'de> for ItemSeed<K> {
    type Value = Arc<K>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Arc<K>, D::Error> {
        self.0.object(deserializer)
    }
}

impl<K> Items<K> {
    fn new() -> Self {
        Self { decoded: Vec::new(), left_out: 0, first_error: None }
    }
}
