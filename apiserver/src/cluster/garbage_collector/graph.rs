//! The graph of owners and dependents, as last seen.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use foldhash::{HashMap, HashMapExt as _};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube_core::ApiResource;

use crate::cluster::partial_object::PartialObject;

/// The finalizer of an owner that is deleted after its dependents.
pub(super) const FOREGROUND: &str = "foregroundDeletion";

/// The finalizer of an owner that is deleted after its dependents lose their reference to it.
pub(super) const ORPHAN: &str = "orphan";

pub(super) type Uid = Arc<str>;

/// A kind that the collector lists and watches.
#[derive(Debug)]
pub(super) struct FollowedKind {
    pub(super) resource: ApiResource,
    pub(super) is_namespaced: bool,
}

/// All objects of the followed kinds, with edges from owners to dependents.
#[derive(Debug)]
pub(super) struct Graph {
    kinds: Arc<[FollowedKind]>,
    /// Ordered, so that the keys after a list have a fixed order.
    pub(super) nodes: BTreeMap<Uid, Node>,
    /// The nodes that reference an owner UID. The owner need not be a node. No set is empty.
    pub(super) dependents: HashMap<Uid, BTreeSet<Uid>>,
    /// Owners that are known to be gone and that a node still references.
    pub(super) absent: HashMap<Uid, Owner>,
}

/// One object.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) kind: usize,
    pub(super) namespace: Option<String>,
    pub(super) name: String,
    pub(super) resource_version: Option<String>,
    pub(super) owners: Vec<OwnerReference>,
    pub(super) finalizers: Vec<String>,
    pub(super) is_deleted: bool,
}

/// The full identity of an owner. An object with the same UID and another name is not the owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Owner {
    pub(super) kind: usize,
    pub(super) namespace: Option<String>,
    pub(super) name: String,
    pub(super) uid: Uid,
}

// === impl Graph ===

impl Graph {
    pub(super) fn new(kinds: Vec<FollowedKind>) -> Self {
        Self {
            kinds: kinds.into(),
            nodes: BTreeMap::new(),
            dependents: HashMap::new(),
            absent: HashMap::new(),
        }
    }

    pub(super) fn kinds(&self) -> Arc<[FollowedKind]> {
        Arc::clone(&self.kinds)
    }

    /// Replaces all objects of `kind`. Returns the affected UIDs, as the next two methods do.
    pub(super) fn replace(&mut self, kind: usize, objects: Vec<PartialObject>) -> Vec<Uid> {
        let present: BTreeSet<&str> =
            objects.iter().filter_map(|object| object.metadata.uid.as_deref()).collect();
        let gone: Vec<Uid> = self
            .nodes
            .iter()
            .filter(|(uid, node)| node.kind == kind && !present.contains(&***uid))
            .map(|(uid, _)| Arc::clone(uid))
            .collect();
        let mut touched: Vec<Uid> =
            objects.into_iter().flat_map(|object| self.apply(kind, object)).collect();
        touched.extend(gone.iter().flat_map(|uid| self.remove(Some(uid))));
        touched
    }

    /// Adds or updates an object.
    pub(super) fn apply(&mut self, kind: usize, object: PartialObject) -> Vec<Uid> {
        let metadata = object.metadata;
        let (Some(uid), Some(name)) = (metadata.uid, metadata.name) else { return Vec::new() };
        let uid: Uid = uid.into();
        let node = Node {
            kind,
            namespace: metadata.namespace,
            name,
            resource_version: metadata.resource_version,
            owners: metadata.owner_references.unwrap_or_default(),
            finalizers: metadata.finalizers.unwrap_or_default(),
            is_deleted: metadata.deletion_timestamp.is_some(),
        };
        let mut touched = Vec::new();
        if node.is_deleted || !node.owners.is_empty() {
            touched.push(Arc::clone(&uid));
        }
        self.link(&uid, &node.owners);
        let waits = node.waits_for_dependents();
        let owners: BTreeSet<&str> = node.owners.iter().map(|owner| &*owner.uid).collect();
        let before = self.nodes.get(&uid);
        if waits && !before.is_some_and(Node::waits_for_dependents) {
            touched.extend(self.dependents_of(&uid).map(Arc::clone));
        }
        let removed_owners: Vec<String> = before
            .into_iter()
            .flat_map(|before| &before.owners)
            .map(|owner| owner.uid.clone())
            .filter(|owner| !owners.contains(owner.as_str()))
            .collect();
        // An owner that is being deleted may wait for this object.
        let concerned = owners.iter().copied().chain(removed_owners.iter().map(String::as_str));
        touched.extend(concerned.filter_map(|owner| self.deleted_node(owner)));
        self.nodes.insert(Arc::clone(&uid), node);
        self.unlink(&uid, removed_owners.iter().map(String::as_str));
        touched
    }

    /// Removes an object.
    pub(super) fn remove(&mut self, uid: Option<&str>) -> Vec<Uid> {
        let Some((uid, node)) = uid.and_then(|uid| self.nodes.remove_entry(uid)) else {
            return Vec::new();
        };
        let mut touched: Vec<Uid> = self.dependents_of(&uid).map(Arc::clone).collect();
        touched.extend(node.owners.iter().filter_map(|owner| self.deleted_node(&owner.uid)));
        self.unlink(&uid, node.owners.iter().map(|owner| owner.uid.as_str()));
        self.mark_absent(Owner {
            kind: node.kind,
            namespace: node.namespace,
            name: node.name,
            uid,
        });
        touched
    }

    /// Marks an owner as gone. Its UID is never reused.
    pub(super) fn mark_absent(&mut self, owner: Owner) {
        if self.dependents.contains_key(&owner.uid) {
            self.absent.insert(Arc::clone(&owner.uid), owner);
        }
    }

    pub(super) fn dependents_of(&self, owner: &str) -> impl Iterator<Item = &Uid> + use<'_> {
        self.dependents.get(owner).into_iter().flatten()
    }

    /// Returns the followed kind of a reference, by group and kind. The version is not compared.
    pub(super) fn kind_of(&self, reference: &OwnerReference) -> Option<usize> {
        let group = reference.api_version.split_once('/').map_or("", |(group, _)| group);
        self.kinds
            .iter()
            .position(|kind| kind.resource.group == group && kind.resource.kind == reference.kind)
    }

    pub(super) fn is_namespaced(&self, kind: usize) -> bool {
        self.kinds[kind].is_namespaced
    }

    fn deleted_node(&self, uid: &str) -> Option<Uid> {
        let (uid, node) = self.nodes.get_key_value(uid)?;
        node.is_deleted.then(|| Arc::clone(uid))
    }

    fn link(&mut self, dependent: &Uid, owners: &[OwnerReference]) {
        for owner in owners {
            let owner: Uid = owner.uid.as_str().into();
            self.dependents.entry(owner).or_default().insert(Arc::clone(dependent));
        }
    }

    fn unlink<'a>(&mut self, dependent: &str, owners: impl Iterator<Item = &'a str>) {
        for owner in owners {
            let Some(dependents) = self.dependents.get_mut(owner) else { continue };
            dependents.remove(dependent);
            if dependents.is_empty() {
                self.dependents.remove(owner);
                self.absent.remove(owner);
            }
        }
    }
}

// === impl Node ===

impl Node {
    pub(super) fn has_finalizer(&self, finalizer: &str) -> bool {
        self.finalizers.iter().any(|has| has == finalizer)
    }

    /// Returns true if the object is being deleted in the foreground.
    pub(super) fn waits_for_dependents(&self) -> bool {
        self.is_deleted && self.has_finalizer(FOREGROUND)
    }

    /// Returns true if the object blocks the deletion of `owner`.
    pub(super) fn blocks(&self, owner: &str) -> bool {
        self.owners.iter().any(|o| o.uid == owner && o.block_owner_deletion == Some(true))
    }
}
