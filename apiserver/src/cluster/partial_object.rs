//! An object of any kind, reduced to its metadata.

use std::borrow::Cow;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube_core::{ApiResource, DynamicResourceScope, Resource};
use serde::{Deserialize, Serialize};

use super::metadata;

/// An object of any kind; only its metadata is parsed.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct PartialObject {
    #[serde(default, deserialize_with = "metadata::deserialize")]
    pub(super) metadata: ObjectMeta,
}

// === impl PartialObject ===

impl Resource for PartialObject {
    type DynamicType = ApiResource;
    type Scope = DynamicResourceScope;

    fn kind(resource: &ApiResource) -> Cow<'_, str> {
        resource.kind.as_str().into()
    }

    fn group(resource: &ApiResource) -> Cow<'_, str> {
        resource.group.as_str().into()
    }

    fn version(resource: &ApiResource) -> Cow<'_, str> {
        resource.version.as_str().into()
    }

    fn plural(resource: &ApiResource) -> Cow<'_, str> {
        resource.plural.as_str().into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}
