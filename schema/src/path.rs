//! The path of a value inside an object, as messages show it.

use std::fmt;
use std::fmt::Write;

/// A path such as `spec.ports[0].name`. It grows and shrinks while a value is walked.
#[derive(Debug, Clone, Default)]
pub(crate) struct Path(String);

// === impl Path ===

impl Path {
    /// Steps into a field; returns the length that [`leave`](Self::leave) restores.
    pub(crate) fn enter(&mut self, name: &str) -> usize {
        let before = self.0.len();
        if before > 0 {
            self.0.push('.');
        }
        self.0.push_str(name);
        before
    }

    /// Steps into an item; returns the length that [`leave`](Self::leave) restores.
    pub(crate) fn enter_item(&mut self, at: usize) -> usize {
        let before = self.0.len();
        let _ = write!(self.0, "[{at}]");
        before
    }

    /// Steps into a key of a map, as `field.Path::Key` shows it.
    pub(crate) fn enter_key(&mut self, name: &str) -> usize {
        let before = self.0.len();
        let _ = write!(self.0, "[{name}]");
        before
    }

    /// Steps back to a length that a step returned.
    pub(crate) fn leave(&mut self, before: usize) {
        self.0.truncate(before);
    }

    /// Returns the path; `<nil>` for the object as a whole.
    pub(crate) fn or_nil(&self) -> &str {
        if self.0.is_empty() { "<nil>" } else { &self.0 }
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
