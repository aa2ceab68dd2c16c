//! The rules for the metadata of an object, whatever its kind.

use serde_json::{Value, json};

use super::managers::{check_managers, managers_of};
use super::selectors;
use crate::fields::{Fields, finalizers, meta_text};
use crate::names::{self, NameCheck};
use crate::status::Cause;

/// The rules for the metadata of an object.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MetadataRules<'a> {
    pub(crate) name: NameCheck,
    /// True if finalizers need no domain.
    pub(crate) any_finalizer: bool,
    /// The managers that a client, a webhook or a policy gave: those of the server are good.
    pub(crate) managers: Option<&'a Value>,
}

/// The finalizers that need no domain prefix.
pub(crate) const STANDARD: [&str; 4] =
    ["kubernetes", "foregroundDeletion", "orphan", "customresourcecleanup.apiextensions.k8s.io"];

impl MetadataRules<'_> {
    /// Checks an object. What is as in `old` passed its check when it was stored.
    pub(crate) fn check(self, object: &Fields, old: Option<&Fields>, causes: &mut Vec<Cause>) {
        let base = meta_text(object, "generateName");
        if !base.is_empty() {
            let mut whole = base.to_owned();
            if base.ends_with('-') && base.len() > 1 {
                // The random part that follows completes the name.
                whole.truncate(base.len() - 1);
                whole.push('a');
            }
            let found = (self.name)(&whole);
            let base = json!(base);
            causes.extend(
                found.iter().map(|detail| Cause::invalid("metadata.generateName", &base, detail)),
            );
        }
        let name = meta_text(object, "name");
        // A missing name has been refused before.
        let found = if name.is_empty() { Vec::new() } else { (self.name)(name) };
        causes.extend(
            found.iter().map(|detail| Cause::invalid("metadata.name", &json!(name), detail)),
        );
        let generation = object.get("metadata").and_then(|metadata| metadata.get("generation"));
        if let Some(number) = generation.filter(|it| it.as_i64().is_some_and(|it| it < 0)) {
            let detail = "must be greater than or equal to 0";
            causes.push(Cause::invalid("metadata.generation", number, detail));
        }
        check_lists(object, old, causes);
        check_finalizers(object, causes);
        check_managers(self.managers, causes);
        if !self.any_finalizer {
            check_domains(object, causes);
        }
    }
}

/// Checks labels, annotations and owners. What is as in `old` passed its check when it was stored.
pub(crate) fn check_lists(object: &Fields, old: Option<&Fields>, causes: &mut Vec<Cause>) {
    let metadata = object.get("metadata").unwrap_or(&Value::Null);
    let old = old.and_then(|old| old.get("metadata"));
    let changed = |key: &str| {
        let value = metadata.get(key);
        value.filter(|_| old.is_none_or(|old| value != old.get(key)))
    };
    let member = |key: &str| changed(key).unwrap_or(&Value::Null);
    selectors::labels(metadata, member("labels"), "metadata.labels", causes);
    selectors::annotations(member("annotations"), "metadata.annotations", causes);
    check_owners(changed("ownerReferences"), causes);
}

/// Checks the metadata of an object inside of another one. It may have no name.
pub(crate) fn check_inner(mut metadata: Fields) -> Vec<Cause> {
    let text = |name: &str| metadata.get(name).and_then(Value::as_str).unwrap_or_default();
    let namespace = text("namespace").to_owned();
    if text("name").is_empty() {
        metadata.insert("name".to_owned(), json!("fakename"));
    }
    let object = Fields::from_iter([("metadata".to_owned(), Value::Object(metadata))]);
    let name = names::path_segment;
    let mut found = Vec::new();
    let managers = managers_of(&object);
    MetadataRules { name, any_finalizer: true, managers }.check(&object, None, &mut found);
    if !namespace.is_empty() {
        let (problems, shown) = (names::dns_label(&namespace), json!(namespace));
        let at = "metadata.namespace";
        found.extend(problems.iter().map(|detail| Cause::invalid(at, &shown, detail)));
    }
    found
}

fn check_finalizers(object: &Fields, causes: &mut Vec<Cause>) {
    for finalizer in finalizers(object) {
        let shown = json!(finalizer);
        let found = names::qualified(finalizer);
        causes.extend(
            found.iter().map(|detail| Cause::invalid("metadata.finalizers", &shown, detail)),
        );
    }
    let all = finalizers(object);
    if ["orphan", "foregroundDeletion"].iter().all(|one| all.contains(one)) {
        let detail = "finalizer orphan and foregroundDeletion cannot be both set";
        causes.push(Cause::invalid("metadata.finalizers", &json!(all), detail));
    }
}

/// Checks that each finalizer of a built-in kind has a domain prefix or is a standard one.
fn check_domains(object: &Fields, causes: &mut Vec<Cause>) {
    for (at, finalizer) in finalizers(object).into_iter().enumerate() {
        if !finalizer.contains('/') && !STANDARD.contains(&finalizer) {
            let detail = "name is neither a standard finalizer name nor is it fully qualified";
            let at = format!("metadata.finalizers[{at}]");
            causes.push(Cause::invalid(at, &json!(finalizer), detail));
        }
    }
}

/// Checks a finalizer outside of the metadata.
pub(crate) fn check_finalizer(finalizer: &Value, at: &str, causes: &mut Vec<Cause>) {
    let name = finalizer.as_str().unwrap_or_default();
    let mut found = names::qualified(name);
    if !name.contains('/') && !STANDARD.contains(&name) {
        found.push("name is neither a standard finalizer name nor is it fully qualified".into());
    }
    causes.extend(found.iter().map(|detail| Cause::invalid(at, finalizer, detail)));
}

/// The members that each owner has.
const OWNER: [&str; 4] = ["apiVersion", "kind", "name", "uid"];

fn check_owners(owners: Option<&Value>, causes: &mut Vec<Cause>) {
    let Some(Value::Array(list)) = owners else { return };
    let mut first: Option<String> = None;
    for (at, owner) in list.iter().enumerate() {
        check_owner(owner, &format!("metadata.ownerReferences[{at}]"), causes);
        if owner.get("controller") != Some(&json!(true)) {
            continue;
        }
        let name = format!("{}/{}", member_text(owner, "kind"), member_text(owner, "name"));
        let Some(first) = &first else {
            first = Some(name);
            continue;
        };
        let detail = format!(
            "Only one reference can have Controller set to true. Found \"true\" in references for \
             {first} and {name}"
        );
        let shown: Value = list.iter().map(shown_owner).collect();
        causes.push(Cause::invalid("metadata.ownerReferences", &shown, &detail));
    }
}

fn check_owner(owner: &Value, path: &str, causes: &mut Vec<Cause>) {
    let api_version = member_text(owner, "apiVersion");
    // The core group is empty: `/v1`.
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    for member in OWNER {
        let at = format!("{path}.{member}");
        if member_text(owner, member).is_empty() {
            causes.push(Cause::required(at, "must not be empty"));
        } else if member == "apiVersion" && (version.is_empty() || version.contains('/')) {
            let detail = "must be <group>/<version> or <version>";
            causes.push(Cause::invalid(at, &json!(api_version), detail));
        }
    }
    if (group, version, member_text(owner, "kind")) == ("", "v1", "Event") {
        let detail = "/v1, Kind=Event is disallowed from being an owner";
        causes.push(Cause::invalid(path, &shown_owner(owner), detail));
    }
}

fn member_text<'a>(owner: &'a Value, member: &str) -> &'a str {
    owner.get(member).and_then(Value::as_str).unwrap_or_default()
}

/// Returns an owner as messages show it: with an empty text for each member that is missing.
fn shown_owner(owner: &Value) -> Value {
    let mut shown = owner.as_object().cloned().unwrap_or_default();
    for member in OWNER {
        shown.insert(member.to_owned(), json!(member_text(owner, member)));
    }
    Value::Object(shown)
}
