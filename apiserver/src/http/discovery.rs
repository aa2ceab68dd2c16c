//! API discovery, in its aggregated and its unaggregated form.

mod aggregated;
mod resource_list;
mod storage_version;

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use http::HeaderMap;
use serde_json::{Value, json};

use super::openapi::{self, Documents};
use super::route::{Document, Wanted};
use super::{DocumentCache, caching, health};
use crate::access::Access;
use crate::json_text;
use crate::kinds::{Kind, Kinds, version_rank};
use crate::reply::{self, Reply, TEXT};
use crate::request::negotiate;
use crate::status::Result;

const JSON: &str = "application/json";
/// The group whose documents the aggregator serves in the way of any other server.
const AGGREGATOR: &str = "apiregistration.k8s.io";
/// The media type of `OpenAPI` v2 in protobuf, and the one that clients ask for.
const GNOSTIC: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
const OLD_GNOSTIC: &str = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
/// The Kubernetes version whose behaviour this server has: major, minor, full.
const VERSION: (&str, &str, &str) = ("1", "37", "v1.37.1+homeostat");

/// The oldest minor version whose clients and objects the server suits.
const COMPATIBLE_MINOR: &str = "36";

pub(super) fn answer(kinds: &Kinds, documents: &DocumentCache, wanted: &Wanted<'_>) -> Reply {
    let Wanted { document, headers, now, access, .. } = *wanted;
    if let Some(types) = filtered_types(kinds, document)
        && let Err(failure) = check_filter(headers, types)
    {
        return Reply::Failure(failure);
    }
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
        Document::Swagger => Reply::Document(swagger(&documents.get(kinds, now), headers)),
        Document::OpenApi => {
            Reply::Document(caching::index(TEXT, documents.get(kinds, now).index(), now))
        }
        Document::Schemas(name) => {
            Reply::Document(schemas(&documents.get(kinds, now), name, wanted))
        }
        discovery => self::discovery(kinds, discovery, headers).unwrap_or_else(Reply::Failure),
    }
}

/// Returns the media types of a document to which the real server's router sends only requests that
/// accept one of them, and whose body is of one of them.
fn filtered_types(kinds: &Kinds, document: &Document) -> Option<&'static str> {
    match document {
        Document::Version => Some("application/json"),
        Document::CoreVersions => Some(negotiate::TYPES),
        // The aggregator answers for all groups but its own.
        Document::Group(group) => (group == AGGREGATOR).then_some(negotiate::TYPES),
        Document::Resources { group, .. } => {
            let is_custom = kinds.rows_of_group(group).any(|kind| kind.custom);
            (!is_custom).then_some(negotiate::TYPES)
        }
        _ => None,
    }
}

fn check_filter(headers: &HeaderMap, types: &str) -> Result<()> {
    negotiate::check_content_type(headers, types)?;
    negotiate::check_types(headers, types)
}

/// Returns a document of groups, versions or resources.
fn discovery(kinds: &Kinds, document: &Document, headers: &HeaderMap) -> Result<Reply> {
    if let Document::CoreVersions | Document::Groups = document
        && let Some(media) = negotiate::aggregated_media(headers)
    {
        let is_core = matches!(document, Document::CoreVersions);
        let (json, body) = aggregated::document(kinds, is_core, media)?;
        let (media_type, hash) = (aggregated::content_type(media), openapi::hash(&json));
        return Ok(Reply::Document(caching::discovery(media_type, (body, hash), headers)));
    }
    negotiate::check_document(headers)?;
    Ok(match document {
        Document::Group(name) => {
            let mut group = group(kinds, name);
            group["kind"] = json!("APIGroup");
            group["apiVersion"] = json!("v1");
            Reply::value(&group)
        }
        Document::Resources { group, version } => {
            Reply::ok(resource_list::document(kinds, group, version).into())
        }
        Document::CoreVersions => Reply::value(
            &json!({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}),
        ),
        _ => {
            let groups = groups(kinds).into_iter().filter(|group| !group.is_empty());
            let groups: Vec<Value> = groups.map(|group| self::group(kinds, group)).collect();
            Reply::value(&json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}))
        }
    })
}

/// Returns the document of v2 in the first media type that the client accepts and the server has.
fn swagger(documents: &Documents, headers: &HeaderMap) -> reply::Document {
    let v2 = documents.v2();
    let found =
        |media_type, body: &Bytes| caching::swagger(media_type, body.clone(), v2.edition, headers);
    match negotiate::first_type(headers, &[JSON, OLD_GNOSTIC, GNOSTIC]) {
        Some(JSON) => found(JSON, &v2.json),
        Some(_) => found(GNOSTIC, &v2.protobuf),
        None => caching::no_swagger(),
    }
}

/// Returns a document of v3, which there is in JSON alone.
fn schemas(documents: &Documents, name: &str, wanted: &Wanted<'_>) -> reply::Document {
    let Some((body, edition)) = documents.get(name) else { return reply::Document::empty(404) };
    match negotiate::first_type(wanted.headers, &[JSON]) {
        Some(_) => caching::schemas(name, body, edition, wanted),
        None => caching::no_schemas(),
    }
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
    match negotiate::check_types(headers, media_type) {
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
