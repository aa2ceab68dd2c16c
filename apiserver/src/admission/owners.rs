//! Field ownership: what a write does to `metadata.managedFields`.
//!
//! The objects here have packed owners: see [`Stored::packed_fields`](crate::object::Stored).

use homeostat_schema::ManagedFields;
use serde_json::{Value, json};

use super::field_manager::{FieldManager, decode, set, stored};
use super::target::Target;
use super::{meta_text, metadata_mut};
use crate::fields::{Fields, set_or_remove};
use crate::json_text::JsonText;
use crate::kinds::Kind;
use crate::kinds::managers::managers_of;

/// The owners after a write.
#[derive(Debug, Clone)]
pub(crate) enum Ownership {
    /// The writer owns what it changes.
    Tracked(FieldManager),
    /// The owners that an apply led to.
    Known(ManagedFields),
    /// The owners after admission by webhooks or policies.
    Admitted(Admitted),
    /// The server changes the object itself: the owners stay.
    Kept,
}

/// The owners that webhooks or policies left.
#[derive(Debug, Clone)]
pub(crate) struct Admitted {
    pub(crate) owners: ManagedFields,
    /// The owners as they left them, in their order; null if those before admission count.
    pub(crate) given: Value,
    /// The time of the write.
    pub(crate) now: String,
}

// === impl Ownership ===

impl Ownership {
    /// Returns the time of the write, if a client makes it.
    pub(super) fn now(&self) -> Option<&str> {
        match self {
            Self::Tracked(manager) => Some(&manager.now),
            Self::Admitted(admitted) => Some(&admitted.now),
            Self::Known(_) | Self::Kept => None,
        }
    }

    /// Returns true if an apply led to the owners.
    pub(super) fn is_known(&self) -> bool {
        matches!(self, Self::Known(_))
    }

    /// Returns true if the client writes the status of the object.
    pub(super) fn is_of_status(&self) -> bool {
        matches!(self, Self::Tracked(manager) if manager.target == Target::Status)
    }

    /// Returns the owners of `object` that are checked: those that a webhook or a policy left, or
    /// that the client sent.
    pub(super) fn given<'a>(&'a self, object: &'a Fields, is_sent: bool) -> Option<&'a Value> {
        match self {
            Self::Admitted(admitted) => Some(&admitted.given),
            _ if is_sent => managers_of(object),
            _ => None,
        }
    }

    /// Sets the owners of a new object; `requested` is what the client sent as `managedFields`.
    pub(crate) fn of_new(&self, kind: &Kind, object: &mut Fields, requested: Option<&Value>) {
        let owners = match self {
            Self::Tracked(manager) if kind.stored_as.is_some() => {
                manager.create(kind, &shown_as(kind, object), requested).to_json()
            }
            Self::Tracked(manager) => manager.create(kind, object, requested).to_json(),
            Self::Known(owners) | Self::Admitted(Admitted { owners, .. }) => owners.to_json(),
            Self::Kept => return,
        };
        set(object, owners);
    }

    /// Sets the owners of an object that replaces `old`. Both are in the form in which they are
    /// stored; the client owns the members of the kind that it used.
    pub(crate) fn of_changed(
        &self,
        kind: &Kind,
        old: &Fields,
        new: &mut Fields,
        requested: Option<&Value>,
    ) {
        if kind.stored_as.is_none() {
            return self.of_changed_as(kind, old, new, requested);
        }
        let mut shown = shown_as(kind, new);
        self.of_changed_as(kind, &shown_as(kind, old), &mut shown, requested);
        move_owners(&mut shown, new);
    }

    fn of_changed_as(
        &self,
        kind: &Kind,
        old: &Fields,
        new: &mut Fields,
        requested: Option<&Value>,
    ) {
        let before = stored(old);
        let is_same = is_same_content(old, new);
        let is_stored = |sent| before.is_some_and(|before| JsonText::of(sent) == before.as_bytes());
        let keeps = requested.is_none_or(is_stored);
        if let Self::Tracked(manager) = self
            && keeps
            && !is_same
        {
            if let Some(before) = before {
                manager.update_kept(kind, before, old, new);
            }
            return;
        }
        // The second entry of a manager is dropped even if the write changes nothing.
        let changes_nothing = is_same && !before.is_some_and(ManagedFields::has_second);
        let owners = match self {
            Self::Tracked(_) if changes_nothing && keeps => None,
            Self::Tracked(manager) => manager.update(kind, old, new, requested),
            Self::Known(owners) | Self::Admitted(Admitted { owners, .. }) => Some(owners.clone()),
            Self::Kept => None,
        };
        let Some(owners) = owners else { return set(new, before.map(str::to_owned)) };
        // A write that changes only times is no write.
        let is_noop = changes_nothing && decode(before).is_same_except_times(&owners);
        set(new, if is_noop { before.map(str::to_owned) } else { owners.to_json() });
    }
}

/// Keeps the times of the owners if the write changes nothing else.
pub(super) fn keep_times(old: &Fields, new: &mut Fields) {
    let before = stored(old);
    if is_same_content(old, new) && decode(before).is_same_except_times(&decode(stored(new))) {
        set(new, before.map(str::to_owned));
    }
}

/// Removes and returns the owners that a client sent.
pub(crate) fn take_requested(object: &mut Fields) -> Option<Value> {
    metadata_mut(object).remove("managedFields").filter(|sent| !sent.is_null())
}

/// Returns a stored object as the kind shows it.
fn shown_as(kind: &Kind, stored: &Fields) -> Fields {
    let mut shown = stored.clone();
    kind.rename_from_storage(&mut shown);
    shown.insert("apiVersion".to_owned(), json!(kind.api_version()));
    shown
}

fn move_owners(from: &mut Fields, to: &mut Fields) {
    let owners = metadata_mut(from).remove("managedFields");
    set_or_remove(metadata_mut(to), "managedFields", owners);
}

/// Returns true if both objects are equal, apart from their owners. The last members differ most
/// often, as in [`are_equal`](crate::fields::are_equal).
fn is_same_content(old: &Fields, new: &Fields) -> bool {
    let is_same = |name: &str, old: &Value, new: &Value| match (name, old, new) {
        ("metadata", Value::Object(old), Value::Object(new)) => {
            without_owners(old).eq(without_owners(new))
        }
        _ => old == new,
    };
    let mut members = old.iter().rev().zip(new.iter().rev());
    old.len() == new.len()
        && members.all(|((name, old), (other, new))| name == other && is_same(name, old, new))
}

fn without_owners(metadata: &Fields) -> impl Iterator<Item = (&String, &Value)> {
    metadata.iter().filter(|(name, _)| *name != "managedFields")
}

/// Returns the group, version and kind as upstream's messages show them.
pub(crate) fn type_text(api_version: &str, kind: &str) -> String {
    let slash = if api_version.contains('/') { "" } else { "/" };
    format!("{slash}{api_version}, Kind={kind}")
}

/// Returns the object as upstream's messages show it: its namespace, name and type.
pub(crate) fn object_text(object: &Fields) -> String {
    let text = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default();
    let of = type_text(text("apiVersion"), text("kind"));
    format!("{}/{}; {of}", meta_text(object, "namespace"), meta_text(object, "name"))
}
