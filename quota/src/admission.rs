//! The decision about one request (`CheckRequest` of the admission plugin `ResourceQuota`).

use homeostat_quantity::{ResourceList, ResourceName};
use jiff::Timestamp;
use smol_str::SmolStr;

use crate::charge::Charge;
use crate::evaluator::device_claims::DeviceContext;
use crate::evaluator::{Evaluator, MissingResources, Operation, UnexpectedObject};
use crate::object::Object;
use crate::quota::Quota;
use crate::scope::ScopeError;

/// A request for admission.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The evaluator of the resource.
    pub evaluator: &'a Evaluator,
    /// The operation.
    pub operation: Operation,
    /// The subresource; empty for the object itself.
    pub subresource: &'a str,
    /// The object as it would be stored.
    pub object: &'a Object,
    /// The object as it is stored. None for an object that is created, also by an update.
    pub old: Option<&'a Object>,
    /// The objects on which the charge of a claim to devices depends.
    pub context: &'a dyn DeviceContext,
    /// The time.
    pub now: Timestamp,
}

/// The usage that a quota has once the request is admitted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewUsage {
    /// The position of the quota in the list that was checked.
    pub quota: usize,
    /// Its `status.used`, with the charge of the request.
    pub used: ResourceList,
}

/// A request that is not admitted. The texts are upstream's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum QuotaError {
    /// The object lacks resources that the quota requires.
    #[error("failed quota: {quota}: {missing}")]
    Constraints {
        /// The name of the quota.
        quota: SmolStr,
        /// The missing resources.
        missing: MissingResources,
    },
    /// The usage of the quota has not been counted yet.
    #[error("status unknown for quota: {quota}, resources: {}", joined(resources))]
    StatusUnknown {
        /// The name of the quota.
        quota: SmolStr,
        /// The names that the quota enforces on the object.
        resources: Vec<ResourceName>,
    },
    /// The object requests a negative amount.
    #[error("quota usage is negative for resource(s): {}", joined(.0))]
    Negative(Vec<ResourceName>),
    /// The charge exceeds the quota.
    #[error("exceeded quota: {quota}, requested: {requested}, used: {used}, limited: {limited}")]
    Exceeded {
        /// The name of the quota.
        quota: SmolStr,
        /// The charge, for the exceeded names.
        requested: ResourceList,
        /// The usage before the request, for the exceeded names.
        used: ResourceList,
        /// The limits, for the exceeded names.
        limited: ResourceList,
    },
    /// A scope of the quota cannot be evaluated. This is no refusal but a fault of the quota.
    #[error("error matching scopes of quota {quota}, err: {source}")]
    Scope {
        /// The name of the quota.
        quota: SmolStr,
        /// The reason.
        source: ScopeError,
    },
    /// The object is not of the evaluator's resource. This is no refusal but a fault of the caller.
    #[error(transparent)]
    Object(#[from] UnexpectedObject),
}

fn joined(names: &[ResourceName]) -> String {
    let mut names: Vec<&str> = names.iter().map(ResourceName::as_str).collect();
    names.sort_unstable();
    names.join(",")
}

// === impl QuotaError ===

impl QuotaError {
    /// Returns true if the API server answers 403, with this text after `… is forbidden: `.
    pub fn is_forbidden(&self) -> bool {
        !matches!(self, Self::Scope { .. } | Self::Object(_))
    }
}

/// Checks a request against the quotas of its namespace.
///
/// Returns the quotas whose usage the caller has to write before it stores the object. Each present
/// quota is checked for all others too, so that an admitted request fits into all of them.
///
/// # Errors
///
/// Returns the first quota, in the order of the list, that does not admit the request.
///
/// # Examples
///
/// ```
/// use homeostat_core::GroupResource;
/// use homeostat_quota::object::Object;
/// use homeostat_quota::{DeviceClassMapping, Evaluator, Operation, Quota, Request, check_request};
/// use jiff::Timestamp;
/// use serde_json::json;
///
/// let quota: Quota = serde_json::from_value(json!({
///     "metadata": {"name": "counts"},
///     "status": {"hard": {"secrets": "2"}, "used": {"secrets": "2"}},
/// }))?;
/// let error = check_request(&[quota], Request {
///     evaluator: &Evaluator::counter(GroupResource::new("", "secrets")),
///     operation: Operation::Create,
///     subresource: "",
///     object: &Object::Other,
///     old: None,
///     context: &DeviceClassMapping::default(),
///     now: Timestamp::now(),
/// }).unwrap_err();
/// let text = "exceeded quota: counts, requested: secrets=1, used: secrets=2, limited: secrets=2";
/// assert_eq!(error.to_string(), text);
/// # Ok::<(), serde_json::Error>(())
/// ```
pub fn check_request(quotas: &[Quota], request: Request<'_>) -> Result<Vec<NewUsage>, QuotaError> {
    let Request { evaluator, operation, subresource, object, old, context, now } = request;
    if !evaluator.handles(operation, subresource, old, object) {
        return Ok(Vec::new());
    }
    let charge = evaluator.charge(object, context)?;
    let mut matching = Vec::new();
    for (at, quota) in quotas.iter().enumerate() {
        if matches(quota, &request, &charge)? {
            check_constraints(quota, &request)?;
            matching.push(at);
        }
    }
    let usage = charge.usage(now);
    let negative = usage.negative_names();
    if !negative.is_empty() {
        return Err(QuotaError::Negative(negative));
    }
    let old = old.filter(|_| operation == Operation::Update);
    let old = old.map(|old| evaluator.charge(old, context)).transpose()?;
    let mut changed = Vec::new();
    for at in matching {
        let quota = &quotas[at];
        let delta = match &old {
            Some(old) if matches(quota, &request, old)? => {
                usage.subtract_with_non_negative_result(&old.usage(now))
            }
            _ => usage.clone(),
        };
        changed.push((at, delta.remove_zeros()));
    }
    changed.retain(|(_, delta)| !delta.is_empty());
    changed.into_iter().map(|(at, delta)| add(quotas, at, &delta, subresource)).collect()
}

fn matches(quota: &Quota, request: &Request<'_>, charge: &Charge) -> Result<bool, QuotaError> {
    let matches = quota.matches(request.evaluator, charge, request.context.classes());
    matches.map_err(|source| QuotaError::Scope { quota: quota.metadata.name.clone(), source })
}

/// Checks that the object specifies what the quota requires, and that the quota has been counted.
fn check_constraints(quota: &Quota, request: &Request<'_>) -> Result<(), QuotaError> {
    let name = || quota.metadata.name.clone();
    let resources = quota.enforced(request.evaluator, request.context.classes());
    let constraints = request.evaluator.check_constraints(&resources, request.object);
    constraints.map_err(|missing| QuotaError::Constraints { quota: name(), missing })?;
    let is_counted =
        |name: &ResourceName| quota.status.used.as_ref().is_some_and(|used| used.contains(name));
    if resources.iter().all(is_counted) {
        return Ok(());
    }
    Err(QuotaError::StatusUnknown { quota: name(), resources })
}

/// Adds a charge to the usage of a quota. Updates of a status are charged even if they exceed the
/// quota.
fn add(
    quotas: &[Quota],
    at: usize,
    delta: &ResourceList,
    subresource: &str,
) -> Result<NewUsage, QuotaError> {
    let Quota { metadata, status, .. } = &quotas[at];
    let (hard, used) =
        (status.hard.clone().unwrap_or_default(), status.used.clone().unwrap_or_default());
    let requested = delta.mask(hard.names());
    let new = used.add(&requested);
    let exceeded = new.mask(requested.names()).names_exceeding(&hard);
    if subresource == "status" || exceeded.is_empty() {
        return Ok(NewUsage { quota: at, used: new });
    }
    Err(QuotaError::Exceeded {
        quota: metadata.name.clone(),
        requested: requested.mask(&exceeded),
        used: used.mask(&exceeded),
        limited: hard.mask(&exceeded),
    })
}
