//! Impersonation: the user that the headers of a request name, and the rights that this takes.
//!
//! As on kube-apiserver with the feature `ConstrainedImpersonation`, which is on by default, there
//! are several ways to have the right. A [`Mode`] takes two kinds of it: the right to be the user
//! (`impersonate:MODE`), and the right to make such requests in that way
//! (`impersonate-on:MODE:VERB`). The last way is older: the right `impersonate` alone.

use std::collections::BTreeMap;
use std::sync::Arc;

use homeostat_core::go_quote;
use homeostat_schema::aggregate;
use http::HeaderMap;

use super::roles::check;
use crate::access::{Attributes, User};
use crate::core::Core;
use crate::kinds::check_domain_path;
use crate::names::dns_subdomain;
use crate::request::params::decode_lossy;
use crate::status::{Cause, Failure, Result};

/// The group of the constrained rights, and of the rights to uids and extra values.
const GROUP: &str = "authentication.k8s.io";
/// The verb of the right that is not constrained.
const IMPERSONATE: &str = "impersonate";
/// The number of groups or extra values from which the right to all of them is checked first.
const MANY: usize = 4;
const MASTERS: &str = "system:masters";
const NODES: &str = "system:nodes";
const NODE_PREFIX: &str = "system:node:";

/// The user that the headers name.
#[derive(Debug, Default, PartialEq, Eq)]
struct Wanted {
    name: String,
    uid: String,
    groups: Vec<String>,
    extra: BTreeMap<String, Vec<String>>,
}

/// A way to impersonate. All but the last are constrained.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// A service account is the node of its own pod.
    AssociatedNode,
    Node,
    ServiceAccount,
    /// Any other user.
    UserInfo,
    /// Any user, by the older right.
    Legacy,
}

/// Returns the user that the request impersonates, or `user` if it impersonates none. `request` is
/// the request as rules describe it.
pub(super) fn user_of(
    core: &Core,
    headers: &HeaderMap,
    user: Arc<User>,
    request: Option<&Attributes>,
) -> Result<Arc<User>> {
    if !headers.keys().any(|name| name.as_str().starts_with("impersonate-")) {
        return Ok(user);
    }
    let wanted = Wanted::of(headers);
    if wanted == Wanted::default() {
        return Ok(user);
    }
    if wanted.name.is_empty() {
        return Err(Failure::bad_request(wanted.without_name()));
    }
    let may = |attributes: &Attributes| check(core, &user, attributes);
    let last = core.access.last_mode(&user.name);
    let mode = wanted.admit((&user, request), last, may)?;
    core.access.remember_mode(&user.name, mode as usize);
    Ok(Arc::new(wanted.into_user(mode)))
}

// === impl Wanted ===

impl Wanted {
    fn of(headers: &HeaderMap) -> Self {
        let text =
            |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or("");
        let groups = headers.get_all("impersonate-group").iter();
        Self {
            name: text("impersonate-user").to_owned(),
            uid: text("impersonate-uid").to_owned(),
            groups: groups.filter_map(|value| value.to_str().ok()).map(str::to_owned).collect(),
            extra: extra(headers),
        }
    }

    /// Returns the first mode in which `may` permits to be the user. The mode in which the
    /// requester has impersonated last comes first, as in upstream. The failure is that of the
    /// first mode that applies.
    fn admit(
        &self,
        (requester, request): (&User, Option<&Attributes>),
        last: Option<usize>,
        may: impl Fn(&Attributes) -> Result<()>,
    ) -> Result<Mode> {
        let mut modes = Mode::ALL;
        // Stable: the others stay in their order.
        modes.sort_by_key(|mode| last != Some(*mode as usize));
        let mut refusal = None;
        for mode in modes.into_iter().filter(|mode| mode.applies(self, requester)) {
            match mode.check(self, (requester, request), &may) {
                Ok(()) => return Ok(mode),
                Err(failure) => refusal = refusal.or(Some(failure)),
            }
        }
        // The mode that is not constrained applies to all users.
        Err(refusal.unwrap_or_else(Failure::unauthorized))
    }

    fn into_user(mut self, mode: Mode) -> User {
        self.groups.extend(mode.groups().iter().map(|group| (*group).to_owned()));
        let mut user = User::impersonated(&self.name, &self.uid, self.groups);
        user.extra = self.extra;
        user
    }

    /// Checks the rights to be the user, of the way that is not constrained.
    fn check_legacy(&self, may: &impl Fn(&Attributes) -> Result<()>) -> Result<()> {
        let right = |resource: &str, name: &str| right(IMPERSONATE, "", resource, name);
        may(&match User::account_of(&self.name) {
            Some((namespace, name)) => {
                Attributes { namespace: namespace.to_owned(), ..right("serviceaccounts", name) }
            }
            None => right("users", &self.name),
        })?;
        self.check_uid(IMPERSONATE, may)?;
        self.groups.iter().try_for_each(|group| may(&right("groups", group)))?;
        self.check_extra(IMPERSONATE, may)
    }

    fn check_uid(&self, verb: &str, may: &impl Fn(&Attributes) -> Result<()>) -> Result<()> {
        if self.uid.is_empty() { Ok(()) } else { may(&right(verb, GROUP, "uids", &self.uid)) }
    }

    fn check_extra(&self, verb: &str, may: &impl Fn(&Attributes) -> Result<()>) -> Result<()> {
        let values =
            self.extra.iter().flat_map(|(key, values)| values.iter().map(move |v| (key, v)));
        values.into_iter().try_for_each(|(key, value)| may(&right_to_extra(verb, key, value)))
    }

    fn has_only_a_name(&self) -> bool {
        self.uid.is_empty() && self.groups.is_empty() && self.extra.is_empty()
    }

    /// Returns the name of the node that the user is.
    fn node(&self) -> Option<&str> {
        let name = self.name.strip_prefix(NODE_PREFIX)?;
        dns_subdomain(name).is_empty().then_some(name)
    }

    /// Returns the text about headers without a user name, as Go prints the rest of them.
    fn without_name(&self) -> String {
        let Self { uid, groups, extra, .. } = self;
        let list = |texts: &[String]| {
            let quoted: Vec<String> = texts.iter().map(|text| go_quote(text)).collect();
            format!("[]string{{{}}}", quoted.join(", "))
        };
        let groups = if groups.is_empty() { "[]string(nil)".to_owned() } else { list(groups) };
        let extra = if extra.is_empty() {
            "(nil)".to_owned()
        } else {
            let members =
                extra.iter().map(|(key, values)| format!("{}:{}", go_quote(key), list(values)));
            format!("{{{}}}", members.collect::<Vec<_>>().join(", "))
        };
        format!(
            "requested &user.DefaultInfo{{Name:\"\", UID:{}, Groups:{groups}, \
             Extra:map[string][]string{extra}}} without impersonating a user name",
            go_quote(uid)
        )
    }
}

/// Returns the values of the headers `Impersonate-Extra-KEY`, by key.
fn extra(headers: &HeaderMap) -> BTreeMap<String, Vec<String>> {
    let mut extra: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, value) in headers {
        let key = name.as_str().strip_prefix("impersonate-extra-").and_then(decode_lossy);
        if let (Some(key), Ok(value)) = (key, value.to_str()) {
            extra.entry(key.into_owned()).or_default().push(value.to_owned());
        }
    }
    extra
}

// === impl Mode ===

impl Mode {
    /// The modes, in the order in which they are tried.
    const ALL: [Self; 5] =
        [Self::AssociatedNode, Self::Node, Self::ServiceAccount, Self::UserInfo, Self::Legacy];

    fn name(self) -> &'static str {
        match self {
            Self::AssociatedNode => "associated-node",
            Self::Node => "arbitrary-node",
            Self::ServiceAccount => "serviceaccount",
            Self::UserInfo => "user-info",
            Self::Legacy => "legacy",
        }
    }

    /// Returns true if the requester may become such a user in this mode, if its rights suffice.
    fn applies(self, wanted: &Wanted, requester: &User) -> bool {
        let is_account = User::account_of(&wanted.name).is_some();
        match self {
            Self::AssociatedNode => {
                let is_own = wanted.node().is_some() && wanted.node() == requester.node();
                is_own && wanted.has_only_a_name()
            }
            Self::Node => wanted.has_only_a_name() && wanted.node().is_some(),
            Self::ServiceAccount => wanted.has_only_a_name() && is_account,
            Self::UserInfo => wanted.node().is_none() && !is_account,
            Self::Legacy => true,
        }
    }

    /// The groups that the server gives to the user in this mode.
    fn groups(self) -> &'static [&'static str] {
        match self {
            Self::AssociatedNode | Self::Node => &[NODES],
            Self::ServiceAccount | Self::UserInfo | Self::Legacy => &[],
        }
    }

    /// Checks the right to make the request in this mode, if the mode is constrained, then the
    /// rights to be the user.
    fn check(
        self,
        wanted: &Wanted,
        (requester, request): (&User, Option<&Attributes>),
        may: &impl Fn(&Attributes) -> Result<()>,
    ) -> Result<()> {
        if self == Self::Legacy {
            return wanted.check_legacy(may);
        }
        if let Some(request) = request {
            let verb = format!("impersonate-on:{}:{}", self.name(), request.verb);
            may(&Attributes { verb, ..request.clone() })?;
        }
        let verb = format!("{IMPERSONATE}:{}", self.name());
        may(&self.right_to_name(&verb, wanted))?;
        wanted.check_uid(&verb, may)?;
        check_groups(&verb, wanted, requester, may)?;
        check_extra(&verb, wanted, requester, may)
    }

    /// Returns the right to be a user of this name.
    fn right_to_name(self, verb: &str, wanted: &Wanted) -> Attributes {
        match self {
            // The right is one to be any node: the pod decides which.
            Self::AssociatedNode => right(verb, GROUP, "nodes", "*"),
            Self::Node => right(verb, GROUP, "nodes", wanted.node().unwrap_or_default()),
            Self::ServiceAccount => {
                let (namespace, name) = User::account_of(&wanted.name).unwrap_or_default();
                let right = right(verb, GROUP, "serviceaccounts", name);
                Attributes { namespace: namespace.to_owned(), ..right }
            }
            Self::UserInfo | Self::Legacy => right(verb, GROUP, "users", &wanted.name),
        }
    }
}

/// Checks the rights to be in groups, in a constrained way.
fn check_groups(
    verb: &str,
    wanted: &Wanted,
    requester: &User,
    may: &impl Fn(&Attributes) -> Result<()>,
) -> Result<()> {
    let groups = &wanted.groups;
    let right = |name: &str| right(verb, GROUP, "groups", name);
    for (group, named, problem) in [
        ("", "", "impersonating the empty string group is not allowed"),
        (MASTERS, MASTERS, "impersonating the system:masters group is not allowed"),
    ] {
        if groups.iter().any(|wanted| wanted == group) {
            return Err(Failure::access_denied(&requester.name, &right(named), problem));
        }
    }
    if groups.len() >= MANY && may(&right("*")).is_ok() {
        return Ok(());
    }
    groups.iter().try_for_each(|group| may(&right(group)))
}

/// Checks the rights to have extra values, in a constrained way.
fn check_extra(
    verb: &str,
    wanted: &Wanted,
    requester: &User,
    may: &impl Fn(&Attributes) -> Result<()>,
) -> Result<()> {
    if let Some(problem) = wanted.extra.iter().find_map(|(key, values)| problem(key, values)) {
        let right = right(verb, GROUP, "userextras", "");
        return Err(Failure::access_denied(&requester.name, &right, &problem));
    }
    let is_large = wanted.extra.values().map(Vec::len).sum::<usize>() >= MANY;
    if is_large && may(&right_to_extra(verb, "*", "*")).is_ok() {
        return Ok(());
    }
    wanted.check_extra(verb, may)
}

/// Returns what is wrong with an extra value, for a constrained way.
fn problem(key: &str, values: &[String]) -> Option<String> {
    let text = if key.is_empty() {
        "impersonating the empty string key in extra is not allowed".to_owned()
    } else if let Some(problems) = key_problems(key) {
        format!("impersonating an invalid key in extra is not allowed: {problems}")
    } else if *key != key.to_lowercase() {
        format!("impersonating a non-lowercase key in extra is not allowed: {}", go_quote(key))
    } else if values.iter().any(String::is_empty) {
        "impersonating the empty string value in extra is not allowed".to_owned()
    } else {
        return None;
    };
    Some(text)
}

/// Returns what is wrong with the form of a key.
fn key_problems(key: &str) -> Option<String> {
    let mut causes = Vec::new();
    check_domain_path(key, "extra.key", &mut causes);
    (!causes.is_empty()).then(|| aggregate(causes.iter().map(Cause::text)))
}

fn right(verb: &str, group: &str, resource: &str, name: &str) -> Attributes {
    Attributes {
        verb: verb.to_owned(),
        group: group.to_owned(),
        resource: resource.to_owned(),
        name: name.to_owned(),
        ..Attributes::default()
    }
}

fn right_to_extra(verb: &str, key: &str, value: &str) -> Attributes {
    Attributes { subresource: key.to_owned(), ..right(verb, GROUP, "userextras", value) }
}
