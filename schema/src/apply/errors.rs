//! The errors of values that do not fit their type.

use std::fmt;

/// A value that does not fit its type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypeError {
    /// The path to the value, such as `.spec.replicas`; empty for the object.
    pub path: String,
    /// The reason.
    pub message: String,
}

/// All values of an object that do not fit their types.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TypeErrors(Vec<TypeError>);

// === impl TypeErrors ===

impl TypeErrors {
    pub(super) const fn new() -> Self {
        Self(Vec::new())
    }

    /// Creates the error of a complete object.
    pub(crate) fn of(message: impl Into<String>) -> Self {
        let mut errors = Self::new();
        errors.push(message);
        errors
    }

    /// Adds an error at the current value.
    pub(super) fn push(&mut self, message: impl Into<String>) {
        self.0.push(TypeError { path: String::new(), message: message.into() });
    }

    /// Adds the errors of a part, with the step to it.
    pub(super) fn extend(&mut self, step: &impl fmt::Display, errors: Self) {
        if errors.is_empty() {
            // Most parts fit their types.
            return;
        }
        self.0.extend(errors.0.into_iter().map(|error| TypeError {
            path: format!("{step}{}", error.path),
            message: error.message,
        }));
    }

    /// Returns the errors, in the order in which they were found.
    pub fn iter(&self) -> impl Iterator<Item = &TypeError> {
        self.0.iter()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the errors as an error, if there are any.
    pub(super) fn into_result<T>(self, value: T) -> Result<T, Self> {
        if self.0.is_empty() { Ok(value) } else { Err(self) }
    }
}

impl fmt::Display for TypeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            return f.write_str(&self.message);
        }
        write!(f, "{}: {}", self.path, self.message)
    }
}

impl fmt::Display for TypeErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [only] = &self.0[..] {
            return only.fmt(f);
        }
        f.write_str("errors:")?;
        self.0.iter().try_for_each(|error| write!(f, "\n  {error}"))
    }
}

impl std::error::Error for TypeErrors {}
