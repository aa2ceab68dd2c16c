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
pub(crate) use cache::{Cache, Kept};
pub(crate) use decide::{Denial, Outcome, World, decide, input_of, is_exempt};
pub(crate) use matching::{MatchResources, Matched};
pub(crate) use params::ParamKind;
pub(crate) use policy::Policies;

#[cfg(test)]
mod tests;
