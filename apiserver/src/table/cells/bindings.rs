//! Bindings of roles.

use serde_json::{Value, json};

use crate::fields::text;
use crate::table::Subject;

pub(in crate::table) fn role(binding: &Subject<'_>) -> Value {
    json!(format!("{}/{}", binding.text("roleRef.kind"), binding.text("roleRef.name")))
}

pub(in crate::table) fn users(binding: &Subject<'_>) -> Value {
    bound(binding, "User", |user| text(user, "name").to_owned())
}

pub(in crate::table) fn groups(binding: &Subject<'_>) -> Value {
    bound(binding, "Group", |group| text(group, "name").to_owned())
}

pub(in crate::table) fn accounts(binding: &Subject<'_>) -> Value {
    bound(binding, "ServiceAccount", |account| {
        format!("{}/{}", text(account, "namespace"), text(account, "name"))
    })
}

fn bound(binding: &Subject<'_>, kind: &str, name: fn(&Value) -> String) -> Value {
    let subjects = binding.list("subjects").iter();
    let names: Vec<String> =
        subjects.filter(|subject| text(subject, "kind") == kind).map(name).collect();
    json!(names.join(", "))
}
