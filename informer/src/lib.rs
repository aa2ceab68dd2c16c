//! Informers for Kubernetes controllers: a local copy of a kind that misses no event, with indices, listers and
//! handlers.
//!
//! ```text
//!  API server ──list/watch──▶ Reflector ──deltas──▶ DeltaFifo ──▶ Store + indices ──events──▶ handlers
//!                                                                      ▲
//!                                                            Lister, Index read
//! ```
//!
//! * [`SharedIndexInformer`] is the whole line; [`SharedInformerFactory`] keeps one for each kind.
//! * [`Lister`] and [`Index`] read the copy, without asking the server and without waiting for anybody.
//! * [`Event`] is what a handler is told. An object that does not fit its Rust type is told as
//!   [`Opaque`](Event::Opaque), never as deleted.
//! * [`MutationCache`] shows what one has written before the copy does.
//! * [`ListWatch`] is the one seam to a server; [`KubeListWatch`] asks a real one, and [`testing`] lets a test be one.
//!
//! Time is tokio's and chance has a seed, so that a test with a paused clock runs the same way every time.

mod backoff;
mod delta;
mod delta_fifo;
mod dispatcher;
mod event;
mod factory;
mod index;
mod inside;
mod json;
mod list_watch;
mod lister;
mod metrics;
#[cfg(test)]
mod model;
mod mutation_cache;
mod object;
mod reflector;
mod shared;
mod store;
pub mod testing;

pub use backoff::BackoffConfig;
pub use delta::{Batch, Delta};
pub use delta_fifo::DeltaFifo;
pub use dispatcher::{HandlerOptions, Subscription};
pub use event::Event;
pub use factory::{FactoryBuilder, Scope, SharedInformerFactory};
pub use index::Index;
pub use list_watch::{
    BoxError, Decoded, KubeListWatch, ListError, ListRequest, ListWatch, Page, Refusal, WatchError,
    WatchEvent, WatchRequest, WatchStream,
};
pub use lister::{Iter, Lister, Snapshot};
pub use metrics::HISTOGRAM_BUCKETS;
pub use mutation_cache::{MutationCache, MutationCacheBuilder};
pub use object::{
    DecodeError, Dynamic, KeyRef, Lazy, Metadata, Object, ObjectKey, ObjectMeta, ParseKeyError,
    ResourceVersion, Uid,
};
pub use reflector::{ReflectorError, ReflectorPhase, ReflectorStatus};
pub use shared::{
    Builder, HandlerStatus, InformerPhase, InformerStatus, SharedIndexInformer, Unsynced,
    UntilError,
};

/// The code in the book's pages about this crate compiles and runs.
#[cfg(doctest)]
mod book {
    #[doc = include_str!("../../docs/reflector.md")]
    struct Reflector;

    #[doc = include_str!("../../docs/delta-fifo.md")]
    struct DeltaFifo;

    #[doc = include_str!("../../docs/store.md")]
    struct Store;

    #[doc = include_str!("../../docs/shared-informer.md")]
    struct SharedInformer;
}
