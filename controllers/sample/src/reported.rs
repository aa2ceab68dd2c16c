//! [`Reported`]: what has been reported, so that nothing is reported twice.

use std::collections::HashMap;

use homeostat::{Object, ObjectKey};
use parking_lot::Mutex;

use crate::error::SyncError;
use crate::foo::Foo;

/// The terminal errors that have been reported, one per Foo.
///
/// A resync and an event of the Deployment start a pass, too. It repeats no report, and no request
/// that the server has refused. A restart reports each error again.
#[derive(Debug, Default)]
pub(crate) struct Reported {
    by_foo: Mutex<HashMap<ObjectKey<Foo>, Report>>,
}

#[derive(Debug, PartialEq, Eq)]
struct Report {
    /// The `resourceVersion` of the Foo.
    version: Option<String>,
    text: String,
    is_invalid: bool,
}

// === impl Reported ===

impl Reported {
    /// Records the report of `error`. Returns false if this version of `foo` has it already.
    pub(crate) fn is_new(&self, foo: &Foo, error: &SyncError) -> bool {
        let report = Report {
            version: foo.metadata.resource_version.clone(),
            text: error.to_string(),
            is_invalid: matches!(error, SyncError::Invalid(_)),
        };
        let mut by_foo = self.by_foo.lock();
        let is_new = by_foo.get(&foo.key()) != Some(&report);
        by_foo.insert(foo.key(), report);
        is_new
    }

    /// Returns true if the server has refused what this version of `foo` asks for.
    pub(crate) fn is_refused(&self, foo: &Foo) -> bool {
        let by_foo = self.by_foo.lock();
        by_foo.get(&foo.key()).is_some_and(|report| {
            report.is_invalid && report.version == foo.metadata.resource_version
        })
    }

    /// Forgets the report of a Foo that is settled or gone.
    pub(crate) fn forget(&self, key: &ObjectKey<Foo>) {
        self.by_foo.lock().remove(key);
    }
}
