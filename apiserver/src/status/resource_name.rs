//! The names of a kind in messages.

/// The names of a kind, as messages write them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ResourceName<'a> {
    pub(crate) group: &'a str,
    pub(crate) kind: &'a str,
    pub(crate) plural: &'a str,
    /// True for a custom resource.
    pub(crate) custom: bool,
}

// === impl ResourceName ===

impl<'a> ResourceName<'a> {
    /// Returns the name of a built-in resource, or a kind where the real server shows the kind.
    pub(crate) fn built_in(group: &'a str, plural: &'a str) -> Self {
        Self { group, kind: "", plural, custom: false }
    }

    /// Returns `replicasets.apps`.
    pub(crate) fn group_resource(&self) -> String {
        with_group(self.plural, self.group)
    }

    /// Returns `ReplicaSet.apps`.
    pub(crate) fn group_kind(&self) -> String {
        with_group(self.kind, self.group)
    }
}

/// Returns the name with its group, unless that is the core group.
pub(super) fn with_group(name: &str, group: &str) -> String {
    if group.is_empty() { name.to_owned() } else { format!("{name}.{group}") }
}
