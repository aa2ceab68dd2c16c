//! The type that a body is decoded as.

use crate::status::Failure;
use crate::types::Expected;

/// The type that a body is decoded as.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted<'a> {
    /// The kind's name in messages.
    pub(crate) kind: &'a str,
    pub(crate) api_version: &'a str,
    /// Older versions of the kind, with the same fields.
    pub(crate) older: &'a [&'a str],
    pub(crate) expected: Expected,
}

// === impl Wanted ===

impl Wanted<'_> {
    pub(super) fn has_version(&self, version: &str) -> bool {
        version == self.api_version || self.older.contains(&version)
    }

    /// Returns the error for a body that is no object of the type.
    pub(super) fn invalid(&self, detail: &str) -> Failure {
        self.invalid_as(self.kind, self.api_version, detail)
    }

    /// Returns the error for a body that states the kind `said`, in `api_version`.
    pub(super) fn invalid_as(&self, said: &str, api_version: &str, detail: &str) -> Failure {
        let version = api_version.rsplit('/').next().unwrap_or("");
        let kind = self.kind;
        Failure::bad_request(format!(
            "{said} in version \"{version}\" cannot be handled as a {kind}: {detail}"
        ))
    }
}
