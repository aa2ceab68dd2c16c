//! [`InformerStatus`]: how an informer is, for a debug page.

use std::{fmt, sync::Arc};

use super::{Lifecycle, SharedIndexInformer};
use crate::{
    object::{Object, ResourceVersion},
    reflector::{ReflectorPhase, ReflectorStatus},
};

/// How an informer is at one moment. Prints as a few lines of text, and never shows what is in an object.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct InformerStatus {
    /// The informer's name.
    pub name: Arc<str>,
    /// What it does.
    pub phase: InformerPhase,
    /// The state of the server that the cache has reached.
    pub resource_version: Option<ResourceVersion>,
    /// How many objects are cached.
    pub objects: usize,
    /// How many objects there are that do not fit their Rust type.
    pub opaque: usize,
    /// How many indices there are.
    pub indices: usize,
    /// How often an index function panicked.
    pub index_panics: u64,
    /// How many deltas have been heard and are not in the cache yet.
    pub queued: usize,
    /// Its handlers, in the order in which they were added.
    pub handlers: Vec<HandlerStatus>,
    /// How it stands with its server: what it asks, how far it has got, how long it waits, what went wrong.
    pub reflector: ReflectorStatus,
}

/// What an informer does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InformerPhase {
    /// It has not been started.
    New,
    /// It waits for its first whole state.
    Syncing,
    /// It follows the server; what it has may be old while [`last_error`](ReflectorStatus::last_error) says why.
    Following,
    /// It has been stopped.
    Stopped,
}

/// How a handler is at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HandlerStatus {
    /// Its name.
    pub name: Arc<str>,
    /// How many events wait for it.
    pub queued: usize,
    /// How often it panicked.
    pub panics: u64,
    /// Whether it has been told all that was there at first.
    pub synced: bool,
}

// === impl SharedIndexInformer ===

impl<K: Object> SharedIndexInformer<K> {
    /// How the informer is now.
    pub fn status(&self) -> InformerStatus {
        let shared = &*self.shared;
        let phase = match &*shared.lifecycle.lock() {
            Lifecycle::New { .. } => InformerPhase::New,
            Lifecycle::Running if self.has_synced() => InformerPhase::Following,
            Lifecycle::Running => InformerPhase::Syncing,
            Lifecycle::Stopped => InformerPhase::Stopped,
        };
        let (objects, opaque) = shared.store.count();
        let mut reflector = shared.health.status();
        if matches!(phase, InformerPhase::New | InformerPhase::Stopped) {
            reflector.phase = ReflectorPhase::Idle;
        }
        InformerStatus {
            name: Arc::clone(&shared.name),
            phase,
            resource_version: shared.store.resource_version(),
            objects,
            opaque,
            indices: shared.store.index_count(),
            index_panics: shared.store.index_panics(),
            queued: shared.fifo.len(),
            handlers: shared.store.handlers().iter().map(|handler| handler.status()).collect(),
            reflector,
        }
    }
}

// === impl InformerStatus ===

impl fmt::Display for InformerStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let version = self.resource_version.as_ref().map_or("none", ResourceVersion::as_str);
        write!(
            f,
            "{}: {:?}, version {version}, {} objects, {} opaque, {} queued, {} indices ({} panics)",
            self.name,
            self.phase,
            self.objects,
            self.opaque,
            self.queued,
            self.indices,
            self.index_panics,
        )?;
        write!(f, "\n  {}", self.reflector)?;
        for HandlerStatus { name, queued, panics, synced } in &self.handlers {
            let synced = if *synced { "synced" } else { "not synced" };
            write!(f, "\n  handler {name}: {synced}, {queued} queued, {panics} panics")?;
        }
        Ok(())
    }
}
