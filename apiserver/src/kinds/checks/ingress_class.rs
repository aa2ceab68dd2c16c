//! Classes of ingresses.

use serde_json::{Value, json};

use super::Test::{By, Required};
use super::{Causes, Check, check_text, is_empty, join, member, paths, text};
use crate::fields::Fields;
use crate::names;
use crate::status::Cause;

const MAX_CONTROLLER: usize = 250;

pub(crate) fn ingress_class(class: &Fields, old: Option<&Fields>, causes: Causes<'_>) {
    const NAMED: &[Check] = &[("kind", Required("")), ("name", Required(""))];
    let spec = class.get("spec").unwrap_or(&Value::Null);
    let controller = member(spec, "controller");
    let before = old.map(|old| old.get("spec").unwrap_or(&Value::Null));
    if before.is_some_and(|before| member(before, "controller") != controller) {
        let shown = json!(text(spec, "controller"));
        causes.push(Cause::invalid("spec.controller", &shown, "field is immutable"));
    }
    if text(spec, "controller").len() > MAX_CONTROLLER {
        causes.push(Cause::too_long("spec.controller", MAX_CONTROLLER));
    }
    paths::of_domain(text(spec, "controller"), "spec.controller", causes);
    let (parameters, at) = (member(spec, "parameters"), "spec.parameters");
    if parameters.is_null() {
        return;
    }
    reference(parameters, at, causes);
    super::run(&[("scope", By(scope))], parameters, at, causes);
    super::run(NAMED, parameters, at, causes);
}

fn reference(parameters: &Value, at: &str, causes: Causes<'_>) {
    check_text(member(parameters, "apiGroup"), names::dns_subdomain, &join(at, "apiGroup"), causes);
    for name in ["kind", "name"] {
        let value = member(parameters, name);
        if !is_empty(value) {
            check_text(value, names::path_segment, &join(at, name), causes);
        }
    }
}

/// Checks where the parameters are: in the cluster, or in a namespace.
fn scope(parameters: &Value, scope: &Value, at: &str, causes: Causes<'_>) {
    const SCOPES: &[&str] = &["Cluster", "Namespace"];
    let namespace = member(parameters, "namespace");
    let namespace_at = at.replace("scope", "namespace");
    match scope.as_str() {
        Some("Namespace") if namespace.is_null() => {
            causes.push(Cause::required(namespace_at, "`parameters.scope` is set to 'Namespace'"));
        }
        Some("Namespace") => check_text(namespace, names::dns_label, &namespace_at, causes),
        Some("Cluster") if namespace.is_null() => {}
        Some("Cluster") => {
            causes.push(Cause::forbidden(namespace_at, "`parameters.scope` is set to 'Cluster'"));
        }
        Some(_) => causes.push(Cause::unsupported(at, scope, SCOPES)),
        None => causes.push(Cause::required(at, "")),
    }
}
