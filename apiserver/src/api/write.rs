//! A write of an object, as the admission that may refuse it sees it.

use crate::fields::Fields;

/// A write of an object.
#[derive(Clone, Copy)]
pub(super) struct Write<'a> {
    pub(super) new: &'a Fields,
    /// The stored object; `None` if the object is new.
    pub(super) old: Option<&'a Fields>,
    /// The name of the object in messages.
    pub(super) name: &'a str,
}
