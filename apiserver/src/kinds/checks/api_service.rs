//! Registrations of API servers.

use homeostat_core::go_quote;
use serde_json::{Value, json};

use super::Test::{By, Required};
use super::{Causes, Check, check_text, client_config, is_empty, items, member, text};
use crate::fields::Fields;
use crate::names;
use crate::status::Cause;

pub(crate) fn api_service(service: &Fields, _: Option<&Fields>, causes: Causes<'_>) {
    const SERVICE: &[Check] =
        &[("namespace", Required("")), ("name", Required("")), ("port", By(client_config::port))];
    const PRIORITIES: &[Check] = &[
        ("groupPriorityMinimum", By(|_, it, at, causes| priority(it, 20_000, at, causes))),
        ("versionPriority", By(|_, it, at, causes| priority(it, 1_000, at, causes))),
    ];
    let object = Value::Object(service.clone());
    let spec = member(&object, "spec");
    name(member(&object, "metadata"), spec, causes);
    group_and_version(spec, causes);
    super::run(PRIORITIES, spec, "spec", causes);
    let server = member(spec, "service");
    if server.is_null() {
        local(spec, causes);
    } else {
        super::run(SERVICE, server, "spec.service", causes);
        if is_insecure(spec) && !is_empty(member(spec, "caBundle")) {
            let detail = "may not be true if caBundle is present";
            causes.push(Cause::invalid("spec.insecureSkipTLSVerify", &json!(true), detail));
        }
    }
    status(member(&object, "status"), causes);
}

/// Checks the name, which is made of the version and the group. A name that cannot be part of a
/// path has been refused before.
fn name(metadata: &Value, spec: &Value, causes: Causes<'_>) {
    let required = format!("{}.{}", text(spec, "version"), text(spec, "group"));
    let name = text(metadata, "name");
    if !name.is_empty() && name != required && names::path_segment(name).is_empty() {
        let required = go_quote(&required);
        let detail = format!("must be `spec.version+\".\"+spec.group`: {required}");
        causes.push(Cause::invalid("metadata.name", member(metadata, "name"), &detail));
    }
}

fn group_and_version(spec: &Value, causes: Causes<'_>) {
    let (group, version) = (text(spec, "group"), text(spec, "version"));
    if !group.is_empty() {
        check_text(&json!(group), names::dns_subdomain, "spec.group", causes);
    } else if version != "v1" {
        let detail = "only v1 may have an empty group and it better be legacy kube";
        causes.push(Cause::required("spec.group", detail));
    }
    check_text(&json!(version), names::rfc_1035_label, "spec.version", causes);
}

fn priority(value: &Value, most: i64, at: &str, causes: Causes<'_>) {
    if !(1..=most).contains(&value.as_i64().unwrap_or(0)) {
        let detail = format!("must be positive and less than {most}");
        causes.push(Cause::invalid(at, value, &detail));
    }
}

fn is_insecure(spec: &Value) -> bool {
    *member(spec, "insecureSkipTLSVerify") == true
}

/// Checks what a server without a service may not have.
fn local(spec: &Value, causes: Causes<'_>) {
    let bundle = text(spec, "caBundle");
    if !bundle.is_empty() {
        let padding = bundle.bytes().rev().take_while(|byte| *byte == b'=').count();
        let size = json!(format!("{} bytes", bundle.len() / 4 * 3 - padding));
        let detail = "local APIServices may not have a caBundle";
        causes.push(Cause::invalid("spec.caBundle", &size, detail));
    }
    if is_insecure(spec) {
        let detail = "local APIServices may not have insecureSkipTLSVerify";
        causes.push(Cause::invalid("spec.insecureSkipTLSVerify", &json!(true), detail));
    }
}

fn status(status: &Value, causes: Causes<'_>) {
    const STATUSES: &[&str] = &["True", "False", "Unknown"];
    for (place, condition) in items(member(status, "conditions")).iter().enumerate() {
        let found = member(condition, "status");
        if !STATUSES.iter().any(|known| found == known) {
            let at = format!("status.conditions[{place}].status");
            causes.push(Cause::unsupported(at, found, STATUSES));
        }
    }
}
