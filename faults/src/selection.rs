//! The part of a selector that requests and watch events share: the object, and the position.

use std::fmt;

use serde_json::Value;

use crate::object_match::ObjectMatch;

/// Restrictions on an object, and the hits among what they select.
#[derive(Debug, Clone)]
pub(crate) struct Selection {
    pub(crate) namespace: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) object: ObjectMatch,
    /// Position of the first hit, counted from 1.
    pub(crate) first: u64,
    /// Number of hits; `None` means the default of the fault.
    pub(crate) times: Option<u64>,
}

// === impl Selection ===

impl Selection {
    pub(crate) fn matches(
        &self,
        namespace: Option<&str>,
        name: Option<&str>,
        object: Option<&Value>,
    ) -> bool {
        is(self.namespace.as_deref(), namespace)
            && is(self.name.as_deref(), name)
            && self.object.holds(object)
    }

    /// Returns the number of matches before the first hit, and the number of hits.
    pub(crate) fn hits(&self, default: u64) -> (u64, u64) {
        (self.first.saturating_sub(1), self.times.unwrap_or(default))
    }

    /// Writes `, from number 3`, or nothing.
    pub(crate) fn write_position(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.first > 1 { write!(f, ", from number {}", self.first) } else { Ok(()) }
    }
}

impl Default for Selection {
    fn default() -> Self {
        let object = ObjectMatch::default();
        Self { namespace: None, name: None, object, first: 1, times: None }
    }
}

/// Returns true if a value is the wanted one; any value is if none is wanted.
pub(crate) fn is(wanted: Option<&str>, got: Option<&str>) -> bool {
    wanted.is_none_or(|wanted| got == Some(wanted))
}
