//! Evaluators: one per resource, each knows the names that it counts and the charge of an object.

use homeostat_core::GroupResource;
use homeostat_quantity::{Quantity, ResourceList, ResourceName, names};
use jiff::Timestamp;

use crate::charge::Charge;
use crate::device_class::DeviceClassMapping;
use crate::gates::Gates;
use crate::names::object_count_name;
use crate::object::Object;
use crate::scope::ScopeFacts;

pub(crate) mod device_claims;
pub(crate) mod pods;
pub(crate) mod services;
pub(crate) mod storage_claims;

use self::device_claims::DeviceContext;

/// The evaluator of one resource (upstream: `quota.Evaluator`).
///
/// # Examples
///
/// ```
/// use homeostat_core::GroupResource;
/// use homeostat_quantity::ResourceName;
/// use homeostat_quota::{DeviceClassMapping, Evaluator};
///
/// let pods = Evaluator::pods(Default::default());
/// let hard = ["requests.cpu", "secrets", "count/pods"].map(ResourceName::from);
/// let classes = DeviceClassMapping::default();
/// assert_eq!(pods.matching_resources(&hard, &classes), ["count/pods", "requests.cpu"]);
///
/// let jobs = Evaluator::counter(GroupResource::new("batch", "jobs"));
/// assert!(jobs.matching_resources(&hard, &classes).is_empty());
/// ```
#[derive(Debug, Clone)]
pub struct Evaluator {
    resource: GroupResource,
    kind: Kind,
}

#[derive(Debug, Clone)]
enum Kind {
    Pods(Gates),
    Services,
    StorageClaims,
    DeviceClaims,
    /// Objects are counted under these names.
    Counter(Vec<ResourceName>),
}

/// An operation of the API that a quota may concern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// An object is created.
    Create,
    /// An object, or one of its subresources, is updated.
    Update,
}

/// An evaluator was given an object of another resource.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the object is not of resource {resource}")]
pub struct UnexpectedObject {
    /// The resource of the evaluator.
    pub resource: GroupResource,
}

/// An object lacks resources that a quota requires. The text is upstream's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("must specify {0}")]
pub struct MissingResources(pub(crate) String);

// === impl Evaluator ===

impl Evaluator {
    /// Returns the evaluator of pods.
    pub fn pods(gates: Gates) -> Self {
        Self { resource: GroupResource::new("", "pods"), kind: Kind::Pods(gates) }
    }

    /// Returns the evaluator of services.
    pub fn services() -> Self {
        Self { resource: GroupResource::new("", "services"), kind: Kind::Services }
    }

    /// Returns the evaluator of claims to storage.
    pub fn persistent_volume_claims() -> Self {
        let resource = GroupResource::new("", "persistentvolumeclaims");
        Self { resource, kind: Kind::StorageClaims }
    }

    /// Returns the evaluator of claims to devices.
    pub fn resource_claims() -> Self {
        let resource = GroupResource::new("resource.k8s.io", "resourceclaims");
        Self { resource, kind: Kind::DeviceClaims }
    }

    /// Returns an evaluator that counts objects under `count/<resource>.<group>`.
    ///
    /// `configmaps`, `secrets`, `replicationcontrollers` and `resourcequotas` are also counted
    /// under these plain names.
    pub fn counter(resource: GroupResource) -> Self {
        const ALIASES: [&str; 4] =
            ["configmaps", "resourcequotas", "replicationcontrollers", "secrets"];
        let mut names = vec![object_count_name(&resource)];
        if resource.group.is_empty()
            && let Some(alias) = ALIASES.into_iter().find(|alias| *alias == resource.resource)
        {
            names.push(ResourceName::from_static(alias));
        }
        Self { resource, kind: Kind::Counter(names) }
    }

    /// Returns the resource.
    pub fn resource(&self) -> &GroupResource {
        &self.resource
    }

    /// Returns true if only the number of objects matters, so that no object has to be read.
    pub fn is_counter(&self) -> bool {
        matches!(self.kind, Kind::Counter(_))
    }

    /// Returns the names among `names` that this evaluator counts (`MatchingResources`).
    pub fn matching_resources(
        &self,
        names: &[ResourceName],
        classes: &DeviceClassMapping,
    ) -> Vec<ResourceName> {
        match &self.kind {
            Kind::Pods(_) => pods::matching(names),
            Kind::Services => services::matching(names),
            Kind::StorageClaims => storage_claims::matching(names),
            Kind::DeviceClaims => device_claims::matching(names, classes),
            Kind::Counter(counted) => names::intersection(names, counted),
        }
    }

    /// Computes the charge of an object.
    ///
    /// # Errors
    ///
    /// Returns an error if the object is of another resource. A counter takes every object.
    pub fn charge(
        &self,
        object: &Object,
        context: &dyn DeviceContext,
    ) -> Result<Charge, UnexpectedObject> {
        match (&self.kind, object) {
            (Kind::Pods(gates), Object::Pod(pod)) => Ok(pods::charge(pod, *gates)),
            (Kind::Services, Object::Service(service)) => Ok(services::charge(service)),
            (Kind::StorageClaims, Object::PersistentVolumeClaim(claim)) => {
                Ok(storage_claims::charge(claim))
            }
            (Kind::DeviceClaims, Object::ResourceClaim(claim)) => {
                Ok(device_claims::charge(claim, context))
            }
            (Kind::Counter(_), _) => Ok(self.charge_of_count(1)),
            _ => Err(UnexpectedObject { resource: self.resource.clone() }),
        }
    }

    /// Returns the charge of `count` objects that are only counted.
    pub(crate) fn charge_of_count(&self, count: i64) -> Charge {
        let Kind::Counter(names) = &self.kind else { return Charge::default() };
        let usage = names.iter().map(|name| (name.clone(), Quantity::from(count)));
        Charge::new(usage.collect(), ScopeFacts::None)
    }

    /// Checks that an object specifies what a quota requires of it (`Constraints`).
    ///
    /// A quota for cpu or memory requires each container of a pod to specify them, unless the pod
    /// has resources as a whole.
    ///
    /// # Errors
    ///
    /// Returns the missing resources and the containers that lack them:
    /// `must specify limits.cpu for: b,c; requests.memory for: b,c`.
    pub fn check_constraints(
        &self,
        required: &[ResourceName],
        object: &Object,
    ) -> Result<(), MissingResources> {
        match (&self.kind, object) {
            (Kind::Pods(gates), Object::Pod(pod)) => pods::check(pod, required, *gates),
            _ => Ok(()),
        }
    }

    /// Returns true if an operation may change what an object is charged (`Handles`).
    ///
    /// An empty `subresource` is the object itself. Upstream handles each status update of a claim
    /// to storage. Here the update filter decides: [`Charge::needs_recount`].
    pub fn handles(
        &self,
        operation: Operation,
        subresource: &str,
        old: Option<&Object>,
        new: &Object,
    ) -> bool {
        let is_create = operation == Operation::Create;
        match (&self.kind, subresource) {
            (Kind::Pods(_), "") => is_create || pods::changes_scope(old, new),
            (Kind::Pods(_), "resize") => !is_create,
            (Kind::Services | Kind::StorageClaims | Kind::DeviceClaims, "") => true,
            (Kind::StorageClaims, "status") => match (old, new) {
                (Some(Object::PersistentVolumeClaim(old)), Object::PersistentVolumeClaim(new)) => {
                    let (old, new) = (storage_claims::charge(old), storage_claims::charge(new));
                    old.needs_recount(&new, Timestamp::UNIX_EPOCH)
                }
                _ => false,
            },
            (Kind::Counter(_), "") => is_create,
            _ => false,
        }
    }
}

/// Returns a list of entries that each count one.
pub(crate) fn ones<const LEN: usize>(names: [&'static str; LEN]) -> ResourceList {
    names.map(|name| (ResourceName::from_static(name), Quantity::from(1))).into()
}
