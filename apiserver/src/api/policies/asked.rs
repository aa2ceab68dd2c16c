//! The parts of a request in the form in which policies see them.

use serde_json::{Map, Value, json};

use crate::admission::delete::DeleteOptions;
use crate::fields::Fields;
use crate::kinds::Served;
use crate::object::unpack_owners;
use crate::policies::{Attributes, GroupKind, Operation, Place};
use crate::request::ApiCall;
use crate::request::params::Params;

/// Returns a request without objects and options.
pub(in crate::api) fn of_call<'a>(
    call: &'a ApiCall,
    operation: Operation,
    name: &'a str,
) -> Attributes<'a> {
    let kind = &call.target.served.kind;
    let resource = Place::new(&kind.group, &kind.version, &kind.plural);
    let is_namespace = kind.group.is_empty() && kind.plural == "namespaces";
    Attributes {
        operation,
        resource,
        subresource: call.target.info.subresource.as_deref().unwrap_or_default(),
        kind: GroupKind::new(&kind.group, &kind.version, &kind.kind),
        namespace: if is_namespace { name } else { call.namespace() },
        name,
        object: Value::Null,
        old: Value::Null,
        options: Value::Null,
        dry_run: false,
        user: &call.user,
    }
}

/// Returns an object, in the form that rules apply to, as the client sees it.
pub(in crate::api) fn fields(served: &Served, object: &Fields) -> Fields {
    let mut shown = object.clone();
    unpack_owners(&mut shown);
    if served.kind.definition.is_none() {
        served.kind.rename_from_storage(&mut shown);
    }
    shown.insert("kind".to_owned(), json!(served.kind.kind));
    shown.insert("apiVersion".to_owned(), json!(served.kind.api_version()));
    shown
}

/// Returns [`fields`] as a value.
pub(in crate::api) fn shown(served: &Served, object: &Fields) -> Value {
    Value::Object(fields(served, object))
}

/// Returns the options of a write.
pub(in crate::api) fn write_options(kind: &str, params: &Params) -> Value {
    let mut options = options_of(kind);
    let dry_run = params.all("dryRun");
    if !dry_run.is_empty() {
        options.insert("dryRun".to_owned(), json!(dry_run));
    }
    for name in ["fieldManager", "fieldValidation"] {
        let text = params.get(name);
        if !text.is_empty() {
            options.insert(name.to_owned(), json!(text));
        }
    }
    Value::Object(options)
}

/// Returns the options of a delete.
pub(super) fn delete_options(of: &DeleteOptions) -> Value {
    let mut options = options_of("DeleteOptions");
    let mut add = |name: &str, value: Value| {
        if !value.is_null() {
            options.insert(name.to_owned(), value);
        }
    };
    add("gracePeriodSeconds", json!(of.grace_period_seconds));
    add("propagationPolicy", json!(of.propagation_policy));
    add("orphanDependents", json!(of.orphan_dependents));
    if let Some(wanted) = &of.preconditions {
        let mut preconditions = Map::new();
        for (name, text) in [("uid", &wanted.uid), ("resourceVersion", &wanted.resource_version)] {
            preconditions.extend(text.as_ref().map(|text| (name.to_owned(), json!(text))));
        }
        add("preconditions", Value::Object(preconditions));
    }
    if !of.dry_run.is_empty() {
        add("dryRun", json!(of.dry_run));
    }
    Value::Object(options)
}

fn options_of(kind: &str) -> Map<String, Value> {
    let members = [("kind", kind), ("apiVersion", "meta.k8s.io/v1")];
    members.map(|(name, text)| (name.to_owned(), json!(text))).into_iter().collect()
}

/// Returns the kind of the options of a connection, and the options; `None` for another request.
pub(super) fn connection(
    resource: &str,
    subresource: &str,
    (params, path): (&Params, &str),
) -> Option<(&'static str, Value)> {
    const STREAMS: &[&str] = &["stdin", "stdout", "stderr", "tty"];
    let kind = match (resource, subresource) {
        ("pods", "exec") => "PodExecOptions",
        ("pods", "attach") => "PodAttachOptions",
        ("pods", "portforward") => "PodPortForwardOptions",
        ("pods", "proxy") => "PodProxyOptions",
        ("services", "proxy") => "ServiceProxyOptions",
        ("nodes", "proxy") => "NodeProxyOptions",
        _ => return None,
    };
    let mut options = Map::new();
    let mut add = |name: &str, value: Value| drop(options.insert(name.to_owned(), value));
    add("kind", json!(kind));
    add("apiVersion", json!("v1"));
    if matches!(subresource, "exec" | "attach") {
        STREAMS.iter().filter(|name| params.flag(name)).for_each(|name| add(name, json!(true)));
        if !params.get("container").is_empty() {
            add("container", json!(params.get("container")));
        }
    }
    match subresource {
        "exec" => add("command", json!(params.all("command"))),
        "portforward" => {
            let ports = params.all("ports").into_iter();
            let ports: Vec<i32> = ports.filter_map(|port| port.parse().ok()).collect();
            if !ports.is_empty() {
                add("ports", json!(ports));
            }
        }
        "proxy" => {
            let inner = path.split_once("/proxy/").map(|(_, inner)| format!("/{inner}"));
            if let Some(inner) = inner {
                add("path", json!(inner));
            }
        }
        _ => {}
    }
    Some((kind, Value::Object(options)))
}
