//! Claims to devices (`pkg/quota/v1/evaluator/core/resource_claims.go`).

use std::collections::BTreeMap;
use std::fmt;

use homeostat_quantity::{Quantity, ResourceList, ResourceName};
use jiff::Timestamp;
use smol_str::SmolStr;

use super::ones;
use crate::charge::Charge;
use crate::device_class::DeviceClassMapping;
use crate::names::{
    DEVICES_OF_CLASS, REQUESTS, REQUESTS_DEVICE_CLASS, is_extended_for_quota, joined,
};
use crate::object::device::{DeviceRequest, ResourceClaim};
use crate::scope::ScopeFacts;

const COUNT: &str = "count/resourceclaims.resource.k8s.io";

/// The other objects on which the charge of a claim to devices depends.
///
/// A claim that the scheduler made for a pod's extended resources is not charged for what the pod
/// is charged already. An implementation that knows no pods exempts no claim.
pub trait DeviceContext: fmt::Debug {
    /// Returns the mapping between device classes and extended resources.
    fn classes(&self) -> &DeviceClassMapping;

    /// Returns the pod of this name.
    fn pod(&self, namespace: &str, name: &str) -> Option<OwnerPod> {
        let _ = (namespace, name);
        None
    }

    /// Returns the claims of a pod: those for which [`ResourceClaim::extended_resource_owner`] has
    /// its uid.
    fn claims_of(&self, namespace: &str, pod_uid: &str) -> Vec<SiblingClaim> {
        let _ = (namespace, pod_uid);
        Vec::new()
    }
}

/// A pod that owns a claim.
#[derive(Debug, Clone)]
pub struct OwnerPod {
    /// Its uid.
    pub uid: SmolStr,
    /// The claim that its `extendedResourceClaimStatus` names.
    pub extended_resource_claim: Option<SmolStr>,
    /// Its usage at the time of the recount.
    pub usage: ResourceList,
}

/// A claim that the pod of another claim owns. The earliest is exempted; of equally old ones the
/// lower name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SiblingClaim {
    /// Its time of creation.
    pub created: Option<Timestamp>,
    /// Its name.
    pub name: SmolStr,
}

impl DeviceContext for DeviceClassMapping {
    fn classes(&self) -> &DeviceClassMapping {
        self
    }
}

/// The names in the order of the list.
pub(super) fn matching(list: &[ResourceName], classes: &DeviceClassMapping) -> Vec<ResourceName> {
    let is_counted = |name: &&ResourceName| {
        let name = name.as_str();
        let is_mapped = || {
            let resource = name.strip_prefix(REQUESTS).filter(|_| is_extended_for_quota(name));
            resource.is_some_and(|resource| classes.class_of(resource).is_some())
        };
        name == COUNT || name.ends_with(DEVICES_OF_CLASS) || is_mapped()
    };
    list.iter().filter(is_counted).cloned().collect()
}

/// Computes the charge of a claim: itself, and the most devices that it can get of each class.
///
/// The devices of a class are also charged as the extended resources that the class provides, as
/// far as the pod that owns the claim is not charged for them. Where two classes provide one
/// resource, their devices are added; upstream charges those of an arbitrary one.
pub fn charge(claim: &ResourceClaim, context: &dyn DeviceContext) -> Charge {
    let mut usage = ones([COUNT]);
    let mut devices = BTreeMap::new();
    for request in &claim.spec.devices.requests {
        add_devices(&mut devices, request);
    }
    let mut extended = ResourceList::new();
    for (class, count) in devices {
        for name in extended_resources(class, context.classes()) {
            extended.add_to(&name, &count);
        }
        usage.insert(joined(class, DEVICES_OF_CLASS), count);
    }
    let mut exempted = exempted_usage(claim, context);
    exempted.retain(|name, _| extended.contains(name));
    let mut charged = extended.subtract(&exempted);
    charged.retain(|_, quantity| quantity.is_positive());
    usage += &charged;
    Charge::new(usage, ScopeFacts::None)
}

/// Adds the most devices of each class that a request can get.
fn add_devices<'a>(devices: &mut BTreeMap<&'a str, Quantity>, request: &'a DeviceRequest) {
    let mut most: BTreeMap<&str, Quantity> = BTreeMap::new();
    for way in &request.first_available {
        let count = Quantity::from(way.most());
        let known = most.get(way.device_class_name.as_str()).unwrap_or(&Quantity::ZERO);
        if count > *known {
            most.insert(&way.device_class_name, count);
        }
    }
    if request.first_available.is_empty()
        && let Some(exactly) = &request.exactly
    {
        // An entry of zero stays: the class is named.
        most.insert(&exactly.device_class_name, Quantity::from(exactly.most()));
    }
    for (class, count) in most {
        *devices.entry(class).or_default() += &count;
    }
}

/// Returns the names under which the devices of a class are charged as extended resources.
fn extended_resources(class: &str, classes: &DeviceClassMapping) -> Vec<ResourceName> {
    if class.is_empty() {
        return Vec::new();
    }
    let explicit = classes.resource_of(class).map(|resource| joined(REQUESTS, resource));
    std::iter::once(joined(REQUESTS_DEVICE_CLASS, class)).chain(explicit).collect()
}

/// Returns the usage of the pod whose extended resources the claim serves, empty if there is no
/// such pod.
fn exempted_usage(claim: &ResourceClaim, context: &dyn DeviceContext) -> ResourceList {
    let verified = || {
        let owner = claim.extended_resource_owner()?;
        let namespace = &claim.metadata.namespace;
        let pod = context.pod(namespace, &owner.name).filter(|pod| pod.uid == owner.uid)?;
        let is_first = || {
            let this = SiblingClaim {
                created: claim.metadata.creation_timestamp,
                name: claim.metadata.name.clone(),
            };
            context.claims_of(namespace, &pod.uid).iter().all(|other| *other >= this)
        };
        let named = pod.extended_resource_claim.as_ref();
        let is_served = named.map_or_else(is_first, |name| *name == claim.metadata.name);
        is_served.then_some(pod.usage)
    };
    verified().unwrap_or_default()
}
