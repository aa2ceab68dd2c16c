//! Volumes of pods (`ValidateVolumes`).

use serde_json::{Value, json};

use super::Test::{By, Has, OneOf, Required, Text};
use super::{
    Check, check_text, items, member, paths, selectors, storage_claim, text, volume_disks as disks,
    volume_files as files,
};
use crate::status::Cause;
use crate::{names, quantity};

/// A source of a volume.
#[derive(Clone, Copy)]
pub(super) struct Source {
    pub(super) member: &'static str,
    /// The place of a cause within the source.
    pub(super) checked_at: &'static str,
    /// The place of the cause about a second source.
    pub(super) refused_at: &'static str,
    pub(super) checks: &'static [Check],
}

// === impl Source ===

impl Source {
    pub(super) const fn new(member: &'static str, checks: &'static [Check]) -> Self {
        Self { member, checked_at: member, refused_at: member, checks }
    }
}

/// The sources, in the order of the real server. Three of its places differ from the member.
const SOURCES: &[Source] = &[
    Source::new("emptyDir", &[("sizeLimit", By(size_limit))]),
    Source::new("hostPath", HOST_PATH),
    Source::new("gitRepo", &[("repository", Required("")), ("directory", By(descending))]),
    Source { checked_at: "persistentDisk", ..Source::new("gcePersistentDisk", disks::GCE) },
    Source::new("awsElasticBlockStore", disks::AWS),
    Source::new("secret", files::SECRET),
    Source::new("nfs", disks::NFS),
    Source::new("iscsi", disks::ISCSI),
    Source::new("glusterfs", disks::GLUSTER),
    Source::new("flocker", disks::FLOCKER),
    Source::new("persistentVolumeClaim", &[("claimName", Required(""))]),
    Source::new("rbd", disks::RBD),
    Source::new("cinder", disks::CINDER),
    Source { refused_at: "cephFS", ..Source::new("cephfs", disks::CEPH_FS) },
    Source::new("quobyte", disks::QUOBYTE),
    Source { refused_at: "downwarAPI", ..Source::new("downwardAPI", files::DOWNWARD_API) },
    Source::new("fc", disks::FIBRE_CHANNEL),
    Source::new("flexVolume", disks::FLEX),
    Source::new("configMap", files::CONFIG_MAP),
    Source::new("azureFile", &[("secretName", Required("")), ("shareName", Required(""))]),
    Source::new("vsphereVolume", &[("volumePath", Required(""))]),
    Source::new("photonPersistentDisk", &[("pdID", Required(""))]),
    Source::new("portworxVolume", &[("volumeID", Required(""))]),
    Source::new("azureDisk", disks::AZURE),
    Source::new("storageos", disks::STORAGE_OS),
    Source::new("projected", files::PROJECTED),
    Source::new("scaleIO", disks::SCALE_IO),
    Source::new("csi", &[("", By(csi))]),
    Source::new("ephemeral", EPHEMERAL),
    Source::new("image", IMAGE),
];

pub(super) const HOST_PATH: &[Check] = &[("", By(host_path))];

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
    let also = |member: &str, count: usize, causes: &mut Vec<Cause>| match member {
        "iscsi" => iscsi_name(volume, at, causes),
        "ephemeral" if count == 1 => claim_name(volume, pod, at, causes),
        _ => {}
    };
    if check_sources(SOURCES, volume, at, also, causes) == 0 {
        causes.push(Cause::required(at, "must specify a volume type"));
    }
}

/// Checks that an object has one of these sources at most, and checks the first one; then calls
/// `also` with the member of each one and its number. Returns the number of sources.
pub(super) fn check_sources(
    sources: &[Source],
    object: &Value,
    at: &str,
    also: impl Fn(&str, usize, &mut Vec<Cause>),
    causes: &mut Vec<Cause>,
) -> usize {
    let mut count = 0;
    for source in sources.iter().filter(|source| !member(object, source.member).is_null()) {
        count += 1;
        if count == 1 {
            let at = format!("{at}.{}", source.checked_at);
            super::run(source.checks, member(object, source.member), &at, causes);
        } else {
            let detail = "may not specify more than 1 volume type";
            causes.push(Cause::forbidden(format!("{at}.{}", source.refused_at), detail));
        }
        also(source.member, count, causes);
    }
    count
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
    super::run(&[("driver", By(driver))], source, at, causes);
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
pub(super) fn driver(_: &Value, name: &Value, at: &str, causes: &mut Vec<Cause>) {
    const LONGEST: usize = 63;
    let name = name.as_str().unwrap_or_default();
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
    let metadata = member(template, "metadata");
    selectors::template_metadata(metadata, &format!("{at}.metadata"), causes);
    storage_claim::spec(member(template, "spec"), &format!("{at}.spec"), causes);
}
