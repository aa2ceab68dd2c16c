//! The names of operations and of their groups in the documents.

use crate::kinds::Kind;

pub(super) fn method(verb: &str) -> &'static str {
    match verb {
        "create" => "post",
        "update" => "put",
        "patch" => "patch",
        "delete" | "deletecollection" => "delete",
        _ => "get",
    }
}

/// Returns the documents' name for a verb.
pub(super) fn action(verb: &str) -> &str {
    match verb {
        "create" => "post",
        "update" => "put",
        other => other,
    }
}

/// Returns the article before a noun, and none before a plural.
pub(super) fn article(noun: &str, space: &str) -> String {
    if noun.ends_with('s') && !noun.ends_with("ss") {
        return String::new();
    }
    let vowel = noun.starts_with(['A', 'E', 'I', 'O', 'U', 'a', 'e', 'i', 'o', 'u']);
    format!("{}{space}", if vowel { "an" } else { "a" })
}

/// `core_v1`, `rbacAuthorization_v1`
pub(super) fn tag(kind: &Kind) -> String {
    let group = group_name(kind);
    let mut letters = group.chars();
    let first = letters.next().map(|first| first.to_ascii_lowercase());
    format!("{}{}_{}", first.map(String::from).unwrap_or_default(), letters.as_str(), kind.version)
}

/// `CoreV1`, `RbacAuthorizationV1`
pub(super) fn group_version(kind: &Kind) -> String {
    format!("{}{}", group_name(kind), capitalized(&kind.version))
}

fn group_name(kind: &Kind) -> String {
    let group = if kind.group.is_empty() { "core" } else { &kind.group };
    group.trim_end_matches(".k8s.io").split('.').map(capitalized).collect()
}

pub(super) fn capitalized(word: &str) -> String {
    let mut letters = word.chars();
    let first = letters.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}
