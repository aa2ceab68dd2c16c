//! A table of named types, which may refer to each other.

use std::collections::HashMap;
use std::sync::Arc;

use crate::node::{Node, Shape};
use crate::type_id::TypeId;

/// A table of named types. A type may refer to types that are added later, and to itself.
///
/// # Examples
///
/// A list of itself, as `JSONSchemaProps` has:
///
/// ```
/// use homeostat_schema::{Field, List, ListType, Object, Scalar, Types};
///
/// let mut types = Types::new();
/// let tree = types.declare("example.Tree");
/// types.define(
///     tree,
///     Object::new([
///         Field::new("label", Scalar::String),
///         Field::new("children", List::new(tree, ListType::Atomic)),
///     ]),
/// );
/// assert_eq!(types.name(tree), "example.Tree");
/// ```
#[derive(Debug, Clone, Default)]
pub struct Types {
    list: Vec<NamedType>,
    by_name: HashMap<Arc<str>, TypeId>,
}

/// A type of the table.
#[derive(Debug, Clone)]
struct NamedType {
    name: Arc<str>,
    node: Node,
}

// === impl Types ===

impl Types {
    /// Creates an empty table.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the index of `name`; adds the type as [`Shape::Any`] if it is new.
    pub fn declare(&mut self, name: &str) -> TypeId {
        if let Some(id) = self.by_name.get(name) {
            return *id;
        }
        let id = TypeId::new(self.list.len());
        let name: Arc<str> = name.into();
        self.list.push(NamedType { name: Arc::clone(&name), node: Shape::Any.into() });
        self.by_name.insert(name, id);
        id
    }

    /// Sets the type at `id`.
    ///
    /// # Panics
    ///
    /// Panics when `id` belongs to another table and is not in this one.
    pub fn define(&mut self, id: TypeId, node: impl Into<Node>) {
        self.list[id.index()].node = node.into();
    }

    /// Returns the index of the type called `name`, such as `io.k8s.api.core.v1.Container`.
    pub fn find(&self, name: &str) -> Option<TypeId> {
        self.by_name.get(name).copied()
    }

    /// Returns the name of a type.
    ///
    /// # Panics
    ///
    /// Panics when `id` belongs to another table and is not in this one.
    pub fn name(&self, id: TypeId) -> &str {
        &self.list[id.index()].name
    }

    /// Returns the type at `id`.
    ///
    /// # Panics
    ///
    /// Panics when `id` belongs to another table and is not in this one.
    pub fn get(&self, id: TypeId) -> &Node {
        &self.list[id.index()].node
    }

    /// Returns the indices of all types, in the order in which they were declared.
    pub fn ids(&self) -> impl Iterator<Item = TypeId> + use<> {
        (0..self.list.len()).map(TypeId::new)
    }
}
