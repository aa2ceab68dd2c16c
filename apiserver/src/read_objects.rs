//! The objects of one kind, and what they were read as. An object is read again only if it has
//! changed.

use std::collections::HashMap;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::fields::Fields;
use crate::object::Stored;
use crate::storage::Objects;

/// The objects of one kind, and what they were read as.
#[derive(Debug)]
pub(crate) struct ReadObjects<T> {
    entries: Vec<(Arc<Stored>, Arc<T>)>,
}

/// Reads an object of the store. One that no validation has passed, as from a state file of other
/// hands, is read as the default.
pub(crate) fn decoded<T: DeserializeOwned + Default>(object: &Fields) -> T {
    serde_json::from_value(Value::Object(object.clone())).unwrap_or_default()
}

// === impl ReadObjects ===

impl<T> Default for ReadObjects<T> {
    fn default() -> Self {
        Self { entries: Vec::new() }
    }
}

impl<T> ReadObjects<T> {
    /// Returns true if these are the objects that were read.
    pub(crate) fn is(&self, objects: &Objects) -> bool {
        self.entries.len() == objects.len()
            && self
                .entries
                .iter()
                .zip(objects)
                .all(|((known, _), (_, now))| Arc::ptr_eq(known, now))
    }

    /// Reads the objects that have changed.
    pub(crate) fn follow(&mut self, objects: &Objects, read: impl Fn(&Fields) -> T) {
        let known = std::mem::take(&mut self.entries).into_iter();
        let mut known: HashMap<*const Stored, (Arc<Stored>, Arc<T>)> =
            known.map(|entry| (Arc::as_ptr(&entry.0), entry)).collect();
        let entry = |(_, stored): (&Arc<str>, &Arc<Stored>)| {
            let entry = known.remove(&Arc::as_ptr(stored));
            entry.unwrap_or_else(|| (Arc::clone(stored), Arc::new(read(&stored.fields()))))
        };
        self.entries = objects.iter().map(entry).collect();
    }

    /// Returns each object with what it was read as.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (&Stored, &Arc<T>)> {
        self.entries.iter().map(|(stored, value)| (&**stored, value))
    }

    pub(crate) fn all(&self) -> Vec<Arc<T>> {
        self.entries.iter().map(|(_, value)| Arc::clone(value)).collect()
    }
}
