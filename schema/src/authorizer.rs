//! The answers that expressions get about what users may do.

use std::fmt;

/// Decides what users may do, for the variable `authorizer` of expressions.
pub trait Authorizer: fmt::Debug {
    /// Decides whether a user may make a request.
    fn authorize(&self, check: &AccessCheck) -> AccessDecision;
}

/// A request whose permission an expression checks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct AccessCheck {
    /// The namespace and the name of the service account to check; `None` for the request's user.
    pub account: Option<(String, String)>,
    /// The verb, such as `create`.
    pub verb: String,
    /// The path of a request for no resource.
    pub path: Option<String>,
    /// The group of the resource.
    pub group: String,
    /// The plural name of the resource.
    pub resource: String,
    /// The subresource; empty for the resource itself.
    pub subresource: String,
    /// The namespace; empty for all of them, and for cluster-scoped resources.
    pub namespace: String,
    /// The name of the object; empty for all of them.
    pub name: String,
}

/// The result of an [`AccessCheck`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AccessDecision {
    /// True if the user may make the request.
    pub allowed: bool,
    /// The reason; it may be empty.
    pub reason: String,
}

// === impl AccessCheck ===

impl AccessCheck {
    /// Creates the check of what the request's user may do with a resource.
    pub fn of_resource(group: &str, resource: &str, subresource: &str) -> Self {
        let [group, resource, subresource] = [group, resource, subresource].map(str::to_owned);
        Self { group, resource, subresource, ..Self::default() }
    }

    /// Returns the check for one object of the resource.
    #[must_use]
    pub fn of_object(mut self, namespace: &str, name: &str) -> Self {
        namespace.clone_into(&mut self.namespace);
        name.clone_into(&mut self.name);
        self
    }
}
