//! The two forms of an answer, which lead to the same [`Group`]s.
//!
//! | | Aggregated | Plain |
//! |---|---|---|
//! | roots | `APIGroupDiscoveryList` | `APIVersions`, `APIGroupList` |
//! | resources | in the same answer | `APIResourceList`, one request per version |
//! | a version that cannot be read | `freshness: Stale` | an error of its request |
//! | the preferred version | the first | `preferredVersion`, moved to the front |
//!
//! Every field has a default: an answer with fields that are missing, null or unknown is read. Go
//! encodes a nil slice as `null`.

use homeostat_informer::GroupVersionResource;
use serde::{Deserialize, Deserializer};

use super::group::{Group, ServedResource, Version};

/// The `metadata` of a group: its name.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Name {
    name: String,
}

/// `APIGroupDiscoveryList`.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct AggregatedGroups {
    #[serde(deserialize_with = "or_default")]
    items: Vec<AggregatedGroup>,
}

/// `APIGroupDiscovery`.
#[derive(Default, Deserialize)]
#[serde(default)]
struct AggregatedGroup {
    #[serde(deserialize_with = "or_default")]
    metadata: Name,
    #[serde(deserialize_with = "or_default")]
    versions: Vec<AggregatedVersion>,
}

/// `APIVersionDiscovery`. `freshness` is `Current` or `Stale`; a server sets `Stale` if an
/// aggregated API server did not answer it.
#[derive(Default, Deserialize)]
#[serde(default)]
struct AggregatedVersion {
    version: String,
    freshness: String,
    #[serde(deserialize_with = "or_default")]
    resources: Vec<AggregatedResource>,
}

/// `APIResourceDiscovery`. Subresources are nested in it and are not read.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct AggregatedResource {
    resource: String,
    #[serde(deserialize_with = "or_default")]
    response_kind: ResponseKind,
    scope: String,
    #[serde(deserialize_with = "or_default")]
    verbs: Vec<String>,
}

/// The kind of the objects that the resource returns.
#[derive(Default, Deserialize)]
#[serde(default)]
struct ResponseKind {
    kind: String,
}

/// `APIVersions`, the plain answer of `/api`.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct CoreVersions {
    #[serde(deserialize_with = "or_default")]
    versions: Vec<String>,
}

/// `APIGroupList`, the plain answer of `/apis`.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct LegacyGroups {
    #[serde(deserialize_with = "or_default")]
    groups: Vec<LegacyGroup>,
}

/// `APIGroup`.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct LegacyGroup {
    name: String,
    #[serde(deserialize_with = "or_default")]
    versions: Vec<LegacyVersion>,
    #[serde(deserialize_with = "or_default")]
    preferred_version: LegacyVersion,
}

/// `GroupVersionForDiscovery`.
#[derive(Default, Deserialize, PartialEq, Eq)]
#[serde(default)]
struct LegacyVersion {
    version: String,
}

/// `APIResourceList`.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct LegacyResources {
    #[serde(deserialize_with = "or_default")]
    resources: Vec<LegacyResource>,
}

/// `APIResource`. A subresource has a slash in its name.
#[derive(Default, Deserialize)]
#[serde(default)]
struct LegacyResource {
    name: String,
    kind: String,
    namespaced: bool,
    #[serde(deserialize_with = "or_default")]
    verbs: Vec<String>,
}

// === impl AggregatedGroups ===

impl AggregatedGroups {
    pub(super) fn into_groups(self) -> Vec<Group> {
        let group = |AggregatedGroup { metadata, versions }: AggregatedGroup| {
            let versions = versions.into_iter().map(|it| it.into_version(&metadata.name)).collect();
            Group { name: metadata.name, versions }
        };
        self.items.into_iter().map(group).collect()
    }
}

impl AggregatedVersion {
    /// A stale version is one that could not be read: its resources may be out of date.
    fn into_version(self, group: &str) -> Version {
        let Self { version, freshness, resources } = self;
        if freshness == "Stale" {
            return Version { version, resources: Err("stale GroupVersion discovery".to_owned()) };
        }
        let served = resources.into_iter().map(|it| ServedResource {
            resource: GroupVersionResource::gvr(group, &version, &it.resource),
            kind: it.response_kind.kind,
            is_namespaced: it.scope == "Namespaced",
            verbs: it.verbs,
        });
        Version { resources: Ok(served.collect()), version }
    }
}

// === impl CoreVersions ===

impl CoreVersions {
    pub(super) fn into_groups(self) -> Vec<Group> {
        let versions = self.versions.into_iter().map(Version::unread).collect();
        vec![Group { name: String::new(), versions }]
    }
}

// === impl LegacyGroups ===

impl LegacyGroups {
    pub(super) fn into_groups(self) -> Vec<Group> {
        let group = |LegacyGroup { name, mut versions, preferred_version }: LegacyGroup| {
            // Stable, so that the other versions keep their order.
            versions.sort_by_key(|version| *version != preferred_version);
            let versions = versions.into_iter().map(|it| Version::unread(it.version)).collect();
            Group { name, versions }
        };
        self.groups.into_iter().map(group).collect()
    }
}

// === impl LegacyResources ===

impl LegacyResources {
    /// Returns the resources of `group_version` (`apps/v1`), without subresources.
    pub(super) fn into_resources(self, group_version: &str) -> Vec<ServedResource> {
        let (group, version) = group_version.split_once('/').unwrap_or(("", group_version));
        let own = self.resources.into_iter().filter(|it| !it.name.contains('/'));
        own.map(|it| ServedResource {
            resource: GroupVersionResource::gvr(group, version, &it.name),
            kind: it.kind,
            is_namespaced: it.namespaced,
            verbs: it.verbs,
        })
        .collect()
    }
}

/// Reads a member; null counts as missing.
fn or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}
