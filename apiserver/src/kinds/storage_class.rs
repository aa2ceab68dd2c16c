//! The default storage class.

use std::cmp::Reverse;

use serde_json::{Value, json};

use super::annotations::STORAGE_CLASS;
use super::columns::{AdmitError, GuardedWrite};
use crate::fields::{Fields, read_path};
use crate::quantity;

/// The annotations that mark a default class.
const IS_DEFAULT: [&str; 2] = [
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
];

/// Returns the position of the default class.
pub(super) fn find_default(classes: &[Fields]) -> Option<usize> {
    find_marked(classes, &IS_DEFAULT)
}

/// Returns the position of the class that an annotation marks: of several, the newest one, then the
/// first by name.
pub(super) fn find_marked(classes: &[Fields], marks: &[&str]) -> Option<usize> {
    let is_default = |class: &Fields| {
        let annotations = read_path(class, "metadata.annotations");
        let has = |key: &&str| annotations.and_then(|all| all.get(*key)) == Some(&json!("true"));
        marks.iter().any(has)
    };
    let of = |class: &Fields, path: &str| {
        read_path(class, path).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let classes = classes.iter().enumerate().filter(|(_, class)| is_default(class));
    let newest = classes.min_by_key(|(_, class)| {
        (Reverse(of(class, "metadata.creationTimestamp")), of(class, "metadata.name"))
    });
    newest.map(|(at, _)| at)
}

/// Gives a claim that asks for no class the default one (the plugin `DefaultStorageClass`).
#[expect(clippy::unnecessary_wraps, reason = "the type of an admission")]
pub(super) fn set_default(
    claim: &mut Fields,
    _: &dyn Fn(&str) -> Option<Fields>,
    all: &dyn Fn() -> Vec<Fields>,
) -> Result<(), AdmitError> {
    name_default(claim, ("storageClassName", STORAGE_CLASS), all, find_default);
    Ok(())
}

/// Names the default class in the spec of an object, unless the member or the older annotation
/// names one. `find` returns the place of the default class.
pub(super) fn name_default(
    object: &mut Fields,
    (member, annotation): (&str, &str),
    all: &dyn Fn() -> Vec<Fields>,
    find: impl FnOnce(&[Fields]) -> Option<usize>,
) {
    let is_named = read_path(object, "spec").is_some_and(|spec| !spec[member].is_null());
    let annotations = read_path(object, "metadata.annotations");
    if is_named || annotations.is_some_and(|all| all.get(annotation).is_some()) {
        return;
    }
    let classes = all();
    let Some(at) = find(&classes) else { return };
    let name = read_path(&classes[at], "metadata.name").cloned();
    if let (Some(Value::Object(spec)), Some(name)) = (object.get_mut("spec"), name) {
        spec.insert(member.to_owned(), name);
    }
}

/// Refuses to resize a claim whose class does not permit it (the plugin
/// `PersistentVolumeClaimResize`). A claim that is not bound is invalid before.
pub(super) fn check_resize(write: &GuardedWrite<'_>) -> Result<(), String> {
    let Some(old) = write.old else { return Ok(()) };
    let size = |claim: &Fields| {
        let size = read_path(claim, "spec.resources.requests.storage").and_then(quantity::read);
        size.unwrap_or_default()
    };
    if size(write.new) <= size(old) {
        return Ok(());
    }
    let class = class_of(write.new);
    let is_growing = |class: &str| {
        let class = (write.find)("storage.k8s.io", "storageclasses", class);
        class.is_some_and(|class| class.get("allowVolumeExpansion") == Some(&json!(true)))
    };
    if !class.is_empty() && class == class_of(old) && is_growing(class) {
        return Ok(());
    }
    Err("only dynamically provisioned pvc can be resized and the storageclass that provisions \
         the pvc must support resize"
        .to_owned())
}

/// Returns the class that a claim names; empty if it names none.
fn class_of(claim: &Fields) -> &str {
    let annotated = read_path(claim, "metadata.annotations").and_then(|all| all.get(STORAGE_CLASS));
    let class = annotated.or_else(|| read_path(claim, "spec.storageClassName"));
    class.and_then(Value::as_str).unwrap_or_default()
}

/// Returns the warnings about a claim.
pub(super) fn warn(claim: &Fields, _: Option<&Fields>) -> Vec<String> {
    let mut warnings = Vec::new();
    if read_path(claim, "metadata.annotations").is_some_and(|all| all.get(STORAGE_CLASS).is_some())
    {
        warnings.push(format!(
            "metadata.annotations[{STORAGE_CLASS}]: deprecated since v1.8; use \
             \"storageClassName\" attribute instead"
        ));
    }
    warnings.extend(claim.get("spec").into_iter().flat_map(|spec| claim_amounts(spec, "spec")));
    warnings
}

/// Returns the warnings about the amounts in the spec of a claim, at the path `at`.
pub(super) fn claim_amounts(spec: &Value, at: &str) -> Vec<String> {
    let warning = |list: &str| {
        let amount = spec.pointer(&format!("/resources/{list}/storage"));
        quantity::fraction_warning(amount, || format!("{at}.resources.{list}[storage]"))
    };
    ["requests", "limits"].into_iter().filter_map(warning).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(name: &str, created: &str, is_default: &str) -> Fields {
        let class = json!({"metadata": {"name": name, "creationTimestamp": created,
            "annotations": {IS_DEFAULT[0]: is_default}}});
        class.as_object().unwrap().clone()
    }

    #[test]
    fn newest_default_counts_then_the_first_by_name() {
        let (old, new) = ("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z");
        assert_eq!(find_default(&[class("a", new, "false")]), None);
        assert_eq!(find_default(&[class("a", old, "true"), class("b", new, "true")]), Some(1));
        assert_eq!(find_default(&[class("b", old, "true"), class("a", old, "true")]), Some(1));
    }

    #[test]
    fn claim_with_a_class_keeps_it() {
        let set = |spec: Value, annotations: Value| {
            let claim = json!({"spec": spec, "metadata": {"annotations": annotations}});
            let mut claim = claim.as_object().unwrap().clone();
            let all = || vec![class("a", "2026-01-01T00:00:00Z", "true")];
            set_default(&mut claim, &|_| None, &all).unwrap();
            claim["spec"]["storageClassName"].clone()
        };
        assert_eq!(set(json!({}), json!(null)), "a");
        assert_eq!(set(json!({"storageClassName": null}), json!({})), "a");
        assert_eq!(set(json!({"storageClassName": ""}), json!({})), "");
        assert_eq!(set(json!({}), json!({STORAGE_CLASS: "b"})), Value::Null);
    }
}
