//! The compiled policies. A policy is compiled again only if it has changed.

use std::sync::Arc;

use super::binding::Binding;
use super::policy::{Policies, Policy};
use crate::read_objects::ReadObjects;
use crate::storage::Objects;

/// The policies and bindings of the last request, compiled.
#[derive(Debug, Default)]
pub(crate) struct Cache {
    policies: ReadObjects<Policy>,
    bindings: ReadObjects<Binding>,
    current: Arc<Policies>,
}

// === impl Cache ===

impl Cache {
    /// Returns the policies that are stored now.
    pub(crate) fn follow(&mut self, policies: &Objects, bindings: &Objects) -> Arc<Policies> {
        let is_known = self.policies.is(policies) && self.bindings.is(bindings);
        if !is_known {
            self.policies.follow(policies, Policy::read);
            self.bindings.follow(bindings, Binding::read);
            let (policies, bindings) = (self.policies.all(), self.bindings.all());
            self.current = Arc::new(Policies::new(&policies, &bindings));
        }
        Arc::clone(&self.current)
    }
}
