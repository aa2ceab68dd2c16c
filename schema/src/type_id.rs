//! [`TypeId`]: the place of a type in a table.

/// The index of a type in its table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TypeId(usize);

// === impl TypeId ===

impl TypeId {
    /// Creates the index of the type at a position of its table.
    pub(crate) fn new(index: usize) -> Self {
        Self(index)
    }

    /// Returns the position of the type in the order in which the types were declared.
    pub fn index(self) -> usize {
        self.0
    }
}
