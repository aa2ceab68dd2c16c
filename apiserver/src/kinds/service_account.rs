//! The service account of a pod: its name, its token, and the secrets that it permits (the plugin
//! `ServiceAccount` of kube-apiserver).

use homeostat_core::parse_go_bool;
use serde_json::{Value, json};

use super::annotations::MIRROR;
use crate::fields::{Fields, read_path, text};

/// The rules for the objects of a kind that run as a service account.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RunAs {
    /// The account of an object that names none. A controller makes it in each new namespace.
    pub(crate) default: &'static str,
    /// Returns the name of the account, which the object may leave to the default; `None` if it
    /// runs as none.
    pub(crate) name: fn(&Fields) -> Option<String>,
    /// Adds the name of the account, its token and the credentials for its images. The text ends
    /// the name of the volume.
    pub(crate) complete: fn(&mut Fields, &Fields, &str),
    /// Returns the reason to refuse an object that runs as none.
    pub(crate) check_without: fn(&Fields) -> Result<(), String>,
    /// Returns the reason to refuse an object that runs as this account.
    pub(crate) check: fn(&Fields, &Fields) -> Result<(), String>,
}

pub(crate) const PODS: RunAs = RunAs {
    default: DEFAULT,
    name: account_name,
    complete,
    check_without: check_mirror,
    check: check_secrets,
};

const DEFAULT: &str = "default";
const VOLUME_PREFIX: &str = "kube-api-access-";
const MOUNT_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// An account with this annotation permits its own secrets alone.
const ENFORCED: &str = "kubernetes.io/enforce-mountable-secrets";
/// The lifetime of a token in seconds: an hour, and seven seconds that mark the request as this
/// plugin's.
const TOKEN_SECONDS: u64 = 3607;
const CONTAINERS: [(&str, &str); 2] =
    [("initContainers", "init container"), ("containers", "container")];

fn account_name(pod: &Fields) -> Option<String> {
    if is_mirror(pod) {
        return None;
    }
    let given = |member| read_path(pod, member).and_then(Value::as_str);
    let given = ["spec.serviceAccountName", "spec.serviceAccount"].map(given);
    let name = given.into_iter().flatten().find(|name| !name.is_empty());
    Some(name.unwrap_or(DEFAULT).to_owned())
}

fn is_mirror(pod: &Fields) -> bool {
    let annotations = read_path(pod, "metadata.annotations");
    annotations.is_some_and(|annotations| annotations.get(MIRROR).is_some())
}

fn complete(pod: &mut Fields, account: &Fields, suffix: &str) {
    let name = account_name(pod);
    let Some(Value::Object(spec)) = pod.get_mut("spec") else { return };
    spec.insert("serviceAccountName".to_owned(), json!(name));
    let wants_token = [&*spec, account]
        .into_iter()
        .find_map(|object| object.get("automountServiceAccountToken").and_then(Value::as_bool));
    if wants_token.unwrap_or(true) {
        mount_token(spec, suffix);
    }
    let secrets = account.get("imagePullSecrets").filter(|_| {
        let own = spec.get("imagePullSecrets").and_then(Value::as_array);
        own.is_none_or(Vec::is_empty)
    });
    if let Some(secrets) = secrets {
        spec.insert("imagePullSecrets".to_owned(), secrets.clone());
    }
}

/// Mounts a token into each container that mounts nothing at its path.
fn mount_token(spec: &mut Fields, suffix: &str) {
    let volumes = items(spec, "volumes").map(|volume| text(volume, "name"));
    let present = volumes.filter(|name| name.starts_with(VOLUME_PREFIX)).map(str::to_owned).next();
    let is_present = present.is_some();
    let name = present.unwrap_or_else(|| format!("{VOLUME_PREFIX}{suffix}"));
    let mut is_mounted = false;
    for (list, _) in CONTAINERS {
        for container in items_mut(spec, list) {
            let Some(container) = container.as_object_mut() else { continue };
            if items(container, "volumeMounts").any(|mount| text(mount, "mountPath") == MOUNT_PATH)
            {
                continue;
            }
            let mount = json!({"name": name, "readOnly": true, "mountPath": MOUNT_PATH});
            append(container, "volumeMounts", mount);
            is_mounted = true;
        }
    }
    if is_mounted && !is_present {
        append(spec, "volumes", token_volume(&name));
    }
}

fn token_volume(name: &str) -> Value {
    let namespace = json!({"apiVersion": "v1", "fieldPath": "metadata.namespace"});
    json!({"name": name, "projected": {"defaultMode": 0o644, "sources": [
        {"serviceAccountToken": {"expirationSeconds": TOKEN_SECONDS, "path": "token"}},
        {"configMap": {
            "name": "kube-root-ca.crt",
            "items": [{"key": "ca.crt", "path": "ca.crt"}],
        }},
        {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": namespace}]}},
    ]}})
}

/// The pods of a kubelet's files run as no account, and have no secrets.
fn check_mirror(pod: &Fields) -> Result<(), String> {
    let Some(Value::Object(spec)) = pod.get("spec") else { return Ok(()) };
    let refuse = |what: &str| Err(format!("a mirror pod may not {what}"));
    if spec.get("serviceAccountName").and_then(Value::as_str).is_some_and(|name| !name.is_empty()) {
        return refuse("reference service accounts");
    }
    if names_secret(spec) {
        return refuse("reference secrets");
    }
    let sources = items(spec, "volumes").filter_map(|volume| volume.pointer("/projected/sources"));
    let mut sources = sources.filter_map(Value::as_array).flatten();
    if sources.any(|source| source.get("serviceAccountToken").is_some()) {
        return refuse("use ServiceAccountToken volume projections");
    }
    Ok(())
}

/// Returns true if a pod names a secret anywhere.
fn names_secret(spec: &Fields) -> bool {
    /// The members that name a secret, in volumes and their sources.
    const MEMBERS: [&str; 6] = [
        "secret",
        "secretName",
        "secretRef",
        "nodePublishSecretRef",
        "nodeStageSecretRef",
        "controllerPublishSecretRef",
    ];
    let is_named =
        |(name, value): (&String, &Value)| MEMBERS.contains(&name.as_str()) && !value.is_null();
    let volumes = items(spec, "volumes").filter_map(Value::as_object);
    let mut sources = volumes.flat_map(Fields::values).filter_map(Value::as_object);
    let in_volumes = sources.any(|source| {
        let projected = items(source, "sources").filter_map(Value::as_object);
        source.contains_key("secretName")
            || source.iter().any(is_named)
            || projected.flatten().any(is_named)
    });
    let mut containers = CONTAINERS.iter().flat_map(|(list, _)| items(spec, list));
    in_volumes
        || items(spec, "imagePullSecrets").next().is_some()
        || containers.any(|container| secrets_of(container).next().is_some())
}

/// Returns the secrets in the environment of a container, with the words for the reference.
fn secrets_of(container: &Value) -> impl Iterator<Item = (String, &str)> {
    let list = |member| container.get(member).and_then(Value::as_array).into_iter().flatten();
    let variables = list("env").filter_map(|variable| {
        let secret = variable.pointer("/valueFrom/secretKeyRef/name")?.as_str()?;
        Some((format!("envVar {}", text(variable, "name")), secret))
    });
    let sources = list("envFrom").filter_map(|source| {
        Some(("envFrom".to_owned(), source.pointer("/secretRef/name")?.as_str()?))
    });
    variables.chain(sources)
}

fn check_secrets(pod: &Fields, account: &Fields) -> Result<(), String> {
    let annotations = read_path(account, "metadata.annotations");
    let is_enforced =
        annotations.is_some_and(|all| parse_go_bool(text(all, ENFORCED)) == Some(true));
    let Some(Value::Object(spec)) = pod.get("spec").filter(|_| is_enforced) else { return Ok(()) };
    let Some((reference, kind)) = refused_reference(spec, account) else { return Ok(()) };
    let name = read_path(account, "metadata.name").and_then(Value::as_str).unwrap_or("");
    Err(format!(
        "{reference} is not allowed because service account {name} does not reference that {kind}"
    ))
}

/// Returns the first reference to a secret that the account does not name, and the kind of secret.
fn refused_reference(spec: &Fields, account: &Fields) -> Option<(String, &'static str)> {
    let permits = |list, name: &str| items(account, list).any(|known| text(known, "name") == name);
    for volume in items(spec, "volumes") {
        let secret = volume.pointer("/secret/secretName").and_then(Value::as_str);
        if let Some(name) = secret.filter(|name| !permits("secrets", name)) {
            return Some((format!("volume with secret.secretName=\"{name}\""), "secret"));
        }
    }
    for (list, title) in CONTAINERS {
        for container in items(spec, list) {
            let mut secrets = secrets_of(container);
            if let Some((at, name)) = secrets.find(|(_, name)| !permits("secrets", name)) {
                let container = format!("{title} {} with {at}", text(container, "name"));
                let reference = format!("{container} referencing secret.secretName=\"{name}\"");
                return Some((reference, "secret"));
            }
        }
    }
    let names = items(spec, "imagePullSecrets").map(|secret| text(secret, "name"));
    let (nth, name) = names.enumerate().find(|(_, name)| !permits("imagePullSecrets", name))?;
    Some((format!("imagePullSecrets[{nth}].name=\"{name}\""), "imagePullSecret"))
}

fn items<'a>(object: &'a Fields, list: &str) -> impl Iterator<Item = &'a Value> {
    object.get(list).and_then(Value::as_array).into_iter().flatten()
}

fn items_mut<'a>(object: &'a mut Fields, list: &str) -> impl Iterator<Item = &'a mut Value> {
    object.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten()
}

fn append(object: &mut Fields, list: &str, item: Value) {
    match object.get_mut(list).and_then(Value::as_array_mut) {
        Some(items) => items.push(item),
        None => drop(object.insert(list.to_owned(), json!([item]))),
    }
}
