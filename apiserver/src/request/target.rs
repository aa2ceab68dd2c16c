//! The object or the collection that a path names.

use homeostat_faults::RequestInfo;

use crate::kinds::{Kinds, Operations, Served};

/// A collection, an object, or a subresource.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) served: Served,
    pub(crate) info: RequestInfo,
}

// === impl Target ===

impl Target {
    /// Finds what a request names; `None` if the server does not serve it.
    pub(crate) fn find(kinds: &Kinds, info: RequestInfo) -> Option<Self> {
        let served = kinds.find(&info.group, &info.version, &info.resource)?;
        let kind = &served.kind;
        let subresource = info.subresource.as_deref();
        let (has_namespace, has_name) = (info.namespace.is_some(), info.name.is_some());
        // An object of a namespaced kind needs a namespace, and a cluster-scoped one must not have
        // any.
        let is_misplaced = if kind.namespaced { has_name && !has_namespace } else { has_namespace };
        let is_served = subresource.is_none_or(|subresource| kind.has_subresource(subresource))
            && info.name.as_deref() != Some("")
            && !is_misplaced;
        is_served.then_some(Self { served, info })
    }

    /// Returns true if a reply can be a table: not to a review or an action, which show no object.
    pub(crate) fn has_tables(&self) -> bool {
        let kind = &self.served.kind;
        let action = self.info.subresource.as_deref().and_then(|name| kind.action(name));
        action.is_none() && !matches!(kind.operations, Operations::Create)
    }
}
