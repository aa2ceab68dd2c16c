//! The identity of an object.
//!
//! A name says which object a person means; a uid says which object the server stored. Code that
//! compares names alone confuses an object with its successor of the same name.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

/// The identity that the API server gave to an object (apimachinery's `types.UID`).
///
/// An object that is deleted and created again under its old name has another uid. A clone
/// allocates nothing.
///
/// Use it when a deleted and re-created object must count as another object: expectations, owner
/// references, preconditions of a delete. Use [`ObjectKey`](crate::ObjectKey) instead to look an
/// object up. Two uids are equal if their texts are equal; the text is not checked to be a UUID,
/// because the API server does not promise one.
///
/// # Examples
///
/// ```
/// use homeostat_core::Uid;
///
/// let uid = Uid::from("5f1b6a5e-7c1c-4f5e-9d6e-0a4c2f1f0e1d");
/// assert_eq!(uid.as_str().len(), 36);
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uid(Arc<str>);

// === impl Uid ===

impl Uid {
    /// Returns the uid as text. It is empty for an object that no server has stored.
    ///
    /// # Examples
    ///
    /// ```
    /// use homeostat_core::Uid;
    ///
    /// // A set of uids can be searched by text: a look-up allocates nothing.
    /// let known = std::collections::HashSet::from([Uid::from("5f1b6a5e")]);
    /// assert!(known.contains("5f1b6a5e"));
    /// ```
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Uid {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl From<String> for Uid {
    fn from(text: String) -> Self {
        Self(text.into())
    }
}

impl Borrow<str> for Uid {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}
