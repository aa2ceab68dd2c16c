//! Persistent volumes (`ValidatePersistentVolumeSpec`).

use std::borrow::Cow;

use serde_json::{Value, json};

use super::Test::{Between, By, Has, OneOf, Required, Text};
use super::affinity::NODE_SELECTOR;
use super::storage_claim::access_modes;
use super::volumes::Source;
use super::{
    Causes, Check, is_empty, member, paths, text, volume_affinity, volume_disks as disks, volumes,
};
use crate::fields::Fields;
use crate::status::Cause;
use crate::{go_diff, names, quantity};

/// The sources, in the order of the real server.
const SOURCES: &[Source] = &[
    Source::new("hostPath", volumes::HOST_PATH),
    Source { checked_at: "persistentDisk", ..Source::new("gcePersistentDisk", disks::GCE) },
    Source::new("awsElasticBlockStore", disks::AWS),
    Source::new("glusterfs", GLUSTER),
    Source::new("flocker", disks::FLOCKER),
    Source::new("nfs", disks::NFS),
    Source::new("rbd", disks::RBD),
    Source::new("quobyte", disks::QUOBYTE),
    Source { refused_at: "cephFS", ..Source::new("cephfs", disks::CEPH_FS) },
    Source::new("iscsi", ISCSI),
    Source::new("cinder", CINDER),
    Source::new("fc", disks::FIBRE_CHANNEL),
    Source::new("flexVolume", disks::FLEX),
    Source::new("azureFile", AZURE_FILE),
    Source::new("vsphereVolume", &[("volumePath", Required(""))]),
    Source::new("photonPersistentDisk", &[("pdID", Required(""))]),
    Source::new("portworxVolume", &[("volumeID", Required(""))]),
    Source::new("azureDisk", disks::AZURE),
    Source::new("scaleIO", disks::SCALE_IO),
    Source::new("local", &[("path", Required("")), ("path", By(path))]),
    Source::new("storageos", STORAGE_OS),
    Source::new("csi", CSI),
];

const GLUSTER: &[Check] =
    &[("endpoints", Required("")), ("path", Required("")), ("endpointsNamespace", By(namespace))];

/// A reference of which only the presence of the names is checked.
const NAMED: &[Check] = &[("name", Required("")), ("namespace", Required(""))];

const SECRET: &[Check] = &[
    ("name", Required("")),
    ("name", Text(names::dns_subdomain)),
    ("namespace", Required("")),
    ("namespace", Text(names::dns_label)),
];

const ISCSI: &[Check] = &[
    ("targetPortal", Required("")),
    ("iqn", Required("")),
    ("iqn", By(target)),
    ("lun", Between(0, 255)),
    ("", By(disks::secret_for_chap)),
    ("secretRef", Has(&[("name", Required(""))])),
    ("", By(initiator)),
];

const CINDER: &[Check] = &[("volumeID", Required("")), ("secretRef", Has(NAMED))];

const AZURE_FILE: &[Check] =
    &[("secretName", Required("")), ("shareName", Required("")), ("", By(secret_namespace))];

const STORAGE_OS: &[Check] = &[
    ("volumeName", Required("")),
    ("volumeName", Text(names::dns_label)),
    ("volumeNamespace", Text(names::dns_label)),
    ("secretRef", Has(NAMED)),
];

const CSI: &[Check] = &[
    ("driver", By(volumes::driver)),
    ("volumeHandle", Required("")),
    ("controllerPublishSecretRef", Has(SECRET)),
    ("controllerExpandSecretRef", Has(SECRET)),
    ("nodePublishSecretRef", Has(SECRET)),
    ("nodeExpandSecretRef", Has(SECRET)),
];

const ACCESS_MODES: &[Check] = &[("accessModes", Required("")), ("accessModes", By(access_modes))];

const SPEC: &[Check] = &[
    ("", Has(ACCESS_MODES)),
    ("capacity", Required("")),
    ("capacity", By(capacity)),
    ("persistentVolumeReclaimPolicy", OneOf(&["Delete", "Recycle", "Retain"])),
    ("nodeAffinity", Has(&[("required", By(required_nodes)), ("required", Has(NODE_SELECTOR))])),
    ("", By(source)),
    ("", By(recycled_root)),
    ("storageClassName", Text(names::dns_subdomain)),
    ("volumeMode", OneOf(&["Block", "Filesystem"])),
    ("", By(attributes)),
];

/// Checks a volume, and that an update keeps its source and mode.
pub(crate) fn volume(volume: &Fields, old: Option<&Fields>, causes: Causes<'_>) {
    let null = Value::Null;
    let spec = volume.get("spec").unwrap_or(&null);
    super::run(SPEC, spec, "spec", causes);
    let Some(old) = old.map(|old| old.get("spec").unwrap_or(&null)) else { return };
    let source = without_new_secret(spec, old);
    if !sources(&source).eq(sources(old)) {
        let diff = go_diff::diff("core.PersistentVolumeSource", old, &source);
        let detail = format!("spec.persistentvolumesource is immutable after creation\n{diff}");
        causes.push(Cause::forbidden("spec.persistentvolumesource", &detail));
    }
    if member(spec, "volumeMode") != member(old, "volumeMode") {
        let mode = member(spec, "volumeMode");
        causes.push(Cause::invalid("volumeMode", mode, "field is immutable"));
    }
    volume_affinity::unchanged(spec, old, causes);
    let classes = [spec, old].map(|spec| member(spec, "volumeAttributesClassName"));
    if classes[0].is_null() && !classes[1].is_null() {
        let detail = "update from non-nil value to nil is forbidden";
        causes.push(Cause::forbidden("spec.volumeAttributesClassName", detail));
    }
}

/// Checks the class of a volume's attributes, which only a volume of a CSI driver has.
fn attributes(_: &Value, spec: &Value, at: &str, causes: Causes<'_>) {
    let class = member(spec, "volumeAttributesClassName");
    if class.is_null() {
        return;
    }
    let path = format!("{at}.volumeAttributesClassName");
    if is_empty(class) {
        causes.push(Cause::required(&*path, "an empty string is disallowed"));
    } else {
        super::check_text(class, names::dns_subdomain, &path, causes);
    }
    if member(spec, "csi").is_null() {
        let detail = "has to be specified when using volumeAttributesClassName";
        causes.push(Cause::required(format!("{at}.csi"), detail));
    }
}

/// Checks a volume that another object describes: it has no members but the source of a CSI driver
/// and what mounts need.
pub(super) fn inline(spec: &Value, at: &str, causes: Causes<'_>) {
    const WHERE: &str = "in the context of inline volumes";
    let forbid = |name: &str, detail: &str| {
        Cause::forbidden(format!("{at}.{name}"), &format!("{detail} {WHERE}"))
    };
    let forbid_members = |names: &[&str], causes: Causes<'_>| {
        let given = names.iter().filter(|name| !is_empty(member(spec, name)));
        causes.extend(given.map(|name| forbid(name, "may not be specified")));
    };
    forbid_members(&["claimRef", "capacity"], causes);
    if member(spec, "csi").is_null() {
        let detail = format!("has to be specified {WHERE}");
        causes.push(Cause::required(format!("{at}.csi"), &detail));
    }
    super::run(ACCESS_MODES, spec, at, causes);
    let policy = text(spec, "persistentVolumeReclaimPolicy");
    if !matches!(policy, "" | "Retain") {
        causes.push(forbid("persistentVolumeReclaimPolicy", "may only be Retain"));
    }
    if !member(spec, "nodeAffinity").is_null() {
        causes.push(forbid("nodeAffinity", "may not be specified"));
    }
    super::run(&[("", By(source))], spec, at, causes);
    forbid_members(&["storageClassName"], causes);
    let mode = member(spec, "volumeMode");
    if !mode.is_null() && mode != "Filesystem" {
        causes.push(forbid("volumeMode", "may not specify volumeMode other than Filesystem"));
    }
    super::run(&[("", By(attributes))], spec, at, causes);
}

/// Returns a spec without the secret for expansions, if the stored volume of a CSI driver has none:
/// it can be added.
fn without_new_secret<'a>(spec: &'a Value, old: &Value) -> Cow<'a, Value> {
    const SECRET: &str = "controllerExpandSecretRef";
    let mut spec = Cow::Borrowed(spec);
    let (stored, sent) = (member(old, "csi"), member(&spec, "csi"));
    let is_added = member(stored, SECRET).is_null() && !member(sent, SECRET).is_null();
    if stored.is_object()
        && is_added
        && let Some(sent) = spec.to_mut().get_mut("csi").and_then(Value::as_object_mut)
    {
        sent.remove(SECRET);
    }
    spec
}

fn sources(spec: &Value) -> impl Iterator<Item = &Value> {
    SOURCES.iter().map(|source| member(spec, source.member))
}

fn capacity(_: &Value, capacity: &Value, at: &str, causes: Causes<'_>) {
    let amounts = capacity.as_object();
    if !amounts.is_some_and(|amounts| amounts.len() == 1 && amounts.contains_key("storage")) {
        causes.push(Cause::unsupported(at, capacity, &["storage"]));
    }
    for (name, amount) in amounts.into_iter().flatten() {
        let Some(read) = quantity::read(amount) else { continue };
        let at = format!("{at}[{name}]");
        if read.is_negative() {
            let detail = "must be a valid resource quantity";
            causes.push(Cause::invalid(&*at, &json!(read.value()), detail));
        }
        if read.is_negative() || read.is_zero() {
            causes.push(Cause::invalid(at, &json!(read.to_string()), "must be greater than zero"));
        }
    }
}

fn required_nodes(_: &Value, nodes: &Value, at: &str, causes: Causes<'_>) {
    if nodes.is_null() {
        causes.push(Cause::required(at, "must specify required node constraints"));
    }
}

/// Checks the source of a volume.
fn source(_: &Value, spec: &Value, at: &str, causes: Causes<'_>) {
    let count = volumes::check_sources(SOURCES, spec, at, |_, _, _| {}, causes);
    if !member(spec, "local").is_null() && member(spec, "nodeAffinity").is_null() {
        let detail = "Local volume requires node affinity";
        causes.push(Cause::required(format!("{at}.nodeAffinity"), detail));
    }
    if count == 0 {
        causes.push(Cause::required(at, "must specify a volume type"));
    }
}

fn recycled_root(_: &Value, spec: &Value, at: &str, causes: Causes<'_>) {
    let path = text(member(spec, "hostPath"), "path");
    let is_root = !path.is_empty() && path.split('/').all(|part| matches!(part, "" | "."));
    if path.starts_with('/') && is_root && text(spec, "persistentVolumeReclaimPolicy") == "Recycle"
    {
        let detail = "may not be 'recycle' for a hostPath mount of '/'";
        causes.push(Cause::forbidden(format!("{at}.persistentVolumeReclaimPolicy"), detail));
    }
}

fn target(_: &Value, name: &Value, at: &str, causes: Causes<'_>) {
    let name = name.as_str().filter(|name| !name.is_empty());
    check_target(name, at, causes);
}

/// Checks the name of the client. The real server writes its member in lower case.
fn initiator(_: &Value, source: &Value, at: &str, causes: Causes<'_>) {
    check_target(member(source, "initiatorName").as_str(), &format!("{at}.initiatorname"), causes);
}

/// Checks the name of a target or a client.
fn check_target(name: Option<&str>, at: &str, causes: Causes<'_>) {
    if let Some(name) = name.filter(|name| disks::problem_of_name(name).is_some()) {
        causes.push(Cause::invalid(at, &json!(name), "must be valid format"));
    }
}

fn path(_: &Value, path: &Value, at: &str, causes: Causes<'_>) {
    paths::without_backsteps(path.as_str().unwrap_or_default(), at, causes);
}

fn namespace(_: &Value, namespace: &Value, at: &str, causes: Causes<'_>) {
    if *namespace == "" {
        let detail = "if the endpointnamespace is set, it must be a valid namespace name";
        causes.push(Cause::invalid(at, namespace, detail));
    } else {
        super::check_text(namespace, names::dns_label, at, causes);
    }
}

fn secret_namespace(_: &Value, source: &Value, at: &str, causes: Causes<'_>) {
    let namespace = member(source, "secretNamespace");
    if !namespace.is_null() && is_empty(namespace) {
        causes.push(Cause::required(format!("{at}.secretNamespace"), ""));
    }
}
