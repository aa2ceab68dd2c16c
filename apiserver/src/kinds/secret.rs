//! Secrets and config maps, whose data can be immutable; service accounts, which name secrets.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::checks;
use crate::fields::{Fields, read_path};
use crate::status::Cause;

/// Merges `stringData` into `data`; its entries win.
pub(super) fn merge_string_data(secret: &mut Fields) {
    let Some(Value::Object(texts)) = secret.remove("stringData") else { return };
    let data = secret.entry("data").or_insert_with(|| json!({}));
    let Some(data) = data.as_object_mut() else { return };
    for (key, text) in texts {
        if let Value::String(text) = text {
            data.insert(key, json!(STANDARD.encode(text)));
        }
    }
}

pub(super) fn validate(secret: &Fields, old: Option<&Fields>, causes: &mut Vec<Cause>) {
    checks::config_data::secret(secret, causes);
    validate_frozen(secret, old, &["data"], causes);
}

pub(super) fn validate_config_map(map: &Fields, old: Option<&Fields>, causes: &mut Vec<Cause>) {
    checks::config_data::config_map(map, causes);
    validate_frozen(map, old, &["data", "binaryData"], causes);
}

/// Warns of invalid certificates, which are stored anyway.
pub(super) fn warn(secret: &Fields, _: Option<&Fields>) -> Vec<String> {
    let certificate = secret.get("data").and_then(|data| data.get("tls.crt")?.as_str());
    let is_pem = |text: &str| {
        STANDARD.decode(text).is_ok_and(|bytes| bytes.windows(11).any(|at| at == b"-----BEGIN "))
    };
    let of_type = secret.get("type") == Some(&json!("kubernetes.io/tls"));
    if of_type && certificate.is_some_and(|text| !is_pem(text)) {
        vec!["tls: failed to find any PEM data in certificate input".to_owned()]
    } else {
        Vec::new()
    }
}

/// Warns of an annotation that is new, and is out of use.
pub(super) fn warn_account(account: &Fields, old: Option<&Fields>) -> Vec<String> {
    const MOUNTABLE: &str = "kubernetes.io/enforce-mountable-secrets";
    let has = |account: &Fields| {
        read_path(account, "metadata.annotations").is_some_and(|all| all.get(MOUNTABLE).is_some())
    };
    if !has(account) || old.is_some_and(has) {
        return Vec::new();
    }
    vec![format!(
        "metadata.annotations[{MOUNTABLE}]: deprecated in v1.32+; prefer separate namespaces to \
         isolate access to mounted secrets"
    )]
}

fn validate_frozen(new: &Fields, old: Option<&Fields>, data: &[&str], causes: &mut Vec<Cause>) {
    let Some(old) = old.filter(|old| old.get("immutable") == Some(&json!(true))) else { return };
    if new.get("immutable") != Some(&json!(true)) {
        causes.push(Cause::forbidden("immutable", "field is immutable when `immutable` is set"));
    }
    let empty = |value: Option<&Value>| value.cloned().unwrap_or_else(|| json!({}));
    for key in data {
        if empty(new.get(*key)) != empty(old.get(*key)) {
            causes.push(Cause::forbidden(*key, "field is immutable when `immutable` is set"));
        }
    }
}
/// Removes all but the names from the secrets of a service account.
pub(super) fn name_secrets(account: &mut Fields) {
    let secrets = account.get_mut("secrets").and_then(Value::as_array_mut).into_iter().flatten();
    for secret in secrets.filter_map(Value::as_object_mut) {
        secret.retain(|member, _| member == "name");
    }
}
