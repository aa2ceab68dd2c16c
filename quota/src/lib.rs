//! The pure part of Kubernetes resource quotas: which objects a quota counts, what each is charged,
//! and whether a request fits.
//!
//! ```text
//!  object ─▶ Evaluator::charge ─▶ Charge ─┬─▶ Charge::needs_recount ─▶ the quotas to recount
//!  (projection)                           │
//!  quota ──▶ Quota::scopes ───────────────┼─▶ Recount, Tally ─▶ status.used           (controller)
//!                                         └─▶ check_request ─▶ status.used, or 403     (admission)
//! ```
//!
//! | Here | Upstream (Kubernetes 1.37.1) |
//! | --- | --- |
//! | [`Evaluator`] | `pkg/quota/v1/evaluator/core`, `apiserver/pkg/quota/v1/generic` |
//! | [`Registry`], [`is_ignored`] | `pkg/quota/v1/install` |
//! | [`pod_requests`], [`pod_limits`] | `component-helpers/resource/helpers.go` |
//! | [`compute_qos_class`] | `pkg/apis/core/v1/helper/qos` |
//! | [`Scopes`], [`ScopeFacts`] | `podMatchesScopeFunc`, `pvcMatchesScopeFunc` |
//! | [`DeviceClassMapping`] | `dynamic-resource-allocation/deviceclass/extendedresourcecache` |
//! | [`Recount`], [`Tally`] | `CalculateUsage`, `CalculateUsageStats` |
//! | [`Charge::needs_recount`] | `pkg/quota/v1/install/update_filter.go` |
//! | [`check_request`] | `CheckRequest` of `apiserver/pkg/admission/plugin/resourcequota` |
//!
//! The crate has no client, no clock, no lock and no task: `now` is an argument. Objects are read
//! as projections ([`object`]) with the members that decide about a charge, so the crate needs no
//! version of `k8s-openapi`.
//!
//! **Deviations from upstream.** One update filter serves all kinds and compares charges by value.
//! A scope that cannot be evaluated is an error instead of a partial sum. Device classes that name
//! the same extended resource keep their claims ([`DeviceClassMapping`]), and their devices are
//! added.

mod admission;
mod charge;
mod device_class;
mod evaluator;
mod gates;
mod json;
mod names;
pub mod object;
mod pod_resources;
mod qos;
mod quota;
mod registry;
mod scope;
mod usage;

pub use crate::admission::{NewUsage, QuotaError, Request, check_request};
pub use crate::charge::Charge;
pub use crate::device_class::DeviceClassMapping;
pub use crate::evaluator::device_claims::{
    DeviceContext, OwnerPod, SiblingClaim, charge as resource_claim_charge,
};
pub use crate::evaluator::pods::charge as pod_charge;
pub use crate::evaluator::services::charge as service_charge;
pub use crate::evaluator::storage_claims::charge as persistent_volume_claim_charge;
pub use crate::evaluator::{Evaluator, MissingResources, Operation, UnexpectedObject};
pub use crate::gates::Gates;
pub use crate::names::object_count_name;
pub use crate::pod_resources::{PodResourcesOptions, pod_limits, pod_requests};
pub use crate::qos::{QosClass, compute_qos_class};
pub use crate::quota::{Quota, QuotaSpec, QuotaStatus, ScopeSelector};
pub use crate::registry::{Registry, is_ignored};
pub use crate::scope::{PodScopes, ScopeError, ScopeFacts, ScopeRequirement, Scopes};
pub use crate::usage::{Recount, Tally, Usage};

/// Compiles the README's example.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
