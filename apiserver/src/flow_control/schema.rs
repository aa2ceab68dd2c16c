//! A flow schema: which requests belong to it.

use serde::Deserialize;

use crate::access::{Attributes, Names, User};

/// A flow schema.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct FlowSchema {
    pub(super) metadata: Meta,
    pub(super) spec: Spec,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Meta {
    pub(super) name: String,
    pub(super) uid: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Spec {
    matching_precedence: i64,
    #[serde(rename = "priorityLevelConfiguration")]
    pub(super) level: Named,
    rules: Option<Vec<Rule>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Named {
    pub(super) name: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Rule {
    subjects: Option<Vec<Subject>>,
    resource_rules: Option<Vec<ResourceRule>>,
    non_resource_rules: Option<Vec<PathRule>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Subject {
    user: Option<Named>,
    group: Option<Named>,
    service_account: Option<Account>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Account {
    namespace: String,
    name: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ResourceRule {
    verbs: Names,
    api_groups: Names,
    resources: Names,
    cluster_scope: bool,
    namespaces: Names,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct PathRule {
    verbs: Names,
    #[serde(rename = "nonResourceURLs")]
    paths: Names,
}

/// The name that stands for all.
const ANY: &str = "*";

// === impl FlowSchema ===

impl FlowSchema {
    /// Returns the schema's place in the order of the comparison.
    pub(super) fn rank(&self) -> (i64, &str) {
        (self.spec.matching_precedence, &self.metadata.name)
    }

    /// Returns true if a user's request belongs to the schema.
    pub(super) fn matches(&self, user: &User, request: &Attributes) -> bool {
        self.spec.rules.iter().flatten().any(|rule| rule.matches(user, request))
    }
}

// === impl Rule ===

impl Rule {
    fn matches(&self, user: &User, request: &Attributes) -> bool {
        self.subjects.iter().flatten().any(|subject| subject.is(user))
            && match &request.path {
                Some(path) => {
                    let mut rules = self.non_resource_rules.iter().flatten();
                    rules.any(|rule| rule.matches(&request.verb, path))
                }
                None => self.resource_rules.iter().flatten().any(|rule| rule.matches(request)),
            }
    }
}

// === impl Subject ===

impl Subject {
    /// Returns true if the user has the name, is in the group or is the account.
    fn is(&self, user: &User) -> bool {
        if let Some(Named { name }) = &self.user {
            return name == ANY || *name == user.name;
        }
        if let Some(Named { name }) = &self.group {
            return name == ANY || user.is_in(name);
        }
        let Some(account) = &self.service_account else { return false };
        let known = User::account_of(&user.name);
        known.is_some_and(|(namespace, name)| {
            account.namespace == namespace && (account.name == ANY || account.name == name)
        })
    }
}

// === impl ResourceRule ===

impl ResourceRule {
    fn matches(&self, request: &Attributes) -> bool {
        let Attributes { verb, namespace, group, resource, subresource, .. } = request;
        let has_resource = if subresource.is_empty() {
            self.resources.has(resource)
        } else {
            self.resources.has(&format!("{resource}/{subresource}"))
        };
        has_resource
            && self.verbs.has(verb)
            && self.api_groups.has(group)
            && if namespace.is_empty() {
                self.cluster_scope
            } else {
                self.namespaces.has(namespace)
            }
    }
}

// === impl PathRule ===

impl PathRule {
    fn matches(&self, verb: &str, path: &str) -> bool {
        self.verbs.has(verb) && self.paths.iter().any(|rule| covers(rule, path))
    }
}

/// Returns true if a rule for paths covers this one: it names it, or what it is below. Here, unlike
/// in roles, the rule `/a` covers `/a/b`, too.
pub(super) fn covers(rule: &str, path: &str) -> bool {
    if rule == ANY || rule == path {
        return true;
    }
    let parent = rule.strip_suffix('*').unwrap_or(rule);
    let parent = parent.strip_suffix('/').unwrap_or(parent);
    path.strip_prefix(parent).is_some_and(|rest| rest.starts_with('/'))
}
