//! The files of a projected volume.

use serde_json::json;

use crate::status::Cause;

/// The paths of a projected volume's files. Each belongs to one source.
pub(super) struct ProjectedFiles<'a> {
    /// The place of the volume's source.
    pub(super) at: &'a str,
    known: Vec<&'a str>,
}

// === impl ProjectedFiles ===

impl<'a> ProjectedFiles<'a> {
    /// Returns no files yet, of the volume whose source stands at this place.
    pub(super) fn of_volume(at: &'a str) -> Self {
        Self { at, known: Vec::new() }
    }

    /// Adds a path, which a cause shows as `shown`.
    pub(super) fn claim(&mut self, path: &'a str, shown: &str, causes: &mut Vec<Cause>) {
        if self.known.contains(&path) {
            causes.push(Cause::invalid(self.at, &json!(shown), "conflicting duplicate paths"));
        } else {
            self.known.push(path);
        }
    }
}
