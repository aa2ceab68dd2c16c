//! The user on whose behalf a request is made.

use std::collections::BTreeMap;
use std::fmt;

use homeostat_schema::names::{dns_label, dns_subdomain};

/// The group whose members may do everything, whatever the roles say.
const MASTERS: &str = "system:masters";
/// The group of every user but the anonymous one.
const AUTHENTICATED: &str = "system:authenticated";
/// The name of a user without credentials, and its group.
const ANONYMOUS: (&str, &str) = ("system:anonymous", "system:unauthenticated");
/// The prefix of the user names of service accounts.
const SERVICE_ACCOUNT: &str = "system:serviceaccount:";

/// The key of the node of a service account's pod.
const NODE_NAME: &str = "authentication.kubernetes.io/node-name";

/// A user, as the API server's access control knows it.
///
/// # Examples
///
/// ```
/// use homeostat_apiserver::User;
///
/// let user = User::service_account("shop", "web");
/// assert_eq!(user.name(), "system:serviceaccount:shop:web");
/// assert!(user.groups().any(|group| group == "system:serviceaccounts:shop"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    pub(crate) name: String,
    /// Empty if the user has none.
    pub(crate) uid: String,
    pub(crate) groups: Vec<String>,
    /// Further values of the credentials by key, such as the node of a service account's pod.
    pub(crate) extra: BTreeMap<String, Vec<String>>,
}

// === impl User ===

impl User {
    /// Returns a user with this name, in the group `system:authenticated`.
    pub fn new(name: impl Into<String>) -> Self {
        Self::in_groups(name, vec![AUTHENTICATED.to_owned()])
    }

    /// Returns the user of a service account, in the three groups of service accounts.
    pub fn service_account(namespace: &str, name: &str) -> Self {
        let groups = vec![
            "system:serviceaccounts".to_owned(),
            format!("system:serviceaccounts:{namespace}"),
            AUTHENTICATED.to_owned(),
        ];
        Self::in_groups(format!("{SERVICE_ACCOUNT}{namespace}:{name}"), groups)
    }

    /// Returns the administrator, who may do everything.
    pub fn admin() -> Self {
        Self::new("kubernetes-admin").in_group(MASTERS)
    }

    /// Returns the user of a request without credentials.
    pub(crate) fn anonymous() -> Self {
        let (name, group) = ANONYMOUS;
        Self::in_groups(name, vec![group.to_owned()])
    }

    fn in_groups(name: impl Into<String>, groups: Vec<String>) -> Self {
        Self { name: name.into(), uid: String::new(), groups, extra: BTreeMap::new() }
    }

    /// Returns the user as a member of another group, too.
    #[must_use]
    pub fn in_group(mut self, group: impl Into<String>) -> Self {
        let group = group.into();
        if !self.groups.contains(&group) {
            // The real server, too, names the group of all users last.
            let at = self.groups.iter().position(|known| known == AUTHENTICATED);
            self.groups.insert(at.unwrap_or(self.groups.len()), group);
        }
        self
    }

    /// Returns the user with this uid.
    #[must_use]
    pub fn with_uid(mut self, uid: impl Into<String>) -> Self {
        self.uid = uid.into();
        self
    }

    /// Returns the user name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the names of the user's groups.
    pub fn groups(&self) -> impl Iterator<Item = &str> {
        self.groups.iter().map(String::as_str)
    }

    /// Returns a user with exactly these groups, of which `system:authenticated` is always one
    /// unless the user is anonymous. Without groups, a service account is in its own.
    pub(crate) fn impersonated(name: &str, uid: &str, groups: Vec<String>) -> Self {
        let account = Self::account_of(name);
        let mut user = match account {
            Some((namespace, account)) if groups.is_empty() => {
                Self::service_account(namespace, account)
            }
            _ => Self::in_groups(name, groups),
        };
        uid.clone_into(&mut user.uid);
        let (anonymous, unauthenticated) = ANONYMOUS;
        if name == anonymous {
            return user.with_group_at_the_end(unauthenticated);
        }
        if user.is_in(unauthenticated) { user } else { user.with_group_at_the_end(AUTHENTICATED) }
    }

    fn with_group_at_the_end(mut self, group: &str) -> Self {
        if !self.is_in(group) {
            self.groups.push(group.to_owned());
        }
        self
    }

    /// Returns the namespace and the name of a service account from its user name.
    pub(crate) fn account_of(name: &str) -> Option<(&str, &str)> {
        let (namespace, account) = name.strip_prefix(SERVICE_ACCOUNT)?.split_once(':')?;
        (dns_label(namespace).is_empty() && dns_subdomain(account).is_empty())
            .then_some((namespace, account))
    }

    /// Returns the node of the pod of a service account, if its token names one.
    pub(crate) fn node(&self) -> Option<&str> {
        let nodes = self.extra.get(NODE_NAME).filter(|_| Self::account_of(&self.name).is_some())?;
        if let [node] = &nodes[..] { Some(node) } else { None }
    }

    pub(crate) fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|known| known == group)
    }

    /// Returns true if the user may do everything, whatever the roles say.
    pub(crate) fn is_master(&self) -> bool {
        self.is_in(MASTERS)
    }
}

impl fmt::Display for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impersonated_user_has_the_groups_of_its_kind() {
        let groups = |name: &str, groups: &[&str]| {
            let groups = groups.iter().map(|group| (*group).to_owned()).collect();
            User::impersonated(name, "", groups).groups
        };
        assert_eq!(groups("jane", &[]), ["system:authenticated"]);
        assert_eq!(groups("jane", &["dev"]), ["dev", "system:authenticated"]);
        assert_eq!(groups("system:anonymous", &[]), ["system:unauthenticated"]);
        assert_eq!(
            groups("system:serviceaccount:a:b", &[]),
            ["system:serviceaccounts", "system:serviceaccounts:a", "system:authenticated"]
        );
        assert_eq!(groups("system:serviceaccount:a:b", &["x"]), ["x", "system:authenticated"]);
    }

    #[test]
    fn name_of_an_account_has_two_parts() {
        assert_eq!(User::account_of("system:serviceaccount:a:b"), Some(("a", "b")));
        for other in [
            "jane",
            "system:serviceaccount:a",
            "system:serviceaccount::b",
            "system:serviceaccount:a:b:c",
            "system:serviceaccount:A:b",
            "system:serviceaccount:a:b_c",
        ] {
            assert_eq!(User::account_of(other), None, "{other}");
        }
    }
}
