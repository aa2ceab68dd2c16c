//! `/eviction`: the delete of a pod that a disruption budget may refuse.

use std::sync::Arc;

use super::conversion::Converter;
use super::delete::delete_object;
use super::managers::server_manager;
use crate::admission::delete::{self, DeleteOptions};
use crate::admission::metadata_mut;
use crate::admission::owners::Ownership;
use crate::admission::target::Target;
use crate::clock::rfc3339;
use crate::core::Core;
use crate::fields::Fields;
use crate::kinds::{Served, disruption};
use crate::object::Stored;
use crate::status::{Failure, Result};

const SEVERAL_BUDGETS: &str = "This pod has more than one PodDisruptionBudget, which the eviction \
                               subresource does not support.";

/// The eviction of a pod.
pub(super) struct Eviction<'a> {
    pub(super) core: &'a Core,
    /// The kind of pods.
    pub(super) served: &'a Served,
    pub(super) key: &'a str,
    pub(super) name: &'a str,
    pub(super) options: DeleteOptions,
}

// === impl Eviction ===

impl Eviction<'_> {
    pub(super) fn carry_out(&self) -> Result<()> {
        loop {
            let pod = self.pod()?;
            let fields = pod.fields();
            let budgets =
                if disruption::is_exempt(&fields) { Vec::new() } else { self.budgets(&fields) };
            let is_counted = match budgets.as_slice() {
                [] => false,
                [budget] if disruption::ignores_unready(&budget.fields(), &fields) => false,
                [budget] if self.count(budget)? => true,
                // The budget has changed in the meantime.
                [_] => continue,
                [..] => return Err(Failure::internal(SEVERAL_BUDGETS)),
            };
            let mut is_deleted = self.delete(&pod)?;
            while is_counted && !is_deleted {
                // The pod has changed. Its eviction is counted already.
                let pod = self.pod()?;
                is_deleted = self.delete(&pod)?;
            }
            if is_deleted {
                return Ok(());
            }
        }
    }

    fn pod(&self) -> Result<Arc<Stored>> {
        let pod = self.core.get(self.served.resource, self.key);
        pod.ok_or_else(|| Failure::not_found(&self.served.kind, self.name))
    }

    /// Returns the budgets whose pods include this one.
    fn budgets(&self, pod: &Fields) -> Vec<Arc<Stored>> {
        let Some(served) = self.budget_kind() else { return Vec::new() };
        let (namespace, _) = self.key.split_once('/').unwrap_or_default();
        let all = self.core.read(|storage| storage.objects(served.resource).clone());
        let own = all.iter().map(|(_, budget)| budget);
        let own = own.filter(|budget| *budget.selectable.namespace == *namespace);
        own.filter(|budget| disruption::covers(&budget.fields(), pod)).cloned().collect()
    }

    fn budget_kind(&self) -> Option<Served> {
        self.core.kinds().find("policy", "v1", "poddisruptionbudgets")
    }

    /// Counts the eviction in a budget, or fails if the budget does not permit it. Returns false if
    /// the budget has changed since it was read.
    fn count(&self, stored: &Stored) -> Result<bool> {
        let old = stored.packed_fields();
        let mut budget = old.clone();
        disruption::count(&mut budget, self.name, &rfc3339(self.core.clock.now()))?;
        let Some(served) = self.budget_kind() else { return Ok(false) };
        let owners = Ownership::Tracked(server_manager(self.core, Target::Status));
        metadata_mut(&mut budget).remove("managedFields");
        owners.of_changed(&served.kind, &old, &mut budget, None);
        let selectable = &stored.selectable;
        let key = served.kind.key(&selectable.namespace, &selectable.name);
        Ok(self.options.is_dry_run() || self.put(&served, &key, stored, budget))
    }

    /// Marks the pod as evicted, and deletes it. Returns false if it has changed since it was read.
    fn delete(&self, pod: &Stored) -> Result<bool> {
        let mut options = self.options.clone();
        let mut marked = pod.fields();
        delete::check_preconditions(&self.served.kind, &marked, &options)?;
        if !options.is_dry_run() {
            disruption::mark_evicted(&mut marked, &rfc3339(self.core.clock.now()));
            if marked != pod.fields() && !self.put(self.served, self.key, pod, marked) {
                return Ok(false);
            }
            // The mark has changed the version.
            if let Some(preconditions) = &mut options.preconditions {
                preconditions.resource_version = None;
            }
        }
        // As on the real server, wrong options fail after the pod is counted and marked.
        options.check()?;
        // The eviction itself was admitted.
        let converter = Converter::without_webhook(self.served);
        delete_object(self.core, &converter, (self.key, self.name), &options, &|_| Ok(()))?;
        Ok(true)
    }

    /// Stores the new state of an object; returns false if it has changed since it was read.
    fn put(&self, served: &Served, key: &str, stored: &Stored, mut object: Fields) -> bool {
        metadata_mut(&mut object).remove("resourceVersion");
        let object = served.encode(object);
        self.core.put(served.resource, key, Some(stored.revision), object).is_ok()
    }
}
