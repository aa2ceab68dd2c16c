//! The controllers that the program runs, named as by kube-controller-manager's `--controllers`.

use std::str::FromStr;

/// The controllers that the program runs.
///
/// kube-controller-manager runs both unless it is started with
/// `--controllers=*,-replicaset-controller`, which hands over one of them. So the default is the
/// `ReplicaSet` controller alone.
///
/// # Examples
///
/// ```
/// use homeostat_replicaset::Controllers;
///
/// let controllers: Controllers = "replicaset,replicationcontroller".parse()?;
/// assert!(controllers.replica_set && controllers.replication_controller);
/// assert!(!Controllers::default().replication_controller);
/// # Ok::<(), homeostat_replicaset::ControllersError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Controllers {
    /// The controller of `ReplicaSet`s (default true).
    pub replica_set: bool,
    /// The controller of `ReplicationController`s (default false).
    pub replication_controller: bool,
}

/// The error of a list of controllers that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ControllersError {
    /// A name that is no controller of this program.
    #[error(
        "unknown controller {name:?}: the controllers are replicaset and replicationcontroller, \
         * is both, and -NAME leaves one out"
    )]
    Unknown {
        /// The name.
        name: String,
    },
    /// A list that enables nothing.
    #[error("no controller is enabled")]
    None,
}

// === impl Controllers ===

impl Default for Controllers {
    fn default() -> Self {
        Self { replica_set: true, replication_controller: false }
    }
}

impl FromStr for Controllers {
    type Err = ControllersError;

    /// Parses a list of names, separated by commas. `*` stands for both, `-NAME` leaves one out,
    /// and a name beats `*` wherever it stands. Each controller has upstream's two names.
    fn from_str(list: &str) -> Result<Self, ControllersError> {
        let (mut all, mut replica_set, mut replication_controller) = (false, None, None);
        for entry in list.split(',').map(str::trim).filter(|entry| !entry.is_empty()) {
            let (name, is_enabled) = match entry.strip_prefix('-') {
                Some(name) => (name, false),
                None => (entry, true),
            };
            match name {
                "*" if is_enabled => all = true,
                "replicaset" | "replicaset-controller" => replica_set = Some(is_enabled),
                "replicationcontroller" | "replicationcontroller-controller" => {
                    replication_controller = Some(is_enabled);
                }
                _ => return Err(ControllersError::Unknown { name: entry.to_owned() }),
            }
        }
        let controllers = Self {
            replica_set: replica_set.unwrap_or(all),
            replication_controller: replication_controller.unwrap_or(all),
        };
        if controllers.replica_set || controllers.replication_controller {
            Ok(controllers)
        } else {
            Err(ControllersError::None)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(list: &str) -> Result<(bool, bool), String> {
        let controllers: Result<Controllers, _> = list.parse();
        let pair = |it: Controllers| (it.replica_set, it.replication_controller);
        controllers.map(pair).map_err(|error| error.to_string())
    }

    #[test]
    fn both_upstream_names_of_a_controller_enable_it() {
        assert_eq!(parse("replicaset"), Ok((true, false)));
        assert_eq!(parse("replicaset-controller"), Ok((true, false)));
        assert_eq!(parse("replicationcontroller"), Ok((false, true)));
        assert_eq!(parse(" replicaset , replicationcontroller-controller,"), Ok((true, true)));
    }

    #[test]
    fn star_enables_what_the_list_does_not_name() {
        assert_eq!(parse("*"), Ok((true, true)));
        assert_eq!(parse("*,-replicaset"), Ok((false, true)));
        assert_eq!(parse("-replicationcontroller,*"), Ok((true, false)));
    }

    #[test]
    fn unusable_lists_are_named_in_the_error() {
        assert_eq!(parse(""), Err("no controller is enabled".to_owned()));
        assert_eq!(parse("-replicaset"), Err("no controller is enabled".to_owned()));
        assert!(parse("deployment").unwrap_err().starts_with("unknown controller \"deployment\""));
        assert!(parse("-*").unwrap_err().starts_with("unknown controller \"-*\""));
    }
}
