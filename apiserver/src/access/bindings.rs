//! RBAC: the bindings that give roles to users.

use serde::Deserialize;

use super::User;

/// The part of a `RoleBinding` or a `ClusterRoleBinding` that decides.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Binding {
    metadata: BindingMeta,
    subjects: Option<Vec<Subject>>,
    pub(crate) role_ref: RoleRef,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct BindingMeta {
    namespace: String,
    name: String,
}

/// A user, a group or a service account that has the role.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Subject {
    kind: String,
    namespace: String,
    name: String,
}

/// The role that a binding names.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct RoleRef {
    pub(crate) kind: String,
    pub(crate) name: String,
}

// === impl Binding ===

impl Binding {
    /// Returns the first subject that the user is; `None` if the binding does not apply to it.
    pub(crate) fn subject_of(&self, user: &User) -> Option<&Subject> {
        let namespace = &self.metadata.namespace;
        self.subjects.iter().flatten().find(|subject| subject.is(user, namespace))
    }

    /// Returns a description of the binding and of its subject: the reason of a decision.
    pub(crate) fn reason_for(&self, subject: &Subject) -> String {
        let namespace = &self.metadata.namespace;
        let (kind, place) = if namespace.is_empty() {
            ("ClusterRoleBinding", self.metadata.name.clone())
        } else {
            ("RoleBinding", format!("{}/{namespace}", self.metadata.name))
        };
        let role = &self.role_ref;
        let subject = subject.description(namespace);
        format!("{kind} \"{place}\" of {} \"{}\" to {subject}", role.kind, role.name)
    }
}

// === impl Subject ===

impl Subject {
    /// Returns true if this is the user. A service account without a namespace is one of the
    /// binding's.
    fn is(&self, user: &User, namespace: &str) -> bool {
        match self.kind.as_str() {
            "User" => user.name == self.name,
            "Group" => user.is_in(&self.name),
            "ServiceAccount" => {
                let namespace = self.namespace_or(namespace);
                User::account_of(&user.name) == Some((namespace, self.name.as_str()))
            }
            _ => false,
        }
    }

    fn namespace_or<'a>(&'a self, other: &'a str) -> &'a str {
        if self.namespace.is_empty() { other } else { &self.namespace }
    }

    fn description(&self, namespace: &str) -> String {
        let Self { kind, name, .. } = self;
        match kind.as_str() {
            "ServiceAccount" => format!("{kind} \"{name}/{}\"", self.namespace_or(namespace)),
            _ => format!("{kind} \"{name}\""),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn binding_gives_its_reason() {
        let binding: Binding = serde_json::from_value(json!({
            "metadata": {"namespace": "shop", "name": "readers"},
            "subjects": [
                {"kind": "Group", "name": "dev"}, {"kind": "ServiceAccount", "name": "web"},
                {"kind": "User", "name": "jane"},
            ],
            "roleRef": {"kind": "Role", "name": "reader"},
        }))
        .unwrap();
        let reason = |user: &User| Some(binding.reason_for(binding.subject_of(user)?));
        assert_eq!(
            reason(&User::service_account("shop", "web")).unwrap(),
            r#"RoleBinding "readers/shop" of Role "reader" to ServiceAccount "web/shop""#
        );
        assert_eq!(reason(&User::service_account("other", "web")), None);
        let developer = User::new("bob").in_group("dev");
        assert!(reason(&developer).unwrap().ends_with(r#"to Group "dev""#));
        assert!(reason(&User::new("jane")).unwrap().ends_with(r#"to User "jane""#));
        assert_eq!(reason(&User::new("web")), None);
    }
}
