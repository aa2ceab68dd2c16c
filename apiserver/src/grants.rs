//! The roles and bindings that are stored. One is read again only if it has changed: each request
//! of a user needs them.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::access::{Binding, PolicyRule, RBAC_GROUP, Role, RoleRef};
use crate::read_objects::{ReadObjects, decoded};
use crate::storage::Objects;

/// The roles and bindings of a server.
#[derive(Debug, Default)]
pub(crate) struct Grants {
    cluster_bindings: Vec<Arc<Binding>>,
    /// Those of each namespace.
    bindings: BTreeMap<String, Vec<Arc<Binding>>>,
    cluster_roles: HashMap<String, Arc<Role>>,
    /// By namespace and name.
    roles: HashMap<(String, String), Arc<Role>>,
}

/// The roles and bindings of the last request, read.
#[derive(Debug, Default)]
pub(crate) struct Cache {
    cluster_bindings: ReadObjects<Binding>,
    bindings: ReadObjects<Binding>,
    cluster_roles: ReadObjects<Role>,
    roles: ReadObjects<Role>,
    current: Arc<Grants>,
}

// === impl Grants ===

impl Grants {
    /// Returns the bindings of the cluster, then those of the namespace, if there is one.
    pub(crate) fn bindings_in(&self, namespace: &str) -> impl Iterator<Item = &Binding> {
        let own = self.bindings.get(namespace).into_iter().flatten();
        self.cluster_bindings.iter().chain(own).map(|binding| &**binding)
    }

    /// Returns the rules of the role that a binding of the namespace names.
    ///
    /// # Errors
    ///
    /// Returns the real server's text if there is no such role.
    pub(crate) fn rules(&self, namespace: &str, role: &RoleRef) -> Result<&[PolicyRule], String> {
        let (found, singular) = if role.kind == "ClusterRole" {
            (self.cluster_roles.get(&role.name), "clusterrole")
        } else {
            let key = (namespace.to_owned(), role.name.clone());
            (self.roles.get(&key), "role")
        };
        match found {
            Some(role) => Ok(role.rules.as_deref().unwrap_or_default()),
            None => Err(format!("{singular}.{RBAC_GROUP} \"{}\" not found", role.name)),
        }
    }
}

// === impl Cache ===

impl Cache {
    /// Returns the roles and bindings that are stored now: those of the cluster, then those of
    /// namespaces.
    pub(crate) fn follow(&mut self, bindings: [&Objects; 2], roles: [&Objects; 2]) -> Arc<Grants> {
        let is_known = self.cluster_bindings.is(bindings[0])
            && self.bindings.is(bindings[1])
            && self.cluster_roles.is(roles[0])
            && self.roles.is(roles[1]);
        if !is_known {
            self.cluster_bindings.follow(bindings[0], decoded);
            self.bindings.follow(bindings[1], decoded);
            self.cluster_roles.follow(roles[0], decoded);
            self.roles.follow(roles[1], decoded);
            self.current = Arc::new(self.grants());
        }
        Arc::clone(&self.current)
    }

    fn grants(&self) -> Grants {
        let mut bindings: BTreeMap<String, Vec<Arc<Binding>>> = BTreeMap::new();
        for (stored, binding) in self.bindings.entries() {
            let namespace = stored.selectable.namespace.clone();
            bindings.entry(namespace).or_default().push(Arc::clone(binding));
        }
        let cluster_roles = self.cluster_roles.entries().map(|(stored, role)| {
            let name = stored.selectable.name.clone();
            (name, Arc::clone(role))
        });
        let roles = self.roles.entries().map(|(stored, role)| {
            let key = (stored.selectable.namespace.clone(), stored.selectable.name.clone());
            (key, Arc::clone(role))
        });
        Grants {
            cluster_bindings: self.cluster_bindings.all(),
            bindings,
            cluster_roles: cluster_roles.collect(),
            roles: roles.collect(),
        }
    }
}
