//! The fields of an apply that other managers own with other values.

use std::fmt;

use super::Manager;
use crate::field_set::{FieldSet, Path, ShownPath};

/// A field that another manager owns, and that the applied configuration would change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// The owner.
    pub manager: Manager,
    /// The field.
    pub path: Path,
}

/// All conflicts of one apply, sorted by manager.
///
/// Its text is upstream's: `Apply failed with 1 conflict: conflict with "kubectl": .spec.replicas`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflicts(pub(super) Vec<Conflict>);

// === impl Conflict ===

impl Conflict {
    /// Returns the message of the cause: `conflict with "kubectl" using apps/v1`.
    pub fn message(&self) -> String {
        format!("conflict with {}", self.manager)
    }

    /// Returns the path as text: `.spec.replicas`.
    pub fn field(&self) -> String {
        ShownPath(&self.path).to_string()
    }
}

// === impl Conflicts ===

impl Conflicts {
    /// Returns the conflicts, sorted by manager.
    pub fn iter(&self) -> impl Iterator<Item = &Conflict> {
        self.0.iter()
    }

    pub(super) fn paths(&self) -> FieldSet {
        self.iter().map(|conflict| conflict.path.as_slice()).collect()
    }

    /// Returns the conflicts whose paths are not in `allowed`.
    pub(super) fn without(&self, allowed: &FieldSet) -> Self {
        let others = self.iter().filter(|conflict| !allowed.contains(&conflict.path));
        Self(others.cloned().collect())
    }
}

impl fmt::Display for Conflicts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [only] = &self.0[..] {
            return write!(
                f,
                "Apply failed with 1 conflict: {}: {}",
                only.message(),
                ShownPath(&only.path)
            );
        }
        write!(f, "Apply failed with {} conflicts: ", self.0.len())?;
        for (index, of_manager) in self.0.chunk_by(|a, b| a.manager == b.manager).enumerate() {
            f.write_str(if index > 0 { "\n" } else { "" })?;
            write!(f, "conflicts with {}:", of_manager[0].manager)?;
            let mut paths = of_manager.iter().map(|conflict| ShownPath(&conflict.path));
            paths.try_for_each(|path| write!(f, "\n- {path}"))?;
        }
        Ok(())
    }
}

impl std::error::Error for Conflicts {}
