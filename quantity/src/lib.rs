//! Kubernetes quantities (`1500m`, `64Mi`, `2e3`) and lists of them.
//!
//! | Type | Upstream |
//! | --- | --- |
//! | [`Quantity`], [`Format`], [`Scale`] | `resource.Quantity` of `k8s.io/apimachinery` |
//! | [`ParseQuantityError`] | `ErrFormatWrong`, `ErrNumeric`, `ErrSuffix` |
//! | [`ResourceName`], [`ResourceList`] | `ResourceName`, `ResourceList` of `k8s.io/api/core/v1` |
//! | [`ResourceList`]'s methods, [`names`] | `k8s.io/apiserver/pkg/quota/v1/resources.go` |
//!
//! Texts, sums and errors are those of apimachinery 0.37.1, to the byte. `vectors/` has a Go
//! program that records them, and `tests/vectors.rs` checks each recorded line. The deviations are
//! listed in `docs/quantity.md`.
//!
//! **Promises.** Arithmetic is exact. Reading, writing and each operation take time and memory
//! linear in the length of any text: `1e2147483648`, which apimachinery does not finish reading, is
//! an error. The crate has no clock, no lock and no task.

mod amount;
mod canonical;
mod format;
mod limbs;
mod list;
mod name;
mod parse;
mod quantity;
mod serde;

pub use crate::format::Format;
pub use crate::list::{Iter, ParseListError, ResourceList};
pub use crate::name::ResourceName;
pub use crate::parse::{MAX_EXPONENT, ParseQuantityError};
pub use crate::quantity::{Quantity, Scale};

/// Operations on lists of resource names.
pub mod names {
    pub use crate::name::{contains_prefix, difference, intersection, to_set};
}

/// Compiles the README's example.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// Compiles the examples of `docs/quantity.md`.
#[cfg(doctest)]
#[doc = include_str!("../../docs/quantity.md")]
struct Page;
