//! Feature gates by Kubernetes' names, so that a deployment's flags carry over.

use std::str::FromStr;

/// Which gated behaviours act.
///
/// # Examples
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
    /// `PodDeletionCost`: the annotation `controller.kubernetes.io/pod-deletion-cost` ranks pods for deletion. On by default.
    pub pod_deletion_cost: bool,
    /// `DeploymentReplicaSetTerminatingReplicas`: `status.terminatingReplicas` is reported. On by default.
    pub terminating_replicas: bool,
    /// Names that mean nothing here, in the order given: logged when the controller starts, otherwise ignored.
    pub unknown: Vec<String>,
}

/// Why a list of feature gates cannot be read.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum GateError {
    /// An entry without `=`.
    #[error("feature gate {entry:?} lacks a value: write {entry}=true or {entry}=false")]
    NoValue {
        /// What was given.
        entry: String,
    },
    /// A value that is neither true nor false.
    #[error("feature gate {name} is set to {value:?}, which is neither true nor false")]
    NotABool {
        /// The gate.
        name: String,
        /// What it was set to.
        value: String,
    },
}

// === impl FeatureGates ===

impl Default for FeatureGates {
    fn default() -> Self {
        Self { pod_deletion_cost: true, terminating_replicas: true, unknown: Vec::new() }
    }
}

impl FromStr for FeatureGates {
    type Err = GateError;

    /// Reads `Name=bool,…`; an empty list leaves every default, and of two entries for one gate the last counts.
    fn from_str(list: &str) -> Result<Self, GateError> {
        let mut gates = Self::default();
        for entry in list.split(',').map(str::trim).filter(|entry| !entry.is_empty()) {
            let Some((name, value)) = entry.split_once('=') else {
                return Err(GateError::NoValue { entry: entry.to_owned() });
            };
            let (name, value) = (name.trim(), parse_bool(name.trim(), value.trim())?);
            match name {
                "PodDeletionCost" => gates.pod_deletion_cost = value,
                "DeploymentReplicaSetTerminatingReplicas" => gates.terminating_replicas = value,
                _ if gates.unknown.iter().any(|it| it == name) => {}
                _ => gates.unknown.push(name.to_owned()),
            }
        }
        Ok(gates)
    }
}

/// The spellings that Go's flags take.
fn parse_bool(name: &str, value: &str) -> Result<bool, GateError> {
    match value {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
        _ => Err(GateError::NotABool { name: name.to_owned(), value: value.to_owned() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_list_leaves_the_defaults() {
        for empty in ["", " ", ",", " , "] {
            assert_eq!(empty.parse(), Ok(FeatureGates::default()), "{empty:?}");
        }
        assert!(FeatureGates::default().pod_deletion_cost);
        assert!(FeatureGates::default().terminating_replicas);
    }

    #[test]
    fn both_gates_act_and_the_last_entry_counts() {
        let gates: FeatureGates =
            "PodDeletionCost=false, DeploymentReplicaSetTerminatingReplicas = False,PodDeletionCost=1"
                .parse()
                .unwrap();
        assert!(gates.pod_deletion_cost);
        assert!(!gates.terminating_replicas);
    }

    #[test]
    fn unknown_names_are_kept_once_and_ignored() {
        let gates: FeatureGates = "New=true,AllAlpha=false,New=false".parse().unwrap();
        assert_eq!(gates.unknown, ["New", "AllAlpha"]);
        assert_eq!(FeatureGates { unknown: vec![], ..gates }, FeatureGates::default());
    }

    #[test]
    fn what_is_no_bool_is_answered_in_words() {
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
