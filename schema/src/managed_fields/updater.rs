//! The changes of ownership: upstream's `merge.Updater`.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::conflict::{Conflict, Conflicts};
use super::writer::{Converted, FieldWriter};
use super::{ManagedFields, Manager, Owned};
use crate::apply::{
    Comparison, Type, TypeErrors, compare, field_set, merge, named_fields_as_members,
    object_fields, reconcile, remove,
};
use crate::field_set::{FieldSet, equal_objects};

/// The reason why a change of ownership is not possible.
pub(super) enum UpdateError {
    Types(TypeErrors),
    /// The object cannot be converted to the version of a manager.
    Version(String),
    Conflicts(Conflicts),
}

/// A write over a live object.
pub(super) struct Write<'a> {
    pub(super) writer: &'a FieldWriter<'a>,
    pub(super) live: &'a Map<String, Value>,
    pub(super) manager: &'a Manager,
    /// True if the write takes fields from other managers.
    pub(super) force: bool,
}

/// The differences between two states of an object, in each version that a manager uses.
struct Comparisons<'a> {
    writer: &'a FieldWriter<'a>,
    old: &'a Map<String, Value>,
    new: &'a Map<String, Value>,
    by_version: BTreeMap<String, Option<Difference>>,
}

/// The fields that other managers lose.
pub(super) struct Difference {
    pub(super) written: FieldSet,
    pub(super) removed: FieldSet,
}

// === impl Write ===

impl Write<'_> {
    /// Records that the manager wrote `new`; `compared` is its difference from the live object.
    pub(super) fn update(
        &self,
        owners: ManagedFields,
        new: &Map<String, Value>,
        compared: &Comparison,
    ) -> Result<ManagedFields, UpdateError> {
        let mut owners = reconcile_all(self.writer, owners, self.live)?;
        self.transfer(&mut owners, new, compared)?;
        let owned = owners.entries.entry(self.manager.clone()).or_default();
        owned.fields.subtract(&compared.removed);
        owned.fields.extend(compared.written());
        owned.fields.subtract_recursively(self.writer.reset);
        self.writer.api_version.clone_into(&mut owned.api_version);
        owners.drop_empty();
        Ok(owners)
    }

    /// Applies `config`; the object is `None` if it is equal to the live one.
    pub(super) fn apply(
        &self,
        owners: ManagedFields,
        config: &Map<String, Value>,
    ) -> Result<(Option<Map<String, Value>>, ManagedFields), UpdateError> {
        let mut owners = reconcile_all(self.writer, owners, self.live)?;
        let of = self.writer.root();
        let merged = merge(of, self.live, config)?;
        let fields = object_fields(of, config)?.recursive_difference(self.writer.reset);
        let last = owners.entries.get(self.manager).cloned();
        let time = last.as_ref().and_then(|last| last.time.clone());
        let api_version = self.writer.api_version.to_owned();
        owners.entries.insert(self.manager.clone(), Owned { fields, api_version, time });
        let new = match last {
            Some(last) => prune(self.writer, merged, &owners, &last)?,
            None => merged,
        };
        // An object stays an object when its last field is removed.
        let new = match new {
            Value::Object(new) => new,
            _ => Map::new(),
        };
        self.transfer(&mut owners, &new, &compare(of, self.live, &new)?)?;
        let is_equal = equal_objects(self.live, &new);
        Ok(((!is_equal).then_some(new), owners))
    }

    /// Takes changed fields from all other managers. Without `force` they are conflicts.
    ///
    /// `own` is the comparison in the version of the writer.
    fn transfer(
        &self,
        owners: &mut ManagedFields,
        new: &Map<String, Value>,
        own: &Comparison,
    ) -> Result<(), UpdateError> {
        let writer = self.writer;
        if owners.entries.keys().all(|manager| manager == self.manager) {
            owners.drop_empty();
            return Ok(());
        }
        let mut comparisons =
            Comparisons { writer, old: self.live, new, by_version: BTreeMap::new() };
        let filtered = Difference::of(own.clone(), writer.reset);
        comparisons.by_version.insert(writer.api_version.to_owned(), Some(filtered));
        let mut conflicts = Vec::new();
        let mut changed: Vec<(Manager, Option<FieldSet>)> = Vec::new();
        for (other, owned) in owners.entries.iter().filter(|(other, _)| *other != self.manager) {
            let Some(compared) = comparisons.at(&owned.api_version)? else {
                // The server no longer has the version.
                changed.push((other.clone(), None));
                continue;
            };
            let Difference { written, removed } = compared;
            let taken = owned.fields.intersection(written);
            if taken.is_empty() && owned.fields.intersection(removed).is_empty() {
                continue;
            }
            let paths = taken.paths().into_iter();
            conflicts.extend(paths.map(|path| Conflict { manager: other.clone(), path }));
            let mut kept = owned.fields.difference(&taken);
            kept.subtract(removed);
            changed.push((other.clone(), Some(kept)));
        }
        if !self.force && !conflicts.is_empty() {
            return Err(UpdateError::Conflicts(Conflicts(conflicts)));
        }
        for (other, kept) in changed {
            match (kept, owners.entries.get_mut(&other)) {
                (Some(kept), Some(owned)) => owned.fields = kept,
                _ => {
                    owners.entries.remove(&other);
                }
            }
        }
        owners.drop_empty();
        Ok(())
    }
}

// === impl UpdateError ===

impl From<TypeErrors> for UpdateError {
    fn from(errors: TypeErrors) -> Self {
        Self::Types(errors)
    }
}

/// Removes what the manager applied before and does not apply now, if no other manager owns it.
fn prune(
    writer: &FieldWriter<'_>,
    merged: Value,
    owners: &ManagedFields,
    last: &Owned,
) -> Result<Value, UpdateError> {
    if last.fields.is_empty() {
        return Ok(merged);
    }
    let why = || "failed to convert merged object to last applied version".to_owned();
    let converted = converted_merged(writer, &last.api_version, &merged, why)?;
    let Some((of, converted)) = converted else { return Ok(merged.clone()) };
    let last_fields = named_fields_as_members(Some(of), &last.fields);
    let pruned = remove(of, &converted, &last_fields);
    let pruned = add_back_owned(writer, &merged, pruned, owners)?;
    let pruned = match converted_merged(writer, &last.api_version, &pruned, why)? {
        Some((_, pruned)) => pruned.into_owned(),
        None => pruned.clone(),
    };
    // What the manager never owned stays, even below something that it removes.
    let left = named_fields_as_members(Some(of), &field_set(of, &pruned)?);
    let all = named_fields_as_members(Some(of), &field_set(of, &converted)?);
    let pruned = remove(of, &converted, &all.difference(&left).intersection(&last_fields));
    let restored = converted_merged(writer, writer.api_version, &pruned, why)?;
    Ok(restored.map_or_else(|| pruned.clone(), |(_, restored)| restored.into_owned()))
}

/// Restores the fields of `merged` that a manager owns.
fn add_back_owned(
    writer: &FieldWriter<'_>,
    merged: &Value,
    mut pruned: Value,
    owners: &ManagedFields,
) -> Result<Value, UpdateError> {
    let mut by_version: BTreeMap<&str, FieldSet> = BTreeMap::new();
    for (_, owned) in owners.iter() {
        by_version.entry(&owned.api_version).or_default().extend(owned.fields.clone());
    }
    for (version, owned) in by_version {
        let why = || {
            format!(
                "failed add back owned items: failed to convert merged object at version {version}"
            )
        };
        let converted = converted_merged(writer, version, merged, why)?;
        let Some((of, merged)) = converted else { continue };
        let left = converted_merged(writer, version, &pruned, why)?;
        let Some((_, left)) = left else { continue };
        let mut kept = named_fields_as_members(Some(of), &field_set(of, &left)?);
        kept.extend(named_fields_as_members(Some(of), &owned));
        let all = named_fields_as_members(Some(of), &field_set(of, &merged)?);
        pruned = remove(of, &merged, &all.difference(&kept));
    }
    Ok(pruned)
}

/// Returns a merged object in a version, with its type there; `why` begins the text of an error.
fn converted_merged<'a, 'o>(
    writer: &FieldWriter<'a>,
    version: &str,
    merged: &'o Value,
    why: impl Fn() -> String,
) -> Result<Option<(Type<'a>, Cow<'o, Value>)>, UpdateError> {
    let Value::Object(members) = merged else {
        return Ok(writer.type_of(version).map(|of| (of, Cow::Borrowed(merged))));
    };
    let converted = writer.converted(version, members).map_err(|reason| {
        UpdateError::Version(format!("failed to prune fields: {}: {reason}", why()))
    })?;
    Ok(converted.map(|(of, object)| match object {
        Cow::Borrowed(_) => (of, Cow::Borrowed(merged)),
        Cow::Owned(object) => (of, Cow::Owned(Value::Object(object))),
    }))
}

/// Adapts the recorded sets to types that became atomic; drops versions of built-in types that are
/// gone.
fn reconcile_all(
    writer: &FieldWriter<'_>,
    owners: ManagedFields,
    live: &Map<String, Value>,
) -> Result<ManagedFields, UpdateError> {
    let mut reconciled = ManagedFields::new();
    for (manager, mut owned) in owners.entries {
        let converted = writer.converted(&owned.api_version, live);
        let Some((of, _)) = converted.map_err(UpdateError::Version)? else { continue };
        if let Some(fields) = reconcile(of, &owned.fields) {
            owned.fields = fields;
        }
        reconciled.entries.insert(manager, owned);
    }
    Ok(reconciled)
}

// === impl Comparisons ===

impl<'a> Comparisons<'a> {
    /// Returns the comparison in a version; `None` if the server does not have the version.
    fn at(&mut self, version: &str) -> Result<Option<&Difference>, UpdateError> {
        if !self.by_version.contains_key(version) {
            let old = self.converted("old", self.old, version)?;
            let new = self.converted("new", self.new, version)?;
            let compared = match (old, new) {
                (Some((_, old)), Some((of, new))) => {
                    let compared = compare(of, &old, &new)?;
                    Some(Difference::of(compared, self.reset()))
                }
                _ => None,
            };
            self.by_version.insert(version.to_owned(), compared);
        }
        Ok(self.by_version.get(version).and_then(Option::as_ref))
    }

    /// Returns the fields that the write resets in versions of other managers. As upstream, a write
    /// of a whole custom object has none there: it takes what it states from their managers.
    fn reset(&self) -> &'a FieldSet {
        static NONE: FieldSet = FieldSet::new();
        let is_whole = self.writer.subresource.is_empty();
        if is_whole && !self.writer.schema.is_built_in() { &NONE } else { self.writer.reset }
    }

    /// Returns the old or the new state in a version, with its type there.
    fn converted<'o>(
        &self,
        state: &str,
        object: &'o Map<String, Value>,
        version: &str,
    ) -> Result<Option<Converted<'a, 'o>>, UpdateError> {
        self.writer.converted(version, object).map_err(|reason| {
            UpdateError::Version(format!("failed to convert {state} object: {reason}"))
        })
    }
}

// === impl Difference ===

impl Difference {
    /// Returns the changes of a write, without the fields that it resets.
    pub(super) fn of(compared: Comparison, reset: &FieldSet) -> Self {
        let Comparison { added, modified: mut written, mut removed } = compared;
        written.extend(added);
        written.subtract_recursively(reset);
        removed.subtract_recursively(reset);
        Self { written, removed }
    }
}
