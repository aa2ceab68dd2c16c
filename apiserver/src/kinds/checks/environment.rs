//! Environment variables of containers, and their sources.

use serde_json::{Value, json};

use super::Test::{By, Each, Has, Required, Text};
use super::{Check, check_text, downward, items, member, paths, text};
use crate::names;
use crate::status::Cause;

/// The checks of a container's environment.
pub(super) const ENVIRONMENT: &[Check] = &[("env", Each(VARIABLE)), ("envFrom", By(all_of))];

const VARIABLE: &[Check] =
    &[("name", Required("")), ("name", Text(names::environment)), ("valueFrom", By(source))];

/// The sources of a value, in the order of the real server.
const SOURCES: &[Check] = &[
    ("fieldRef", Has(&[("", By(field))])),
    ("resourceFieldRef", Has(&[("", By(resource))])),
    ("configMapKeyRef", Has(KEY)),
    ("secretKeyRef", Has(KEY)),
    ("fileKeyRef", Has(FILE)),
];

/// The key of a config map or a secret.
const KEY: &[Check] =
    &[("name", By(name)), ("key", Required("")), ("key", Text(names::config_key))];

const FILE: &[Check] = &[
    ("key", Required("")),
    ("key", Text(names::environment)),
    ("volumeName", Required("")),
    ("volumeName", Text(names::dns_label)),
    ("path", Required("")),
    ("path", By(path)),
];

/// The fields of a pod that a variable may show.
const FIELDS: &[&str] = &[
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];

const TWO_SOURCES: &str = "may not have more than one field specified at a time";

fn source(variable: &Value, source: &Value, at: &str, causes: &mut Vec<Cause>) {
    const NO_SOURCE: &str = "must specify one of: `fieldRef`, `resourceFieldRef`, \
        `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`";
    if !source.is_object() {
        return;
    }
    super::run(SOURCES, source, at, causes);
    let count = SOURCES.iter().filter(|(kind, _)| !member(source, kind).is_null()).count();
    let detail = match count {
        0 => NO_SOURCE,
        _ if !text(variable, "value").is_empty() => {
            "may not be specified when `value` is not empty"
        }
        1 => return,
        _ => TWO_SOURCES,
    };
    causes.push(Cause::invalid(at, &json!(""), detail));
}

fn field(_: &Value, field: &Value, at: &str, causes: &mut Vec<Cause>) {
    downward::field(field, FIELDS, at, causes);
}

fn resource(_: &Value, resource: &Value, at: &str, causes: &mut Vec<Cause>) {
    downward::resource(resource, false, at, causes);
}

/// Checks a name that must not be empty.
fn name(_: &Value, name: &Value, at: &str, causes: &mut Vec<Cause>) {
    let name = json!(name.as_str().unwrap_or_default());
    check_text(&name, names::dns_subdomain, at, causes);
}

fn path(_: &Value, path: &Value, at: &str, causes: &mut Vec<Cause>) {
    paths::without_backsteps(path.as_str().unwrap_or_default(), at, causes);
}

/// Checks the maps and secrets whose keys all become variables.
fn all_of(_: &Value, sources: &Value, at: &str, causes: &mut Vec<Cause>) {
    const KINDS: [&str; 2] = ["configMapRef", "secretRef"];
    for (place, source) in items(sources).iter().enumerate() {
        let item_at = format!("{at}[{place}]");
        super::run(&[("prefix", Text(names::environment))], source, &item_at, causes);
        let mut count = 0;
        for kind in KINDS.iter().filter(|kind| !member(source, kind).is_null()) {
            let named = &[("name", Required("")), ("name", Text(names::dns_subdomain_prefix))];
            super::run(named, member(source, kind), &format!("{item_at}.{kind}"), causes);
            count += 1;
        }
        let detail = match count {
            0 => "must specify one of: `configMapRef` or `secretRef`",
            1 => continue,
            _ => TWO_SOURCES,
        };
        causes.push(Cause::invalid(at, &json!(""), detail));
    }
}

/// Checks that the files of variables are in volumes of the pod that start empty.
pub(super) fn check_files(spec: &Value, at: &str, causes: &mut Vec<Cause>) {
    let volumes = items(member(spec, "volumes"));
    for one in super::pod_containers::all(spec) {
        for (place, variable) in items(member(one.container, "env")).iter().enumerate() {
            let file = member(member(variable, "valueFrom"), "fileKeyRef");
            if file.is_null() {
                continue;
            }
            let name = text(file, "volumeName");
            let within = format!("env[{place}].valueFrom.fileKeyRef.volumeName");
            let at = one.path(at, &within);
            match volumes.iter().rfind(|volume| text(volume, "name") == name) {
                None => causes.push(Cause::not_found(at, &json!(name), "")),
                Some(volume) if member(volume, "emptyDir").is_null() => {
                    let detail = "referenced volume must be of type emptyDir";
                    causes.push(Cause::invalid(at, &json!(name), detail));
                }
                Some(_) => {}
            }
        }
    }
}
