//! The policies, webhooks, flows and rights that objects of the store configure.

use std::sync::Arc;

use parking_lot::Mutex;

use super::Core;
use crate::flow_control::FlowControl;
use crate::grants::Grants;
use crate::policies::{self, Policies};
use crate::storage::ResourceId;
use crate::webhooks::Webhooks;

impl Core {
    /// Returns the admission policies that have bindings; `None` if there are none.
    pub(crate) fn policies(&self) -> Option<Arc<Policies>> {
        self.bound(self.policy_resources?, &self.policies)
    }

    /// Returns the policies that change objects and have bindings; `None` if there are none.
    pub(crate) fn mutating_policies(&self) -> Option<Arc<Policies>> {
        self.bound(self.mutating_resources?, &self.mutating)
    }

    fn bound(
        &self,
        [policies, bindings]: [ResourceId; 2],
        cache: &Mutex<policies::Cache>,
    ) -> Option<Arc<Policies>> {
        let (policies, bindings) = self.read(|storage| {
            let bindings = storage.objects(bindings);
            (!bindings.is_empty()).then(|| (storage.objects(policies).clone(), bindings.clone()))
        })?;
        Some(cache.lock().follow(&policies, &bindings))
    }

    /// Returns the webhooks that are configured; `None` if there are none.
    pub(crate) fn webhooks(&self) -> Option<Arc<Webhooks>> {
        let [mutating, validating] = self.read(|storage| {
            let of = |resource: Option<ResourceId>| resource.map(|id| storage.objects(id));
            let all = self.webhook_resources.map(of);
            let is_used = all.iter().flatten().any(|objects| !objects.is_empty());
            is_used.then(|| all.map(|objects| objects.cloned().unwrap_or_default()))
        })?;
        self.webhooks.lock().follow(&mutating, &validating)
    }

    /// Returns the roles and bindings.
    pub(crate) fn grants(&self) -> Arc<Grants> {
        let [cluster_bindings, bindings, cluster_roles, roles] =
            self.read(|storage| self.grant_resources.map(|id| storage.objects(id).clone()));
        self.grants.lock().follow([&cluster_bindings, &bindings], [&cluster_roles, &roles])
    }

    /// Returns the flow schemas and priority levels; `None` if the server has no users.
    pub(crate) fn flow_control(&self) -> Option<Arc<FlowControl>> {
        if !self.access.authenticates() {
            return None;
        }
        let [schemas, levels] =
            self.read(|storage| self.flow_resources.map(|id| storage.objects(id).clone()));
        Some(self.flows.lock().follow(&schemas, &levels))
    }
}
