//! Feature gates with Kubernetes' names, so that the flags of a deployment keep working.

use std::str::FromStr;

use homeostat::cli::GateList;

pub use homeostat::cli::GateError;

/// The names of the gates that the controller knows. `AllBeta` and `AllAlpha` are groups.
const KNOWN: [&str; 6] =
    [ADMIN_ACCESS, PRIORITIZED_LIST, GENERIC_WORKLOAD, WORKLOAD_CLAIMS, "AllBeta", "AllAlpha"];

const ADMIN_ACCESS: &str = "DRAAdminAccess";
const PRIORITIZED_LIST: &str = "DRAPrioritizedList";
const GENERIC_WORKLOAD: &str = "GenericWorkload";
const WORKLOAD_CLAIMS: &str = "DRAWorkloadResourceClaims";

/// The feature gates of the controller.
///
/// # Examples
///
/// ```
/// use homeostat_resourceclaim::FeatureGates;
///
/// let gates: FeatureGates = "DRAAdminAccess=false,SomethingElse=true".parse()?;
/// assert!(!gates.admin_access);
/// assert_eq!(gates.unknown, ["SomethingElse"]);
/// # Ok::<(), homeostat_resourceclaim::GateError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FeatureGates {
    /// `DRAAdminAccess` (default true): claims that ask for admin access are created.
    pub admin_access: bool,
    /// `DRAPrioritizedList` (default true): claims with a prioritized list of subrequests are
    /// created.
    pub prioritized_list: bool,
    /// True if `GenericWorkload` or `DRAWorkloadResourceClaims` is set to true. The controller
    /// does not support `PodGroup`s: it logs a warning and treats both gates as false.
    pub pod_groups_requested: bool,
    /// Unknown names in the order of the list. They are logged when the controller starts, and
    /// ignored.
    pub unknown: Vec<String>,
}

// === impl FeatureGates ===

impl Default for FeatureGates {
    fn default() -> Self {
        Self {
            admin_access: true,
            prioritized_list: true,
            pod_groups_requested: false,
            unknown: Vec::new(),
        }
    }
}

impl FromStr for FeatureGates {
    type Err = GateError;

    /// Parses `Name=bool,…`. An empty list keeps the defaults. The last entry of a gate counts.
    ///
    /// `AllBeta` sets `GenericWorkload` and `DRAWorkloadResourceClaims`, which are beta, unless the
    /// list names them.
    fn from_str(list: &str) -> Result<Self, GateError> {
        let list: GateList = list.parse()?;
        let all_beta = list.get("AllBeta");
        let is_requested = |gate| list.get(gate).or(all_beta).unwrap_or(false);
        Ok(Self {
            admin_access: list.get(ADMIN_ACCESS).unwrap_or(true),
            prioritized_list: list.get(PRIORITIZED_LIST).unwrap_or(true),
            pod_groups_requested: is_requested(GENERIC_WORKLOAD) || is_requested(WORKLOAD_CLAIMS),
            unknown: list.unknown(&KNOWN),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gates_of_devices_are_on_and_those_of_pod_groups_off() {
        let gates: FeatureGates = "".parse().unwrap();
        assert_eq!(gates, FeatureGates::default());
        assert!(gates.admin_access && gates.prioritized_list && !gates.pod_groups_requested);
    }

    #[test]
    fn each_gate_can_be_switched() {
        let gates = |list: &str| list.parse::<FeatureGates>().unwrap();
        assert!(!gates("DRAAdminAccess=false").admin_access);
        assert!(!gates("DRAPrioritizedList=0").prioritized_list);
        for list in ["GenericWorkload=true", "DRAWorkloadResourceClaims=t", "AllBeta=true"] {
            assert!(gates(list).pod_groups_requested, "{list}");
        }
        let list = "AllBeta=true,GenericWorkload=false,DRAWorkloadResourceClaims=false";
        assert!(!gates(list).pod_groups_requested);
        assert_eq!(gates("Other=true,AllAlpha=false,Other=false").unknown, ["Other"]);
        assert!("DRAAdminAccess=maybe".parse::<FeatureGates>().is_err());
    }
}
