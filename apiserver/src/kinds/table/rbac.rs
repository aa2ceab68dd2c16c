//! The groups `rbac.authorization.k8s.io`, `authorization.k8s.io` and `authentication.k8s.io`.

use serde_json::{Value, json};

use super::named;
use crate::access::RBAC_GROUP;
use crate::fields::Fields;
use crate::kinds::DefaultValue::{From, Json};
use crate::kinds::{Defaults, Kind, Operations, Review, checks};
use crate::names;

const SUBJECTS: Defaults =
    Defaults { under: "", rules: &[("subjects[].apiGroup", From(subject_group))] };
const ROLE_REF: Defaults =
    Defaults { under: "roleRef", rules: &[("apiGroup", Json("\"rbac.authorization.k8s.io\""))] };

pub(super) fn rows() -> Vec<Kind> {
    vec![
        review("authentication.k8s.io", "TokenReview", "tokenreviews", Review::Token),
        review("authentication.k8s.io", "SelfSubjectReview", "selfsubjectreviews", Review::Own),
        Kind {
            namespaced: true,
            ..review(
                "authorization.k8s.io",
                "LocalSubjectAccessReview",
                "localsubjectaccessreviews",
                Review::Access,
            )
        },
        review(
            "authorization.k8s.io",
            "SelfSubjectAccessReview",
            "selfsubjectaccessreviews",
            Review::OwnAccess,
        ),
        review(
            "authorization.k8s.io",
            "SelfSubjectRulesReview",
            "selfsubjectrulesreviews",
            Review::OwnRules,
        ),
        review(
            "authorization.k8s.io",
            "SubjectAccessReview",
            "subjectaccessreviews",
            Review::Access,
        ),
        Kind {
            derive: empty_is_null,
            null_if_empty: &["rules"],
            validate: checks::rbac::role,
            ..of_group("Role", "roles")
        },
        Kind {
            namespaced: false,
            derive: empty_is_null,
            null_if_empty: &["rules"],
            validate: checks::rbac::cluster_role,
            ..of_group("ClusterRole", "clusterroles")
        },
        Kind {
            validate: checks::rbac::binding,
            defaults: &[SUBJECTS, ROLE_REF],
            ..of_group("RoleBinding", "rolebindings")
        },
        Kind {
            namespaced: false,
            validate: checks::rbac::cluster_binding,
            defaults: &[SUBJECTS, ROLE_REF],
            ..of_group("ClusterRoleBinding", "clusterrolebindings")
        },
    ]
}

fn of_group(kind: &'static str, plural: &'static str) -> Kind {
    Kind { name: names::path_segment, create_on_update: true, ..named(RBAC_GROUP, kind, plural) }
}

fn review(group: &'static str, kind: &'static str, plural: &'static str, review: Review) -> Kind {
    Kind {
        namespaced: false,
        review: Some(review),
        operations: Operations::Create,
        ..named(group, kind, plural)
    }
}

/// Replaces a list of no rules by null, as the real server's storage does.
fn empty_is_null(role: &mut Fields) {
    if role.get("rules").and_then(Value::as_array).is_some_and(Vec::is_empty) {
        role.insert("rules".to_owned(), Value::Null);
    }
}

fn subject_group(subject: &Fields) -> Value {
    match subject.get("kind").and_then(Value::as_str) {
        Some("User" | "Group") => json!(RBAC_GROUP),
        _ => Value::Null,
    }
}
