//! [`Writer`]: the state that the writer's lock protects.

use super::indices::Definitions;
use super::table_ref::TableId;

/// The state that writers share, besides what readers see.
///
/// Protected by the store's `writer` lock. Readers never take it.
pub(super) struct Writer<K> {
    /// The definitions of the indices, in the order of `Inner::tables`.
    pub(super) definitions: Definitions<K>,
    /// The id of the next index.
    pub(super) next_id: TableId,
    /// True once a full state has been applied.
    pub(super) synced: bool,
    /// Steps that have changed the store.
    pub(super) steps: u64,
}

// === impl Writer ===

impl<K> Writer<K> {
    pub(super) fn new() -> Self {
        Self { definitions: Definitions::default(), next_id: 0, synced: false, steps: 0 }
    }
}
