//! [`NamesInUse`]: the names that the quotas of the cluster limit.

use std::collections::{BTreeMap, HashMap};

use homeostat_quantity::ResourceName;

use crate::quota::QuotaKey;

/// The names that quotas limit, and the number of quotas that limit each.
///
/// It follows the events of the quotas, so a burst of quotas with the same names costs no look at
/// all of them.
#[derive(Debug, Default)]
pub(crate) struct NamesInUse {
    by_quota: HashMap<QuotaKey, Box<[ResourceName]>>,
    quotas: BTreeMap<ResourceName, usize>,
}

// === impl NamesInUse ===

impl NamesInUse {
    /// Returns the names, in order.
    pub(crate) fn names(&self) -> Vec<ResourceName> {
        self.quotas.keys().cloned().collect()
    }

    /// Sets the names of a quota, each once; none for a quota that is gone. Returns true if a name
    /// is new or no quota limits it any more.
    pub(crate) fn set(
        &mut self,
        key: &QuotaKey,
        names: impl IntoIterator<Item = ResourceName>,
    ) -> bool {
        let names: Box<[ResourceName]> = names.into_iter().collect();
        let mut is_changed = false;
        for name in &names {
            let quotas = self.quotas.entry(name.clone()).or_default();
            is_changed |= *quotas == 0;
            *quotas += 1;
        }
        let former = if names.is_empty() {
            self.by_quota.remove(key)
        } else {
            self.by_quota.insert(key.clone(), names)
        };
        for name in former.iter().flatten() {
            let left = self.quotas.get_mut(name).map(|quotas| {
                *quotas -= 1;
                *quotas
            });
            if left == Some(0) {
                self.quotas.remove(name);
                is_changed = true;
            }
        }
        is_changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_first_and_the_last_quota_of_a_name_change_the_names() {
        let mut in_use = NamesInUse::default();
        let key = |name: &str| QuotaKey::namespaced("shop", name);
        let names = |list: &[&str]| list.iter().map(|name| ResourceName::from(*name)).collect();
        let mut set = |name: &str, list: &[&str]| {
            let names: Vec<ResourceName> = names(list);
            (in_use.set(&key(name), names), in_use.names().join(","))
        };
        assert_eq!(set("a", &["pods", "cpu"]), (true, "cpu,pods".to_owned()));
        assert_eq!(set("b", &["pods"]), (false, "cpu,pods".to_owned()));
        assert_eq!(set("a", &["pods", "cpu"]), (false, "cpu,pods".to_owned()));
        assert_eq!(set("a", &["pods", "secrets"]), (true, "pods,secrets".to_owned()));
        assert_eq!(set("b", &[]), (false, "pods,secrets".to_owned()));
        assert_eq!(set("b", &[]), (false, "pods,secrets".to_owned()), "it is gone already");
        assert_eq!(set("a", &[]), (true, String::new()));
        assert!(in_use.by_quota.is_empty() && in_use.quotas.is_empty());
    }
}
