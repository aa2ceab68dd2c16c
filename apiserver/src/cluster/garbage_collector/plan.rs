//! What is to be done about an object: decided from the graph alone, without waiting.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube_core::params::PropagationPolicy;

use super::graph::{FOREGROUND, Graph, Node, ORPHAN, Owner, Uid};

/// What to do about an object now.
#[derive(Debug, PartialEq)]
pub(super) enum Plan {
    Nothing,
    /// Ask the server whether these owners are there.
    Look(Vec<Owner>),
    Delete {
        target: Target,
        policy: PropagationPolicy,
    },
    /// Give it these owners instead of those it has.
    SetOwners {
        target: Target,
        owners: Vec<OwnerReference>,
    },
    /// Give these dependents these owners, and then let the object go.
    Release {
        target: Target,
        finalizers: Vec<String>,
        dependents: Vec<(Target, Vec<OwnerReference>)>,
    },
}

/// An object as it was when it was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) kind: usize,
    pub(super) namespace: Option<String>,
    pub(super) name: String,
    pub(super) uid: Uid,
    pub(super) resource_version: Option<String>,
}

/// How an owner is.
enum Standing {
    /// There, or of a kind that is not followed.
    Solid,
    /// Being deleted in the foreground: it waits for its dependents.
    Waiting,
    Gone,
    Unknown(Owner),
}

// === impl Graph ===

impl Graph {
    pub(super) fn plan(&self, uid: &Uid) -> Plan {
        match self.nodes.get(uid) {
            None => Plan::Nothing,
            Some(node) if node.is_deleted => self.plan_deleted(uid, node),
            Some(node) => self.plan_dependent(uid, node),
        }
    }

    /// An object that is being deleted, perhaps with a finalizer that is ours to remove.
    fn plan_deleted(&self, uid: &Uid, node: &Node) -> Plan {
        let mut dependents = self
            .dependents_of(uid)
            .filter_map(|dependent| Some((dependent, self.nodes.get(dependent)?)));
        let ours = if node.has_finalizer(ORPHAN) {
            ORPHAN
        } else if node.has_finalizer(FOREGROUND) && !dependents.any(|(_, node)| node.blocks(uid)) {
            FOREGROUND
        } else {
            return Plan::Nothing;
        };
        let orphans = dependents.filter(|_| ours == ORPHAN).map(|(dependent, node)| {
            let others = node.owners.iter().filter(|owner| *owner.uid != **uid);
            (target(dependent, node), others.cloned().collect())
        });
        Plan::Release {
            target: target(uid, node),
            finalizers: node.finalizers.iter().filter(|f| *f != ours).cloned().collect(),
            dependents: orphans.collect(),
        }
    }

    /// An object that lives as long as one of its owners does.
    fn plan_dependent(&self, uid: &Uid, node: &Node) -> Plan {
        let mut solid = Vec::new();
        let mut unknown = Vec::new();
        let mut waits = false;
        for reference in &node.owners {
            match self.standing(node, reference) {
                Standing::Solid => solid.push(reference.clone()),
                Standing::Waiting => waits = true,
                Standing::Gone => {}
                Standing::Unknown(owner) => unknown.push(owner),
            }
        }
        let target = target(uid, node);
        if !unknown.is_empty() {
            Plan::Look(unknown)
        } else if solid.len() == node.owners.len() {
            Plan::Nothing
        } else if !solid.is_empty() {
            Plan::SetOwners { target, owners: solid }
        } else if waits && self.dependents_of(uid).next().is_some() {
            self.plan_middle(target, node)
        } else {
            Plan::Delete { target, policy: policy(node) }
        }
    }

    /// An object between an owner that waits for it and dependents of its own: those go first.
    fn plan_middle(&self, target: Target, node: &Node) -> Plan {
        let mut dependents = self.dependents_of(&target.uid).filter_map(|uid| self.nodes.get(uid));
        let is_circle = dependents.any(Node::waits_for_dependents);
        let blocks = node.owners.iter().any(|owner| owner.block_owner_deletion == Some(true));
        if is_circle && blocks {
            // Each might wait for the other for ever; so this one no longer keeps anybody waiting.
            let release = |owner: &OwnerReference| OwnerReference {
                block_owner_deletion: Some(false),
                ..owner.clone()
            };
            return Plan::SetOwners { target, owners: node.owners.iter().map(release).collect() };
        }
        Plan::Delete { target, policy: PropagationPolicy::Foreground }
    }

    fn standing(&self, dependent: &Node, reference: &OwnerReference) -> Standing {
        let Some(kind) = self.kind_of(reference) else { return Standing::Solid };
        let namespace = match (self.is_namespaced(kind), &dependent.namespace) {
            (true, Some(namespace)) => Some(namespace.clone()),
            // An object of the whole cluster cannot have an owner inside a namespace: the reference
            // is a mistake, and mistakes do not delete.
            (true, None) => return Standing::Solid,
            (false, _) => None,
        };
        let owner = Owner {
            kind,
            namespace,
            name: reference.name.clone(),
            uid: reference.uid.as_str().into(),
        };
        match self.nodes.get(&owner.uid) {
            Some(node) if owner.is(node) && node.waits_for_dependents() => Standing::Waiting,
            Some(node) if owner.is(node) => Standing::Solid,
            _ if self.absent.get(&owner.uid) == Some(&owner) => Standing::Gone,
            _ => Standing::Unknown(owner),
        }
    }
}

// === impl Owner ===

impl Owner {
    fn is(&self, node: &Node) -> bool {
        self.kind == node.kind && self.namespace == node.namespace && self.name == node.name
    }
}

/// What was asked for before counts: a finalizer says how the object's own dependents are to go.
fn policy(node: &Node) -> PropagationPolicy {
    if node.has_finalizer(ORPHAN) {
        PropagationPolicy::Orphan
    } else if node.has_finalizer(FOREGROUND) {
        PropagationPolicy::Foreground
    } else {
        PropagationPolicy::Background
    }
}

fn target(uid: &Uid, node: &Node) -> Target {
    Target {
        kind: node.kind,
        namespace: node.namespace.clone(),
        name: node.name.clone(),
        uid: Arc::clone(uid),
        resource_version: node.resource_version.clone(),
    }
}

#[cfg(test)]
mod tests;
