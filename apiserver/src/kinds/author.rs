//! The author of a write, for the rules of a kind that depend on who writes.

use std::collections::BTreeMap;

use crate::access::{Attributes, User};
use crate::fields::Fields;

/// A write to the status of an object.
#[derive(Clone, Copy)]
pub(crate) struct StatusWrite<'a> {
    pub(crate) old: &'a Fields,
    pub(crate) new: &'a Fields,
    pub(crate) author: &'a dyn Author,
}

/// The author of a write, with the permissions that the server knows.
pub(crate) trait Author {
    /// Returns the user of the request.
    fn user(&self) -> &User;

    /// Returns the verb of the request: `update` or `patch`.
    fn verb(&self) -> &'static str;

    /// Returns the labels of the namespace that the request names.
    fn namespace_labels(&self) -> BTreeMap<String, String>;

    /// Returns the reason for which the author may not do this; `None` if the author may.
    fn refusal(&self, request: &Attributes) -> Option<String>;
}
