//! Flow control: the flow schema and the priority level that a request belongs to.
//!
//! Pure code. Replies name both, and each level has a number of seats, as in the real server. No
//! request waits for a seat, and none is refused.

mod cache;
mod level;
mod schema;

use std::sync::Arc;

use crate::access::{Attributes, User};

pub(crate) use cache::Cache;

use level::PriorityLevel;
use schema::FlowSchema;

/// The API group of flow schemas and priority levels.
pub(crate) const FLOW_CONTROL_GROUP: &str = "flowcontrol.apiserver.k8s.io";

/// The schema and the level of administrators. The server has them even while they are deleted.
const EXEMPT: &str = "exempt";
/// The schema and the level of the requests that no other schema matches; also always there.
const CATCH_ALL: &str = "catch-all";

/// The shares of the level `catch-all` while it is deleted.
const CATCH_ALL_SHARES: u64 = 5;

/// The requests that the real server carries out at once, with its default flags: 400 that read and
/// 200 that write.
const SEATS: u64 = 600;

/// The flow schemas and the priority levels of a server.
#[derive(Debug, Default)]
pub(crate) struct FlowControl {
    /// Those whose level exists, in the order in which a request is compared with them.
    schemas: Vec<Arc<FlowSchema>>,
    levels: Vec<Arc<PriorityLevel>>,
}

/// The uids of the flow schema and of the priority level of a request; empty for one that is
/// deleted.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Flow {
    pub(crate) schema: String,
    pub(crate) level: String,
}

// === impl FlowControl ===

impl FlowControl {
    fn new(schemas: &[Arc<FlowSchema>], levels: Vec<Arc<PriorityLevel>>) -> Self {
        let mut control = Self { schemas: Vec::new(), levels };
        let usable = schemas.iter().filter(|schema| control.has_level(&schema.spec.level.name));
        let mut usable: Vec<_> = usable.map(Arc::clone).collect();
        usable.sort_by(|a, b| a.rank().cmp(&b.rank()));
        control.schemas = usable;
        control
    }

    /// Returns true if the level exists, or is one that the server has even while it is deleted.
    pub(crate) fn has_level(&self, name: &str) -> bool {
        [EXEMPT, CATCH_ALL].contains(&name) || self.level(name).is_some()
    }

    fn level(&self, name: &str) -> Option<&PriorityLevel> {
        self.levels.iter().find(|level| level.metadata.name == name).map(|level| &**level)
    }

    /// Returns the flow of a user's request; `None` for one that the real server does not classify.
    pub(crate) fn flow_of(&self, user: &User, request: &Attributes) -> Option<Flow> {
        if Attributes::LONG_RUNNING.contains(&&*request.subresource) && request.verb != "watch" {
            return None;
        }
        if !self.has_schema(EXEMPT) && user.is_master() {
            return Some(self.flow("", EXEMPT));
        }
        let schema = self.schemas.iter().find(|schema| schema.matches(user, request));
        Some(schema.map_or_else(
            || self.flow("", CATCH_ALL),
            |schema| self.flow(&schema.metadata.uid, &schema.spec.level.name),
        ))
    }

    fn has_schema(&self, name: &str) -> bool {
        self.schemas.iter().any(|schema| schema.metadata.name == name)
    }

    fn flow(&self, schema: &str, level: &str) -> Flow {
        let level = self.level(level).map(|level| level.metadata.uid.clone());
        Flow { schema: schema.to_owned(), level: level.unwrap_or_default() }
    }

    /// Returns the name of each priority level and its part of the server's seats, by name.
    pub(crate) fn nominal_seats(&self) -> Vec<(&str, u64)> {
        let mut shares: Vec<(&str, u64)> =
            self.levels.iter().map(|level| (&*level.metadata.name, level.shares())).collect();
        let missing = [(EXEMPT, 0), (CATCH_ALL, CATCH_ALL_SHARES)];
        shares.extend(missing.into_iter().filter(|(name, _)| self.level(name).is_none()));
        shares.sort_unstable();
        let sum: u64 = shares.iter().map(|(_, shares)| shares).sum();
        // Without any shares no level has a seat.
        let seats = |shares: u64| (SEATS * shares).div_ceil(sum.max(1));
        shares.into_iter().map(|(name, shares)| (name, seats(shares))).collect()
    }
}

#[cfg(test)]
mod tests;
