//! Volumes and the classes and drivers that provide them.

use serde_json::{Value, json};

use super::Test::{By, EachNamed, Has, OneOf, Required, Text};
use super::{Check, is_empty, member};
use crate::fields::{Fields, read_path};
use crate::names;
use crate::status::Cause;

type Causes<'a> = &'a mut Vec<Cause>;

fn run(checks: &[Check], object: &Fields, causes: Causes<'_>) {
    super::run(checks, &Value::Object(object.clone()), "", causes);
}

pub(crate) fn class(class: &Fields, old: Option<&Fields>, causes: Causes<'_>) {
    const FIXED: &[&str] = &["parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"];
    const CLASS: &[Check] = &[
        ("provisioner", Required("")),
        ("provisioner", By(provisioner)),
        ("reclaimPolicy", OneOf(&["Delete", "Retain"])),
        ("volumeBindingMode", OneOf(&["Immediate", "WaitForFirstConsumer"])),
    ];
    run(CLASS, class, causes);
    super::unchanged(FIXED, class, old, causes);
}

pub(crate) fn csi_driver(driver: &Fields, old: Option<&Fields>, causes: Causes<'_>) {
    let Some(old) = old else { return };
    let member = |object: &Fields, path| read_path(object, path).cloned().unwrap_or_default();
    // The real server names the first one as its first version did.
    for (path, shown_at) in [
        ("spec.attachRequired", "spec.attachedRequired"),
        ("spec.volumeLifecycleModes", "spec.volumeLifecycleModes"),
    ] {
        let new = member(driver, path);
        if new != member(old, path) {
            causes.push(Cause::invalid(shown_at, &new, "field is immutable"));
        }
    }
}

/// Checks the name of a provisioner, whose case does not matter: messages show it in lower case.
fn provisioner(_: &Value, name: &Value, at: &str, causes: Causes<'_>) {
    let name = name.as_str().unwrap_or_default().to_lowercase();
    if !name.is_empty() {
        super::check_text(&json!(name), names::qualified, at, causes);
    }
}

fn lower_qualified(name: &str) -> Vec<std::borrow::Cow<'static, str>> {
    names::qualified(&name.to_lowercase())
}

pub(crate) fn csi_node(node: &Fields, _: Option<&Fields>, causes: Causes<'_>) {
    const DRIVER: &[Check] = &[("name", Required("")), ("nodeID", Required(""))];
    run(&[("spec.drivers", EachNamed("name", DRIVER))], node, causes);
}

pub(crate) fn capacity(capacity: &Fields, _: Option<&Fields>, causes: Causes<'_>) {
    let class = capacity.get("storageClassName").and_then(Value::as_str).unwrap_or_default();
    super::check_text(&json!(class), names::dns_subdomain, "storageClassName", causes);
}

pub(crate) fn attachment(attachment: &Fields, _: Option<&Fields>, causes: Causes<'_>) {
    const SPEC: &[Check] = &[
        ("attacher", Required("")),
        ("source", By(one_source)),
        ("nodeName", Required("")),
        ("nodeName", Text(names::dns_subdomain)),
    ];
    run(&[("spec", Has(SPEC))], attachment, causes);
}

fn one_source(_: &Value, source: &Value, at: &str, causes: Causes<'_>) {
    let is_set = |key: &str| !is_empty(member(source, key));
    match (is_set("inlineVolumeSpec"), is_set("persistentVolumeName")) {
        (false, false) => {
            let detail = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
            causes.push(Cause::required(at, detail));
        }
        (true, true) => {
            let detail = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
            causes.push(Cause::invalid(at, source, detail));
        }
        _ => {}
    }
}

pub(crate) fn attributes_class(class: &Fields, old: Option<&Fields>, causes: Causes<'_>) {
    const CLASS: &[Check] = &[
        ("driverName", Required("")),
        ("driverName", Text(lower_qualified)),
        ("parameters", Required("must contain at least one key/value pair")),
    ];
    run(CLASS, class, causes);
    let Some(old) = old else { return };
    for key in
        ["driverName", "parameters"].into_iter().filter(|key| class.get(*key) != old.get(*key))
    {
        causes.push(Cause::forbidden(key, &format!("updates to {key} are forbidden.")));
    }
}
