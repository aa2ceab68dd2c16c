//! API discovery, in its aggregated and its unaggregated form.

mod resource_list;
mod storage_version;

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, header};
use serde_json::{Value, json};

use super::openapi::Documents;
use super::resource::{subresources, verbs};
use super::route::{Document, Wanted};
use super::{DocumentCache, caching, health};
use crate::access::Access;
use crate::json_text;
use crate::kinds::{Kind, Kinds, version_rank};
use crate::reply::{self, Reply, TEXT};
use crate::request::negotiate;

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
/// The media type of `OpenAPI` v2 in protobuf, and the one that clients ask for.
const GNOSTIC: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
const OLD_GNOSTIC: &str = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
/// The Kubernetes version whose behaviour this server has: major, minor, full.
const VERSION: (&str, &str, &str) = ("1", "37", "v1.37.1+homeostat");

/// The oldest minor version whose clients and objects the server suits.
const COMPATIBLE_MINOR: &str = "36";

pub(super) fn answer(kinds: &Kinds, documents: &DocumentCache, wanted: &Wanted<'_>) -> Reply {
    let Wanted { document, headers, now, access, .. } = *wanted;
    let in_one_piece = match document {
        Document::CoreVersions | Document::Groups => negotiate::wants_aggregated(headers),
        _ => Ok(false),
    };
    let in_one_piece = match in_one_piece {
        Ok(in_one_piece) => in_one_piece,
        Err(failure) => return Reply::Failure(failure),
    };
    match document {
        Document::Root => with_line_breaks(&json!({"paths": paths(kinds, access)})),
        Document::Version => with_line_breaks(&version()),
        Document::Issuer => {
            let host = access.address().map(|address| address.to_string());
            let document = access.issuer().configuration(host.as_deref());
            public("application/json", document, headers)
        }
        Document::SigningKeys => {
            public("application/jwk-set+json", access.issuer().key_set(), headers)
        }
        Document::CoreVersions if in_one_piece => aggregated(kinds, headers, str::is_empty),
        Document::Groups if in_one_piece => aggregated(kinds, headers, |group| !group.is_empty()),
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
        Document::Resources { group, version } => {
            Reply::ok(resource_list::document(kinds, group, version).into())
        }
        Document::Swagger => Reply::Document(swagger(&documents.get(kinds, now), headers)),
        Document::OpenApi => {
            Reply::Document(caching::index(TEXT, documents.get(kinds, now).index(), now))
        }
        Document::Schemas(name) => Reply::Document(match documents.get(kinds, now).get(name) {
            Some((body, edition)) => caching::schemas(name, body, edition, wanted),
            None => reply::Document::empty(404),
        }),
    }
}

/// Returns the document of v2 in the first media type that the client accepts and the server has.
fn swagger(documents: &Documents, headers: &HeaderMap) -> reply::Document {
    let v2 = documents.v2();
    let found =
        |media_type, body: &Bytes| caching::swagger(media_type, body.clone(), v2.edition, headers);
    let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or("");
    for range in if accept.is_empty() { "*/*" } else { accept }.split(',') {
        match range.split(';').next().unwrap_or_default().trim() {
            "application/json" | "application/*" | "*/*" => {
                return found("application/json", &v2.json);
            }
            GNOSTIC | OLD_GNOSTIC => return found(GNOSTIC, &v2.protobuf),
            _ => {}
        }
    }
    caching::no_swagger()
}

/// Returns all paths that are not about objects.
fn paths(kinds: &Kinds, access: &Access) -> Vec<String> {
    let fixed = [
        "/api",
        "/api/v1",
        "/apis",
        "/apis/",
        "/metrics",
        "/openapi/v2",
        "/openapi/v3",
        "/openapi/v3/",
        "/version",
    ];
    let mut paths: Vec<String> = fixed.iter().map(|path| (*path).to_owned()).collect();
    if access.issuer().address().is_some() {
        paths.extend(["/.well-known/openid-configuration", "/openid/v1/jwks"].map(str::to_owned));
    }
    for group in groups(kinds).into_iter().filter(|group| !group.is_empty()) {
        paths.push(format!("/apis/{group}"));
        let versions = versions(kinds, group);
        paths.extend(versions.iter().map(|version| format!("/apis/{group}/{version}")));
    }
    for endpoint in health::ENDPOINTS {
        paths.push(format!("/{endpoint}"));
        paths.extend(health::checks(endpoint).map(|check| format!("/{endpoint}/{check}")));
    }
    paths.sort_unstable();
    paths
}

/// Returns a reply that has line breaks for every client.
fn with_line_breaks(value: &Value) -> Reply {
    Reply::ok(json_text::indented(value.to_string().as_bytes()).into())
}

/// Returns a document about the issuer of tokens, if there is one.
fn public(media_type: &'static str, document: Option<Bytes>, headers: &HeaderMap) -> Reply {
    let Some(document) = document else { return Reply::NotFound };
    match negotiate::check_only(headers, media_type) {
        Ok(()) => Reply::Document(caching::public(media_type, document)),
        Err(failure) => Reply::Failure(failure),
    }
}

fn version() -> Value {
    let (major, minor, git) = VERSION;
    json!({
        "major": major, "minor": minor, "emulationMajor": major, "emulationMinor": minor,
        "minCompatibilityMajor": major, "minCompatibilityMinor": COMPATIBLE_MINOR,
        "gitVersion": git, "gitCommit": "", "gitTreeState": "", "buildDate": "",
        "goVersion": "", "compiler": "rustc", "platform": "",
    })
}

/// The built-in groups in the order of discovery, which is that of their priorities in the real
/// server.
const GROUPS: [&str; 22] = [
    "",
    "apiregistration.k8s.io",
    "apps",
    "events.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "autoscaling",
    "batch",
    "certificates.k8s.io",
    "networking.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "storage.k8s.io",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "scheduling.k8s.io",
    "coordination.k8s.io",
    "node.k8s.io",
    "discovery.k8s.io",
    "resource.k8s.io",
    "flowcontrol.apiserver.k8s.io",
    "storagemigration.k8s.io",
];

/// Returns the groups: the built-in ones, then those of custom kinds.
fn groups(kinds: &Kinds) -> Vec<&str> {
    let mut seen = BTreeSet::new();
    let groups = kinds.rows().map(|kind| &*kind.group);
    let mut groups: Vec<&str> = groups.filter(|group| seen.insert(*group)).collect();
    let rank = |group: &str| GROUPS.iter().position(|known| *known == group);
    groups.sort_by_key(|group| rank(group).unwrap_or(GROUPS.len()));
    groups
}

fn versions<'a>(kinds: &'a Kinds, group: &'a str) -> Vec<&'a str> {
    let mut versions: Vec<&str> = Vec::new();
    for kind in kinds.rows_of_group(group) {
        if !versions.contains(&&*kind.version) {
            versions.push(&kind.version);
        }
    }
    if kinds.rows_of_group(group).any(|kind| kind.custom) {
        versions.sort_by_key(|version| std::cmp::Reverse(version_rank(version)));
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

/// Returns the kinds of a group's version, sorted by resource name: kubectl shows them in this
/// order.
fn of_version<'a>(kinds: &'a Kinds, group: &'a str, version: &str) -> Vec<&'a Arc<Kind>> {
    let rows = kinds.rows_of_group(group).filter(|kind| kind.version == version);
    let mut rows: Vec<_> = rows.collect();
    rows.sort_by(|a, b| a.plural.cmp(&b.plural));
    rows
}

/// Removes empty lists.
fn without_empty(mut resource: Value) -> Value {
    if let Value::Object(members) = &mut resource {
        members.retain(|_, member| member.as_array().is_none_or(|list| !list.is_empty()));
    }
    resource
}

fn aggregated(kinds: &Kinds, headers: &HeaderMap, wanted: impl Fn(&str) -> bool) -> Reply {
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
        "kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {},
        "items": items,
    });
    Reply::Document(caching::discovery(AGGREGATED, format!("{list}\n").into(), headers))
}

fn aggregated_version(kinds: &Kinds, group: &str, version: &str) -> Value {
    let resources: Vec<Value> = of_version(kinds, group, version)
        .into_iter()
        .map(|kind| {
            // A built-in kind inherits the group and version of the entry around it.
            let (group, version) = if kind.custom { (group, version) } else { ("", "") };
            let response_kind = json!({"group": group, "version": version, "kind": kind.kind});
            let subresources: Vec<Value> = subresources(kind)
                .into_iter()
                .map(|subresource| {
                    let (group, version, kind) = match subresource.gvk(kind) {
                        ("", "", body) => (group, version, body),
                        other => other,
                    };
                    let response_kind = json!({"group": group, "version": version, "kind": kind});
                    json!({"subresource": subresource.name, "responseKind": response_kind,
                        "verbs": subresource.verbs})
                })
                .collect();
            without_empty(json!({
                "resource": kind.plural, "responseKind": response_kind,
                "singularResource": kind.singular(),
                "scope": if kind.namespaced { "Namespaced" } else { "Cluster" },
                "verbs": verbs(kind),
                "shortNames": kind.short_names(), "categories": kind.categories(),
                "subresources": subresources,
            }))
        })
        .collect();
    json!({"version": version, "freshness": "Current", "resources": resources})
}
