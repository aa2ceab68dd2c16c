//! [`FieldSet`]: a set of paths into an object, which is what one field manager owns.

mod element;
mod fields_v1;
mod order;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;

use serde_json::Value;

pub use self::element::{PathElement, PathElementError};
pub use self::fields_v1::FieldsV1Error;
pub(crate) use self::fields_v1::write_quoted;
pub(crate) use self::order::equal_objects;
pub use self::order::{compare_values, equal_values};

/// A set of paths into an object: upstream's `fieldpath.Set`.
///
/// A path is a sequence of [`PathElement`]s. The set is a tree: a path that is a member does not
/// make its parents members, nor its children.
///
/// # Examples
///
/// ```
/// use homeostat_schema::{FieldSet, PathElement};
///
/// let mut set = FieldSet::new();
/// set.insert(&[PathElement::field("spec"), PathElement::field("replicas")]);
/// assert_eq!(set.to_fields_v1().to_string(), r#"{"f:spec":{"f:replicas":{}}}"#);
/// assert_eq!(set.to_string(), ".spec.replicas");
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldSet {
    /// Sorted as `FieldsV1` lists them. No node is empty: each is a member or has children.
    nodes: BTreeMap<PathElement, Node>,
}

/// A path element of a set with what follows it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Node {
    /// True if the path that ends here is a member of the set.
    member: bool,
    children: FieldSet,
}

/// The set without members.
pub(crate) static NO_FIELDS: FieldSet = FieldSet::new();

/// A sequence of path elements, from the root of the object.
pub type Path = Vec<PathElement>;

/// Shows a path as upstream's messages do: `.spec.containers[name="app"].image`.
pub(crate) struct ShownPath<'a>(pub(crate) &'a [PathElement]);

// === impl FieldSet ===

impl FieldSet {
    /// Returns an empty set.
    pub const fn new() -> Self {
        Self { nodes: BTreeMap::new() }
    }

    /// Returns true if the set has no member.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Adds a path. The empty path is ignored: the set has no member for the complete object.
    pub fn insert(&mut self, path: &[PathElement]) {
        let [first, rest @ ..] = path else { return };
        let node = self.nodes.entry(first.clone()).or_default();
        if rest.is_empty() {
            node.member = true;
        } else {
            node.children.insert(rest);
        }
    }

    /// Adds the path of one element.
    pub(crate) fn insert_element(&mut self, element: PathElement) {
        self.nodes.entry(element).or_default().member = true;
    }

    /// Adds `children` below `element`, and the path of `element` itself if `member`.
    pub(crate) fn graft(&mut self, element: PathElement, children: Self, member: bool) {
        if children.is_empty() && !member {
            return;
        }
        match self.nodes.entry(element) {
            Entry::Vacant(entry) => {
                entry.insert(Node { member, children });
            }
            Entry::Occupied(mut entry) => {
                let node = entry.get_mut();
                node.member |= member;
                node.children.extend(children);
            }
        }
    }

    /// Returns true if the path is a member.
    pub fn contains(&self, path: &[PathElement]) -> bool {
        match path {
            [] => false,
            [last] => self.contains_element(last),
            [first, rest @ ..] => self.children(first).is_some_and(|set| set.contains(rest)),
        }
    }

    pub(crate) fn contains_element(&self, element: &PathElement) -> bool {
        self.nodes.get(element).is_some_and(|node| node.member)
    }

    /// Returns the number of first elements.
    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Returns true if the path of `element` is a member, and the members below it; `None` if there
    /// are neither.
    pub(crate) fn node(&self, element: &PathElement) -> Option<(bool, &Self)> {
        self.nodes.get(element).map(|node| (node.member, &node.children))
    }

    /// Returns the members below `element`, without it; `None` if there are none.
    pub(crate) fn children(&self, element: &PathElement) -> Option<&Self> {
        let children = &self.nodes.get(element)?.children;
        (!children.is_empty()).then_some(children)
    }

    /// Returns each first element with whether it is a member, and the members below it.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (&PathElement, bool, &Self)> {
        self.nodes.iter().map(|(element, node)| (element, node.member, &node.children))
    }

    /// Returns all members in upstream's order: those of a level before those below it.
    pub fn paths(&self) -> Vec<Path> {
        let mut paths = Vec::new();
        self.collect_paths(&mut Path::new(), &mut paths);
        paths
    }

    fn collect_paths(&self, prefix: &mut Path, into: &mut Vec<Path>) {
        for element in self.nodes.iter().filter(|(_, node)| node.member).map(|(element, _)| element)
        {
            let mut path = prefix.clone();
            path.push(element.clone());
            into.push(path);
        }
        for (element, node) in &self.nodes {
            prefix.push(element.clone());
            node.children.collect_paths(prefix, into);
            prefix.pop();
        }
    }

    /// Adds all members of `other`.
    pub fn extend(&mut self, other: Self) {
        if self.is_empty() {
            *self = other;
            return;
        }
        for (element, node) in other.nodes {
            self.graft(element, node.children, node.member);
        }
    }

    /// Returns the members of either set.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        let mut union = self.clone();
        union.extend(other.clone());
        union
    }

    /// Returns the members of both sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        let common = self.nodes.iter().filter_map(|(element, node)| {
            let other = other.nodes.get(element)?;
            let member = node.member && other.member;
            let children = node.children.intersection(&other.children);
            let is_empty = !member && children.is_empty();
            (!is_empty).then(|| (element.clone(), Node { member, children }))
        });
        Self { nodes: common.collect() }
    }

    /// Returns the members that `other` does not have.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        let mut rest = self.clone();
        rest.subtract(other);
        rest
    }

    /// Returns the members that are neither in `other` nor below a member of it.
    #[must_use]
    pub fn recursive_difference(&self, other: &Self) -> Self {
        let mut rest = self.clone();
        rest.subtract_recursively(other);
        rest
    }

    /// Removes the members of `other`.
    pub(crate) fn subtract(&mut self, other: &Self) {
        self.subtract_nodes(other, &|node, taken| {
            node.member &= !taken.member;
            node.children.subtract(&taken.children);
        });
    }

    /// Removes the members of `other`, and those below them.
    pub(crate) fn subtract_recursively(&mut self, other: &Self) {
        self.subtract_nodes(other, &|node, taken| {
            if taken.member {
                *node = Node::default();
            } else {
                node.children.subtract_recursively(&taken.children);
            }
        });
    }

    fn subtract_nodes(&mut self, other: &Self, subtract: &dyn Fn(&mut Node, &Node)) {
        for (element, taken) in &other.nodes {
            let Some(node) = self.nodes.get_mut(element) else { continue };
            subtract(node, taken);
            if !node.member && node.children.is_empty() {
                self.nodes.remove(element);
            }
        }
    }

    /// Returns the set of a JSON value in the encoding `FieldsV1`.
    ///
    /// Elements of an unknown type are dropped, as upstream drops them.
    ///
    /// # Errors
    ///
    /// If the value is not an object of objects, or a name in it is not a path element.
    pub fn from_fields_v1(value: &Value) -> Result<Self, FieldsV1Error> {
        fields_v1::decode(value)
    }

    /// Returns the encoding `FieldsV1`, as in `metadata.managedFields[].fieldsV1`.
    pub fn to_fields_v1(&self) -> Value {
        fields_v1::encode(self)
    }

    /// Returns the JSON text of the encoding `FieldsV1`.
    pub(crate) fn to_json(&self) -> String {
        let mut text = String::with_capacity(256);
        fields_v1::write(self, &mut text);
        text
    }
}

impl<'a> FromIterator<&'a [PathElement]> for FieldSet {
    fn from_iter<I: IntoIterator<Item = &'a [PathElement]>>(paths: I) -> Self {
        let mut set = Self::new();
        for path in paths {
            set.insert(path);
        }
        set
    }
}

/// Shows one path on each line.
impl fmt::Display for FieldSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, path) in self.paths().iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{}", ShownPath(path))?;
        }
        Ok(())
    }
}

// === impl ShownPath ===

impl fmt::Display for ShownPath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|element| element.fmt(f))
    }
}

#[cfg(test)]
mod tests;
