//! The controller's metrics, with upstream's names.

use std::collections::HashMap;

use homeostat::Event;

use crate::claim::Claim;

/// Names of metrics: 1.37 renamed them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MetricNames {
    /// Also use the names of Kubernetes 1.36, with the prefix `resourceclaim_controller`.
    pub also_1_36: bool,
}

/// Counts the claims that the controller creates.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Creates {
    pub(crate) names: MetricNames,
}

/// Counts the claims in the cache by their labels. Created by the handler that keeps it.
#[derive(Debug)]
pub(crate) struct ClaimCounts {
    names: MetricNames,
    counts: HashMap<Labels, u32>,
}

/// The labels of the gauge of claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Labels {
    allocated: bool,
    admin_access: bool,
    source: &'static str,
}

// === impl Creates ===

impl Creates {
    /// Counts a create for a pod.
    pub(crate) fn count(self, is_success: bool, admin_access: bool) {
        let status = if is_success { "success" } else { "failure" };
        let admin_access = text(admin_access);
        metrics::counter!(
            "dynamic_resource_allocation_resourceclaim_creates_total",
            "status" => status, "admin_access" => admin_access,
            "owner_api_group" => "", "owner_api_kind" => "Pod",
        )
        .increment(1);
        if self.names.also_1_36 {
            metrics::counter!(
                "resourceclaim_controller_creates_total",
                "status" => status, "admin_access" => admin_access,
            )
            .increment(1);
        }
    }
}

// === impl ClaimCounts ===

impl ClaimCounts {
    pub(crate) fn new(names: MetricNames) -> Self {
        Self { names, counts: HashMap::new() }
    }

    /// Counts the claim of `event` as it is now. A claim that does not decode any more counts as
    /// it was.
    pub(crate) fn observe(&mut self, event: &Event<Claim>) {
        match event {
            Event::Added { object, .. } => self.add(Labels::of(object)),
            Event::Deleted { last_known, .. } => self.remove(Labels::of(last_known)),
            Event::Updated { old, new } if Labels::of(old) != Labels::of(new) => {
                self.remove(Labels::of(old));
                self.add(Labels::of(new));
            }
            Event::Updated { .. } | Event::Opaque { .. } | Event::OpaqueDeleted { .. } => {}
        }
    }

    fn add(&mut self, labels: Labels) {
        *self.counts.entry(labels).or_default() += 1;
        self.publish(labels);
    }

    fn remove(&mut self, labels: Labels) {
        if let Some(count) = self.counts.get_mut(&labels) {
            *count = count.saturating_sub(1);
        }
        self.publish(labels);
    }

    fn publish(&self, labels: Labels) {
        let count = f64::from(self.counts.get(&labels).copied().unwrap_or_default());
        let Labels { allocated, admin_access, source } = labels;
        let (allocated, admin_access) = (text(allocated), text(admin_access));
        metrics::gauge!(
            "dynamic_resource_allocation_resource_claims",
            "allocated" => allocated, "admin_access" => admin_access, "source" => source,
        )
        .set(count);
        if self.names.also_1_36 {
            metrics::gauge!(
                "resourceclaim_controller_resource_claims",
                "allocated" => allocated, "admin_access" => admin_access, "source" => source,
            )
            .set(count);
        }
    }
}

// === impl Labels ===

impl Labels {
    fn of(claim: &Claim) -> Self {
        let Claim { is_allocated, admin_access, .. } = *claim;
        Self { allocated: is_allocated, admin_access, source: claim.source() }
    }
}

fn text(value: bool) -> &'static str {
    if value { "true" } else { "false" }
}

#[cfg(test)]
pub(crate) mod recorded;
