//! Projections of the objects that are charged: the members that decide about a charge, and no
//! others.
//!
//! Each type is read from the JSON of an object, with `serde`. Unknown members are skipped. A
//! member of a wrong type is an error, so that an unreadable object is never counted as something
//! else.

use homeostat_core::GroupResource;
use jiff::Timestamp;
use serde::Deserialize;
use serde::de::Deserializer;
use smol_str::SmolStr;

use crate::json;

pub mod device;
pub mod pod;
pub mod service;
pub mod storage;

use self::device::ResourceClaim;
use self::pod::Pod;
use self::service::Service;
use self::storage::PersistentVolumeClaim;

/// The members of `metadata` that decide about a charge.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct Meta {
    /// The name.
    #[serde(deserialize_with = "json::or_default")]
    pub name: SmolStr,
    /// The namespace.
    #[serde(deserialize_with = "json::or_default")]
    pub namespace: SmolStr,
    /// The uid.
    #[serde(deserialize_with = "json::or_default")]
    pub uid: SmolStr,
    /// The resource version. An object that is about to be created has none.
    #[serde(deserialize_with = "json::or_default")]
    pub resource_version: SmolStr,
    /// The time of creation.
    #[serde(deserialize_with = "json::time")]
    pub creation_timestamp: Option<Timestamp>,
    /// The end of the grace period of an object that is being deleted.
    #[serde(deserialize_with = "json::time")]
    pub deletion_timestamp: Option<Timestamp>,
    /// The grace period of an object that is being deleted.
    pub deletion_grace_period_seconds: Option<i64>,
    /// The annotations.
    #[serde(deserialize_with = "json::or_default")]
    pub annotations: Annotations,
    /// The owners.
    #[serde(deserialize_with = "json::or_default")]
    pub owner_references: Vec<OwnerReference>,
}

/// The annotations that decide about a charge.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Annotations {
    /// The storage class of a claim made before the member existed.
    #[serde(rename = "volume.beta.kubernetes.io/storage-class")]
    pub storage_class: Option<SmolStr>,
    /// Says `true` on a claim that the scheduler made for a pod's extended resources.
    #[serde(rename = "resource.kubernetes.io/extended-resource-claim")]
    pub extended_resource_claim: Option<SmolStr>,
}

/// An owner of an object.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct OwnerReference {
    /// The API version of the owner.
    #[serde(deserialize_with = "json::or_default")]
    pub api_version: SmolStr,
    /// The kind of the owner.
    #[serde(deserialize_with = "json::or_default")]
    pub kind: SmolStr,
    /// The name of the owner.
    #[serde(deserialize_with = "json::or_default")]
    pub name: SmolStr,
    /// The uid of the owner.
    #[serde(deserialize_with = "json::or_default")]
    pub uid: SmolStr,
    /// True for the owner that controls the object.
    pub controller: Option<bool>,
}

/// An object, as its evaluator reads it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Object {
    /// A pod.
    Pod(Box<Pod>),
    /// A service.
    Service(Box<Service>),
    /// A claim to storage.
    PersistentVolumeClaim(Box<PersistentVolumeClaim>),
    /// A claim to devices.
    ResourceClaim(Box<ResourceClaim>),
    /// An object of any other resource, which is only counted.
    Other,
}

// === impl Object ===

impl Object {
    /// Reads an object of `resource`. An object that is only counted is not looked at.
    ///
    /// # Errors
    ///
    /// Returns the deserializer's error if a member has a wrong type.
    ///
    /// # Examples
    ///
    /// ```
    /// use homeostat_core::GroupResource;
    /// use homeostat_quota::object::Object;
    /// use serde_json::json;
    ///
    /// let pods = GroupResource::new("", "pods");
    /// assert!(Object::read(&pods, &json!({"spec": {"containers": []}})).is_ok());
    /// assert!(Object::read(&pods, &json!({"spec": {"containers": 1}})).is_err());
    /// ```
    pub fn read<'de, D: Deserializer<'de>>(
        resource: &GroupResource,
        object: D,
    ) -> Result<Self, D::Error> {
        match (&*resource.group, &*resource.resource) {
            ("", "pods") => Deserialize::deserialize(object).map(Self::Pod),
            ("", "services") => Deserialize::deserialize(object).map(Self::Service),
            ("", "persistentvolumeclaims") => {
                Deserialize::deserialize(object).map(Self::PersistentVolumeClaim)
            }
            ("resource.k8s.io", "resourceclaims") => {
                Deserialize::deserialize(object).map(Self::ResourceClaim)
            }
            _ => Ok(Self::Other),
        }
    }
}

// === impl Meta ===

impl Meta {
    /// Returns the owner that controls the object.
    pub fn controller(&self) -> Option<&OwnerReference> {
        self.owner_references.iter().find(|owner| owner.controller == Some(true))
    }
}
