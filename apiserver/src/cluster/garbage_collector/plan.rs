//! Decides the next step for an object from the graph alone, without I/O.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube_core::params::PropagationPolicy;

use super::graph::{FOREGROUND, Graph, Node, ORPHAN, Owner, Uid};

/// The next step for an object.
#[derive(Debug, PartialEq)]
pub(super) enum Plan {
    Nothing,
    /// Ask the server whether these owners exist.
    CheckOwners(Vec<Owner>),
    Delete {
        target: Target,
        policy: PropagationPolicy,
    },
    /// Replace its owner references.
    SetOwners {
        target: Target,
        owners: Vec<OwnerReference>,
    },
    /// Replace the owner references of the dependents, then the finalizers of the object.
    Release {
        target: Target,
        finalizers: Vec<String>,
        dependents: Vec<(Target, Vec<OwnerReference>)>,
    },
}

/// The identity and version of an object at the time of the decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) kind: usize,
    pub(super) namespace: Option<String>,
    pub(super) name: String,
    pub(super) uid: Uid,
    pub(super) resource_version: Option<String>,
}

/// The state of an owner.
enum OwnerState {
    /// It exists, or its kind is not followed.
    Exists,
    /// It is being deleted in the foreground and waits for its dependents.
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

    /// Plans for an object that is being deleted: removes the collector's finalizer if it is due.
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

    /// Plans for an object that is not being deleted.
    fn plan_dependent(&self, uid: &Uid, node: &Node) -> Plan {
        let mut existing = Vec::new();
        let mut unknown = Vec::new();
        let mut waits = false;
        for reference in &node.owners {
            match self.owner_state(node, reference) {
                OwnerState::Exists => existing.push(reference.clone()),
                OwnerState::Waiting => waits = true,
                OwnerState::Gone => {}
                OwnerState::Unknown(owner) => unknown.push(owner),
            }
        }
        let target = target(uid, node);
        if !unknown.is_empty() {
            Plan::CheckOwners(unknown)
        } else if existing.len() == node.owners.len() {
            Plan::Nothing
        } else if !existing.is_empty() {
            Plan::SetOwners { target, owners: existing }
        } else if waits && self.dependents_of(uid).next().is_some() {
            self.plan_middle(target, node)
        } else {
            Plan::Delete { target, policy: policy(node) }
        }
    }

    /// Plans for an object with a waiting owner and dependents of its own: the dependents are
    /// deleted first.
    fn plan_middle(&self, target: Target, node: &Node) -> Plan {
        let mut dependents = self.dependents_of(&target.uid).filter_map(|uid| self.nodes.get(uid));
        let is_cycle = dependents.any(Node::waits_for_dependents);
        let blocks = node.owners.iter().any(|owner| owner.block_owner_deletion == Some(true));
        if is_cycle && blocks {
            // The objects may wait for each other forever, so this one stops blocking its
            // owners.
            let unblock = |owner: &OwnerReference| OwnerReference {
                block_owner_deletion: Some(false),
                ..owner.clone()
            };
            return Plan::SetOwners { target, owners: node.owners.iter().map(unblock).collect() };
        }
        Plan::Delete { target, policy: PropagationPolicy::Foreground }
    }

    fn owner_state(&self, dependent: &Node, reference: &OwnerReference) -> OwnerState {
        let Some(kind) = self.kind_of(reference) else { return OwnerState::Exists };
        let namespace = match (self.is_namespaced(kind), &dependent.namespace) {
            (true, Some(namespace)) => Some(namespace.clone()),
            // A cluster-scoped object cannot have a namespaced owner: the reference is invalid and
            // deletes nothing.
            (true, None) => return OwnerState::Exists,
            (false, _) => None,
        };
        let owner = Owner {
            kind,
            namespace,
            name: reference.name.clone(),
            uid: reference.uid.as_str().into(),
        };
        match self.nodes.get(&owner.uid) {
            Some(node) if owner.is(node) && node.waits_for_dependents() => OwnerState::Waiting,
            Some(node) if owner.is(node) => OwnerState::Exists,
            _ if self.absent.get(&owner.uid) == Some(&owner) => OwnerState::Gone,
            _ => OwnerState::Unknown(owner),
        }
    }
}

// === impl Owner ===

impl Owner {
    fn is(&self, node: &Node) -> bool {
        self.kind == node.kind && self.namespace == node.namespace && self.name == node.name
    }
}

/// Returns the propagation policy that the finalizers of the object request.
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
