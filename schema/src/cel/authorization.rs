//! The authorizer: checks of what a user may do.

use crate::authorizer::{AccessCheck, AccessDecision, Authorizer};

/// A value of the library of the authorizer.
#[derive(Debug, Clone)]
pub(crate) struct Authorization<'a> {
    pub(super) stage: Stage,
    authorizer: &'a dyn Authorizer,
    check: AccessCheck,
    pub(super) decision: AccessDecision,
}

/// The kind of an [`Authorization`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    Authorizer,
    Path,
    Group,
    Resource,
    Decision,
}

// === impl Authorization ===

impl<'a> Authorization<'a> {
    /// Creates the value of the variable `authorizer`.
    pub(crate) fn new(authorizer: &'a dyn Authorizer) -> Self {
        let (check, decision) = Default::default();
        Self { stage: Stage::Authorizer, authorizer, check, decision }
    }

    /// Creates the value of the variable `authorizer.requestResource`.
    pub(crate) fn of_request(authorizer: &'a dyn Authorizer, check: AccessCheck) -> Self {
        Self { stage: Stage::Resource, check, ..Self::new(authorizer) }
    }

    pub(crate) fn type_name(&self) -> &'static str {
        match self.stage {
            Stage::Authorizer => "kubernetes.authorization.Authorizer",
            Stage::Path => "kubernetes.authorization.PathCheck",
            Stage::Group => "kubernetes.authorization.GroupCheck",
            Stage::Resource => "kubernetes.authorization.ResourceCheck",
            Stage::Decision => "kubernetes.authorization.Decision",
        }
    }

    /// Returns the value at another stage, with a change of its check.
    pub(super) fn at(&self, stage: Stage, change: impl FnOnce(&mut AccessCheck)) -> Self {
        let mut next = self.clone();
        next.stage = stage;
        change(&mut next.check);
        next
    }

    /// Returns the decision about a verb.
    pub(super) fn decided(&self, verb: &str) -> Self {
        let mut next = self.at(Stage::Decision, |check| verb.clone_into(&mut check.verb));
        next.decision = self.authorizer.authorize(&next.check);
        next
    }
}
