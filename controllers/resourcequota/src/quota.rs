//! The quota in the cache: its metadata, and the members that the controller reads.

use std::collections::BTreeSet;

use homeostat::{Event, Object, ObjectKey, ObjectMeta};
use homeostat_quantity::{ResourceList, ResourceName};
use homeostat_quota::{QuotaSpec, QuotaStatus, Scopes};
use k8s_openapi::api::core::v1::ResourceQuota;
use serde::{Deserialize, Deserializer};
use smol_str::SmolStr;

/// A quota of the cache.
#[derive(Debug, Clone, Deserialize)]
pub struct CachedQuota {
    /// The metadata, as the server sent it. A write of the status returns it.
    pub metadata: ObjectMeta,
    /// The limits and the scopes.
    #[serde(default, deserialize_with = "or_default")]
    pub spec: QuotaSpec,
    /// The status that was last written.
    #[serde(default, deserialize_with = "or_default")]
    pub status: QuotaStatus,
}

/// The key of a quota.
pub type QuotaKey = ObjectKey<ResourceQuota>;

/// The consequence of an event of a quota.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Urgency {
    /// The quota waits behind others (`resourcequota_primary`).
    Primary,
    /// Its usage is missing, or its limits changed (`resourcequota_priority`).
    Priority,
}

// === impl CachedQuota ===

impl Object for CachedQuota {
    type Kind = ResourceQuota;

    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }
}

impl CachedQuota {
    /// Returns all scope requirements.
    pub fn scopes(&self) -> Scopes {
        let expressions = self.spec.scope_selector.match_expressions.iter().cloned();
        Scopes::new(self.spec.scopes.iter().map(SmolStr::as_str), expressions)
    }

    /// Returns the namespace.
    pub fn namespace(&self) -> &str {
        self.metadata.namespace.as_deref().unwrap_or_default()
    }

    /// Returns the names of the limits.
    pub fn names(&self) -> Vec<ResourceName> {
        self.spec.hard.names().cloned().collect()
    }

    /// Returns true if some usage is lower than in `old`, an earlier version of this quota.
    pub(crate) fn has_fallen_since(&self, old: &Self) -> bool {
        let (Some(used), Some(before)) = (&self.status.used, &old.status.used) else {
            return false;
        };
        used.into_iter()
            .any(|(name, quantity)| before.get(name).is_some_and(|before| quantity < before))
    }

    /// Returns the names of the limits, those that are enforced at present included.
    pub fn all_names(&self) -> BTreeSet<ResourceName> {
        self.spec
            .hard
            .names()
            .chain(self.status.hard.iter().flat_map(ResourceList::names))
            .cloned()
            .collect()
    }

    /// Returns true if the status has the limits of the spec, and a usage for each.
    pub fn has_complete_status(&self) -> bool {
        let used = self.status.used.as_ref();
        self.status.hard.as_ref().is_some_and(|hard| *hard == self.spec.hard)
            && self.spec.hard.names().all(|name| used.is_some_and(|used| used.contains(name)))
    }

    /// Returns the queue of a quota that is new or whose limits changed (upstream: `addQuota`).
    ///
    /// `is_counted` returns true for a name that some evaluator counts.
    pub(crate) fn urgency(&self, is_counted: impl Fn(&ResourceName) -> bool) -> Urgency {
        let empty = ResourceList::new();
        let (hard, used) = (&self.status.hard, &self.status.used);
        let (hard, used) = (hard.as_ref().unwrap_or(&empty), used.as_ref().unwrap_or(&empty));
        let is_missing = |name: &&ResourceName| !used.contains(name) && is_counted(name);
        if *hard != self.spec.hard || hard.names().any(|name| is_missing(&name)) {
            Urgency::Priority
        } else {
            Urgency::Primary
        }
    }

    /// Returns true if the two versions have different limits.
    pub(crate) fn limits_differ(&self, other: &Self) -> bool {
        self.spec.hard != other.spec.hard
    }

    /// Returns true if the two versions have different scopes. The order and duplicates of
    /// `spec.scopes` do not matter. Upstream does not look at the scope selector.
    pub(crate) fn scopes_differ(&self, other: &Self) -> bool {
        let set = |quota: &Self| quota.spec.scopes.iter().cloned().collect::<BTreeSet<_>>();
        set(self) != set(other) || self.spec.scope_selector != other.spec.scope_selector
    }
}

/// Returns the queue for an event of a quota, or `None` if nothing that matters has changed.
pub(crate) fn urgency_of(
    event: &Event<CachedQuota>,
    is_counted: impl Fn(&ResourceName) -> bool,
) -> Option<Urgency> {
    match event {
        Event::Added { object, .. } => Some(object.urgency(is_counted)),
        Event::Updated { old, new } if old.scopes_differ(new) => Some(Urgency::Priority),
        Event::Updated { old, new } if old.limits_differ(new) => Some(new.urgency(is_counted)),
        Event::Updated { .. } => None,
        _ => Some(Urgency::Primary),
    }
}

fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};

    use super::*;

    fn quota(spec: &Value, status: &Value) -> CachedQuota {
        let object = json!({"metadata": {"name": "q"}, "spec": spec, "status": status});
        serde_json::from_value(object).unwrap()
    }

    fn counted(name: &ResourceName) -> bool {
        name.as_str() != "foobars.example.com"
    }

    #[test]
    fn usage_has_fallen_if_one_name_is_lower() {
        let used = |used: Value| quota(&json!({}), &json!({ "used": used }));
        let before = used(json!({"pods": "2", "cpu": "1"}));
        assert!(used(json!({"pods": "1", "cpu": "3"})).has_fallen_since(&before));
        assert!(!used(json!({"pods": "3", "cpu": "1000m"})).has_fallen_since(&before));
        // A name that is gone, or new, is no usage that fell.
        assert!(!used(json!({"secrets": "0"})).has_fallen_since(&before));
        assert!(!quota(&json!({}), &json!({})).has_fallen_since(&before));
    }

    /// The cases of upstream's `TestAddQuota`, and two more.
    #[test]
    fn quota_without_usage_gets_priority() {
        let (unknown, extended) = ("foobars.example.com", "requests.example/foobars.example.com");
        for (case, spec, status, urgency) in [
            ("no limits", json!({}), json!({}), Urgency::Primary),
            ("no status", json!({"cpu": "4"}), json!({}), Urgency::Priority),
            (
                "status, no usage",
                json!({"cpu": "4"}),
                json!({"hard": {"cpu": "4"}}),
                Urgency::Priority,
            ),
            (
                "status, no usage(to validate it works for extended resources)",
                json!({extended: "4"}),
                json!({"hard": {extended: "4"}}),
                Urgency::Priority,
            ),
            (
                "status, mismatch",
                json!({"cpu": "4"}),
                json!({"hard": {"cpu": "6"}, "used": {"cpu": "0"}}),
                Urgency::Priority,
            ),
            (
                "status, missing usage, but don't care (no informer)",
                json!({unknown: "4"}),
                json!({"hard": {unknown: "4"}}),
                Urgency::Primary,
            ),
            (
                "ready",
                json!({"cpu": "4"}),
                json!({"hard": {"cpu": "4"}, "used": {"cpu": "0"}}),
                Urgency::Primary,
            ),
            (
                "ready, the limit in another notation",
                json!({"cpu": "4"}),
                json!({"hard": {"cpu": "4000m"}, "used": {"cpu": "0"}}),
                Urgency::Primary,
            ),
        ] {
            let quota = quota(&json!({"hard": spec}), &status);
            assert_eq!(quota.urgency(counted), urgency, "{case}");
        }
    }

    #[test]
    fn only_changed_limits_and_scopes_enqueue_an_updated_quota() {
        let status = json!({"hard": {"cpu": "1"}, "used": {"cpu": "0"}});
        let base = || quota(&json!({"hard": {"cpu": "1"}, "scopes": ["A", "B"]}), &status);
        let high = |value: &str| {
            let class = json!({"scopeName": "PriorityClass", "operator": "In", "values": [value]});
            json!({"hard": {"cpu": "1"}, "scopes": ["A", "B"],
                   "scopeSelector": {"matchExpressions": [class]}})
        };
        let urgency = |old: CachedQuota, new: CachedQuota| {
            let event = Event::Updated { old: Arc::new(old), new: Arc::new(new) };
            urgency_of(&event, counted)
        };
        let equal =
            quota(&json!({"hard": {"cpu": "1000m"}, "scopes": ["B", "A", "A"]}), &json!({}));
        assert_eq!(urgency(base(), equal), None);
        let raised = quota(&json!({"hard": {"cpu": "2"}, "scopes": ["A", "B"]}), &status);
        assert_eq!(urgency(base(), raised), Some(Urgency::Priority));
        let selected = quota(&high("high"), &status);
        assert_eq!(urgency(base(), selected.clone()), Some(Urgency::Priority));
        assert_eq!(urgency(selected.clone(), selected.clone()), None);
        let other = quota(&high("low"), &status);
        assert_eq!(urgency(selected, other), Some(Urgency::Priority), "upstream does not look");
    }
}
