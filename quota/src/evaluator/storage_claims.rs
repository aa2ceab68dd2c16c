//! Claims to storage (`pkg/quota/v1/evaluator/core/persistent_volume_claims.go`).

use homeostat_quantity::{Quantity, ResourceName, Scale};

use super::ones;
use crate::charge::Charge;
use crate::names::{STORAGE_CLASS, joined};
use crate::object::storage::PersistentVolumeClaim;
use crate::scope::ScopeFacts;

const COUNT: &str = "count/persistentvolumeclaims";
const CLAIMS: &str = "persistentvolumeclaims";
const STORAGE: &str = "requests.storage";

/// The names in the order of the list.
pub(super) fn matching(list: &[ResourceName]) -> Vec<ResourceName> {
    list.iter().filter(|name| is_counted(name)).cloned().collect()
}

fn is_counted(name: &str) -> bool {
    let of_class =
        |resource| name.strip_suffix(resource).is_some_and(|class| class.ends_with(STORAGE_CLASS));
    matches!(name, COUNT | CLAIMS | STORAGE) || of_class(CLAIMS) || of_class(STORAGE)
}

/// Computes the charge of a claim: itself and its storage, each also under the name of its storage
/// class.
pub fn charge(claim: &PersistentVolumeClaim) -> Charge {
    let mut usage = ones([COUNT, CLAIMS]);
    let class = claim.storage_class();
    let of_class = |resource| joined(class, &[STORAGE_CLASS, resource].concat());
    if !class.is_empty() {
        usage.insert(of_class(CLAIMS), Quantity::from(1));
    }
    if let Some(storage) = storage(claim) {
        if !class.is_empty() {
            usage.insert(of_class(STORAGE), storage.clone());
        }
        usage.insert(ResourceName::from_static(STORAGE), storage);
    }
    Charge::new(usage, ScopeFacts::VolumeAttributesClasses(claim.volume_attributes_classes()))
}

/// Returns the requested storage, or the allocated storage if that is more, in whole bytes.
fn storage(claim: &PersistentVolumeClaim) -> Option<Quantity> {
    let requested = whole(claim.spec.resources.requests.get("storage")?);
    match claim.status.allocated_resources.get("storage") {
        Some(allocated) if *allocated > requested => Some(whole(allocated)),
        _ => Some(requested),
    }
}

/// Rounds up to whole bytes. A whole number keeps its text.
fn whole(quantity: &Quantity) -> Quantity {
    let mut rounded = quantity.clone();
    if rounded.round_up(Scale::One) { quantity.clone() } else { rounded }
}
