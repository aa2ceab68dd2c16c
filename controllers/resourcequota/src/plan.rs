//! The decision of a pass: the status to write, from what was counted. Pure.

use homeostat_quantity::ResourceList;
use homeostat_quota::{QuotaSpec, QuotaStatus};

/// The kind of recount that was requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Recount {
    /// An object was added: the usage may rise, and must not fall.
    ///
    /// Admission charges an object before it is stored. A recount from a cache that does not show
    /// the object yet would take the charge back.
    RaiseOnly,
    /// The usage may rise and fall.
    Full,
}

/// A status to write.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NewStatus {
    /// The limits: those of the spec.
    pub hard: ResourceList,
    /// The usage. Names that could not be counted keep their value, or stay absent.
    pub used: ResourceList,
}

/// Returns the status to write, or `None` if the present one is right.
///
/// `counted` is the usage of the names that could be counted. Quantities are compared by value, and
/// an absent list equals an empty one.
///
/// # Examples
///
/// ```
/// use homeostat_quantity::ResourceList;
/// use homeostat_resourcequota::plan::{Recount, plan};
/// use serde_json::{from_value, json};
///
/// let spec = from_value(json!({"hard": {"pods": "5"}}))?;
/// let status = from_value(json!({"hard": {"pods": "5"}, "used": {"pods": "3"}}))?;
/// let counted = ResourceList::parse([("pods", "2")])?;
/// let lowered = plan(&spec, &status, &counted, Recount::Full).unwrap();
/// assert_eq!(lowered.used.to_string(), "pods=2");
/// assert_eq!(plan(&spec, &status, &counted, Recount::RaiseOnly), None);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn plan(
    spec: &QuotaSpec,
    status: &QuotaStatus,
    counted: &ResourceList,
    recount: Recount,
) -> Option<NewStatus> {
    let empty = ResourceList::new();
    let old_hard = status.hard.as_ref().unwrap_or(&empty);
    let old_used = status.used.as_ref().unwrap_or(&empty);
    let mut used = old_used.clone();
    for (name, quantity) in counted {
        let is_lower = || old_used.get(name).is_some_and(|old| quantity <= old);
        if recount == Recount::RaiseOnly && is_lower() {
            continue;
        }
        used.insert(name.clone(), quantity.clone());
    }
    let used = used.mask(spec.hard.names());
    if *old_hard == spec.hard && *old_used == used {
        return None;
    }
    Some(NewStatus { hard: spec.hard.clone(), used })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn list(value: &Value) -> ResourceList {
        serde_json::from_value(value.clone()).unwrap()
    }

    fn planned(
        hard: &Value,
        status: Value,
        counted: &Value,
        recount: Recount,
    ) -> Option<(String, String)> {
        let spec = serde_json::from_value(json!({"hard": hard})).unwrap();
        let status = serde_json::from_value(status).unwrap();
        let new = plan(&spec, &status, &list(counted), recount)?;
        Some((new.hard.to_string(), new.used.to_string()))
    }

    #[test]
    fn first_status_has_the_limits_and_the_usage() {
        let (hard, counted) = (json!({"pods": "5", "unknown": "1"}), json!({"pods": "2"}));
        for recount in [Recount::Full, Recount::RaiseOnly] {
            let (hard, used) = planned(&hard, json!({}), &counted, recount).unwrap();
            assert_eq!((hard.as_str(), used.as_str()), ("pods=5,unknown=1", "pods=2"));
        }
    }

    /// Upstream's `quota-missing-status-with-calculation-error`: only the limits are written.
    #[test]
    fn first_status_has_the_limits_if_nothing_could_be_counted() {
        let hard = json!({"pods": "1"});
        let (hard, used) = planned(&hard, json!({}), &json!({}), Recount::Full).unwrap();
        assert_eq!((hard.as_str(), used.as_str()), ("pods=1", ""));
    }

    #[test]
    fn name_that_was_not_counted_keeps_its_usage() {
        let status =
            json!({"hard": {"pods": "5", "secrets": "3"}, "used": {"pods": "4", "secrets": "3"}});
        let hard = json!({"pods": "5", "secrets": "3"});
        let (_, used) = planned(&hard, status, &json!({"pods": "2"}), Recount::Full).unwrap();
        assert_eq!(used, "pods=2,secrets=3");
    }

    #[test]
    fn name_that_is_no_limit_any_more_loses_its_usage() {
        let status = json!({"hard": {"pods": "5", "cpu": "1"}, "used": {"pods": "4", "cpu": "1"}});
        let (hard, used) =
            planned(&json!({"pods": "5"}), status, &json!({"pods": "4"}), Recount::Full).unwrap();
        assert_eq!((hard.as_str(), used.as_str()), ("pods=5", "pods=4"));
    }

    #[test]
    fn equal_values_and_empty_lists_are_not_written() {
        let status = json!({"hard": {"cpu": "1"}, "used": {"cpu": "1000m"}});
        assert_eq!(
            planned(&json!({"cpu": "1000m"}), status, &json!({"cpu": "1"}), Recount::Full),
            None
        );
        assert_eq!(planned(&json!({}), json!({}), &json!({}), Recount::Full), None);
    }

    #[test]
    fn raise_only_recount_takes_the_maximum_of_each_name() {
        let status = json!({"hard": {"a": "9", "b": "9"}, "used": {"a": "3", "b": "3"}});
        let hard = json!({"a": "9", "b": "9"});
        let counted = json!({"a": "5", "b": "1"});
        let (_, used) = planned(&hard, status.clone(), &counted, Recount::RaiseOnly).unwrap();
        assert_eq!(used, "a=5,b=3");
        let (_, used) = planned(&hard, status.clone(), &counted, Recount::Full).unwrap();
        assert_eq!(used, "a=5,b=1");
        let lower = json!({"a": "2", "b": "1"});
        assert_eq!(planned(&hard, status, &lower, Recount::RaiseOnly), None);
    }
}
