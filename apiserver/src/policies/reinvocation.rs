//! The second pass of the admission that changes objects.

use std::collections::HashSet;

use serde_json::Value;

/// The webhooks, or the policies, that are called again after a change of the object.
#[derive(Debug, Default)]
pub(crate) struct Reinvocation {
    /// Those that were called, and would be called again after a change.
    called: HashSet<String>,
    /// Those that are to be called again.
    due: HashSet<String>,
    /// True if one of them has changed the object.
    is_changed: bool,
    /// The object after the last pass.
    output: Option<Value>,
}

// === impl Reinvocation ===

impl Reinvocation {
    /// Starts a pass, and returns its number. All that were called are due in the second pass if
    /// other admission has changed the object since the first.
    pub(crate) fn start(&mut self, object: &Value) -> u8 {
        let Some(output) = &self.output else { return 0 };
        if output != object {
            self.require();
        }
        1
    }

    pub(crate) fn finish(&mut self, object: &Value) {
        self.output = Some(object.clone());
    }

    pub(crate) fn is_due(&self, id: &str) -> bool {
        self.due.contains(id)
    }

    /// Counts a change of the object.
    pub(crate) fn change(&mut self) {
        self.is_changed = true;
        self.require();
    }

    pub(crate) fn is_changed(&self) -> bool {
        self.is_changed
    }

    /// Notes one that is to be called again after a later change.
    pub(crate) fn note_call(&mut self, id: String) {
        self.called.insert(id);
    }

    /// Marks all that were called as due again.
    fn require(&mut self) {
        self.due.extend(self.called.drain());
    }
}
