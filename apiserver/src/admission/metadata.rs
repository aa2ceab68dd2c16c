//! Validation of an object's metadata.

use serde_json::{Value, json};

use super::managers::check_managers;
use super::{GRACE, finalizers, is_terminating, meta_text};
use crate::fields::Fields;
use crate::kinds::{Kind, selectors};
use crate::names::{self, NameCheck};
use crate::status::Cause;

/// Checks the metadata of the objects inside of a custom object.
pub(super) fn check_embedded(kind: &Kind, object: &Fields, causes: &mut Vec<Cause>) {
    let Some(definition) = &kind.definition else { return };
    for (path, mut metadata) in definition.embedded_metadata(object) {
        // It may have no name.
        let name = metadata.get("name").and_then(Value::as_str).unwrap_or_default();
        if name.is_empty() {
            metadata.insert("name".to_owned(), json!("fakename"));
        }
        let namespace = metadata.get("namespace").and_then(Value::as_str).unwrap_or_default();
        let namespace = namespace.to_owned();
        let object = Fields::from_iter([("metadata".to_owned(), Value::Object(metadata))]);
        let rules = Rules { name: names::path_segment, is_custom: true, sends_managers: true };
        let mut found = Vec::new();
        rules.check(&object, None, &mut found);
        if !namespace.is_empty() {
            let (problems, shown) = (names::dns_label(&namespace), json!(namespace));
            let at = "metadata.namespace";
            found.extend(problems.iter().map(|detail| Cause::invalid(at, &shown, detail)));
        }
        let outer = path.strip_suffix("metadata").unwrap_or(&path);
        causes.extend(found.into_iter().map(|cause| cause.below(outer)));
    }
}

/// The rules for the metadata of an object.
#[derive(Debug, Clone, Copy)]
struct Rules {
    name: NameCheck,
    is_custom: bool,
    /// True if the client sent managers. Those that the server wrote are good.
    sends_managers: bool,
}

/// Checks the rules that hold for creates and updates; `old` is the stored object of an update.
pub(super) fn check(
    kind: &Kind,
    object: &Fields,
    old: Option<&Fields>,
    sends_managers: bool,
    causes: &mut Vec<Cause>,
) {
    let rules = Rules { name: kind.name, is_custom: kind.custom, sends_managers };
    rules.check(object, old, causes);
}

impl Rules {
    fn check(self, object: &Fields, old: Option<&Fields>, causes: &mut Vec<Cause>) {
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
        let found = (self.name)(name);
        causes.extend(
            found.iter().map(|detail| Cause::invalid("metadata.name", &json!(name), detail)),
        );
        check_lists(object, old, causes);
        check_finalizers(object, causes);
        if self.sends_managers {
            check_managers(object, causes);
        }
        if !self.is_custom {
            check_domains(object, causes);
        }
    }
}

/// Checks labels, annotations and owners. What is as in `old` passed its check when it was stored.
fn check_lists(object: &Fields, old: Option<&Fields>, causes: &mut Vec<Cause>) {
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

/// Removes owners that are listed twice. Returns the warning about them; `when` says when they were
/// found.
pub(crate) fn drop_repeated_owners(object: &mut Fields, when: &str) -> Option<String> {
    let owners = object.get_mut("metadata")?.get_mut("ownerReferences")?.as_array_mut()?;
    let mut kept: Vec<Value> = Vec::with_capacity(owners.len());
    let mut repeated = Vec::new();
    for owner in owners.drain(..) {
        if kept.contains(&owner) {
            repeated.push(owner["uid"].as_str().unwrap_or_default().to_owned());
        } else {
            kept.push(owner);
        }
    }
    *owners = kept;
    (!repeated.is_empty()).then(|| {
        format!(
            ".metadata.ownerReferences contains duplicate entries{when}; API server dedups owner \
             references in 1.20+, and may reject such requests as early as 1.24; please fix your \
             requests; duplicate UID(s) observed: {}",
            repeated.join(", ")
        )
    })
}

/// The finalizers that need no domain prefix.
const STANDARD: [&str; 4] =
    ["kubernetes", "foregroundDeletion", "orphan", "customresourcecleanup.apiextensions.k8s.io"];

/// Returns the warning about a finalizer of a custom resource that other clients may use, too.
pub(crate) fn finalizer_warning(finalizer: &str) -> Option<String> {
    if finalizer.contains('/') || STANDARD.contains(&finalizer) {
        return None;
    }
    let path = if finalizer.contains('.') { " including a path (/)" } else { "" };
    Some(format!(
        "metadata.finalizers: \"{finalizer}\": prefer a domain-qualified finalizer name{path} to \
         avoid accidental conflicts with other finalizer writers"
    ))
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

/// Checks what holds only for updates.
///
/// For a custom resource the real server makes these checks twice, and each time checks the lists
/// and the managers as well. It reports each error again.
pub(super) fn check_update(
    kind: &Kind,
    object: &Fields,
    old: &Fields,
    sends_managers: bool,
    causes: &mut Vec<Cause>,
) {
    let mut found = Vec::new();
    check_new_finalizers(object, old, &mut found);
    check_immutable(object, old, &mut found);
    if kind.custom {
        check_lists(object, Some(old), &mut found);
        if sends_managers {
            check_managers(object, &mut found);
        }
        causes.extend(found.clone());
    }
    causes.extend(found);
}

fn check_immutable(object: &Fields, old: &Fields, causes: &mut Vec<Cause>) {
    for key in ["uid", "deletionTimestamp"] {
        let (new, old) = (meta_text(object, key), meta_text(old, key));
        if new != old {
            let at = format!("metadata.{key}");
            causes.push(Cause::invalid(at, &json!(new), "field is immutable"));
        }
    }
    let grace = |object: &Fields| object.get("metadata").and_then(|it| it.get(GRACE)).cloned();
    if let Some(new) = grace(object).filter(|new| grace(old).as_ref() != Some(new)) {
        let at = format!("metadata.{GRACE}");
        causes.push(Cause::invalid(at, &new, "field is immutable"));
    }
}

/// Checks that an object that is deleted gets no new finalizers.
fn check_new_finalizers(object: &Fields, old: &Fields, causes: &mut Vec<Cause>) {
    if !is_terminating(old) {
        return;
    }
    let known = finalizers(old);
    let added: Vec<String> = finalizers(object)
        .into_iter()
        .filter(|one| !known.contains(one))
        .map(|one| format!("\"{one}\""))
        .collect();
    if !added.is_empty() {
        let list = added.join(", ");
        let detail = format!(
            "no new finalizers can be added if the object is being deleted, found new finalizers \
             []string{{{list}}}"
        );
        causes.push(Cause::forbidden("metadata.finalizers", &detail));
    }
}
