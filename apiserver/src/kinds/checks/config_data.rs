//! The data of config maps and secrets.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::{Causes, check_text, member, text};
use crate::fields::Fields;
use crate::go_json::syntax_error;
use crate::names;
use crate::status::Cause;

pub(crate) fn config_map(object: &Fields, causes: Causes<'_>) {
    let list = |key: &str| object.get(key).and_then(Value::as_object);
    for (key, _) in list("data").into_iter().flatten() {
        let at = format!("data[{key}]");
        check_text(&json!(key), names::config_key, &at, causes);
        if list("binaryData").is_some_and(|binary| binary.contains_key(key)) {
            causes.push(Cause::invalid(at, &json!(key), "duplicate of key present in binaryData"));
        }
    }
    for (key, _) in list("binaryData").into_iter().flatten() {
        check_text(&json!(key), names::config_key, &format!("binaryData[{key}]"), causes);
    }
    let sizes = |key: &str, of: fn(&str) -> usize| -> usize {
        list(key).into_iter().flatten().filter_map(|(_, value)| value.as_str()).map(of).sum()
    };
    if sizes("data", str::len) + sizes("binaryData", |text| text.len() / 4 * 3) > MAX_DATA {
        causes.push(Cause::too_long("[]", MAX_DATA));
    }
}

/// The largest data of one object, in bytes.
const MAX_DATA: usize = 1024 * 1024;

fn secret_text(data: Option<&Fields>, key: &str) -> Option<Vec<u8>> {
    STANDARD.decode(data?.get(key)?.as_str()?).ok()
}

/// The keys that secrets of a type must have.
const SECRETS: [(&str, &[&str]); 5] = [
    ("kubernetes.io/tls", &["tls.crt", "tls.key"]),
    ("kubernetes.io/dockerconfigjson", &[".dockerconfigjson"]),
    ("kubernetes.io/dockercfg", &[".dockercfg"]),
    ("kubernetes.io/ssh-auth", &["ssh-privatekey"]),
    ("kubernetes.io/service-account-token", &[]),
];

pub(crate) fn secret(object: &Fields, causes: Causes<'_>) {
    const ACCOUNT: &str = "kubernetes.io/service-account.name";
    let data = object.get("data").and_then(Value::as_object);
    for (key, _) in data.into_iter().flatten() {
        check_text(&json!(key), names::config_key, &format!("data[{key}]"), causes);
    }
    let kind = object.get("type").and_then(Value::as_str).unwrap_or("");
    let has = |key: &str| data.is_some_and(|data| data.contains_key(key));
    let needed = SECRETS.iter().find(|(name, _)| *name == kind).map_or(&[][..], |(_, keys)| keys);
    for key in needed.iter().filter(|key| !has(key)) {
        causes.push(Cause::required(format!("data[{key}]"), ""));
    }
    if kind == "kubernetes.io/basic-auth" && !has("username") && !has("password") {
        causes.push(Cause::required("data[username]", ""));
        causes.push(Cause::required("data[password]", ""));
    }
    let data_size = |key: &String| secret_text(data, key).map_or(0, |bytes| bytes.len());
    if data.is_some_and(|data| data.keys().map(data_size).sum::<usize>() > MAX_DATA) {
        causes.push(Cause::too_long("data", MAX_DATA));
    }
    for key in [".dockerconfigjson", ".dockercfg"].iter().filter(|key| needed.contains(key)) {
        if let Some(detail) = secret_text(data, key).and_then(|bytes| syntax_error(&bytes)) {
            let shown = "\"<secret contents redacted>\"";
            causes.push(Cause::invalid_text(format!("data[{key}]"), shown, &detail));
        }
    }
    let annotations = object.get("metadata").map_or(&Value::Null, |it| member(it, "annotations"));
    if kind == "kubernetes.io/service-account-token" && text(annotations, ACCOUNT).is_empty() {
        causes.push(Cause::required(format!("metadata.annotations[{ACCOUNT}]"), ""));
    }
}
