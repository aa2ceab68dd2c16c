//! Volumes and the classes and drivers that provide them.

use serde_json::{Value, json};

use super::Test::{By, EachNamed, Has, OneOf, Required, Text};
use super::{Check, is_empty, items, member};
use crate::fields::{Fields, read_path, text};
use crate::go_diff;
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
        ("provisioner", Text(lower_qualified)),
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

/// Members of a volume's spec that are not its source.
const NO_SOURCES: [&str; 9] = [
    "accessModes",
    "capacity",
    "claimRef",
    "mountOptions",
    "nodeAffinity",
    "persistentVolumeReclaimPolicy",
    "storageClassName",
    "volumeAttributesClassName",
    "volumeMode",
];

pub(crate) fn volume(volume: &Fields, old: Option<&Fields>, causes: Causes<'_>) {
    const POLICIES: &[&str] = &["Delete", "Recycle", "Retain"];
    const CSI: &[Check] = &[("driver", Required("")), ("volumeHandle", Required(""))];
    const SPEC: &[Check] = &[
        ("accessModes", Required("")),
        ("accessModes", By(access_modes)),
        ("capacity", Required("")),
        ("capacity", By(only_storage)),
        ("persistentVolumeReclaimPolicy", OneOf(POLICIES)),
        ("storageClassName", Text(names::dns_subdomain)),
        ("volumeMode", OneOf(&["Block", "Filesystem"])),
    ];
    let null = Value::Null;
    let spec = volume.get("spec").unwrap_or(&null);
    super::run(SPEC, spec, "spec", causes);
    match sources(spec).count() {
        0 => causes.push(Cause::required("spec", "must specify a volume type")),
        1 => {}
        _ => {
            for (name, _) in sources(spec).skip(1) {
                let detail = "may not specify more than 1 volume type";
                causes.push(Cause::forbidden(format!("spec.{name}"), detail));
            }
        }
    }
    if text(spec, "volumeMode") == "Filesystem" && !member(spec, "hostPath").is_null() {
        super::run(&[("hostPath.path", Required(""))], spec, "spec", causes);
    }
    if !member(spec, "csi").is_null() {
        super::run(CSI, member(spec, "csi"), "spec.csi", causes);
    }
    let Some(old) = old.map(|old| old.get("spec").unwrap_or(&null)) else { return };
    if !sources(spec).eq(sources(old)) {
        let diff = go_diff::diff("core.PersistentVolumeSource", old, spec);
        let detail = format!("spec.persistentvolumesource is immutable after creation\n{diff}");
        causes.push(Cause::forbidden("spec.persistentvolumesource", &detail));
    }
    if member(spec, "volumeMode") != member(old, "volumeMode") {
        let mode = member(spec, "volumeMode");
        causes.push(Cause::invalid("spec.volumeMode", mode, "field is immutable"));
    }
}

fn sources(spec: &Value) -> impl Iterator<Item = (&String, &Value)> {
    let members = spec.as_object().into_iter().flatten();
    members.filter(|(name, value)| !NO_SOURCES.contains(&name.as_str()) && !value.is_null())
}

fn only_storage(_: &Value, capacity: &Value, at: &str, causes: Causes<'_>) {
    let members = capacity.as_object();
    if !members.is_some_and(|members| members.len() == 1 && members.contains_key("storage")) {
        causes.push(Cause::unsupported(at, capacity, &["storage"]));
    }
}

fn access_modes(_: &Value, modes: &Value, at: &str, causes: Causes<'_>) {
    const MODES: &[&str] = &["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];
    for mode in items(modes).iter().filter(|mode| !MODES.iter().any(|known| **mode == *known)) {
        causes.push(Cause::unsupported(at, mode, MODES));
    }
    if items(modes).len() > 1 && items(modes).contains(&json!("ReadWriteOncePod")) {
        let detail = "may not use ReadWriteOncePod with other access modes";
        causes.push(Cause::forbidden(at, detail));
    }
}
