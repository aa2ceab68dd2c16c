//! Updates of volume claims (`ValidatePersistentVolumeClaimUpdate`), and writes of their status.

use serde_json::{Value, json};

use super::{Causes, check_text, is_empty, member, quantities};
use crate::fields::{Fields, read_path, set_or_remove};
use crate::kinds::annotations::STORAGE_CLASS;
use crate::status::Cause;
use crate::{go_diff, names, quantity};

/// The states of a resize.
const RESIZES: &[&str] = &[
    "ControllerResizeInProgress",
    "ControllerResizeInfeasible",
    "NodeResizeInProgress",
    "NodeResizeInfeasible",
    "NodeResizePending",
];

/// The two specs of an update, and whether the claim names its class in place of the annotation
/// that named it before.
struct Update<'a> {
    new: &'a Value,
    old: &'a Value,
    /// The class that the annotation names: in the update, and in the stored claim.
    annotated: [Option<&'a str>; 2],
}

/// Checks that an update keeps the spec, apart from what may change.
pub(super) fn spec(claim: &Fields, stored: &Fields, causes: Causes<'_>) {
    let [new, old] = [claim, stored].map(|claim| claim.get("spec").unwrap_or(&Value::Null));
    let update = Update { new, old, annotated: [claim, stored].map(annotated_class) };
    if !update.moves_class() {
        update.annotation(causes);
    }
    let is_bound = read_path(stored, "status.phase") == Some(&json!("Bound"));
    update.fixed(is_bound, causes);
    let capacity = read_path(stored, "status.capacity").unwrap_or(&Value::Null);
    update.size(member(capacity, "storage"), causes);
    let [mode, before] = [new, old].map(|spec| member(spec, "volumeMode"));
    if mode != before {
        causes.push(Cause::invalid("volumeMode", mode, "field is immutable"));
    }
    let applied = read_path(stored, "status.currentVolumeAttributesClassName");
    update.attributes(applied.unwrap_or(&Value::Null), causes);
}

fn annotated_class(claim: &Fields) -> Option<&str> {
    read_path(claim, "metadata.annotations")?.get(STORAGE_CLASS)?.as_str()
}

/// Checks the status.
pub(super) fn status(claim: &Fields, causes: Causes<'_>) {
    let status = claim.get("status").unwrap_or(&Value::Null);
    for (name, amount) in member(status, "capacity").as_object().into_iter().flatten() {
        basic(amount, &format!("status.capacity[{name}]"), causes);
    }
    let at = "status.allocatedResourceStatuses";
    for (name, resize) in
        member(status, "allocatedResourceStatuses").as_object().into_iter().flatten()
    {
        resource_name(name, at, causes);
        if resize.as_str().is_none_or(|resize| !RESIZES.contains(&resize)) {
            // The real server shows the resource in place of its status.
            causes.push(Cause::unsupported(at, &json!(name), RESIZES));
        }
    }
    let at = "status.allocatedResources";
    for (name, amount) in member(status, "allocatedResources").as_object().into_iter().flatten() {
        let before = causes.len();
        resource_name(name, at, causes);
        if causes.len() > before {
            continue;
        }
        let at = format!("{at}[{name}]");
        basic(amount, &at, causes);
        if causes.len() == before {
            quantities::amount("storage", amount, &at, causes);
        }
    }
}

/// Checks that an amount is not negative.
fn basic(amount: &Value, at: &str, causes: Causes<'_>) {
    let value = quantity::read(amount).map(|read| read.value());
    if let Some(value) = value.filter(|value| *value < 0) {
        causes.push(Cause::invalid(at, &json!(value), "must be a valid resource quantity"));
    }
}

/// Checks the name of a resource of a claim: `storage`, or one of another domain.
fn resource_name(name: &str, at: &str, causes: Causes<'_>) {
    let before = causes.len();
    check_text(&json!(name), names::qualified, at, causes);
    if causes.len() == before && quantities::is_native(name) && name != "storage" {
        causes.push(Cause::unsupported(at, &json!(name), &["storage"]));
    }
}

// === impl Update ===

impl Update<'_> {
    /// Returns true if the class moves from the annotation to the spec.
    fn moves_class(&self) -> bool {
        let [annotated, before] = self.annotated;
        let is_new = member(self.old, "storageClassName").is_null();
        let class = member(self.new, "storageClassName").as_str();
        is_new
            && before.is_some()
            && class == before
            && (annotated.is_none() || annotated == before)
    }

    /// Returns true if the class may be set: the claim had none, or the annotation names the same.
    fn may_set_class(&self) -> bool {
        let class = member(self.new, "storageClassName").as_str();
        let before = self.annotated[1];
        member(self.old, "storageClassName").is_null()
            && class.is_some()
            && (before.is_none() || class == before)
    }

    fn annotation(&self, causes: Causes<'_>) {
        let [new, old] = self.annotated.map(Option::unwrap_or_default);
        if new != old {
            let at = format!("metadata.annotations.{STORAGE_CLASS}");
            causes.push(Cause::invalid(at, &json!(new), "field is immutable"));
        }
    }

    /// Checks what stays: the volume and the class are set once, and a bound claim may grow.
    fn fixed(&self, is_bound: bool, causes: Causes<'_>) {
        let (mut new, mut old) = (self.new.clone(), self.old.clone());
        if is_empty(member(&old, "volumeName")) {
            copy(&new, &mut old, "volumeName");
        }
        if self.may_set_class() {
            copy(&old, &mut new, "storageClassName");
        }
        if is_bound {
            copy(&old, &mut new, "volumeAttributesClassName");
            let requests = |spec: &Value| member(member(spec, "resources"), "requests").clone();
            if let Some(new) = new.pointer_mut("/resources/requests") {
                copy(&requests(&old), new, "storage");
            }
        }
        if new != old {
            let diff = go_diff::diff("core.PersistentVolumeClaimSpec", &old, &new);
            let detail = format!(
                "spec is immutable after creation except resources.requests and \
                 volumeAttributesClassName for bound claims\n{diff}"
            );
            causes.push(Cause::forbidden("spec", &detail));
        }
    }

    /// Checks that a claim which shrinks stays larger than its volume.
    fn size(&self, capacity: &Value, causes: Causes<'_>) {
        let size = |spec| {
            let requests = member(member(spec, "resources"), "requests");
            quantity::read(member(requests, "storage")).unwrap_or_default()
        };
        let (new, old) = (size(self.new), size(self.old));
        if new < old && new <= quantity::read(capacity).unwrap_or_default() {
            let at = "spec.resources.requests.storage";
            causes.push(Cause::forbidden(at, "field can not be less than status.capacity"));
        }
    }

    /// Checks that the class of attributes stays set once one has been applied to the volume.
    fn attributes(&self, applied: &Value, causes: Causes<'_>) {
        const KEY: &str = "volumeAttributesClassName";
        let class = member(self.new, KEY);
        if applied.is_null() || class == member(self.old, KEY) || !is_empty(class) {
            return;
        }
        let to = if class.is_null() { "nil" } else { "empty string" };
        let detail = format!(
            "update to {to} is forbidden when status.currentVolumeAttributesClassName is not nil"
        );
        causes.push(Cause::forbidden(format!("spec.{KEY}"), &detail));
    }
}

/// Copies a member, or removes it if it is missing.
fn copy(from: &Value, to: &mut Value, key: &str) {
    if let Some(members) = to.as_object_mut() {
        set_or_remove(members, key, from.get(key).cloned());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fields(object: Value) -> Fields {
        let Value::Object(fields) = object else { panic!("an object") };
        fields
    }

    /// Returns the fields that an update of a bound claim of 2Gi may not change.
    fn refused(new: &Value) -> Vec<String> {
        let old = json!({
            "metadata": {"annotations": {STORAGE_CLASS: "slow"}},
            "spec": {
                "volumeMode": "Filesystem", "volumeName": "v", "volumeAttributesClassName": "gold",
                "resources": {"requests": {"storage": "4Gi"}},
            },
            "status": {
                "phase": "Bound", "capacity": {"storage": "2Gi"},
                "currentVolumeAttributesClassName": "gold",
            },
        });
        let mut changed = old.clone();
        json_patch::merge(&mut changed, new);
        let mut causes = Vec::new();
        spec(&fields(changed), &fields(old), &mut causes);
        causes.iter().map(|cause| cause.field().to_owned()).collect()
    }

    #[test]
    fn bound_claim_may_change_its_size_down_to_its_volume() {
        let size = |size: &str| json!({"spec": {"resources": {"requests": {"storage": size}}}});
        assert_eq!(refused(&size("5Gi")), [""; 0]);
        assert_eq!(refused(&size("3Gi")), [""; 0]);
        assert_eq!(refused(&size("2Gi")), ["spec.resources.requests.storage"]);
        let other = json!({"spec": {"resources": {"requests": {"example.com/x": "1"}}}});
        assert_eq!(refused(&other), ["spec"]);
    }

    #[test]
    fn class_moves_from_its_annotation_to_the_spec() {
        let class = |class: &str, annotation: Value| {
            json!({
                "metadata": {"annotations": {STORAGE_CLASS: annotation}},
                "spec": {"storageClassName": class},
            })
        };
        let at = format!("metadata.annotations.{STORAGE_CLASS}");
        assert_eq!(refused(&class("slow", json!("slow"))), [""; 0]);
        assert_eq!(refused(&class("slow", Value::Null)), [""; 0]);
        assert_eq!(refused(&class("fast", json!("slow"))), ["spec"]);
        assert_eq!(refused(&class("fast", json!("fast"))), [&*at, "spec"]);
        assert_eq!(refused(&json!({"metadata": {"annotations": Value::Null}})), [&*at]);
    }

    #[test]
    fn applied_class_of_attributes_stays_set() {
        let class = |class: Value| json!({"spec": {"volumeAttributesClassName": class}});
        assert_eq!(refused(&class(json!("silver"))), [""; 0]);
        assert_eq!(refused(&class(Value::Null)), ["spec.volumeAttributesClassName"]);
        assert_eq!(refused(&class(json!(""))), ["spec.volumeAttributesClassName"]);
    }

    #[test]
    fn mode_and_volume_stay() {
        assert_eq!(refused(&json!({"spec": {"volumeMode": "Block"}})), ["spec", "volumeMode"]);
        assert_eq!(refused(&json!({"spec": {"volumeName": "w"}})), ["spec"]);
    }

    #[test]
    fn status_names_storage_and_known_states() {
        let claim = fields(json!({"status": {
            "capacity": {"storage": "-1"},
            "allocatedResources": {"cpu": "1", "storage": "1Gi", "example.com/x": "-2"},
            "allocatedResourceStatuses": {"storage": "Soon", "example.com/x": "NodeResizePending"},
        }}));
        let mut causes = Vec::new();
        status(&claim, &mut causes);
        let texts: Vec<String> = causes.iter().map(Cause::text).collect();
        let expected = [
            "status.capacity[storage]: Invalid value: -1: must be a valid resource quantity",
            "status.allocatedResourceStatuses: Unsupported value: \"storage\": supported values: \
             \"ControllerResizeInProgress\", \"ControllerResizeInfeasible\", \
             \"NodeResizeInProgress\", \"NodeResizeInfeasible\", \"NodeResizePending\"",
            "status.allocatedResources: Unsupported value: \"cpu\": supported values: \"storage\"",
            "status.allocatedResources[example.com/x]: Invalid value: -2: must be a valid \
             resource quantity",
        ];
        assert_eq!(texts, expected);
    }
}
