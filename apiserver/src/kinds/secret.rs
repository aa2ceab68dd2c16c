//! Secrets and config maps: data that can be immutable.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::checks;
use crate::fields::Fields;
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
    checks::core::secret(secret, causes);
    validate_frozen(secret, old, &["data"], causes);
}

pub(super) fn validate_config_map(map: &Fields, old: Option<&Fields>, causes: &mut Vec<Cause>) {
    checks::core::config_map(map, causes);
    validate_frozen(map, old, &["data", "binaryData"], causes);
}

/// Warns of invalid certificates, which are stored anyway.
pub(super) fn warn(secret: &Fields) -> Vec<String> {
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
