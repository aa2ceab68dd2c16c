//! The flow schemas and priority levels that are stored. One is read again only if it has changed.

use std::sync::Arc;

use super::FlowControl;
use super::level::PriorityLevel;
use super::schema::FlowSchema;
use crate::read_objects::{ReadObjects, decoded};
use crate::storage::Objects;

/// The flow schemas and priority levels of the last request, read.
#[derive(Debug, Default)]
pub(crate) struct Cache {
    schemas: ReadObjects<FlowSchema>,
    levels: ReadObjects<PriorityLevel>,
    current: Arc<FlowControl>,
}

// === impl Cache ===

impl Cache {
    /// Returns the flow schemas and priority levels that are stored now.
    pub(crate) fn follow(&mut self, schemas: &Objects, levels: &Objects) -> Arc<FlowControl> {
        if !(self.schemas.is(schemas) && self.levels.is(levels)) {
            self.schemas.follow(schemas, decoded);
            self.levels.follow(levels, decoded);
            self.current = Arc::new(FlowControl::new(&self.schemas.all(), self.levels.all()));
        }
        Arc::clone(&self.current)
    }
}
