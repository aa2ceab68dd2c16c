//! Sources of volumes that are disks and file systems of other machines.

use serde_json::{Value, json};

use super::Test::{Between, By, Has, OneOf, Required, Text};
use super::{Check, items, member, text};
use crate::names;
use crate::status::Cause;

pub(super) const GCE: &[Check] = &[("pdName", Required("")), ("partition", By(partition))];

pub(super) const AWS: &[Check] = &[("volumeID", Required("")), ("partition", By(partition))];

pub(super) const NFS: &[Check] =
    &[("server", Required("")), ("path", Required("")), ("path", By(absolute))];

pub(super) const ISCSI: &[Check] = &[
    ("targetPortal", Required("")),
    ("iqn", Required("")),
    ("iqn", By(qualified_name)),
    ("lun", Between(0, 255)),
    ("", By(secret_for_chap)),
    ("", By(initiator)),
];

pub(super) const GLUSTER: &[Check] = &[("endpoints", Required("")), ("path", Required(""))];

pub(super) const FLOCKER: &[Check] = &[("", By(data_set))];

pub(super) const RBD: &[Check] = &[("monitors", Required("")), ("image", Required(""))];

pub(super) const CINDER: &[Check] =
    &[("volumeID", Required("")), ("secretRef", Has(&[("name", Required(""))]))];

pub(super) const CEPH_FS: &[Check] = &[("monitors", Required(""))];

pub(super) const QUOBYTE: &[Check] = &[("", By(registry)), ("volume", Required(""))];

pub(super) const FIBRE_CHANNEL: &[Check] = &[("", By(fibre_channel))];

pub(super) const FLEX: &[Check] = &[("driver", Required("")), ("options", By(options))];

pub(super) const AZURE: &[Check] = &[
    ("diskName", Required("")),
    ("diskURI", Required("")),
    ("cachingMode", OneOf(&["None", "ReadOnly", "ReadWrite"])),
    ("kind", OneOf(&["Dedicated", "Managed", "Shared"])),
    ("", By(address)),
];

pub(super) const STORAGE_OS: &[Check] = &[
    ("volumeName", Required("")),
    ("volumeName", Text(names::dns_label)),
    ("volumeNamespace", Text(names::dns_label)),
    ("secretRef", Has(&[("name", Required(""))])),
];

pub(super) const SCALE_IO: &[Check] =
    &[("gateway", Required("")), ("system", Required("")), ("volumeName", Required(""))];

/// Checks the number of a partition. The message of the real server excludes 0, which is valid.
fn partition(_: &Value, number: &Value, at: &str, causes: &mut Vec<Cause>) {
    if number.as_i64().is_some_and(|number| !(0..=255).contains(&number)) {
        causes.push(Cause::invalid(at, number, "must be between 1 and 255, inclusive"));
    }
}

fn absolute(_: &Value, path: &Value, at: &str, causes: &mut Vec<Cause>) {
    let path = path.as_str().unwrap_or_default();
    if !path.starts_with('/') {
        causes.push(Cause::invalid(at, &json!(path), "must be an absolute path"));
    }
}

// === iSCSI ===

const NO_PREFIX: &str = "must be valid format starting with iqn, eui, or naa";
const NO_NAME: &str = "must be valid format";

fn qualified_name(_: &Value, name: &Value, at: &str, causes: &mut Vec<Cause>) {
    let text = name.as_str().filter(|name| !name.is_empty());
    if let Some(problem) = text.and_then(problem_of_name) {
        causes.push(Cause::invalid(at, name, problem));
    }
}

/// Checks the name of the client. The real server writes its member in lower case.
fn initiator(_: &Value, source: &Value, at: &str, causes: &mut Vec<Cause>) {
    let name = member(source, "initiatorName");
    let problem = name.as_str().and_then(problem_of_name);
    if let Some(problem) = problem {
        causes.push(Cause::invalid(format!("{at}.initiatorname"), name, problem));
    }
}

pub(super) fn problem_of_name(name: &str) -> Option<&'static str> {
    let is_hexadecimal = |name: &str, digits: usize| {
        // The character after the prefix is arbitrary.
        let rest = name.get(3..).and_then(|rest| {
            let separator = rest.chars().next()?;
            rest.get(separator.len_utf8()..)
        });
        rest.is_some_and(|rest| {
            rest.len() == digits && rest.bytes().all(|byte| byte.is_ascii_alphanumeric())
        })
    };
    let is_valid = match name.get(..3) {
        Some("iqn") => is_iqn(name),
        Some("eui") => is_hexadecimal(name, 16),
        Some("naa") => is_hexadecimal(name, 32),
        _ => return Some(NO_PREFIX),
    };
    (!is_valid).then_some(NO_NAME)
}

/// Returns true if a name is like `iqn.2016-04.com.example:storage.disk1`.
fn is_iqn(name: &str) -> bool {
    let Some((authority, storage)) = name.split_once(':') else { return false };
    let Some(authority) = authority.strip_prefix("iqn.") else { return false };
    let Some((date, domain)) = authority.split_once('.') else { return false };
    let is_number = |text: &str, digits: usize| {
        text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit())
    };
    let is_date =
        date.split_once('-').is_some_and(|(year, month)| is_number(year, 4) && is_number(month, 2));
    let is_of_domain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.');
    let is_of_storage = |byte: u8| {
        !matches!(byte, b',' | b';' | b'*' | b'&' | b'$' | b'|') && !byte.is_ascii_whitespace()
    };
    is_date
        && !domain.is_empty()
        && domain.bytes().all(is_of_domain)
        && !storage.is_empty()
        && storage.bytes().all(is_of_storage)
}

pub(super) fn secret_for_chap(_: &Value, source: &Value, at: &str, causes: &mut Vec<Cause>) {
    let is_set = |key| member(source, key).as_bool().unwrap_or_default();
    let needs_secret = is_set("chapAuthDiscovery") || is_set("chapAuthSession");
    if needs_secret && member(source, "secretRef").is_null() {
        causes.push(Cause::required(format!("{at}.secretRef"), ""));
    }
}

// === others ===

fn data_set(_: &Value, source: &Value, at: &str, causes: &mut Vec<Cause>) {
    let [name, uuid] = ["datasetName", "datasetUUID"].map(|key| text(source, key));
    match (name.is_empty(), uuid.is_empty()) {
        (true, true) => {
            let detail = "one of datasetName and datasetUUID is required";
            causes.push(Cause::required(at, detail));
        }
        (false, false) => {
            let detail = "datasetName and datasetUUID can not be specified simultaneously";
            causes.push(Cause::invalid(at, &json!("resource"), detail));
        }
        _ => {}
    }
    if name.contains('/') {
        causes.push(Cause::invalid(
            format!("{at}.datasetName"),
            &json!(name),
            "must not contain '/'",
        ));
    }
}

fn registry(_: &Value, source: &Value, at: &str, causes: &mut Vec<Cause>) {
    const LONGEST_TENANT: usize = 64;
    const PAIRS: &str = "must be a host:port pair or multiple pairs separated by commas";
    let registry = text(source, "registry");
    let registry_at = format!("{at}.registry");
    if registry.is_empty() {
        causes.push(Cause::required(registry_at, PAIRS));
    } else if text(source, "tenant").len() > LONGEST_TENANT {
        let detail = "must be a UUID and may not exceed a length of 64 characters";
        causes.push(Cause::required(format!("{at}.tenant"), detail));
    } else {
        for _ in registry.split(',').filter(|pair| !is_host_with_port(pair)) {
            causes.push(Cause::invalid(&*registry_at, &json!(registry), PAIRS));
        }
    }
}

/// Returns true if a text has a host and a port, as Go's `net.SplitHostPort` reads it.
fn is_host_with_port(pair: &str) -> bool {
    let Some((host, port)) = pair.rsplit_once(':') else { return false };
    let host = match host.strip_prefix('[') {
        Some(inner) => inner.strip_suffix(']').unwrap_or("["),
        None if host.contains(':') => return false,
        None => host,
    };
    !host.contains(['[', ']']) && !port.contains(['[', ']'])
}

fn fibre_channel(_: &Value, source: &Value, at: &str, causes: &mut Vec<Cause>) {
    let targets = member(source, "targetWWNs");
    let targets_at = format!("{at}.targetWWNs");
    match (items(targets).is_empty(), items(member(source, "wwids")).is_empty()) {
        (true, true) => {
            let detail = "must specify either targetWWNs or wwids, but not both";
            causes.push(Cause::required(targets_at, detail));
        }
        (false, false) => {
            let detail = "targetWWNs and wwids can not be specified simultaneously";
            causes.push(Cause::invalid(targets_at, targets, detail));
        }
        _ => {}
    }
    if items(targets).is_empty() {
        return;
    }
    if member(source, "lun").is_null() {
        let detail = "lun is required if targetWWNs is specified";
        causes.push(Cause::required(format!("{at}.lun"), detail));
    }
    super::run(&[("lun", Between(0, 255))], source, at, causes);
}

fn options(_: &Value, options: &Value, at: &str, causes: &mut Vec<Cause>) {
    for (key, _) in options.as_object().into_iter().flatten() {
        let namespace = key.split_once('/').map_or(key.as_str(), |(namespace, _)| namespace);
        let dotted = format!(".{}", namespace.to_lowercase());
        if [".kubernetes.io", ".k8s.io"].iter().any(|reserved| dotted.ends_with(reserved)) {
            let detail = "kubernetes.io and k8s.io namespaces are reserved";
            causes.push(Cause::invalid(format!("{at}[{key}]"), &json!(key), detail));
        }
    }
}

fn address(_: &Value, source: &Value, at: &str, causes: &mut Vec<Cause>) {
    const MANAGED: &str = "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/\
        microsoft.compute/disks/{disk-id}";
    const BLOB: &str =
        "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd";
    let address = text(source, "diskURI");
    let (start, form) = match member(source, "kind").as_str() {
        Some("Managed") => ("/subscriptions/", MANAGED),
        Some(_) => ("https://", BLOB),
        None => return,
    };
    if !address.starts_with(start) {
        causes.push(Cause::unsupported(format!("{at}.diskURI"), &json!(address), &[form]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_targets_have_one_of_three_forms() {
        let valid = ["iqn.2016-04.com.example:storage.disk1", "eui.0123456789abcdef"];
        for name in valid {
            assert_eq!(problem_of_name(name), None, "{name}");
        }
        for name in ["iqn.2016.com:x", "iqn.2016-04.com:", "iqn.2016-04.com:a b", "eui.01", "naa"] {
            assert_eq!(problem_of_name(name), Some(NO_NAME), "{name}");
        }
        assert_eq!(problem_of_name("disk"), Some(NO_PREFIX));
        assert_eq!(problem_of_name("ü"), Some(NO_PREFIX));
    }

    #[test]
    fn host_and_port_are_split_as_in_go() {
        for pair in ["a:1", ":1", "a:", "[::1]:2"] {
            assert!(is_host_with_port(pair), "{pair}");
        }
        for pair in ["", "a", "::1", "[::1", "[::1]", "a:[1"] {
            assert!(!is_host_with_port(pair), "{pair}");
        }
    }
}
