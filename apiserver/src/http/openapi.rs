//! `OpenAPI` v3: what kubectl reads before it applies, and what it explains.
//!
//! The documents are made from the table of kinds and that of their types when somebody asks, and then kept. They have
//! every type and member with their real names, and no descriptions.

mod schema;

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hasher};
use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Map, Value, json};

use super::discovery;
use crate::kinds::{Kind, Kinds};
use schema::Schemas;

/// The documents of one server: `apis/apps/v1` → JSON.
#[derive(Debug)]
pub(crate) struct Documents {
    index: Bytes,
    by_name: BTreeMap<String, Bytes>,
}

/// What a patch may be. Strategic merge patches are understood too, but kubectl would take the merge keys from these
/// schemas, which do not have them, instead of from its own.
const PATCHES: [&str; 2] = ["application/json-patch+json", "application/merge-patch+json"];

// === impl Documents ===

impl Documents {
    pub(crate) fn of(kinds: &Kinds) -> Self {
        let mut rows: BTreeMap<String, Vec<&Kind>> = BTreeMap::new();
        for kind in kinds.rows().iter().map(Arc::as_ref) {
            let root = root(kind);
            rows.entry(root.trim_start_matches('/').to_owned()).or_default().push(kind);
        }
        let by_name: BTreeMap<String, Bytes> = rows
            .into_iter()
            .map(|(name, kinds)| (name, document(&kinds).to_string().into()))
            .collect();
        let paths: Map<String, Value> = by_name
            .iter()
            .map(|(name, document)| {
                let url = format!("/openapi/v3/{name}?hash={:016X}", hash(document));
                (name.clone(), json!({"serverRelativeURL": url}))
            })
            .collect();
        Self { index: json!({"paths": paths}).to_string().into(), by_name }
    }

    /// Which documents there are.
    pub(super) fn index(&self) -> Bytes {
        self.index.clone()
    }

    /// The document of a group's version: `apis/apps/v1`.
    pub(super) fn get(&self, name: &str) -> Option<Bytes> {
        self.by_name.get(name).cloned()
    }
}

/// The same for the same document: clients keep what they have read under it.
fn hash(document: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(document);
    hasher.finish()
}

/// `/apis/apps/v1`
fn root(kind: &Kind) -> String {
    let prefix = if kind.group.is_empty() { "/api" } else { "/apis" };
    format!("{prefix}/{}", kind.api_version())
}

fn document(kinds: &[&Kind]) -> Value {
    let mut schemas = Schemas::default();
    let mut paths = Map::new();
    for kind in kinds {
        let schema = schemas.add_kind(kind);
        add_paths(&mut paths, kind, &schema);
    }
    json!({
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "unversioned"},
        "paths": paths,
        "components": {"schemas": schemas.into_json()},
    })
}

/// The paths of a kind: of all its objects, of those in one namespace, of one, and of the subresources of one.
fn add_paths(paths: &mut Map<String, Value>, kind: &Kind, schema: &Value) {
    let (root, plural) = (root(kind), &kind.plural);
    let mut collection = format!("{root}/{plural}");
    if kind.namespaced {
        paths.insert(collection, path(kind, schema, &[], &["list"]));
        collection = format!("{root}/namespaces/{{namespace}}/{plural}");
    }
    let place: &[&str] = if kind.namespaced { &["namespace"] } else { &[] };
    let verbs = discovery::verbs(kind);
    let (of_many, of_one): (Vec<&str>, Vec<&str>) = verbs
        .iter()
        .filter(|verb| **verb != "watch")
        .partition(|verb| matches!(**verb, "create" | "list" | "deletecollection"));
    let object = format!("{collection}/{{name}}");
    paths.insert(collection, path(kind, schema, place, &of_many));
    let place = [place, &["name"]].concat();
    for (name, verbs) in discovery::subresources(kind) {
        paths.insert(format!("{object}/{name}"), path(kind, schema, &place, verbs));
    }
    paths.insert(object, path(kind, schema, &place, &of_one));
}

/// One path: its operations, and the parameters in it.
fn path(kind: &Kind, schema: &Value, place: &[&str], verbs: &[&str]) -> Value {
    let mut path: Map<String, Value> =
        verbs.iter().map(|verb| (method(verb).to_owned(), operation(kind, schema, verb))).collect();
    if !place.is_empty() {
        let text = json!({"type": "string", "uniqueItems": true});
        let parameters: Vec<Value> = place
            .iter()
            .map(|name| json!({"name": name, "in": "path", "required": true, "schema": text}))
            .collect();
        path.insert("parameters".to_owned(), json!(parameters));
    }
    Value::Object(path)
}

fn operation(kind: &Kind, schema: &Value, verb: &str) -> Value {
    let content = json!({"application/json": {"schema": schema}});
    let mut operation = json!({
        "x-kubernetes-action": action(verb),
        "x-kubernetes-group-version-kind": schema::gvk(kind, &kind.kind),
        "responses": {"200": {"description": "OK", "content": content}},
    });
    let parameters: Vec<Value> = parameters(verb)
        .iter()
        .map(|name| json!({"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": true}}))
        .collect();
    if !parameters.is_empty() {
        operation["parameters"] = json!(parameters);
    }
    match verb {
        "create" | "update" => {
            operation["requestBody"] = json!({"required": true, "content": content});
        }
        "patch" => {
            let any = json!({"schema": {"type": "object"}});
            let content: Map<String, Value> =
                PATCHES.iter().map(|format| ((*format).to_owned(), any.clone())).collect();
            operation["requestBody"] = json!({"required": true, "content": content});
        }
        _ => {}
    }
    operation
}

fn method(verb: &str) -> &'static str {
    match verb {
        "create" => "post",
        "update" => "put",
        "patch" => "patch",
        "delete" | "deletecollection" => "delete",
        _ => "get",
    }
}

/// What the documents call a verb.
fn action(verb: &str) -> &str {
    match verb {
        "create" => "post",
        "update" => "put",
        other => other,
    }
}

fn parameters(verb: &str) -> &'static [&'static str] {
    match verb {
        "create" | "update" => &["dryRun", "fieldManager", "fieldValidation"],
        "patch" => &["dryRun", "fieldManager", "fieldValidation", "force"],
        "delete" | "deletecollection" => &["dryRun", "gracePeriodSeconds", "propagationPolicy"],
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_a_document_for_every_version_of_a_group() {
        let kinds = Kinds::new(vec![Kind::custom("example.com", "v1", "Widget", "widgets")]);
        let documents = Documents::of(&kinds);
        let index: Value = serde_json::from_slice(&documents.index()).unwrap();
        for name in ["api/v1", "apis/apps/v1", "apis/resource.k8s.io/v1", "apis/example.com/v1"] {
            let url = index["paths"][name]["serverRelativeURL"].as_str().unwrap();
            assert!(url.starts_with(&format!("/openapi/v3/{name}?hash=")), "{url}");
            assert!(documents.get(name).is_some(), "{name}");
        }
        assert!(documents.get("apis/nope.example.com/v1").is_none());
    }

    #[test]
    fn a_patch_of_every_kind_says_that_it_validates_and_runs_dry() {
        let kinds = Kinds::new(Vec::new());
        for kind in kinds.rows() {
            let document = document(&[kind]);
            let place = if kind.namespaced { "namespaces/{namespace}/" } else { "" };
            let path = format!("{}/{place}{}/{{name}}", root(kind), kind.plural);
            let operation = &document["paths"][&path]["patch"];
            assert_eq!(
                operation["x-kubernetes-group-version-kind"]["kind"],
                json!(kind.kind),
                "{path}"
            );
            let parameters = operation["parameters"].as_array().unwrap();
            for name in ["dryRun", "fieldValidation"] {
                assert!(parameters.iter().any(|parameter| parameter["name"] == name), "{path}");
            }
        }
    }
}
