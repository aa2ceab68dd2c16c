//! The objects in the caches: only what decides about a charge.

use std::marker::PhantomData;

use homeostat::informer::Dynamic;
use homeostat::{Object, ObjectMeta};
use homeostat_core::GroupResource;
use homeostat_quota::object::device::{DeviceClass, ResourceClaim};
use homeostat_quota::object::{self, Meta};
use homeostat_quota::{Charge, DeviceClassMapping, Evaluator};
use serde::{Deserialize, Deserializer};
use smol_str::SmolStr;

/// A resource whose objects have a charge of their own.
pub(crate) trait Part: Send + Sync + 'static {
    const GROUP: &'static str;
    const RESOURCE: &'static str;

    fn resource() -> GroupResource {
        GroupResource::new(Self::GROUP, Self::RESOURCE)
    }
}

/// Pods.
#[derive(Clone, Copy)]
pub(crate) struct Pods;

/// Services.
#[derive(Clone, Copy)]
pub(crate) struct Services;

/// Claims to storage.
#[derive(Clone, Copy)]
pub(crate) struct VolumeClaims;

/// An object with its charge, which is computed once per version.
pub(crate) struct Charged<P> {
    metadata: ObjectMeta,
    /// The claim that serves the extended resources of a pod.
    served_by: Option<SmolStr>,
    state: State,
    part: PhantomData<fn() -> P>,
}

#[derive(Clone)]
enum State {
    /// As the server sent it, before the informer's transform.
    Sent(object::Object),
    /// The charge. The object itself is dropped.
    Charged(Charge),
}

/// A claim to devices. Its charge depends on other objects, so it is computed by each recount.
#[derive(Clone)]
pub(crate) struct DeviceClaim {
    metadata: ObjectMeta,
    pub(crate) claim: Box<ResourceClaim>,
}

/// A device class.
#[derive(Clone)]
pub(crate) struct CachedClass {
    metadata: ObjectMeta,
    pub(crate) class: Box<DeviceClass>,
}

/// An object that is only counted: its key, uid and version. Nothing else of it enters the process.
#[derive(Clone)]
pub(crate) struct Counted {
    metadata: ObjectMeta,
}

// === impl Part ===

impl Part for Pods {
    const GROUP: &'static str = "";
    const RESOURCE: &'static str = "pods";
}

impl Part for Services {
    const GROUP: &'static str = "";
    const RESOURCE: &'static str = "services";
}

impl Part for VolumeClaims {
    const GROUP: &'static str = "";
    const RESOURCE: &'static str = "persistentvolumeclaims";
}

// === impl Charged ===

impl<P: Part> Charged<P> {
    /// Computes the charge, and drops the rest.
    pub(crate) fn settle(&mut self, evaluator: &Evaluator) {
        // No other object decides about the charge of these resources.
        let context = DeviceClassMapping::default();
        if let State::Sent(sent) = &self.state
            && let Ok(charge) = evaluator.charge(sent, &context)
        {
            self.state = State::Charged(charge);
        }
    }

    /// Returns the charge.
    pub(crate) fn charge(&self) -> Option<&Charge> {
        match &self.state {
            State::Sent(_) => None,
            State::Charged(charge) => Some(charge),
        }
    }

    /// Returns the claim that the pod's status names for its extended resources.
    pub(crate) fn served_by(&self) -> Option<&SmolStr> {
        self.served_by.as_ref()
    }
}

impl<P> Clone for Charged<P> {
    fn clone(&self) -> Self {
        let Self { metadata, served_by, state, .. } = self;
        let (metadata, served_by) = (metadata.clone(), served_by.clone());
        Self { metadata, served_by, state: state.clone(), part: PhantomData }
    }
}

impl<P: Part> Object for Charged<P> {
    type Kind = Dynamic;

    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }
}

impl<'de, P: Part> Deserialize<'de> for Charged<P> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let sent = object::Object::read(&P::resource(), deserializer)?;
        let mut served_by = None;
        let metadata = match &sent {
            object::Object::Pod(pod) => {
                let status = pod.status.extended_resource_claim_status.as_ref();
                served_by = status.map(|status| status.resource_claim_name.clone());
                identity(&pod.metadata)
            }
            object::Object::Service(service) => identity(&service.metadata),
            object::Object::PersistentVolumeClaim(claim) => identity(&claim.metadata),
            _ => ObjectMeta::default(),
        };
        Ok(Self { metadata, served_by, state: State::Sent(sent), part: PhantomData })
    }
}

// === impl DeviceClaim ===

impl Object for DeviceClaim {
    type Kind = Dynamic;

    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }
}

impl<'de> Deserialize<'de> for DeviceClaim {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let claim = Box::<ResourceClaim>::deserialize(deserializer)?;
        Ok(Self { metadata: identity(&claim.metadata), claim })
    }
}

// === impl CachedClass ===

impl Object for CachedClass {
    type Kind = Dynamic;

    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }
}

impl<'de> Deserialize<'de> for CachedClass {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let class = Box::<DeviceClass>::deserialize(deserializer)?;
        Ok(Self { metadata: identity(&class.metadata), class })
    }
}

// === impl Counted ===

impl Object for Counted {
    type Kind = Dynamic;

    const METADATA_ONLY: bool = true;

    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }
}

impl<'de> Deserialize<'de> for Counted {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Wire {
            metadata: Identity,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Identity {
            name: Option<String>,
            namespace: Option<String>,
            uid: Option<String>,
            resource_version: Option<String>,
        }
        let Identity { name, namespace, uid, resource_version } =
            Wire::deserialize(deserializer)?.metadata;
        let metadata =
            ObjectMeta { name, namespace, uid, resource_version, ..ObjectMeta::default() };
        Ok(Self { metadata })
    }
}

/// Returns the key, uid and version.
fn identity(metadata: &Meta) -> ObjectMeta {
    let text = |it: &SmolStr| Some(it.to_string()).filter(|text| !text.is_empty());
    ObjectMeta {
        name: text(&metadata.name),
        namespace: text(&metadata.namespace),
        uid: text(&metadata.uid),
        resource_version: text(&metadata.resource_version),
        ..ObjectMeta::default()
    }
}
