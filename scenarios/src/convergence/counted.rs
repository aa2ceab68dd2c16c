//! A `ConfigMap` whose `data.number` has to be a number. The server does not know that: so it stores objects that do not fit.

use std::collections::BTreeMap;

use homeostat::informer::{Object, ObjectMeta};
use k8s_openapi::api::core::v1::ConfigMap;
use serde::Deserialize;
use serde::de::Error as _;

use super::Truth;

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

impl Counted {
    pub(super) fn number(&self) -> Option<u64> {
        self.data.number
    }

    pub(super) fn text_key(&self) -> String {
        self.key().to_string()
    }

    pub(super) fn truth(&self) -> Truth {
        let (uid, version, _) = opaque_truth(&self.metadata);
        (uid, version, self.number())
    }
}

/// What there is to say about an object that does not fit.
pub(super) fn opaque_truth(metadata: &ObjectMeta) -> Truth {
    let [uid, version] = [&metadata.uid, &metadata.resource_version];
    (uid.clone().unwrap_or_default(), version.clone().unwrap_or_default(), None)
}

/// The number of a `ConfigMap` with these data, if it fits.
pub(super) fn number_of(data: Option<&BTreeMap<String, String>>) -> Option<u64> {
    data?.get("number")?.parse().ok()
}

fn number<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let text = String::deserialize(deserializer)?;
    text.parse().map(Some).map_err(|_| D::Error::custom("not a number"))
}
