//! The servers that webhooks name: a URL, or a service of the cluster.

use serde_json::{Value, json};

use super::Test::{By, Required};
use super::{Causes, Check, join, member, text};
use crate::kinds::url;
use crate::names;
use crate::status::Cause;

const FORM: &str = "; desired format: https://host[/path]";

/// Checks the configuration of a webhook's client.
pub(crate) fn client(_: &Value, config: &Value, at: &str, causes: Causes<'_>) {
    const SERVICE: &[Check] = &[
        ("name", Required("")),
        ("namespace", Required("")),
        ("port", By(port)),
        ("path", By(path)),
    ];
    let (url, service) = (member(config, "url"), member(config, "service"));
    if url.is_null() == service.is_null() {
        causes.push(Cause::required(at, "exactly one of url or service is required"));
    } else if service.is_null() {
        address(text(config, "url"), &join(at, "url"), causes);
    } else {
        super::run(SERVICE, service, &join(at, "service"), causes);
    }
}

/// Checks the number of a port that a service has.
pub(super) fn port(_: &Value, port: &Value, at: &str, causes: Causes<'_>) {
    if port.as_i64().is_some_and(|number| !(1..=65535).contains(&number)) {
        let detail = "port is not valid: must be between 1 and 65535, inclusive";
        causes.push(Cause::invalid(at, port, detail));
    }
}

/// Checks a URL (`ValidateWebhookURL`).
fn address(text: &str, at: &str, causes: Causes<'_>) {
    let url = match url::parse(text) {
        Ok(url) => url,
        Err(problem) => {
            let detail = format!("url must be a valid URL: parse {}: {problem}{FORM}", json!(text));
            causes.push(Cause::required(at, &detail));
            return;
        }
    };
    let mut refuse = |shown: &str, detail: &str| {
        causes.push(Cause::invalid(at, &json!(shown), detail));
    };
    if url.scheme != "https" {
        refuse(&url.scheme, &format!("'https' is the only allowed URL scheme{FORM}"));
    }
    if url.host.is_empty() {
        refuse("", &format!("host must be specified{FORM}"));
    }
    if let Some(user) = &url.user {
        refuse(user, "user information is not permitted in the URL");
    }
    if !url.fragment.is_empty() {
        refuse(&url.fragment, "fragments are not permitted in the URL");
    }
    if !url.query.is_empty() {
        refuse(&url.query, "query parameters are not permitted in the URL");
    }
}

/// Checks the path of a service. Each step is the name of a domain.
fn path(_: &Value, path: &Value, at: &str, causes: Causes<'_>) {
    let Some(text) = path.as_str().filter(|text| !matches!(*text, "" | "/")) else { return };
    let mut refuse = |detail: &str| causes.push(Cause::invalid(at, path, detail));
    if text == "//" {
        refuse("segment[0] may not be empty");
        return;
    }
    if !text.starts_with('/') {
        refuse("must start with a '/'");
    }
    // As in upstream, the first byte is no part of a step even if it is no slash.
    let steps = text.get(1..).unwrap_or_default();
    let steps = steps.strip_suffix('/').unwrap_or(steps);
    for (place, step) in steps.split('/').enumerate() {
        if step.is_empty() {
            refuse(&format!("segment[{place}] may not be empty"));
            continue;
        }
        for problem in names::dns_subdomain(step) {
            refuse(&format!("segment[{place}]: {problem}"));
        }
    }
}
