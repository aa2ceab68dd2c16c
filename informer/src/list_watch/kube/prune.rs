//! [`Prune`]: the members of an object that are skipped while it is parsed, as a tree of paths.
//!
//! This module is pure. A path names members from the object down, separated by dots; `*` stands
//! for every element of an array and for every member of a map.
//!
//! ```text
//!  spec.volumes, spec.containers.*.env
//!  └─ spec ─┬─ volumes: dropped
//!           └─ containers ── every ── env: dropped
//! ```
//!
//! The tree is small and is read for each member of each object, so that a node is a short list and
//! not a map.

use std::fmt;

/// A position in an object, and the members below it that are skipped.
///
/// Invariant: what holds for `every` member also holds for each member that has a node of its own,
/// so that a look-up reads one node.
#[derive(Clone, Default, PartialEq, Eq)]
pub(super) struct Prune {
    /// True if the value at this position is skipped.
    dropped: bool,
    /// The members with a path of their own. They are few, so a search from the front is quick.
    members: Vec<(Box<str>, Self)>,
    /// The elements of an array, and all other members of a map.
    every: Option<Box<Self>>,
}

/// The members by which an informer identifies an object. They cannot be skipped.
const IDENTITY: [&[&str]; 4] = [
    &["metadata", "name"],
    &["metadata", "namespace"],
    &["metadata", "uid"],
    &["metadata", "resourceVersion"],
];

// === impl Prune ===

impl Prune {
    /// Skips the value at `path`.
    ///
    /// The tree is changed in a copy: a path that would hide the name, the namespace, the uid or
    /// the version of an object leaves it as it was.
    ///
    /// # Errors
    /// Returns the reason if the path is malformed, or if an informer needs what it names. The tree
    /// is unchanged then.
    pub(super) fn add(&mut self, path: &str) -> Result<(), String> {
        let parts = parts(path)?;
        let mut tree = self.clone();
        tree.insert(&parts);
        if let Some(identity) = IDENTITY.iter().find(|path| tree.drops(path)) {
            return Err(format!("`{path}` drops `{}`", identity.join(".")));
        }
        *self = tree;
        Ok(())
    }

    /// Stops skipping the value at a path of named members.
    ///
    /// It serves the default path `metadata.managedFields`. A path with `*` is not removed.
    pub(super) fn remove(&mut self, path: &[&str]) {
        match path.split_first() {
            None => self.dropped = false,
            Some((first, rest)) => {
                let member = self.members.iter_mut().find(|(name, _)| **name == **first);
                if let Some((_, member)) = member {
                    member.remove(rest);
                }
            }
        }
    }

    /// Returns the node of a member; `None` if it is kept with everything below it.
    pub(super) fn member(&self, name: &str) -> Option<&Self> {
        let own = self.members.iter().find(|(member, _)| **member == *name);
        own.map(|(_, node)| node).or(self.every.as_deref())
    }

    /// Returns the node of the elements of an array; `None` if they are kept.
    pub(super) fn elements(&self) -> Option<&Self> {
        self.every.as_deref()
    }

    /// Returns true if the value at this position is skipped.
    pub(super) fn is_dropped(&self) -> bool {
        self.dropped
    }

    /// Returns true if nothing below this position is skipped.
    pub(super) fn is_leaf(&self) -> bool {
        self.members.is_empty() && self.every.is_none()
    }

    /// Inserts a path of unescaped parts.
    ///
    /// A path through `*` is also inserted into each member with a node of its own, and a new node
    /// of a member starts as a copy of `every`. This keeps the invariant of the type.
    fn insert(&mut self, path: &[Part]) {
        match path.split_first() {
            None => self.dropped = true,
            Some((Part::Every, rest)) => {
                self.every.get_or_insert_default().insert(rest);
                self.members.iter_mut().for_each(|(_, member)| member.insert(rest));
            }
            Some((Part::Member(name), rest)) => {
                let at = self.members.iter().position(|(member, _)| **member == **name);
                let at = at.unwrap_or_else(|| {
                    let node = self.every.as_deref().cloned().unwrap_or_default();
                    self.members.push((name.as_str().into(), node));
                    self.members.len() - 1
                });
                self.members[at].1.insert(rest);
            }
        }
    }

    /// Returns true if the value at `path`, or one that contains it, is skipped.
    fn drops(&self, path: &[&str]) -> bool {
        let Some((first, rest)) = path.split_first() else { return self.dropped };
        self.dropped || self.member(first).is_some_and(|member| member.drops(rest))
    }
}

impl fmt::Debug for Prune {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prune").finish_non_exhaustive()
    }
}

/// A part of a path.
///
/// `Member` holds the name without its backslashes.
#[derive(Debug, PartialEq)]
enum Part {
    Member(String),
    Every,
}

/// Splits a path at its dots. A backslash makes the next character a part of the name.
///
/// # Errors
///
/// The reason, with the path: an empty part, or a backslash at the end.
fn parts(path: &str) -> Result<Vec<Part>, String> {
    let mut parts = Vec::new();
    let mut name = String::new();
    let mut is_escaped = false;
    let mut end = |name: &mut String, is_escaped: &mut bool| {
        let name = std::mem::take(name);
        match &*name {
            "" => Err(format!("`{path}` has an empty part")),
            "*" if !std::mem::take(is_escaped) => {
                parts.push(Part::Every);
                Ok(())
            }
            _ => {
                *is_escaped = false;
                parts.push(Part::Member(name));
                Ok(())
            }
        }
    };
    let mut characters = path.chars();
    while let Some(character) = characters.next() {
        match character {
            '.' => end(&mut name, &mut is_escaped)?,
            '\\' => {
                is_escaped = true;
                let escaped = characters.next();
                name.push(escaped.ok_or_else(|| format!("`{path}` ends with a backslash"))?);
            }
            other => name.push(other),
        }
    }
    end(&mut name, &mut is_escaped)?;
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(paths: &[&str]) -> Prune {
        let mut tree = Prune::default();
        for path in paths {
            tree.add(path).unwrap();
        }
        tree
    }

    #[test]
    fn path_drops_its_value_and_keeps_its_neighbours() {
        let tree = tree(&["spec.volumes", "spec.containers.*.env"]);
        assert!(tree.drops(&["spec", "volumes"]) && tree.drops(&["spec", "volumes", "0"]));
        assert!(!tree.drops(&["spec"]) && !tree.drops(&["spec", "nodeName"]));
        assert!(!tree.drops(&["spec", "containers", "0", "name"]));
        assert!(tree.drops(&["spec", "containers", "0", "env"]));
        assert!(tree.member("status").is_none());
    }

    #[test]
    fn star_also_holds_for_members_with_a_path_of_their_own() {
        for paths in [["data.*.x", "data.a.y"], ["data.a.y", "data.*.x"]] {
            let tree = tree(&paths);
            assert!(tree.drops(&["data", "a", "x"]) && tree.drops(&["data", "a", "y"]));
            assert!(tree.drops(&["data", "b", "x"]) && !tree.drops(&["data", "b", "y"]));
        }
    }

    #[test]
    fn escaped_dot_or_star_is_part_of_a_name() {
        let annotation = r"metadata.annotations.kubectl\.kubernetes\.io/last-applied-configuration";
        let name = "kubectl.kubernetes.io/last-applied-configuration";
        assert!(tree(&[annotation]).drops(&["metadata", "annotations", name]));
        let star = tree(&[r"data.\*"]);
        assert!(star.drops(&["data", "*"]) && !star.drops(&["data", "a"]));
    }

    #[test]
    fn identity_of_an_object_is_never_dropped() {
        for path in ["metadata", "metadata.name", "metadata.uid", "metadata.*", "*", "*.namespace"]
        {
            let mut prune = tree(&["spec"]);
            assert!(prune.add(path).is_err(), "{path}");
            assert_eq!(prune, tree(&["spec"]), "unchanged");
        }
        for path in ["", ".", "spec.", "spec..a", r"spec\"] {
            assert!(Prune::default().add(path).is_err(), "{path}");
        }
    }

    #[test]
    fn removed_path_is_kept_again() {
        let mut tree = tree(&["metadata.managedFields", "metadata.labels"]);
        tree.remove(&["metadata", "managedFields"]);
        assert!(!tree.drops(&["metadata", "managedFields"]) && tree.drops(&["metadata", "labels"]));
    }
}
