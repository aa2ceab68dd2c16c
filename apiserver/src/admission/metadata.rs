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
        let rules =
            Rules { name: names::path_segment, is_custom: true, sends_managers: true, times: 1 };
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
    /// The number of reports of two controllers, and of a wrong manager.
    times: usize,
}

/// Checks the rules that hold for creates and updates; `old` is the stored object of an update.
pub(super) fn check(
    kind: &Kind,
    object: &Fields,
    old: Option<&Fields>,
    sends_managers: bool,
    causes: &mut Vec<Cause>,
) {
    // For the update of a custom resource the real server validates these members three times, and
    // reports the error each time.
    let times = if kind.custom && old.is_some() { 3 } else { 1 };
    let rules = Rules { name: kind.name, is_custom: kind.custom, sends_managers, times };
    rules.check(object, old, causes);
}

impl Rules {
    fn check(self, object: &Fields, old: Option<&Fields>, causes: &mut Vec<Cause>) {
        let metadata = object.get("metadata").unwrap_or(&Value::Null);
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
        let old = old.and_then(|old| old.get("metadata"));
        // What did not change passed its check when it was stored.
        let changed = |key: &str| {
            let value = metadata.get(key);
            value.filter(|_| old.is_none_or(|old| value != old.get(key)))
        };
        let member = |key: &str| changed(key).unwrap_or(&Value::Null);
        selectors::labels(metadata, member("labels"), "metadata.labels", causes);
        selectors::annotations(member("annotations"), "metadata.annotations", causes);
        check_owners(self.times, changed("ownerReferences"), causes);
        check_finalizers(object, causes);
        if self.sends_managers {
            let mut found = Vec::new();
            check_managers(object, &mut found);
            for _ in 0..self.times {
                causes.extend(found.iter().cloned());
            }
        }
        if !self.is_custom {
            check_domains(object, causes);
        }
    }
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

fn check_owners(times: usize, owners: Option<&Value>, causes: &mut Vec<Cause>) {
    let Some(Value::Array(list)) = owners else { return };
    let mut controllers = Vec::new();
    for (at, owner) in list.iter().enumerate() {
        let text = |key: &str| owner.get(key).and_then(Value::as_str).unwrap_or("");
        for member in ["apiVersion", "kind", "name", "uid"] {
            if text(member).is_empty() {
                let path = format!("metadata.ownerReferences[{at}].{member}");
                causes.push(Cause::required(path, "must not be empty"));
            }
        }
        if text("apiVersion").matches('/').count() > 1 {
            let path = format!("metadata.ownerReferences[{at}].apiVersion");
            let detail = "must be <group>/<version> or <version>";
            causes.push(Cause::invalid(path, &json!(text("apiVersion")), detail));
        }
        if text("apiVersion") == "v1" && text("kind") == "Event" {
            let detail = "/v1, Kind=Event is disallowed from being an owner";
            causes.push(Cause::invalid(format!("metadata.ownerReferences[{at}]"), owner, detail));
        }
        if owner.get("controller") == Some(&json!(true)) {
            controllers.push(format!("{}/{}", text("kind"), text("name")));
        }
    }
    if let [first, second, ..] = controllers.as_slice() {
        let detail = format!(
            "Only one reference can have Controller set to true. Found \"true\" in references for \
             {first} and {second}"
        );
        let cause = Cause::invalid("metadata.ownerReferences", &json!(list), &detail);
        causes.extend(std::iter::repeat_n(cause, times));
    }
}

/// Checks the members that an update may not change.
pub(super) fn check_update(kind: &Kind, object: &Fields, old: &Fields, causes: &mut Vec<Cause>) {
    let mut found = Vec::new();
    for key in ["uid", "deletionTimestamp"] {
        let (new, old) = (meta_text(object, key), meta_text(old, key));
        if new != old {
            found.push(Cause::invalid(
                format!("metadata.{key}"),
                &json!(new),
                "field is immutable",
            ));
        }
    }
    let grace = |object: &Fields| object.get("metadata").and_then(|it| it.get(GRACE)).cloned();
    if let Some(new) = grace(object).filter(|new| grace(old).as_ref() != Some(new)) {
        let at = format!("metadata.{GRACE}");
        found.push(Cause::invalid(at, &new, "field is immutable"));
    }
    if is_terminating(old) {
        let known = finalizers(old);
        let added: Vec<String> = finalizers(object)
            .into_iter()
            .filter(|one| !known.contains(one))
            .map(|one| format!("\"{one}\""))
            .collect();
        if !added.is_empty() {
            let list = added.join(", ");
            let detail = format!(
                "no new finalizers can be added if the object is being deleted, found new \
                 finalizers []string{{{list}}}"
            );
            found.push(Cause::forbidden("metadata.finalizers", &detail));
        }
    }
    if kind.custom {
        // The real server reports each of these twice.
        causes.extend(found.clone());
    }
    causes.extend(found);
}
