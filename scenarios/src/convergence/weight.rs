//! The representations of a `ConfigMap` that an informer can hold, from all of it to metadata only.
//!
//! `data.number` must be a number. The server does not know that, so it stores objects that do not
//! fit.

use std::collections::BTreeMap;

use homeostat::informer::{Lazy, Metadata, Object, ObjectMeta};
use k8s_openapi::api::core::v1::ConfigMap;
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer};

use super::Truth;

/// A representation of `ConfigMap`s.
pub(super) trait Weight: Object<Kind = ConfigMap> + DeserializeOwned {
    /// The name in a tally.
    const NAME: &'static str;

    /// True if it shows the member `data.note`, which each object has.
    const HAS_NOTE: bool = false;

    /// Returns the number, if it is one.
    fn number(&self) -> Option<u64>;

    /// Returns true if the object has a note.
    fn has_note(&self) -> bool {
        false
    }

    /// Returns the part of an object that this representation shows.
    fn sight(truth: Truth) -> Truth {
        truth
    }

    fn truth(&self) -> Truth {
        let (uid, version, _) = metadata_truth(self.metadata());
        (uid, version, self.number())
    }
}

/// The part of a `ConfigMap` that is read.
#[derive(Debug, Deserialize)]
pub(super) struct Counted {
    metadata: ObjectMeta,
    #[serde(default)]
    data: Data,
}

#[derive(Debug, Default, Deserialize)]
struct Data {
    #[serde(default, deserialize_with = "number")]
    number: Option<u64>,
    note: Option<String>,
}

// === impl Counted ===

impl Object for Counted {
    type Kind = ConfigMap;

    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }
}

// === impl Weight ===

/// A projection: an object that does not fit it is opaque.
impl Weight for Counted {
    const NAME: &'static str = "projection";
    const HAS_NOTE: bool = true;

    fn number(&self) -> Option<u64> {
        self.data.number
    }

    fn has_note(&self) -> bool {
        self.data.note.is_some()
    }
}

impl Weight for ConfigMap {
    const NAME: &'static str = "typed";
    const HAS_NOTE: bool = true;

    fn number(&self) -> Option<u64> {
        number_of(self.data.as_ref())
    }

    fn has_note(&self) -> bool {
        self.data.as_ref().is_some_and(|data| data.contains_key("note"))
    }
}

/// An object that does not fit is stored; the error shows when it is decoded.
impl Weight for Lazy<Counted> {
    const NAME: &'static str = "lazy";

    fn number(&self) -> Option<u64> {
        self.decode().ok()?.number()
    }
}

impl Weight for Metadata<ConfigMap> {
    const NAME: &'static str = "metadata";

    fn number(&self) -> Option<u64> {
        None
    }

    fn sight((uid, version, _): Truth) -> Truth {
        (uid, version, None)
    }
}

/// Returns the visible part of an object of which only the metadata is known.
pub(super) fn metadata_truth(metadata: &ObjectMeta) -> Truth {
    let [uid, version] = [&metadata.uid, &metadata.resource_version];
    (uid.clone().unwrap_or_default(), version.clone().unwrap_or_default(), None)
}

/// Returns the number of a `ConfigMap` with these data, if it fits.
pub(super) fn number_of(data: Option<&BTreeMap<String, String>>) -> Option<u64> {
    data?.get("number")?.parse().ok()
}

fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let text = String::deserialize(deserializer)?;
    text.parse().map(Some).map_err(|_| D::Error::custom("not a number"))
}
