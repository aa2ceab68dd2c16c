//! What the server serves, told in the ways in which clients ask.

use std::sync::Arc;

use http::HeaderMap;
use serde_json::{Value, json};

use super::negotiate;
use super::response::Reply;
use super::route::Document;
use crate::kinds::{Kind, Kinds};

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
/// The Kubernetes version whose behaviour is the model.
const VERSION: (&str, &str, &str) = ("1", "37", "v1.37.1+homeostat");

pub(super) fn answer(kinds: &Kinds, document: &Document, headers: &HeaderMap) -> Reply {
    let in_one_piece = match document {
        Document::CoreVersions | Document::Groups => negotiate::wants_aggregated(headers),
        _ => Ok(false),
    };
    let in_one_piece = match in_one_piece {
        Ok(in_one_piece) => in_one_piece,
        Err(failure) => return Reply::Failure(failure),
    };
    match document {
        Document::Root => Reply::value(&json!({"paths": paths(kinds)})),
        Document::Version => Reply::value(&version()),
        Document::CoreVersions if in_one_piece => aggregated(kinds, str::is_empty),
        Document::Groups if in_one_piece => aggregated(kinds, |group| !group.is_empty()),
        Document::CoreVersions => Reply::value(
            &json!({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}),
        ),
        Document::Groups => {
            let groups: Vec<Value> = groups(kinds)
                .into_iter()
                .filter(|group| !group.is_empty())
                .map(|group| self::group(kinds, group))
                .collect();
            Reply::value(&json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}))
        }
        Document::Group(name) => {
            let mut group = group(kinds, name);
            group["kind"] = json!("APIGroup");
            group["apiVersion"] = json!("v1");
            Reply::value(&group)
        }
        Document::Resources { group, version } => Reply::value(&resources(kinds, group, version)),
        Document::OpenApi => {
            Reply::Typed { media_type: super::response::TEXT, body: kinds.documents().index() }
        }
        Document::Schemas(name) => kinds.documents().get(name).map_or(Reply::Nothing, Reply::ok),
    }
}

/// All paths that are not about objects.
fn paths(kinds: &Kinds) -> Vec<String> {
    let fixed = ["/api", "/api/v1", "/apis", "/apis/", "/openapi/v3", "/openapi/v3/", "/version"];
    let mut paths: Vec<String> = fixed.iter().map(|path| (*path).to_owned()).collect();
    for group in groups(kinds).into_iter().filter(|group| !group.is_empty()) {
        paths.push(format!("/apis/{group}"));
        let versions = versions(kinds, group);
        paths.extend(versions.iter().map(|version| format!("/apis/{group}/{version}")));
    }
    for kind in ["healthz", "livez", "readyz"] {
        paths.push(format!("/{kind}"));
        paths.extend(super::health::CHECKS.iter().map(|check| format!("/{kind}/{check}")));
    }
    paths.sort_unstable();
    paths
}

fn version() -> Value {
    let (major, minor, git) = VERSION;
    json!({
        "major": major, "minor": minor, "gitVersion": git, "gitCommit": "", "gitTreeState": "", "buildDate": "",
        "goVersion": "", "compiler": "rustc", "platform": "",
    })
}

/// The groups, in the order of the table.
fn groups(kinds: &Kinds) -> Vec<&str> {
    let mut groups: Vec<&str> = Vec::new();
    for kind in kinds.rows() {
        if !groups.contains(&&*kind.group) {
            groups.push(&kind.group);
        }
    }
    groups
}

fn versions<'a>(kinds: &'a Kinds, group: &str) -> Vec<&'a str> {
    let mut versions: Vec<&str> = Vec::new();
    for kind in kinds.rows().iter().filter(|kind| kind.group == group) {
        if !versions.contains(&&*kind.version) {
            versions.push(&kind.version);
        }
    }
    versions
}

fn group(kinds: &Kinds, group: &str) -> Value {
    let versions: Vec<Value> = versions(kinds, group)
        .into_iter()
        .map(|version| json!({"groupVersion": format!("{group}/{version}"), "version": version}))
        .collect();
    json!({"name": group, "preferredVersion": versions.first(), "versions": versions})
}

/// The kinds of one version of a group, by the names of their resources: kubectl shows them in this order.
fn of_version<'a>(kinds: &'a Kinds, group: &str, version: &str) -> Vec<&'a Arc<Kind>> {
    let rows = kinds.rows().iter().filter(|kind| kind.group == group && kind.version == version);
    let mut rows: Vec<_> = rows.collect();
    rows.sort_by(|a, b| a.plural.cmp(&b.plural));
    rows
}

fn resources(kinds: &Kinds, group: &str, version: &str) -> Value {
    let mut resources = Vec::new();
    for kind in of_version(kinds, group, version) {
        let resource = json!({
            "name": kind.plural, "singularName": kind.singular(), "namespaced": kind.namespaced, "kind": kind.kind,
            "verbs": verbs(kind), "shortNames": kind.short_names, "categories": kind.categories,
        });
        resources.push(without_empty(resource));
        for (name, verbs) in subresources(kind) {
            let mut subresource = json!({
                "name": format!("{}/{name}", kind.plural), "singularName": "", "namespaced": kind.namespaced,
                "kind": kind.kind, "verbs": verbs,
            });
            if name == "scale" {
                subresource["kind"] = json!("Scale");
                subresource["group"] = json!("autoscaling");
                subresource["version"] = json!("v1");
            }
            resources.push(subresource);
        }
    }
    let group_version =
        if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": resources})
}

/// Leaves out the lists that are empty.
fn without_empty(mut resource: Value) -> Value {
    if let Value::Object(members) = &mut resource {
        members.retain(|_, member| member.as_array().is_none_or(|list| !list.is_empty()));
    }
    resource
}

const VERBS: [&str; 8] =
    ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

pub(super) fn verbs(kind: &Kind) -> Vec<&'static str> {
    let mut verbs = VERBS.to_vec();
    verbs.retain(|verb| kind.deletes_collections || *verb != "deletecollection");
    verbs
}

pub(super) fn subresources(kind: &Kind) -> Vec<(&'static str, &'static [&'static str])> {
    let mut found: Vec<(&str, &[&str])> = Vec::new();
    if kind.has_status() {
        found.push(("status", &["get", "patch", "update"]));
    }
    if kind.scale.is_some() {
        found.push(("scale", &["get", "patch", "update"]));
    }
    if kind.finalize.is_some() {
        found.push(("finalize", &["update"]));
    }
    found.extend(kind.actions.iter().map(|action| (action.name, &["create"][..])));
    found
}

fn aggregated(kinds: &Kinds, wanted: impl Fn(&str) -> bool) -> Reply {
    let items: Vec<Value> = groups(kinds)
        .into_iter()
        .filter(|group| wanted(group))
        .map(|group| {
            let versions: Vec<Value> = versions(kinds, group)
                .into_iter()
                .map(|version| aggregated_version(kinds, group, version))
                .collect();
            let metadata = if group.is_empty() { json!({}) } else { json!({"name": group}) };
            json!({"metadata": metadata, "versions": versions})
        })
        .collect();
    let list = json!({
        "kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items,
    });
    Reply::Typed { media_type: AGGREGATED, body: list.to_string().into() }
}

fn aggregated_version(kinds: &Kinds, group: &str, version: &str) -> Value {
    let resources: Vec<Value> = of_version(kinds, group, version)
        .into_iter()
        .map(|kind| {
            // Of a built-in kind, the group and the version are those around it.
            let (group, version) = if kind.custom { (group, version) } else { ("", "") };
            let response_kind = json!({"group": group, "version": version, "kind": kind.kind});
            let subresources: Vec<Value> = subresources(kind)
                .into_iter()
                .map(|(name, verbs)| {
                    let scale = json!({"group": "autoscaling", "version": "v1", "kind": "Scale"});
                    let response_kind = if name == "scale" { &scale } else { &response_kind };
                    json!({"subresource": name, "responseKind": response_kind, "verbs": verbs})
                })
                .collect();
            without_empty(json!({
                "resource": kind.plural, "responseKind": response_kind, "singularResource": kind.singular(),
                "scope": if kind.namespaced { "Namespaced" } else { "Cluster" }, "verbs": verbs(kind),
                "shortNames": kind.short_names, "categories": kind.categories, "subresources": subresources,
            }))
        })
        .collect();
    json!({"version": version, "freshness": "Current", "resources": resources})
}
