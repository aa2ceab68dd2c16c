//! The types of the columns of a [`Kind`](super::Kind), the row of a kind.

use std::borrow::Cow;

use serde_json::Value;

use super::author::Author;
use super::service::Allocator;
use crate::fields::Fields;
use crate::plugin::AdmissionPlugin;
use crate::status::{self, Cause};

/// Objects of a kind that cannot be deleted by name.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Protected {
    pub(crate) names: &'static [&'static str],
    /// The reason that a client gets.
    pub(crate) detail: &'static str,
    /// The plugin that protects them; without one they are always protected.
    pub(crate) plugin: Option<AdmissionPlugin>,
}

/// The treatment of a kind's status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    /// The kind has no status subresource.
    None,
    /// The kind has a status subresource, and a write to the object ignores the status. A write to
    /// the status ignores `kept`.
    Subresource { kept: &'static [&'static str], on_create: OnCreate },
}

/// The treatment of a status in a create.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnCreate {
    Drop,
    Keep,
}

/// The default treatment of an object's dependents by a delete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dependents {
    /// The finalizers stay as they are.
    Collected,
    /// As `Collected`, but the first delete ignores its policy: the kind has a way of its own.
    CollectedLater,
    /// They are orphaned, as it was before deletes had a propagation policy.
    Orphaned,
    /// The kind has no dependents.
    None,
}

/// The changes that increment `metadata.generation`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Generation {
    /// The kind has no generation.
    None,
    /// Changes at one of these paths.
    Of(&'static [&'static str]),
    /// As `Of`, but a new object has no generation, apart from the client's.
    Later(&'static [&'static str]),
    /// Changes of any member but metadata and status.
    Content,
}

/// Defaults for the members under one path.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Defaults {
    pub(crate) under: &'static str,
    pub(crate) rules: &'static [(&'static str, DefaultValue)],
}

/// The default value of a member.
#[derive(Debug, Clone, Copy)]
pub(crate) enum DefaultValue {
    /// This JSON text.
    Json(&'static str),
    /// This JSON text, for a member that is a pointer in the real server: an empty text is a value.
    Unset(&'static str),
    /// Computed from the sibling members; null for no default.
    From(fn(&Fields) -> Value),
    /// An object that fills the gaps of the existing one, computed from it.
    Merge(fn(&Fields) -> Value),
}

/// The paths of the values in `/scale`.
#[derive(Debug, Clone)]
pub(crate) struct Scale {
    pub(crate) wanted: Cow<'static, str>,
    pub(crate) counted: Cow<'static, str>,
    pub(crate) selector: Cow<'static, str>,
}

/// A subresource that writes one member.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Part {
    pub(crate) name: &'static str,
    pub(crate) path: &'static str,
    /// Checks the new state, in place of the check of the kind.
    pub(crate) validate: Option<PartCheck>,
    /// The members that a write ignores.
    pub(crate) reset: &'static [&'static str],
    /// True if it writes labels and annotations, too.
    pub(crate) writes_metadata: bool,
}

/// Checks a new state against the stored one.
pub(crate) type PartCheck = fn(&Fields, &Fields, &mut Vec<Cause>);

/// The rules of `/resize`. The first object is the new state, the second the stored one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Resize {
    /// Restores the members that `/resize` does not write.
    pub(crate) restore: fn(&mut Fields, &Fields),
    /// Checks the new state.
    pub(crate) validate: PartCheck,
    /// Checks the new state against the node of the object.
    pub(crate) check_node: fn(&Fields, &Fields) -> Result<(), NodeRefusal>,
}

/// The reason why a node cannot run a resized object.
#[derive(Debug)]
pub(crate) struct NodeRefusal {
    pub(crate) detail: String,
    /// The reason of the cause in the reply.
    pub(crate) reason: &'static str,
}

/// The effect of a POST on a subresource.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Action {
    pub(crate) name: &'static str,
    /// The kind of the body, its version, and its name in the table of types.
    pub(crate) body: &'static str,
    pub(crate) api_version: &'static str,
    /// Older versions of the body, with the same fields.
    pub(crate) older: &'static [&'static str],
    pub(crate) body_type: &'static str,
    /// Admission that completes the body.
    pub(crate) complete: Option<CompleteBody>,
    pub(crate) effect: Effect,
}

/// Admission that completes the body of a POST on a subresource; it can find a node by its name.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CompleteBody {
    pub(crate) plugin: AdmissionPlugin,
    pub(crate) apply: Complete,
}

pub(crate) type Complete = fn(&mut Fields, &dyn Fn(&str) -> Option<Fields>);

/// The effect on the object.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Effect {
    /// The server changes the object as the body requests, at the given time.
    Change(fn(&mut Fields, &Fields, &str) -> Result<(), ActionError>),
    /// The object is deleted, unless a disruption budget forbids it.
    Evict,
    /// A token is issued for the object, which is a service account.
    IssueToken,
}

/// The requests that a kind answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operations {
    All,
    /// Only creates: nothing is stored.
    Create,
    /// Only reads: the objects come from elsewhere, and the server has none.
    Read,
}

/// A POST to the subresource of another kind, whose object the body names.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Relay {
    pub(crate) plural: &'static str,
    pub(crate) action: &'static str,
}

/// A question that the server answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Review {
    /// The user of a token.
    Token,
    /// The user of the request.
    Own,
    /// May a user do this?
    Access,
    /// May the user of the request do this?
    OwnAccess,
    /// The rules that apply to the user of the request.
    OwnRules,
}

/// The server cannot change the object.
#[derive(Debug)]
pub(crate) enum ActionError {
    Conflict(String),
    Invalid(String),
}

/// The reason why admission does not admit an object.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum AdmitError {
    /// The object is forbidden.
    Forbidden(String),
    /// Another object has a text that the server cannot read.
    Unreadable(String),
}

impl From<String> for AdmitError {
    fn from(detail: String) -> Self {
        Self::Forbidden(detail)
    }
}

/// Admission that depends on other objects, all of one kind in version `v1`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Admission {
    pub(crate) plugin: AdmissionPlugin,
    /// True if what the kind's other plugins add comes before.
    pub(crate) after_additions: bool,
    pub(crate) group: &'static str,
    pub(crate) plural: &'static str,
    /// The prefix of the names of built-in objects.
    pub(crate) built_in: &'static str,
    /// Completes the object; it can find another object by name, and list all that are not built
    /// in.
    pub(crate) apply: Admit,
}

pub(crate) type Allocate = fn(&mut Fields, Option<&Fields>, Allocator<'_>) -> status::Result<()>;

pub(crate) type FindDefault = fn(&[Fields]) -> Option<usize>;

pub(crate) type Admit = fn(
    &mut Fields,
    &dyn Fn(&str) -> Option<Fields>,
    &dyn Fn() -> Vec<Fields>,
) -> Result<(), AdmitError>;

/// Admission that checks a write by other objects, or by the rights of its user.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Guard {
    pub(crate) plugin: AdmissionPlugin,
    /// The subresource whose writes are checked; empty for the object itself.
    pub(crate) subresource: &'static str,
    /// Returns the reason for which the write is refused.
    pub(crate) check: fn(&GuardedWrite<'_>) -> Result<(), String>,
}

/// A write that a guard checks.
#[derive(Clone, Copy)]
pub(crate) struct GuardedWrite<'a> {
    pub(crate) new: &'a Fields,
    /// The stored object; `None` if the object is new.
    pub(crate) old: Option<&'a Fields>,
    /// Finds a cluster-scoped object by its group, its resource and its name.
    pub(crate) find: &'a dyn Fn(&str, &str, &str) -> Option<Fields>,
    /// Lists the objects of a group and a resource.
    pub(crate) list: &'a dyn Fn(&str, &str) -> Vec<Fields>,
    pub(crate) author: &'a dyn Author,
}

/// The effect of pod security on a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Secured {
    /// The labels choose the levels.
    Namespace,
    /// The object is checked.
    Pod,
    /// The template at this path is checked, and never refused.
    Template(&'static str),
}

/// A kind that shares the objects of another.
#[derive(Debug)]
pub(crate) struct StoredAs {
    pub(crate) group: &'static str,
    pub(crate) plural: &'static str,
    /// (name here, name there)
    pub(crate) renames: &'static [(&'static str, &'static str)],
    /// Converts what renames cannot: to the stored form, and back.
    pub(crate) convert: fn(&mut Fields),
    pub(crate) convert_back: fn(&mut Fields),
}
