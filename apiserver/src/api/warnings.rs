//! The warnings about a write that is carried out all the same.

use crate::admission::{finalizers, metadata};
use crate::fields::Fields;
use crate::kinds::Served;

/// Returns the warnings for the client that writes an object.
pub(super) fn warnings_of(served: &Served, new: &Fields, old: Option<&Fields>) -> Vec<String> {
    let mut warnings = if old.is_none() { (served.home.warn)(new, None) } else { Vec::new() };
    if served.kind.custom {
        let known = old.map(finalizers).unwrap_or_default();
        let mut added = finalizers(new);
        added.retain(|finalizer| !known.contains(finalizer));
        added.sort_unstable();
        warnings.extend(added.into_iter().filter_map(metadata::finalizer_warning));
    }
    warnings
}
