//! The feature gates of the command line.

use std::str::FromStr;

use homeostat::cli::GateList;
use homeostat_quota::Gates;

pub use homeostat::cli::GateError;

/// The names of the gates that the controller knows. `AllBeta` and `AllAlpha` are groups.
const KNOWN: [&str; 4] = [POD_LEVEL, FIX_QOS, "AllBeta", "AllAlpha"];

const POD_LEVEL: &str = "PodLevelResources";
const FIX_QOS: &str = "PodLevelResourcesFixKubeletQOSClass";

/// The feature gates of the controller.
///
/// # Examples
///
/// ```
/// use homeostat_resourcequota::FeatureGates;
///
/// let gates: FeatureGates = "PodLevelResources=false,SomethingElse=true".parse()?;
/// assert!(!gates.quota.pod_level_resources);
/// assert_eq!(gates.unknown, ["SomethingElse"]);
/// # Ok::<(), homeostat_resourcequota::GateError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FeatureGates {
    /// `PodLevelResources` and `PodLevelResourcesFixKubeletQOSClass` (default true).
    pub quota: Gates,
    /// Unknown names in the order of the list. They are logged when the controller starts, and
    /// ignored.
    pub unknown: Vec<String>,
}

// === impl FeatureGates ===

impl FromStr for FeatureGates {
    type Err = GateError;

    /// Parses `Name=bool,…`. An empty list keeps the defaults. The last entry of a gate counts.
    ///
    /// `AllBeta` sets both gates if the list does not name them: both are beta. `AllAlpha` is
    /// accepted, and there is no alpha gate.
    fn from_str(list: &str) -> Result<Self, GateError> {
        let list: GateList = list.parse()?;
        let value = |gate| list.get(gate).or_else(|| list.get("AllBeta")).unwrap_or(true);
        let mut quota = Gates::default();
        quota.pod_level_resources = value(POD_LEVEL);
        quota.pod_level_resources_fix_kubelet_qos_class = value(FIX_QOS);
        Ok(Self { quota, unknown: list.unknown(&KNOWN) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gates_act_and_the_last_entry_counts() {
        let gates: FeatureGates = "PodLevelResources=0,AllBeta=1,Other=true".parse().unwrap();
        assert!(!gates.quota.pod_level_resources);
        assert!(gates.quota.pod_level_resources_fix_kubelet_qos_class);
        assert_eq!(gates.unknown, ["Other"]);
        let gates: FeatureGates = "PodLevelResources=true,AllBeta=false".parse().unwrap();
        assert!(gates.quota.pod_level_resources);
        assert!(!gates.quota.pod_level_resources_fix_kubelet_qos_class);
    }

    #[test]
    fn bad_gate_is_an_error_that_says_what_is_allowed() {
        let error = "PodLevelResources".parse::<FeatureGates>().unwrap_err().to_string();
        assert!(error.ends_with("write PodLevelResources=true or PodLevelResources=false"));
        let error = "PodLevelResources=maybe".parse::<FeatureGates>().unwrap_err().to_string();
        assert!(error.ends_with("is set to \"maybe\", which is neither true nor false"));
    }
}
