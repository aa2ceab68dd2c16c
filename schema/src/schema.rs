//! The type of an object together with the types that it refers to.

use std::ptr;
use std::sync::Arc;

use serde_json::Value;

use crate::node::{Field, List, ListType, Map, Node, Object, Shape};
use crate::type_id::TypeId;
use crate::types::Types;

/// The type of an object together with the types that it refers to. A clone shares both.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
///
/// use homeostat_schema::{Field, List, ListType, Object, Scalar, Schema, Types};
///
/// let mut types = Types::new();
/// let port = types.declare("example.Port");
/// types.define(port, Object::new([Field::new("number", Scalar::Int32)]));
/// let ports = List::new(port, ListType::map(["number"]));
/// let schema = Schema::new(Arc::new(types), Object::new([Field::new("ports", ports)]));
///
/// let ports = schema.root().field("ports").unwrap();
/// assert_eq!(ports.list_type(), Some(&ListType::map(["number"])));
/// assert!(ports.items().unwrap().field("number").is_some());
/// ```
#[derive(Debug, Clone)]
pub struct Schema {
    types: Arc<Types>,
    root: Arc<Node>,
}

/// A borrowed node, with the table that resolves the names in it.
#[derive(Debug, Clone, Copy)]
pub struct NodeRef<'a> {
    types: &'a Types,
    node: &'a Node,
}

// === impl Schema ===

impl Schema {
    /// Creates a schema whose names are those of `types`.
    pub fn new(types: Arc<Types>, root: impl Into<Node>) -> Self {
        Self { types, root: Arc::new(root.into()) }
    }

    /// Creates the schema of a type of the table.
    pub fn of_type(types: Arc<Types>, id: TypeId) -> Self {
        Self::new(types, id)
    }

    /// Creates a schema without fields: every object fits and stays as it is.
    pub fn any() -> Self {
        Self::new(Arc::default(), Shape::Any)
    }

    /// Returns the type of the object.
    pub fn root(&self) -> NodeRef<'_> {
        NodeRef { types: &self.types, node: &self.root }
    }

    /// Returns the table of named types.
    pub fn types(&self) -> &Arc<Types> {
        &self.types
    }

    /// Returns true if both are the same schema in memory.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.types, &other.types) && Arc::ptr_eq(&self.root, &other.root)
    }
}

// === impl NodeRef ===

impl<'a> NodeRef<'a> {
    /// Joins a node and the table that resolves its names.
    pub fn new(types: &'a Types, node: &'a Node) -> Self {
        Self { types, node }
    }

    /// Returns the node as it was declared: its default, description and constraints, and a shape
    /// that may be a name.
    pub fn node(self) -> &'a Node {
        self.node
    }

    /// Returns the shape behind the names. Never [`Shape::Named`], except for a name that refers
    /// to itself over 16 steps.
    pub fn shape(self) -> &'a Shape {
        let mut shape = &self.node.shape;
        for _ in 0..16 {
            let Shape::Named(id) = shape else { break };
            shape = &self.types.get(*id).shape;
        }
        shape
    }

    /// Returns the name of the type, if it is one of the table.
    pub fn type_name(self) -> Option<&'a str> {
        match self.node.shape {
            Shape::Named(id) => Some(self.types.name(id)),
            _ => None,
        }
    }

    /// Returns the object, if the value is one.
    pub fn object(self) -> Option<&'a Object> {
        match self.shape() {
            Shape::Object(object) => Some(object),
            _ => None,
        }
    }

    /// Returns the list, if the value is one.
    pub fn list(self) -> Option<&'a List> {
        match self.shape() {
            Shape::List(list) => Some(list),
            _ => None,
        }
    }

    /// Returns the map, if the value is one.
    pub fn map(self) -> Option<&'a Map> {
        match self.shape() {
            Shape::Map(map) => Some(map),
            _ => None,
        }
    }

    /// Returns the type of a field of an object, or of any value of a map.
    pub fn field(self, name: &str) -> Option<Self> {
        match self.shape() {
            Shape::Object(object) => object.field(name).map(|field| self.at(&field.node)),
            Shape::Map(map) => Some(self.at(&map.values)),
            _ => None,
        }
    }

    /// Returns the fields of an object, sorted by name.
    pub fn fields(self) -> impl Iterator<Item = (&'a Field, Self)> {
        let fields = self.object().into_iter().flat_map(Object::fields);
        fields.map(move |field| (field, self.at(&field.node)))
    }

    /// Returns the type of the items of a list.
    pub fn items(self) -> Option<Self> {
        self.list().map(|list| self.at(&list.items))
    }

    /// Returns the type of the values of a map.
    pub fn values(self) -> Option<Self> {
        self.map().map(|map| self.at(&map.values))
    }

    /// Returns the rule of a list; `None` if the value is no list.
    pub fn list_type(self) -> Option<&'a ListType> {
        self.list().map(|list| &list.list_type)
    }

    /// Returns true if server-side apply treats the value as one: scalars, and lists, maps and
    /// objects that are declared atomic.
    pub fn is_atomic(self) -> bool {
        match self.shape() {
            _ if self.node.atomic => true,
            _ if self.node.granular => false,
            Shape::Any => false,
            Shape::Scalar(_) | Shape::Named(_) => true,
            Shape::List(list) => list.list_type == ListType::Atomic,
            Shape::Map(map) => map.atomic,
            Shape::Object(object) => object.atomic,
        }
    }

    /// Returns the value of an absent field; the default of a named type counts if the field
    /// states none.
    pub fn default(self) -> Option<&'a Value> {
        let named = match self.node.shape {
            Shape::Named(id) => self.types.get(id).default.as_ref(),
            _ => None,
        };
        self.node.default.as_ref().or(named)
    }

    /// Returns true if both are the same node in memory.
    pub fn is_same(self, other: Self) -> bool {
        ptr::eq(self.types, other.types) && ptr::eq(self.node, other.node)
    }

    /// Returns the position of a node whose names are those of this table.
    pub(crate) fn beside(self, node: &'a Node) -> Self {
        self.at(node)
    }

    /// Returns the position of a node inside this one.
    pub(crate) fn at(self, node: &'a Node) -> Self {
        Self { types: self.types, node }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::node::Scalar;

    #[test]
    fn type_that_contains_itself_is_resolved_at_any_depth() {
        let mut types = Types::new();
        let tree = types.declare("example.Tree");
        types.define(
            tree,
            Object::new([
                Field::new("label", Node::from(Scalar::String).with_default(json!("leaf"))),
                Field::new("children", List::new(tree, ListType::Set)),
            ]),
        );
        let schema = Schema::of_type(Arc::new(types), tree);
        let mut at = schema.root();
        for _ in 0..100 {
            at = at.field("children").and_then(NodeRef::items).expect("a tree has children");
        }
        assert_eq!(at.type_name(), Some("example.Tree"));
        let label = at.field("label").expect("a tree has a label");
        assert_eq!(label.default(), Some(&json!("leaf")));
        assert!(label.is_atomic());
    }

    #[test]
    fn name_that_refers_to_itself_does_not_loop() {
        let mut types = Types::new();
        let id = types.declare("example.Loop");
        types.define(id, id);
        let schema = Schema::of_type(Arc::new(types), id);
        assert_eq!(schema.root().shape(), &Shape::Named(id));
        assert!(schema.root().is_atomic());
    }

    #[test]
    fn later_of_two_fields_with_one_name_stays() {
        let object = Object::new([
            Field::new("a", Scalar::String),
            Field::new("b", Scalar::String),
            Field::new("a", Scalar::Int32),
        ]);
        assert_eq!(object.fields().len(), 2);
        let field = object.field("a").expect("a field `a`");
        assert_eq!(field.node.shape, Shape::Scalar(Scalar::Int32));
    }
}
