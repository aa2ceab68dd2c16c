//! Admission by `ValidatingAdmissionPolicy` and `MutatingAdmissionPolicy`: which policies apply to
//! a request, and what they say.
//!
//! Pure code. A [`World`] gives it the other objects that it reads.

mod attributes;
mod binding;
mod cache;
mod codec;
mod decide;
mod matching;
mod mutate;
mod param_kind;
mod params;
mod policy;
mod reinvocation;
mod select;
mod world;

pub(crate) use attributes::{Attributes, GroupKind, Matched, Operation, Place};
pub(crate) use cache::Cache;
pub(crate) use codec::{Codec, Source};
pub(crate) use decide::{Denial, Enforcement, Outcome, decide, input_of, is_exempt};
pub(crate) use matching::MatchResources;
pub(crate) use mutate::Mutation;
pub(crate) use param_kind::ParamKind;
pub(crate) use policy::Policies;
pub(crate) use reinvocation::Reinvocation;
pub(crate) use world::World;

#[cfg(test)]
mod tests;
