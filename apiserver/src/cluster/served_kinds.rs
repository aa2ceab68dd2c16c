//! The kinds that a server serves, from discovery.

use kube_client::discovery::{ApiCapabilities, ApiGroup, Discovery, Scope, verbs};
use kube_client::{Client, Result};
use kube_core::ApiResource;

use super::with_timeout;

/// A kind with the verbs list, watch and delete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ServedKind {
    pub(super) resource: ApiResource,
    pub(super) is_namespaced: bool,
    /// True if the kind has the verb deletecollection.
    pub(super) has_deletecollection: bool,
}

/// Returns every kind with the verbs list, watch and delete, in the preferred version of its group.
///
/// The kinds are ordered by group name, so that the same server gets the same requests.
pub(super) async fn deletable(client: &Client) -> Result<Vec<ServedKind>> {
    let discovery = with_timeout(Discovery::new(client.clone()).run_aggregated()).await?;
    let kinds =
        discovery.groups_alphabetical().into_iter().flat_map(ApiGroup::recommended_resources);
    let served = kinds.filter(|(_, can)| {
        [verbs::LIST, verbs::WATCH, verbs::DELETE].iter().all(|verb| can.supports_operation(verb))
    });
    Ok(served.map(|(resource, can)| ServedKind::new(resource, &can)).collect())
}

// === impl ServedKind ===

impl ServedKind {
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
