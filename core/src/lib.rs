//! The vocabulary that the crates of homeostat share.
//!
//! | Type | client-go's word |
//! | --- | --- |
//! | [`ObjectKey`], [`KeyRef`] | `ObjectName`, the result of `MetaNamespaceKeyFunc` |
//! | [`Uid`] | `types.UID` |
//! | [`ResourceVersion`] | the `resourceVersion` string |
//! | [`GroupResource`] | `schema.GroupResource` |
//! | [`LabelSelector`] | `labels.Selector`, `metav1.LabelSelector` |
//! | [`WallClock`] | `clock.Clock` |
//! | [`Random`] | `math/rand` |
//! | [`parse_go_duration`] | `time.ParseDuration` |
//! | [`parse_go_bool`] | `strconv.ParseBool` |
//! | [`go_quote()`] | `strconv.Quote` |
//! | [`retry_after()`] | the parser of `Retry-After` in `k8s.io/client-go/rest` |
//! | [`user_code()`] | `utilruntime.HandleCrash` |
//!
//! The crate has no task, no lock and no connection. It uses tokio's clock and nothing else of
//! tokio.

mod clock;
mod go_bool;
mod go_duration;
mod go_quote;
mod group_resource;
mod key;
mod labels;
pub mod metrics;
mod random;
mod resource_version;
mod retry_after;
#[cfg(homeostat_loom)]
#[doc(hidden)]
pub mod sync;
mod uid;
mod user_code;
mod uuid;

pub use crate::clock::WallClock;
pub use crate::go_bool::parse_go_bool;
pub use crate::go_duration::{GoDurationError, parse_go_duration};
pub use crate::go_quote::go_quote;
pub use crate::group_resource::GroupResource;
pub use crate::key::{KeyRef, ObjectKey, ParseKeyError};
pub use crate::labels::{LabelSelector, LabelSelectorError};
pub use crate::random::Random;
pub use crate::resource_version::ResourceVersion;
pub use crate::retry_after::retry_after;
pub use crate::uid::Uid;
pub use crate::user_code::{Panicked, user_code, user_future};
pub use crate::uuid::Uuid;

/// Compiles the README's example.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
