//! Sources of volumes that consist of files: secrets, config maps, fields of the pod, and volumes
//! that combine them.

use serde_json::{Value, json};

use super::Test::{By, Each, Required};
use super::projected_files::ProjectedFiles;
use super::volume_certificates::{BUNDLE, certificate};
use super::{Check, downward, items, member, paths, text};
use crate::status::Cause;

pub(super) const SECRET: &[Check] =
    &[("secretName", Required("")), ("defaultMode", By(mode)), ("items", Each(KEY))];

pub(super) const CONFIG_MAP: &[Check] =
    &[("name", Required("")), ("defaultMode", By(mode)), ("items", Each(KEY))];

pub(super) const DOWNWARD_API: &[Check] = &[("defaultMode", By(mode)), ("", By(fields))];

pub(super) const PROJECTED: &[Check] = &[("defaultMode", By(mode)), ("", By(projections))];

/// A key of a config map or a secret that becomes a file.
const KEY: &[Check] = &[
    ("key", Required("")),
    ("path", Required("")),
    ("path", By(paths::not_reserved)),
    ("mode", By(mode)),
];

/// A field of the pod that becomes a file.
const FIELD: &[Check] = &[
    ("path", Required("")),
    ("path", By(paths::not_reserved)),
    ("", By(field)),
    ("mode", By(mode)),
];

/// The fields of a pod that a file may show.
const FIELDS: &[&str] = &[
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
];

fn mode(_: &Value, mode: &Value, at: &str, causes: &mut Vec<Cause>) {
    if mode.as_i64().is_some_and(|mode| !(0..=0o777).contains(&mode)) {
        let detail = "must be a number between 0 and 0777 (octal), both inclusive";
        causes.push(Cause::invalid(at, mode, detail));
    }
}

/// Checks the files of fields. The real server does not say which of them is wrong.
fn fields(_: &Value, source: &Value, at: &str, causes: &mut Vec<Cause>) {
    for file in items(member(source, "items")) {
        super::run(FIELD, file, at, causes);
    }
}

fn field(_: &Value, file: &Value, at: &str, causes: &mut Vec<Cause>) {
    let [field, resource] = ["fieldRef", "resourceFieldRef"].map(|key| member(file, key));
    match (field.is_null(), resource.is_null()) {
        (true, true) => {
            causes.push(Cause::required(at, "one of fieldRef and resourceFieldRef is required"));
        }
        (true, false) => {
            downward::resource(resource, true, &format!("{at}.resourceFieldRef"), causes);
        }
        (false, no_resource) => {
            downward::field(field, FIELDS, &format!("{at}.fieldRef"), causes);
            if !no_resource {
                let detail = "fieldRef and resourceFieldRef can not be specified simultaneously";
                causes.push(Cause::invalid(at, &json!("resource"), detail));
            }
        }
    }
}

// === projected volumes ===

fn projections(_: &Value, source: &Value, at: &str, causes: &mut Vec<Cause>) {
    const KINDS: [&str; 6] = [
        "secret",
        "configMap",
        "downwardAPI",
        "serviceAccountToken",
        "clusterTrustBundle",
        "podCertificate",
    ];
    let mut files = ProjectedFiles::of_volume(at);
    for (place, source) in items(member(source, "sources")).iter().enumerate() {
        let at = format!("{at}.sources[{place}]");
        let given = KINDS.iter().filter(|kind| !member(source, kind).is_null());
        let mut count = 0;
        for kind in given {
            count += 1;
            let (source, at) = (member(source, kind), format!("{at}.{kind}"));
            match *kind {
                "downwardAPI" => projected_fields(source, &mut files, &at, causes),
                "serviceAccountToken" => token(source, files.at, &at, causes),
                "clusterTrustBundle" => {
                    super::run(BUNDLE, source, &at, causes);
                    let path = text(source, "path");
                    files.claim(path, path, causes);
                }
                "podCertificate" => certificate(source, &mut files, &at, causes),
                _ => projected_keys(source, &mut files, &at, causes),
            }
        }
        if count > 1 {
            let detail = "may not specify more than 1 volume type per source";
            causes.push(Cause::forbidden(at, detail));
        }
    }
}

/// Checks the keys of a config map or a secret.
fn projected_keys<'a>(
    source: &'a Value,
    files: &mut ProjectedFiles<'a>,
    at: &str,
    causes: &mut Vec<Cause>,
) {
    super::run(&[("name", Required(""))], source, at, causes);
    for (place, item) in items(member(source, "items")).iter().enumerate() {
        super::run(KEY, item, &format!("{at}.items[{place}]"), causes);
        let path = text(item, "path");
        if !path.is_empty() {
            files.claim(path, text(source, "name"), causes);
        }
    }
}

fn projected_fields<'a>(
    source: &'a Value,
    files: &mut ProjectedFiles<'a>,
    at: &str,
    causes: &mut Vec<Cause>,
) {
    for file in items(member(source, "items")) {
        super::run(FIELD, file, at, causes);
        let path = text(file, "path");
        if !path.is_empty() {
            files.claim(path, path, causes);
        }
    }
}

/// Checks the token of a service account. The causes about its path stand at the volume's source.
fn token(source: &Value, volume_at: &str, at: &str, causes: &mut Vec<Cause>) {
    const SHORTEST: i64 = 10 * 60;
    const LONGEST: i64 = 1 << 32;
    let (seconds, seconds_at) =
        (member(source, "expirationSeconds"), format!("{at}.expirationSeconds"));
    let detail = match seconds.as_i64() {
        None => {
            causes.push(Cause::required(&*seconds_at, ""));
            None
        }
        Some(..SHORTEST) => Some("may not specify a duration less than 10 minutes"),
        Some(SHORTEST..=LONGEST) => None,
        Some(_) => Some("may not specify a duration larger than 2^32 seconds"),
    };
    causes.extend(detail.map(|detail| Cause::invalid(seconds_at, seconds, detail)));
    let path_at = format!("{volume_at}.path");
    if text(source, "path").is_empty() {
        causes.push(Cause::required(path_at, ""));
    } else {
        paths::not_reserved(source, member(source, "path"), &path_at, causes);
    }
}
