//! The `conversion` of a definition: its defaults, and its validation.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use homeostat_schema::FieldError;
use serde_json::{Value, json};

use super::conditions;
use crate::access::is_malformed;
use crate::fields::{Fields, read_path, text};
use crate::kinds::checks::client_config;
use crate::names;
use crate::pem::{Block, blocks};
use crate::status::Cause;

/// The versions of reviews, as the real server lists them.
const VERSIONS: [&str; 2] = ["v1", "v1beta1"];

/// The paths of the webhook's members. Upstream's internal type has no `webhook` around them.
const CLIENT: &str = "spec.conversion.webhookClientConfig";
const REVIEW_VERSIONS: &str = "spec.conversion.conversionReviewVersions";

/// Sets the strategy and the port that the author left out.
pub(super) fn derive(spec: &mut Fields) {
    if spec.get("conversion").is_none_or(Value::is_null) {
        spec.insert("conversion".to_owned(), json!({"strategy": "None"}));
    }
    let Some(conversion) = spec.get_mut("conversion").and_then(Value::as_object_mut) else {
        return;
    };
    drop_empty_webhook(conversion);
    let service = conversion
        .get_mut("webhook")
        .and_then(|webhook| webhook.get_mut("clientConfig"))
        .and_then(|config| config.get_mut("service"))
        .and_then(Value::as_object_mut);
    if let Some(service) = service
        && service.get("port").is_none_or(Value::is_null)
    {
        service.insert("port".to_owned(), json!(443));
    }
}

/// Drops a webhook without members: the real server keeps its members, not the webhook.
fn drop_empty_webhook(conversion: &mut Fields) {
    let webhook = conversion.get("webhook");
    let is_given = |value: &Value| !value.is_null() && *value != json!([]);
    let has = |name| webhook.and_then(|webhook| webhook.get(name)).is_some_and(is_given);
    if !has("clientConfig") && !has("conversionReviewVersions") {
        conversion.remove("webhook");
    }
}

/// Checks the conversion of a definition; `old` is the stored definition of an update.
pub(super) fn check(spec: &Fields, old: Option<&Fields>, causes: &mut Vec<Cause>) {
    let Some(conversion) = spec.get("conversion") else { return };
    let path = "spec.conversion.strategy";
    let strategy = conversion.get("strategy").and_then(Value::as_str).unwrap_or_default();
    let mut refuse = |error: FieldError| causes.push(error.into());
    if spec.get("preserveUnknownFields") == Some(&json!(true)) && strategy != "None" {
        let detail = "must be None if spec.preserveUnknownFields is true";
        refuse(FieldError::invalid(path, &strategy.into(), detail));
    }
    match strategy {
        "None" | "Webhook" => {}
        "" => refuse(FieldError::required(path, "")),
        other => {
            let allowed = [json!("None"), json!("Webhook")];
            refuse(FieldError::not_supported(path, &other.into(), &allowed));
        }
    }
    let before = old.and_then(|old| read_path(old, "spec.conversion.webhook"));
    let webhook = conversion.get("webhook").unwrap_or(&Value::Null);
    if strategy == "Webhook" {
        let is_established = old.is_some_and(|old| conditions::is_true(old, "Established"));
        let config = before.map_or(&Value::Null, |before| &before["clientConfig"]);
        check_client(&webhook["clientConfig"], (config, is_established), causes);
        check_versions(&webhook["conversionReviewVersions"], before, causes);
        return;
    }
    for (name, path) in [("clientConfig", CLIENT), ("conversionReviewVersions", REVIEW_VERSIONS)] {
        if !webhook[name].is_null() && webhook[name] != json!([]) {
            let detail = "should not be set when strategy is not set to Webhook";
            causes.push(FieldError::forbidden(path, detail).into());
        }
    }
}

/// Checks the server of a webhook. `before` is the configuration in the stored definition;
/// `is_established` is true if that definition is established.
fn check_client(config: &Value, (before, is_established): (&Value, bool), causes: &mut Vec<Cause>) {
    if config.is_null() {
        let detail = "required when strategy is set to Webhook";
        causes.push(Cause::required(CLIENT, detail));
        return;
    }
    client_config::client(&Value::Null, config, CLIENT, causes);
    // A bundle is checked only once objects may depend on it, and unless it was wrong before.
    let (now, before) = (text(config, "caBundle"), text(before, "caBundle"));
    let was_right = before.is_empty() || problem_of_bundle(before).is_none();
    if !is_established || now.is_empty() || !was_right {
        return;
    }
    if let Some(problem) = problem_of_bundle(now) {
        let detail = format!("unable to load root certificates: {problem}");
        causes.push(FieldError::invalid(format!("{CLIENT}.caBundle"), &json!(now), &detail).into());
    }
}

/// Returns true if the definition's webhook has a bundle without a certificate.
pub(super) fn has_wrong_bundle(definition: &Fields) -> bool {
    let config = read_path(definition, "spec.conversion.webhook.clientConfig");
    let bundle = config.map(|config| text(config, "caBundle")).unwrap_or_default();
    !bundle.is_empty() && problem_of_bundle(bundle).is_some()
}

/// Returns the reason why a bundle in Base64 has no certificate, in the words of client-go.
fn problem_of_bundle(encoded: &str) -> Option<String> {
    let bytes = STANDARD.decode(encoded).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let blocks = blocks(&text);
    let is_read = |block: &Block<'_>| block.bytes().is_some_and(|bytes| !is_malformed(&bytes));
    if blocks.iter().any(|block| block.kind == "CERTIFICATE" && is_read(block)) {
        return None;
    }
    let is_certificate = blocks.iter().any(|block| block.kind == "CERTIFICATE");
    Some(if is_certificate {
        "failed to parse certificate: x509: malformed certificate".to_owned()
    } else {
        "unable to parse bytes as PEM block".to_owned()
    })
}

/// Checks the versions of the reviews that a webhook reads.
fn check_versions(versions: &Value, old: Option<&Value>, causes: &mut Vec<Cause>) {
    let list = versions.as_array().map(Vec::as_slice).unwrap_or_default();
    if list.is_empty() {
        causes.push(Cause::required(REVIEW_VERSIONS, ""));
        return;
    }
    for (index, version) in list.iter().enumerate() {
        let path = format!("{REVIEW_VERSIONS}[{index}]");
        if list[..index].contains(version) {
            causes.push(FieldError::invalid(path, version, "duplicate version").into());
            continue;
        }
        for problem in names::rfc_1035_label(version.as_str().unwrap_or_default()) {
            causes.push(FieldError::invalid(path.clone(), version, &problem).into());
        }
    }
    let knows_one =
        |list: &[Value]| list.iter().any(|one| VERSIONS.iter().any(|known| one == known));
    // A definition that a later server has stored may keep what this one does not know.
    let before = old.and_then(|old| old["conversionReviewVersions"].as_array());
    if !knows_one(list) && before.is_none_or(|before| before.is_empty() || knows_one(before)) {
        let detail = format!("must include at least one of {}", VERSIONS.join(", "));
        causes.push(FieldError::invalid(REVIEW_VERSIONS, versions, &detail).into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn webhook_without_members_is_dropped() {
        let derived = |webhook: Value| {
            let conversion = json!({"strategy": "None", "webhook": webhook});
            let mut definition = json!({"spec": {"conversion": conversion}});
            super::super::derive(definition.as_object_mut().unwrap());
            definition["spec"]["conversion"].get("webhook").cloned()
        };
        assert_eq!(derived(json!({})), None);
        assert_eq!(derived(json!({"clientConfig": null, "conversionReviewVersions": null})), None);
        assert_eq!(derived(json!({"conversionReviewVersions": []})), None);
        for kept in [json!({"clientConfig": {}}), json!({"conversionReviewVersions": ["v1"]})] {
            assert_eq!(derived(kept.clone()), Some(kept));
        }
    }
}
