//! What an informer can hold of a `ConfigMap`, from all of it to nothing but its metadata.
//!
//! `data.number` has to be a number. The server does not know that, and so it stores objects that do not fit.

use std::collections::BTreeMap;

use homeostat::informer::{Lazy, Metadata, Object, ObjectMeta};
use k8s_openapi::api::core::v1::ConfigMap;
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer};

use super::Truth;

/// A weight that an informer of `ConfigMap`s can have.
pub(super) trait Weight: Object<Kind = ConfigMap> + DeserializeOwned {
    /// What it is called in a tally.
    const NAME: &'static str;

    /// The number, if it is one.
    fn number(&self) -> Option<u64>;

    /// What can be seen of an object at this weight.
    fn sight(truth: Truth) -> Truth {
        truth
    }

    fn truth(&self) -> Truth {
        let (uid, version, _) = metadata_truth(self.metadata());
        (uid, version, self.number())
    }
}

/// The part of a `ConfigMap` that is looked at.
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
}

// === impl Counted ===

impl Object for Counted {
    type Kind = ConfigMap;

    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }
}

// === impl Weight ===

/// A projection: what does not fit it is opaque.
impl Weight for Counted {
    const NAME: &'static str = "projection";

    fn number(&self) -> Option<u64> {
        self.data.number
    }
}

impl Weight for ConfigMap {
    const NAME: &'static str = "typed";

    fn number(&self) -> Option<u64> {
        number_of(self.data.as_ref())
    }
}

/// What does not fit is there all the same: that shows when it is decoded.
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

/// What there is to say about an object of which only the metadata is known.
pub(super) fn metadata_truth(metadata: &ObjectMeta) -> Truth {
    let [uid, version] = [&metadata.uid, &metadata.resource_version];
    (uid.clone().unwrap_or_default(), version.clone().unwrap_or_default(), None)
}

/// The number of a `ConfigMap` with these data, if it fits.
pub(super) fn number_of(data: Option<&BTreeMap<String, String>>) -> Option<u64> {
    data?.get("number")?.parse().ok()
}

fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let text = String::deserialize(deserializer)?;
    text.parse().map(Some).map_err(|_| D::Error::custom("not a number"))
}
