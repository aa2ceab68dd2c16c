//! The objects of a request, as admission that changes them reads them.

use homeostat_schema::Schema;
use serde_json::Value;

use super::attributes::Matched;

/// Reads and converts the objects of a request.
pub(crate) trait Codec {
    /// Returns an object that admission has changed, as the real server decodes and completes it.
    ///
    /// # Errors
    ///
    /// Returns the reason why it is no object of its kind.
    fn decoded(&self, changed: Value, of: &Matched, source: Source) -> Result<Value, String>;

    /// Returns an object of another version in the version of the request.
    ///
    /// # Errors
    ///
    /// Returns the reason why a policy cannot change the other version.
    fn restored(&self, object: Value, from: &Matched, source: Source) -> Result<Value, String>;

    /// Returns the schema of an object; `None` for one that is no resource, such as a scale.
    fn schema(&self, of: &Matched) -> Option<Schema>;
}

/// The origin of a changed object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// The patch of a webhook: unknown members are dropped.
    Webhook,
    /// The patch of a policy: unknown members of a built-in kind are errors.
    Patch,
    /// The configuration of a policy.
    Configuration,
}
