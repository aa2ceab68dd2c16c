//! The kinds of objects that a server has.

use kube_client::{
    Client, Result,
    discovery::{ApiCapabilities, ApiGroup, Discovery, Scope, verbs},
};
use kube_core::ApiResource;

use super::in_time;

/// A kind whose objects an actor can find and delete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Served {
    pub(super) resource: ApiResource,
    pub(super) is_namespaced: bool,
    /// Whether one request can delete all of them.
    pub(super) has_deletecollection: bool,
}

/// Every kind whose objects can be listed, watched and deleted, once each: in the version that its group prefers.
///
/// In the order of the groups' names, so that the same server is always told the same things.
pub(super) async fn deletable(client: &Client) -> Result<Vec<Served>> {
    let discovery = in_time(Discovery::new(client.clone()).run_aggregated()).await?;
    let kinds =
        discovery.groups_alphabetical().into_iter().flat_map(ApiGroup::recommended_resources);
    let served = kinds.filter(|(_, can)| {
        [verbs::LIST, verbs::WATCH, verbs::DELETE].iter().all(|verb| can.supports_operation(verb))
    });
    Ok(served.map(|(resource, can)| Served::new(resource, &can)).collect())
}

// === impl Served ===

impl Served {
    fn new(resource: ApiResource, can: &ApiCapabilities) -> Self {
        Self {
            resource,
            is_namespaced: can.scope == Scope::Namespaced,
            has_deletecollection: can.supports_operation(verbs::DELETE_COLLECTION),
        }
    }

    pub(super) fn is_pods(&self) -> bool {
        self.resource.group.is_empty() && self.resource.plural == "pods"
    }

    pub(super) fn is_events(&self) -> bool {
        self.resource.plural == "events"
    }
}
