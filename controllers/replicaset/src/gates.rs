//! Feature gates with Kubernetes' names, so that the flags of a deployment keep working.

use std::str::FromStr;

use homeostat::cli::GateList;

pub use homeostat::cli::GateError;

/// The names that the controller knows. `AllBeta` and `AllAlpha` are groups.
const KNOWN: [&str; 5] = [DELETION_COST, TERMINATING_REPLICAS, CONSISTENCY, "AllBeta", "AllAlpha"];

const DELETION_COST: &str = "PodDeletionCost";
const TERMINATING_REPLICAS: &str = "DeploymentReplicaSetTerminatingReplicas";
const CONSISTENCY: &str = "StaleControllerConsistencyReplicaSet";

/// The feature gates of the controller.
///
/// # Examples
///
/// ```
/// use homeostat_replicaset::FeatureGates;
///
/// let gates: FeatureGates = "PodDeletionCost=false,SomethingElse=true".parse()?;
/// assert!(!gates.pod_deletion_cost);
/// assert_eq!(gates.unknown, ["SomethingElse"]);
/// # Ok::<(), homeostat_replicaset::GateError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FeatureGates {
    /// `PodDeletionCost` (default true): the annotation
    /// `controller.kubernetes.io/pod-deletion-cost` ranks pods for deletion.
    pub pod_deletion_cost: bool,
    /// `DeploymentReplicaSetTerminatingReplicas` (default true): `status.terminatingReplicas` is
    /// reported.
    pub terminating_replicas: bool,
    /// `StaleControllerConsistencyReplicaSet` (default true): a pass waits until the caches show
    /// the controller's own writes.
    pub stale_controller_consistency: bool,
    /// Unknown names in the order of the list. They are logged when the controller starts, and
    /// ignored.
    pub unknown: Vec<String>,
}

// === impl FeatureGates ===

impl Default for FeatureGates {
    fn default() -> Self {
        Self {
            pod_deletion_cost: true,
            terminating_replicas: true,
            stale_controller_consistency: true,
            unknown: Vec::new(),
        }
    }
}

impl FromStr for FeatureGates {
    type Err = GateError;

    /// Parses `Name=bool,…`. An empty list keeps the defaults. The last entry of a gate counts.
    ///
    /// `AllBeta` sets every beta gate that the list does not name: all three gates are beta.
    /// `AllAlpha` is accepted, and there is no alpha gate.
    fn from_str(list: &str) -> Result<Self, GateError> {
        let list: GateList = list.parse()?;
        let all_beta = list.get("AllBeta");
        let beta = |gate| list.get(gate).or(all_beta).unwrap_or(true);
        Ok(Self {
            pod_deletion_cost: beta(DELETION_COST),
            terminating_replicas: beta(TERMINATING_REPLICAS),
            stale_controller_consistency: beta(CONSISTENCY),
            unknown: list.unknown(&KNOWN),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_list_keeps_the_defaults() {
        for empty in ["", " ", ",", " , "] {
            assert_eq!(empty.parse(), Ok(FeatureGates::default()), "{empty:?}");
        }
        assert!(FeatureGates::default().pod_deletion_cost);
        assert!(FeatureGates::default().terminating_replicas);
    }

    #[test]
    fn both_gates_act_and_the_last_entry_counts() {
        let gates: FeatureGates =
            "PodDeletionCost=0, DeploymentReplicaSetTerminatingReplicas = False,PodDeletionCost=1"
                .parse()
                .unwrap();
        assert!(gates.pod_deletion_cost);
        assert!(!gates.terminating_replicas);
    }

    #[test]
    fn all_beta_sets_the_gates_that_the_list_does_not_name() {
        let gates: FeatureGates = "PodDeletionCost=true,AllBeta=false".parse().unwrap();
        assert!(gates.pod_deletion_cost);
        assert!(!gates.terminating_replicas);
        assert!(!gates.stale_controller_consistency);
        assert!(gates.unknown.is_empty());
    }

    #[test]
    fn unknown_names_are_kept_once_and_ignored() {
        let gates: FeatureGates = "New=true,AllAlpha=false,New=false".parse().unwrap();
        assert_eq!(gates.unknown, ["New"]);
        assert_eq!(FeatureGates { unknown: vec![], ..gates }, FeatureGates::default());
    }

    #[test]
    fn invalid_value_is_named_in_the_error() {
        let error = "PodDeletionCost=yes".parse::<FeatureGates>().unwrap_err();
        assert_eq!(
            error.to_string(),
            r#"feature gate PodDeletionCost is set to "yes", which is neither true nor false"#
        );
        let error = "PodDeletionCost".parse::<FeatureGates>().unwrap_err();
        assert_eq!(
            error.to_string(),
            r#"feature gate "PodDeletionCost" lacks a value: write PodDeletionCost=true or PodDeletionCost=false"#
        );
        assert!("Unknown=".parse::<FeatureGates>().is_err());
    }
}
