//! Informers for Kubernetes controllers: a local copy of a kind that misses no event, with indices,
//! listers and handlers.
//!
//! ```text
//!  API server ─list/watch─▶ Reflector ─deltas─▶ DeltaFifo ─▶ Store + indices ─events─▶ handlers
//!                                                                  ▲
//!                                                          Lister, Index read
//! ```
//!
//! * [`SharedIndexInformer`] owns the whole pipeline for one kind. [`SharedInformerFactory`] holds
//!   one informer per kind.
//! * [`Lister`] and [`Index`] read the local copy. They send no request and never wait.
//! * A handler receives [`Event`]s. An object that does not fit its Rust type is reported as
//!   [`Opaque`](Event::Opaque), never as deleted.
//! * [`MutationCache`] shows an author's own writes before the local copy has them.
//! * [`list_watch::ListWatch`] is the seam to a server. [`list_watch::KubeListWatch`] talks to an
//!   API server, and [`testing`] lets a test play the server.
//! * [`fifo`] holds the queue between reflector and store, for authors who keep another kind of
//!   copy.
//! * [`status`] and [`metrics`] show the state of an informer.
//!
//! # Which type to use
//!
//! | The controller needs | Use |
//! | --- | --- |
//! | a cache of one kind | [`SharedIndexInformer`] |
//! | several kinds that start and stop together | [`SharedInformerFactory`] |
//! | a list of resources that changes at run time | [`InformerSet`] |
//! | objects by key, namespace or labels | [`Lister`] |
//! | objects by owner, node or another value | [`Index`] |
//! | a reaction to changes | [`SharedIndexInformer::add_handler`] |
//! | changes in a `select!` loop | [`SharedIndexInformer::events`] |
//! | several namespaces, but not all | [`list_watch::MergedListWatch`] |
//! | reads that include its own writes | [`MutationCache`] |
//! | only the metadata of a kind | an informer of [`Metadata`] |
//! | a kind that is known only at run time | an informer of [`Dynamic`] |
//! | a test without a server | [`testing::ScriptedListWatch`] or [`testing::Store`] |
//!
//! # Examples
//!
//! A test of code that reads a cache:
//!
//! ```
//! use homeostat_informer::Lister;
//! use homeostat_informer::testing::Store;
//! use k8s_openapi::api::core::v1::Node;
//!
//! fn count_cordoned(nodes: &Lister<Node>) -> usize {
//!     let is_cordoned = |node: &Node| node.spec.as_ref()?.unschedulable;
//!     nodes.list().iter().filter(|node| is_cordoned(node) == Some(true)).count()
//! }
//!
//! let store = Store::<Node>::new();
//! let json = r#"{"metadata":{"name":"node-1"},"spec":{"unschedulable":true}}"#;
//! store.apply(serde_json::from_str::<Node>(json)?);
//! assert_eq!(count_cordoned(&store.lister()), 1);
//! # Ok::<_, serde_json::Error>(())
//! ```
//!
//! # Memory and locks
//!
//! An object is in memory once, behind an `Arc` that the cache, the handlers and the callers share.
//! No lock is held while a handler, an index function, a filter or a transform runs, so each of
//! them may call the informer.
//!
//! # Time and randomness
//!
//! All time is tokio's, and all jitter comes from a seed ([`InformerBuilder::seed`]). A test with a
//! paused clock runs the same way every time.
//!
//! # Upstream
//!
//! The types carry the names of client-go's `tools/cache`, and their behaviour follows it where
//! nothing else is said. Search the documentation for a name of client-go to find its counterpart
//! here.

// Pure vocabulary.
mod backoff;
mod callback;
mod event;
mod json;
mod object;
mod projection;
mod scope;
pub mod status;
mod sync;
mod timeouts;

// The pipeline, from the server to the handlers.
mod apply;
mod delta;
mod delta_fifo;
pub mod list_watch;
pub mod metrics;
mod processor;
mod reflector;
mod store;

// Reading the local copy.
mod index;
mod lister;
mod mutation_cache;

// The parts put together.
mod factory;
mod informer_set;
mod shared;
pub mod testing;

#[cfg(test)]
mod model;

pub use backoff::BackoffConfig;
pub use event::Event;
pub use factory::{FactoryBuilder, NotSynced, SharedInformerFactory};
pub use homeostat_core::LabelSelector;
pub use index::Index;
pub use informer_set::{Followed, InformerSet, SetEvent, UnsyncedResource};
pub use kube_core::{Expression, GroupVersionResource, Selector};
pub use lister::{Lister, MatchLabels, Snapshot, SnapshotIter};
pub use mutation_cache::{MutationCache, MutationCacheBuilder};
pub use object::{
    DecodeError, Dynamic, KeyRef, Lazy, Metadata, Object, ObjectKey, ObjectMeta, ParseKeyError,
    ResourceVersion, Uid,
};
pub use processor::{HandlerOptions, Subscription, predicate};
pub use projection::Projection;
pub use scope::Scope;
pub use shared::{
    EventStream, InformerBuilder, Lagged, Overflow, SharedIndexInformer, Unsynced, WaitError,
    WeakInformer,
};
pub use timeouts::TimeoutConfig;

/// The queue between a server and a copy of its objects, for copies that are not an informer's.
///
/// See [`DeltaFifo`](fifo::DeltaFifo).
pub mod fifo {
    pub use crate::delta::{Batch, Delta};
    pub use crate::delta_fifo::DeltaFifo;
}

#[cfg(feature = "derive")]
#[doc(hidden)]
pub use homeostat_informer_derive::Projection;

/// The names that the code of `#[derive(Projection)]` uses. Not for authors.
#[doc(hidden)]
pub mod __private {
    pub use serde;

    pub use crate::projection::{Projection, null_is_default};
}

/// Runs the code of the book's pages about this crate.
#[cfg(doctest)]
mod book {
    #[cfg(feature = "derive")]
    #[doc = include_str!("../../docs/projections.md")]
    struct Projections;

    #[doc = include_str!("../../docs/reflector.md")]
    struct Reflector;

    #[doc = include_str!("../../docs/delta-fifo.md")]
    struct DeltaFifo;

    #[doc = include_str!("../../docs/store.md")]
    struct Store;

    #[doc = include_str!("../../docs/shared-informer.md")]
    struct SharedInformer;

    #[doc = include_str!("../README.md")]
    struct Readme;
}
