//! The owners of an object's fields after a write of one manager.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::{Map, Value};

use super::conflict::Conflicts;
use super::updater::{UpdateError, Write};
use super::writer::FieldWriter;
use super::{ManagedFields, Manager, Operation, last_applied};
use crate::apply::{Comparison, Duplicates, TypeErrors, compare, compare_checked, validate_object};
use crate::field_set::{FieldSet, PathElement};

/// The most managers that an object has from writes other than apply.
///
/// The limit keeps objects small that many clients with changing names write. Upstream's number.
pub(super) const MAX_UPDATERS: usize = 10;

/// The manager of the oldest writes beyond the limit.
const ANCIENT: &str = "ancient-changes";

/// The manager of the fields that an object had before its first apply.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// The result of an apply.
#[derive(Debug, Clone, PartialEq)]
pub struct Applied {
    /// The new object; `None` if it is equal to the live one.
    pub object: Option<Map<String, Value>>,
    /// The new owners.
    pub owners: ManagedFields,
}

/// The reason why an apply fails.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError {
    /// The configuration does not fit the type.
    #[error("{0}")]
    Config(TypeErrors),
    /// The live object does not fit the type.
    #[error("{0}")]
    Live(TypeErrors),
    /// The result cannot be computed.
    #[error("failed to merge config: {0}")]
    Merge(TypeErrors),
    /// The object cannot be converted to the version of a manager.
    #[error("{0}")]
    Version(String),
    /// Other managers own fields that the configuration changes.
    #[error("{0}")]
    Conflicts(Conflicts),
}

// === impl FieldWriter ===

impl FieldWriter<'_> {
    /// Returns the owners after a write that is not an apply.
    ///
    /// `live` and `new` are the object before and after, without `managedFields`.
    ///
    /// # Errors
    ///
    /// If one of them does not fit the type, or cannot be converted to the version of a manager.
    /// The caller then keeps the owners of the live object.
    pub fn update(
        &self,
        owners: ManagedFields,
        live: &Map<String, Value>,
        new: &Map<String, Value>,
    ) -> Result<ManagedFields, TypeErrors> {
        let compared = self.compare(live, new)?;
        self.update_compared(owners, (live, new), &compared)
    }

    fn update_compared(
        &self,
        owners: ManagedFields,
        (live, new): (&Map<String, Value>, &Map<String, Value>),
        compared: &Comparison,
    ) -> Result<ManagedFields, TypeErrors> {
        let manager = Manager::updater(self.manager, self.api_version, self.subresource);
        Ok(cap_updaters(self.update_as(owners, (live, new), compared, &manager)?))
    }

    /// Checks the new object and returns its difference from the live one. Owners that are left in
    /// the live object count for nothing.
    pub(super) fn compare(
        &self,
        live: &Map<String, Value>,
        new: &Map<String, Value>,
    ) -> Result<Comparison, TypeErrors> {
        let mut compared = if self.schema.is_built_in() {
            // The live object was checked by the same rules. Fields that the write does not change
            // count for nothing.
            compare_checked(self.root(), self.reset, live, new)?
        } else {
            validate_object(self.root(), new, Duplicates::Allowed)?;
            compare(self.root(), live, new)?
        };
        compared.removed.subtract(&OWNERS);
        Ok(compared)
    }

    /// Applies a configuration.
    ///
    /// `live` is the object, without `managedFields`; `config` is the configuration.
    ///
    /// # Errors
    ///
    /// If the configuration does not fit the type, or, without `force`, changes fields that others
    /// own.
    pub fn apply(
        &self,
        owners: ManagedFields,
        live: &Map<String, Value>,
        config: &Map<String, Value>,
        force: bool,
    ) -> Result<Applied, ApplyError> {
        validate_object(self.root(), config, Duplicates::Refused).map_err(ApplyError::Config)?;
        validate_object(self.root(), live, Duplicates::Allowed).map_err(ApplyError::Live)?;
        let owners = if owners.is_empty() {
            let manager = Manager::updater(BEFORE_FIRST_APPLY, self.api_version, self.subresource);
            let first = compare(self.root(), self.empty, live)
                .and_then(|first| self.update_as(owners, (self.empty, live), &first, &manager));
            cap_updaters(first.map_err(ApplyError::Live)?)
        } else {
            owners
        };
        let mut applied = match self.apply_once(owners.clone(), live, config, force) {
            Err(ApplyError::Conflicts(conflicts)) if self.manager == last_applied::MANAGER => {
                self.upgrade(owners, live, config, conflicts)?
            }
            other => other?,
        };
        if self.manager == last_applied::MANAGER {
            let mut object = applied.object.take().unwrap_or_else(|| live.clone());
            last_applied::refresh(&mut object, config);
            applied.object = (object != *live).then_some(object);
        }
        Ok(applied)
    }

    /// Applies over fields that the same user's client-side apply set.
    fn upgrade(
        &self,
        owners: ManagedFields,
        live: &Map<String, Value>,
        config: &Map<String, Value>,
        conflicts: Conflicts,
    ) -> Result<Applied, ApplyError> {
        let Some(allowed) = last_applied::owned_fields(self, live) else {
            return Err(ApplyError::Conflicts(conflicts));
        };
        if conflicts.paths().difference(&allowed).is_empty() {
            return self.apply_once(owners, live, config, true);
        }
        Err(ApplyError::Conflicts(conflicts.without(&allowed)))
    }

    fn apply_once(
        &self,
        owners: ManagedFields,
        live: &Map<String, Value>,
        config: &Map<String, Value>,
        force: bool,
    ) -> Result<Applied, ApplyError> {
        let manager = &Manager::applier(self.manager, self.subresource);
        let write = Write { writer: self, live, manager, force };
        let (object, mut owners) = write.apply(owners, config).map_err(|error| match error {
            UpdateError::Types(errors) => ApplyError::Merge(errors),
            UpdateError::Version(reason) => ApplyError::Version(reason),
            UpdateError::Conflicts(conflicts) => ApplyError::Conflicts(conflicts),
        })?;
        strip(&mut owners, manager);
        if object.is_some()
            && let Some(owned) = owners.entries.get_mut(manager)
        {
            owned.time = Some(self.now.to_owned());
        }
        Ok(Applied { object, owners })
    }

    fn update_as(
        &self,
        owners: ManagedFields,
        (live, new): (&Map<String, Value>, &Map<String, Value>),
        compared: &Comparison,
        manager: &Manager,
    ) -> Result<ManagedFields, TypeErrors> {
        // The write has a name of its own, so that its fields are also taken from the manager's
        // other entries and its time is updated only if something changed.
        let current = Manager::new("current-operation", Operation::Update, "", "");
        let write = Write { writer: self, live, manager: &current, force: true };
        let mut owners = match write.update(owners, new, compared) {
            Ok(owners) => owners,
            Err(UpdateError::Types(errors)) => return Err(errors),
            Err(UpdateError::Version(reason)) => return Err(TypeErrors::of(reason)),
            Err(UpdateError::Conflicts(_)) => unreachable!("a forced write has no conflicts"),
        };
        strip(&mut owners, &current);
        if let Some(written) = owners.entries.remove(&current) {
            let owned = owners.entries.entry(manager.clone()).or_default();
            owned.fields.extend(written.fields);
            owned.api_version = written.api_version;
            owned.time = Some(self.now.to_owned());
        }
        Ok(owners)
    }
}

/// The fields that the server itself sets. They have no owner.
pub(super) static STRIPPED: LazyLock<FieldSet> = LazyLock::new(|| {
    const METADATA: [&str; 9] = [
        "name",
        "namespace",
        "creationTimestamp",
        "selfLink",
        "uid",
        "clusterName",
        "generation",
        "managedFields",
        "resourceVersion",
    ];
    let mut stripped = FieldSet::new();
    for field in ["apiVersion", "kind", "metadata"] {
        stripped.insert(&[PathElement::field(field)]);
    }
    for field in METADATA {
        stripped.insert(&[PathElement::field("metadata"), PathElement::field(field)]);
    }
    stripped
});

/// The owners themselves.
static OWNERS: LazyLock<FieldSet> = LazyLock::new(|| {
    let mut owners = FieldSet::new();
    owners.insert(&["metadata", "managedFields"].map(PathElement::field));
    owners
});

/// Removes the fields of a manager that the server itself sets.
fn strip(owners: &mut ManagedFields, manager: &Manager) {
    let Some(owned) = owners.entries.get_mut(manager) else { return };
    owned.fields.subtract(&STRIPPED);
    owners.drop_empty();
}

/// Joins the oldest entries of one version until no more than 10 are left that are not appliers'.
fn cap_updaters(mut owners: ManagedFields) -> ManagedFields {
    let is_updater = |manager: &&Manager| manager.operation == Operation::Update;
    let count = owners.entries.keys().filter(is_updater).count();
    if count <= MAX_UPDATERS {
        return owners;
    }
    let mut updaters: Vec<Manager> = owners.entries.keys().filter(is_updater).cloned().collect();
    updaters.sort_by(|a, b| owners.entries[a].time.cmp(&owners.entries[b].time));
    let mut excess = count - MAX_UPDATERS;
    let mut first_of_version: BTreeMap<String, Manager> = BTreeMap::new();
    for manager in updaters {
        if excess == 0 {
            break;
        }
        let version = owners.entries[&manager].api_version.clone();
        let Some(first) = first_of_version.get(&version) else {
            first_of_version.insert(version, manager);
            continue;
        };
        let bucket = Manager::updater(ANCIENT, &version, "");
        if !owners.entries.contains_key(&bucket)
            && let Some(owned) = owners.entries.remove(first)
        {
            owners.entries.insert(bucket.clone(), owned);
        }
        if manager != bucket
            && let Some(newer) = owners.entries.remove(&manager)
            && let Some(owned) = owners.entries.get_mut(&bucket)
        {
            owned.fields.extend(newer.fields);
            owned.time = newer.time;
        }
        excess -= 1;
    }
    owners
}
