//! Volumes of pods (`ValidateVolumes`).

use serde_json::{Value, json};

use super::Test::{By, Has, OneOf, Required, Text};
use super::{Check, check_text, items, member, paths, quota, selectors, text};
use super::{volume_disks as disks, volume_files as files};
use crate::names;
use crate::quantity;
use crate::status::Cause;

/// A source of a volume.
struct Source {
    member: &'static str,
    /// The place of a cause within the source.
    checked_at: &'static str,
    /// The place of the cause about a second source.
    refused_at: &'static str,
    checks: &'static [Check],
}

const fn source(member: &'static str, checks: &'static [Check]) -> Source {
    Source { member, checked_at: member, refused_at: member, checks }
}

/// The sources, in the order of the real server. Three of its places differ from the member.
const SOURCES: &[Source] = &[
    source("emptyDir", &[("sizeLimit", By(size_limit))]),
    source("hostPath", &[("", By(host_path))]),
    source("gitRepo", &[("repository", Required("")), ("directory", By(descending))]),
    Source { checked_at: "persistentDisk", ..source("gcePersistentDisk", disks::GCE) },
    source("awsElasticBlockStore", disks::AWS),
    source("secret", files::SECRET),
    source("nfs", disks::NFS),
    source("iscsi", disks::ISCSI),
    source("glusterfs", disks::GLUSTER),
    source("flocker", disks::FLOCKER),
    source("persistentVolumeClaim", &[("claimName", Required(""))]),
    source("rbd", disks::RBD),
    source("cinder", disks::CINDER),
    Source { refused_at: "cephFS", ..source("cephfs", disks::CEPH_FS) },
    source("quobyte", disks::QUOBYTE),
    Source { refused_at: "downwarAPI", ..source("downwardAPI", files::DOWNWARD_API) },
    source("fc", disks::FIBRE_CHANNEL),
    source("flexVolume", disks::FLEX),
    source("configMap", files::CONFIG_MAP),
    source("azureFile", &[("secretName", Required("")), ("shareName", Required(""))]),
    source("vsphereVolume", &[("volumePath", Required(""))]),
    source("photonPersistentDisk", &[("pdID", Required(""))]),
    source("portworxVolume", &[("volumeID", Required(""))]),
    source("azureDisk", disks::AZURE),
    source("storageos", disks::STORAGE_OS),
    source("projected", files::PROJECTED),
    source("scaleIO", disks::SCALE_IO),
    source("csi", &[("", By(csi))]),
    source("ephemeral", EPHEMERAL),
    source("image", IMAGE),
];

const EPHEMERAL: &[Check] = &[
    ("volumeClaimTemplate", By(template_is_given)),
    ("volumeClaimTemplate", Has(&[("", By(claim_template))])),
];

const IMAGE: &[Check] = &[
    ("reference", Required("")),
    ("pullPolicy", Required("")),
    ("pullPolicy", OneOf(&["Always", "IfNotPresent", "Never"])),
];

const HOST_PATH_TYPES: &[&str] = &[
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
];

const NAME: &[Check] = &[("name", Required("")), ("name", Text(names::dns_label))];

/// Checks the volumes of a pod, whose name is empty in a template. Returns the valid ones, which
/// containers can mount.
pub(super) fn check<'a>(
    volumes: &'a Value,
    pod: &str,
    at: &str,
    causes: &mut Vec<Cause>,
) -> Vec<&'a Value> {
    let volumes = items(volumes);
    let made = |claim: &str| {
        !pod.is_empty()
            && volumes.iter().any(|volume| {
                let suffix = claim.strip_prefix(pod).and_then(|rest| rest.strip_prefix('-'));
                !member(volume, "ephemeral").is_null() && suffix == Some(text(volume, "name"))
            })
    };
    let mut valid: Vec<&Value> = Vec::new();
    for (place, volume) in volumes.iter().enumerate() {
        let (at, before) = (format!("{at}[{place}]"), causes.len());
        check_source(volume, pod, &at, causes);
        super::run(NAME, volume, &at, causes);
        let name = text(volume, "name");
        if valid.iter().any(|known| text(known, "name") == name) {
            causes.push(Cause::duplicate(format!("{at}.name"), &json!(name)));
        }
        if causes.len() == before {
            valid.push(volume);
        }
        let claim = text(member(volume, "persistentVolumeClaim"), "claimName");
        if !claim.is_empty() && made(claim) {
            let detail = "must not reference a PVC that gets created for an ephemeral volume";
            let at = format!("{at}.persistentVolumeClaim.claimName");
            causes.push(Cause::invalid(at, &json!(claim), detail));
        }
    }
    valid
}

fn check_source(volume: &Value, pod: &str, at: &str, causes: &mut Vec<Cause>) {
    let given = SOURCES.iter().filter(|source| !member(volume, source.member).is_null());
    let mut count = 0;
    for source in given {
        count += 1;
        if count == 1 {
            let at = format!("{at}.{}", source.checked_at);
            super::run(source.checks, member(volume, source.member), &at, causes);
        } else {
            let detail = "may not specify more than 1 volume type";
            causes.push(Cause::forbidden(format!("{at}.{}", source.refused_at), detail));
        }
        match source.member {
            "iscsi" => iscsi_name(volume, at, causes),
            "ephemeral" if count == 1 => claim_name(volume, pod, at, causes),
            _ => {}
        }
    }
    if count == 0 {
        causes.push(Cause::required(at, "must specify a volume type"));
    }
}

/// Checks the place of a target and the volume's name, which become one name.
fn iscsi_name(volume: &Value, at: &str, causes: &mut Vec<Cause>) {
    const LONGEST: usize = 64;
    let (name, source) = (text(volume, "name"), member(volume, "iscsi"));
    let length = name.len() + 1 + text(source, "targetPortal").len();
    if !member(source, "initiatorName").is_null() && length > LONGEST {
        let detail = "Total length of <volume name>:<iscsi.targetPortal> must be under 64 \
            characters if iscsi.initiatorName is specified.";
        causes.push(Cause::invalid(format!("{at}.name"), &json!(name), detail));
    }
}

/// Checks the name of the claim that the controller makes for the volume.
fn claim_name(volume: &Value, pod: &str, at: &str, causes: &mut Vec<Cause>) {
    let name = text(volume, "name");
    if pod.is_empty() || name.is_empty() {
        return;
    }
    let claim = format!("{pod}-{name}");
    for problem in names::dns_subdomain(&claim) {
        let detail = format!("PVC name {}: {problem}", json!(claim));
        causes.push(Cause::invalid(format!("{at}.name"), &json!(name), &detail));
    }
}

fn size_limit(_: &Value, limit: &Value, at: &str, causes: &mut Vec<Cause>) {
    if quantity::read(limit).is_some_and(|limit| limit.is_negative()) {
        causes.push(Cause::forbidden(at, "SizeLimit field must be a valid resource quantity"));
    }
}

fn host_path(_: &Value, source: &Value, at: &str, causes: &mut Vec<Cause>) {
    let (path, path_at) = (text(source, "path"), format!("{at}.path"));
    if path.is_empty() {
        causes.push(Cause::required(path_at, ""));
        return;
    }
    paths::without_backsteps(path, &path_at, causes);
    super::run(&[("type", OneOf(HOST_PATH_TYPES))], source, at, causes);
}

fn descending(_: &Value, path: &Value, at: &str, causes: &mut Vec<Cause>) {
    paths::descending(path.as_str().unwrap_or_default(), at, causes);
}

fn csi(_: &Value, source: &Value, at: &str, causes: &mut Vec<Cause>) {
    driver(text(source, "driver"), &format!("{at}.driver"), causes);
    let secret = member(source, "nodePublishSecretRef");
    if secret.is_null() {
        return;
    }
    let name = member(secret, "name");
    if text(secret, "name").is_empty() {
        causes.push(Cause::required(format!("{at}.nodePublishSecretRef.name"), ""));
    } else {
        check_text(name, names::dns_subdomain, &format!("{at}.name"), causes);
    }
}

/// Checks the name of a CSI driver, whose case does not matter.
fn driver(name: &str, at: &str, causes: &mut Vec<Cause>) {
    const LONGEST: usize = 63;
    if name.is_empty() {
        causes.push(Cause::required(at, ""));
        return;
    }
    if name.len() > LONGEST {
        causes.push(Cause::too_long(at, LONGEST));
    }
    let lower = |name: &str| names::dns_subdomain(&name.to_lowercase());
    check_text(&json!(name), lower, at, causes);
}

fn template_is_given(_: &Value, template: &Value, at: &str, causes: &mut Vec<Cause>) {
    if template.is_null() {
        causes.push(Cause::required(at, ""));
    }
}

fn claim_template(_: &Value, template: &Value, at: &str, causes: &mut Vec<Cause>) {
    const REFUSED: [(&str, &str); 8] = [
        ("name", "name"),
        ("generateName", "generateName"),
        ("namespace", "namespace"),
        ("uid", "uID"),
        ("resourceVersion", "resourceVersion"),
        ("generation", "generation"),
        ("ownerReferences", "ownerReferences"),
        ("finalizers", "finalizers"),
    ];
    let (metadata, metadata_at) = (member(template, "metadata"), format!("{at}.metadata"));
    let annotations = member(metadata, "annotations");
    selectors::annotations(annotations, &format!("{metadata_at}.annotations"), causes);
    let labels = member(metadata, "labels");
    selectors::labels(metadata, labels, &format!("{metadata_at}.labels"), causes);
    for (_, shown) in REFUSED.iter().filter(|(name, _)| !member(metadata, name).is_null()) {
        causes.push(Cause::forbidden(format!("{metadata_at}.{shown}"), "cannot be set"));
    }
    quota::storage_claim_spec(member(template, "spec"), &format!("{at}.spec"), causes);
}
