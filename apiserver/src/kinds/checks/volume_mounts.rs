//! Mounts of volumes in containers, and block devices.

use serde_json::{Value, json};

use super::pod_containers::Pod;
use super::{items, member, paths, text};
use crate::status::Cause;

const PROPAGATIONS: &[&str] = &["Bidirectional", "HostToContainer", "None"];
const RECURSIVE: &[&str] = &["Disabled", "Enabled", "IfPossible"];

/// Checks the mounts of a container (`ValidateVolumeMounts`).
pub(super) fn mounts(container: &Value, pod: &Pod<'_>, at: &str, causes: &mut Vec<Cause>) {
    let devices = items(member(container, "volumeDevices"));
    let at = format!("{at}.volumeMounts");
    let mut known: Vec<&str> = Vec::new();
    for (place, mount) in items(member(container, "volumeMounts")).iter().enumerate() {
        let item_at = format!("{at}[{place}]");
        let [name, path] = ["name", "mountPath"].map(|key| text(mount, key));
        let (name_at, path_at) = (format!("{item_at}.name"), format!("{item_at}.mountPath"));
        if name.is_empty() {
            causes.push(Cause::required(&*name_at, ""));
        }
        if pod.volume(name).is_none() {
            causes.push(Cause::not_found(&*name_at, &json!(name), ""));
        }
        if path.is_empty() {
            causes.push(Cause::required(&*path_at, ""));
        }
        if known.contains(&path) {
            causes.push(Cause::invalid(&*path_at, &json!(path), "must be unique"));
        }
        known.push(path);
        if devices.iter().any(|device| text(device, "name") == name) {
            let detail = "must not already exist in volumeDevices";
            causes.push(Cause::invalid(name_at, &json!(name), detail));
        }
        if last_paths(devices, "devicePath").contains(&path) {
            let detail = "must not already exist as a path in volumeDevices";
            causes.push(Cause::invalid(path_at, &json!(path), detail));
        }
        sub_paths(mount, &at, &item_at, causes);
        propagation(mount, container, &format!("{at}.mountPropagation"), causes);
        recursive(mount, &format!("{at}.recursiveReadOnly"), causes);
    }
}

/// Returns the paths of a list of mounts or devices. Of those with one name the last counts.
fn last_paths<'a>(list: &'a [Value], key: &str) -> Vec<&'a str> {
    let is_last = |place: usize, one: &Value| {
        list.iter().skip(place + 1).all(|later| text(later, "name") != text(one, "name"))
    };
    let counted = list.iter().enumerate().filter(|(place, one)| is_last(*place, one));
    counted.map(|(_, one)| text(one, key)).collect()
}

/// Checks the paths within a volume. The real server does not say which mount has them.
fn sub_paths(mount: &Value, at: &str, item_at: &str, causes: &mut Vec<Cause>) {
    let [path, expression] = ["subPath", "subPathExpr"].map(|key| text(mount, key));
    if !path.is_empty() {
        paths::descending(path, &format!("{at}.subPath"), causes);
    }
    if expression.is_empty() {
        return;
    }
    if !path.is_empty() {
        let detail = "subPathExpr and subPath are mutually exclusive";
        causes.push(Cause::invalid(format!("{item_at}.subPathExpr"), &json!(expression), detail));
    }
    paths::descending(expression, &format!("{at}.subPathExpr"), causes);
}

fn propagation(mount: &Value, container: &Value, at: &str, causes: &mut Vec<Cause>) {
    let value = member(mount, "mountPropagation");
    let Some(mode) = value.as_str() else { return };
    if !PROPAGATIONS.contains(&mode) {
        causes.push(Cause::unsupported(at, value, PROPAGATIONS));
    }
    let is_privileged = member(member(container, "securityContext"), "privileged") == true;
    if mode == "Bidirectional" && !is_privileged {
        let detail = "Bidirectional mount propagation is available only to privileged containers";
        causes.push(Cause::forbidden(at, detail));
    }
}

fn recursive(mount: &Value, at: &str, causes: &mut Vec<Cause>) {
    let value = member(mount, "recursiveReadOnly");
    match value.as_str() {
        None | Some("Disabled") => {}
        Some("Enabled" | "IfPossible") => {
            if member(mount, "readOnly") != true {
                causes.push(Cause::forbidden(at, "may only be specified when readOnly is true"));
            }
            let propagation = member(mount, "mountPropagation");
            if propagation.as_str().is_some_and(|mode| mode != "None") {
                let detail = "may only be specified when mountPropagation is None or not specified";
                causes.push(Cause::forbidden(at, detail));
            }
        }
        Some(_) => causes.push(Cause::unsupported(at, value, RECURSIVE)),
    }
}

/// Checks the block devices of a container (`ValidateVolumeDevices`).
pub(super) fn devices(container: &Value, pod: &Pod<'_>, at: &str, causes: &mut Vec<Cause>) {
    let mounts = items(member(container, "volumeMounts"));
    let (mut names, mut known): (Vec<&str>, Vec<&str>) = (Vec::new(), Vec::new());
    for (place, device) in items(member(container, "volumeDevices")).iter().enumerate() {
        let at = format!("{at}.volumeDevices[{place}]");
        let [name, path] = ["name", "devicePath"].map(|key| text(device, key));
        let (name_at, path_at) = (format!("{at}.name"), format!("{at}.devicePath"));
        if name.is_empty() {
            causes.push(Cause::required(&*name_at, ""));
        }
        let mut refuse = |at: &str, value: &str, detail: &str| {
            causes.push(Cause::invalid(at, &json!(value), detail));
        };
        if names.contains(&name) {
            refuse(&name_at, name, "must be unique");
        }
        if pod.volume(name).is_some_and(|volume| !is_claimed(volume)) {
            let detail = "can only use volume source type of PersistentVolumeClaim or Ephemeral \
                for block mode";
            refuse(&name_at, name, detail);
        }
        if pod.volume(name).is_none() {
            causes.push(Cause::not_found(&*name_at, &json!(name), ""));
        }
        device_path(path, &mut known, &path_at, causes);
        if mounts.iter().any(|mount| text(mount, "name") == name) {
            let detail = "must not already exist in volumeMounts";
            causes.push(Cause::invalid(name_at, &json!(name), detail));
        }
        if last_paths(mounts, "mountPath").contains(&path) {
            let detail = "must not already exist as a path in volumeMounts";
            causes.push(Cause::invalid(path_at, &json!(path), detail));
        }
        if !name.is_empty() {
            names.push(name);
        }
    }
}

fn is_claimed(volume: &Value) -> bool {
    ["persistentVolumeClaim", "ephemeral"].iter().any(|kind| !member(volume, kind).is_null())
}

/// Checks the path of a device against the known ones, and adds it to them.
fn device_path<'a>(path: &'a str, known: &mut Vec<&'a str>, at: &str, causes: &mut Vec<Cause>) {
    if path.is_empty() {
        causes.push(Cause::required(at, ""));
    }
    if known.contains(&path) {
        causes.push(Cause::invalid(at, &json!(path), "must be unique"));
    }
    if paths::has_backsteps(path) {
        causes.push(Cause::invalid(at, &json!(path), "can not contain backsteps ('..')"));
    } else {
        known.push(path);
    }
}
