//! Admission by `ValidatingAdmissionPolicy`: which policies apply to a request, and what they say.
//!
//! Pure code. A [`World`] gives it the other objects that it reads.

mod attributes;
mod binding;
mod cache;
mod decide;
mod matching;
mod params;
mod policy;

pub(crate) use attributes::{Attributes, GroupKind, Operation, Place};
pub(crate) use cache::Cache;
pub(crate) use decide::{Denial, Outcome, World, decide};
pub(crate) use matching::Matched;
pub(crate) use params::ParamKind;
pub(crate) use policy::Policies;

#[cfg(test)]
mod tests;
