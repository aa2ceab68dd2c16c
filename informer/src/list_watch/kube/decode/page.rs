//! One page of a list.

use std::{fmt, marker::PhantomData, sync::Arc};

use serde::{
    Deserialize,
    de::{
        DeserializeOwned, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor,
    },
};
use serde_json::value::RawValue;

use super::{isolated, object};
use crate::list_watch::Decoded;

/// How the items of a list are read.
pub(super) trait ReadItem<'de> {
    type Item;
    fn next<A: SeqAccess<'de>>(&self, access: &mut A) -> Result<Option<Self::Item>, A::Error>;
}

/// Straight into their type; the first that does not fit spoils the pass.
pub(super) struct Typed<K>(pub(super) PhantomData<fn() -> K>);

/// Cut out first, so that each stands for itself; one that has not even a name is left out.
pub(super) struct OneByOne<K>(pub(super) PhantomData<fn() -> K>);

pub(super) struct PageSeed<R>(pub(super) R);

struct ItemsSeed<'a, R>(&'a R);

pub(super) struct List<K> {
    pub(super) metadata: ListMetadata,
    pub(super) items: Option<Vec<Decoded<K>>>,
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

impl<'de, K: DeserializeOwned> ReadItem<'de> for Typed<K> {
    type Item = Decoded<K>;

    fn next<A: SeqAccess<'de>>(&self, access: &mut A) -> Result<Option<Decoded<K>>, A::Error> {
        struct Seed<K>(PhantomData<fn() -> K>);
        impl<'de, K: DeserializeOwned> DeserializeSeed<'de> for Seed<K> {
            type Value = Arc<K>;
            fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Arc<K>, D::Error> {
                object(json)
            }
        }
        Ok(access.next_element_seed(Seed(PhantomData))?.map(Decoded::Fits))
    }
}

impl<'de, K: DeserializeOwned> ReadItem<'de> for OneByOne<K> {
    type Item = Decoded<K>;

    fn next<A: SeqAccess<'de>>(&self, access: &mut A) -> Result<Option<Decoded<K>>, A::Error> {
        while let Some(raw) = access.next_element::<&'de RawValue>()? {
            match isolated(raw.get()) {
                Ok(item) => return Ok(Some(item)),
                // Nobody can refer to it, and it must not hide all others.
                Err(error) => {
                    tracing::warn!(%error, "left out an item of a list that has no name");
                }
            }
        }
        Ok(None)
    }
}

impl<'de, K, R: ReadItem<'de, Item = Decoded<K>>> DeserializeSeed<'de> for PageSeed<R> {
    type Value = List<K>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<List<K>, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de, K, R: ReadItem<'de, Item = Decoded<K>>> Visitor<'de> for PageSeed<R> {
    type Value = List<K>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of objects")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<List<K>, A::Error> {
        let mut list = List { metadata: ListMetadata::default(), items: None };
        while let Some(field) = map.next_key()? {
            match field {
                ListField::Metadata => list.metadata = map.next_value()?,
                ListField::Items => list.items = Some(map.next_value_seed(ItemsSeed(&self.0))?),
                ListField::Other => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(list)
    }
}

impl<'de, R: ReadItem<'de>> DeserializeSeed<'de> for ItemsSeed<'_, R> {
    type Value = Vec<R::Item>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, R: ReadItem<'de>> Visitor<'de> for ItemsSeed<'_, R> {
    type Value = Vec<R::Item>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the items of a list")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        // Go's nil slice.
        Ok(Vec::new())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Self::Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = self.0.next(&mut access)? {
            items.push(item);
        }
        Ok(items)
    }
}
