//! `OpenAPI` v3: the documents that kubectl reads before `apply` and for `explain`. `OpenAPI` v2:
//! the document that it reads for what v3 does not describe, such as a `List`.
//!
//! The documents are made from the table of kinds and the table of types at the first request, and
//! then kept. They have every type, member and operation with their real names, texts, defaults and
//! rules for merges.

mod gnostic;
mod names;
mod parameters;
mod paths;
mod published;
mod schema;
mod swagger;

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hasher};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::resource;
use crate::kinds::{Kind, Kinds};
use schema::Schemas;

/// The version of the API that the documents describe.
const VERSION: &str = "1.37";

/// The documents of one server: `apis/apps/v1` → JSON.
#[derive(Debug)]
pub(crate) struct Documents {
    index: Bytes,
    by_name: BTreeMap<String, Arc<Document>>,
    generation: u64,
    /// The time at which the documents were made from the kinds.
    made: Timestamp,
    /// The document of v2, made at the first request for it.
    v2: OnceLock<Swagger>,
}

/// The document of v2.
#[derive(Debug)]
pub(super) struct Swagger {
    pub(super) json: Bytes,
    pub(super) protobuf: Bytes,
    pub(super) edition: Edition,
}

/// An edition of a document: clients that have it need not read it again.
#[derive(Debug, Clone, Copy)]
pub(super) struct Edition {
    pub(super) hash: u64,
    pub(super) made: Timestamp,
}

/// A document, and the kinds that it describes.
#[derive(Debug)]
struct Document {
    kinds: Vec<Arc<Kind>>,
    /// Made at the first request: there may be thousands of definitions, and clients read a few.
    body: OnceLock<Bytes>,
    edition: Edition,
}

// === impl Documents ===

impl Documents {
    /// Describes the kinds. Documents of an earlier table stay if their kinds are the same.
    pub(crate) fn of(kinds: &Kinds, before: Option<&Self>, now: Timestamp) -> Self {
        let mut rows: BTreeMap<String, Vec<Arc<Kind>>> = BTreeMap::new();
        for kind in kinds.rows() {
            let root = root(kind);
            rows.entry(root.trim_start_matches('/').to_owned()).or_default().push(Arc::clone(kind));
        }
        let describe = |(name, kinds): (String, Vec<Arc<Kind>>)| {
            let known = before.and_then(|before| before.by_name.get(&name));
            let document = match known {
                Some(known) if known.describes(&kinds) => Arc::clone(known),
                _ => Arc::new(Document::of(kinds, now)),
            };
            (name, document)
        };
        let by_name: BTreeMap<String, Arc<Document>> = rows.into_iter().map(describe).collect();
        let paths: Map<String, Value> = by_name
            .iter()
            .map(|(name, document)| {
                let url = url(name, document.edition.hash);
                (name.clone(), json!({"serverRelativeURL": url}))
            })
            .collect();
        let index = json!({"paths": paths}).to_string().into();
        Self { index, by_name, generation: kinds.generation(), made: now, v2: OnceLock::new() }
    }

    /// Returns the document of v2.
    pub(super) fn v2(&self) -> &Swagger {
        self.v2.get_or_init(|| {
            let kinds = self.by_name.values().flat_map(|document| &document.kinds);
            let document = swagger::from_v3(&document(&kinds.cloned().collect::<Vec<_>>()));
            let json: Bytes = document.to_string().into();
            let edition = Edition { hash: hash(&json), made: self.made };
            Swagger { json, protobuf: gnostic::encode(&document).into(), edition }
        })
    }

    /// Returns the generation of the kinds that the documents describe.
    pub(super) fn generation(&self) -> u64 {
        self.generation
    }

    /// Returns the index of the documents.
    pub(super) fn index(&self) -> Bytes {
        self.index.clone()
    }

    /// Returns the document of a group's version, such as `apis/apps/v1`.
    pub(super) fn get(&self, name: &str) -> Option<(Bytes, Edition)> {
        self.by_name.get(name).map(|document| (document.body(), document.edition))
    }
}

// === impl Document ===

impl Document {
    fn of(kinds: Vec<Arc<Kind>>, made: Timestamp) -> Self {
        let edition = Edition { hash: 0, made };
        let document = Self { kinds, body: OnceLock::new(), edition };
        let hash = hash(document.source().as_bytes());
        Self { edition: Edition { hash, made }, ..document }
    }

    fn body(&self) -> Bytes {
        self.body.get_or_init(|| document(&self.kinds).to_string().into()).clone()
    }

    /// Returns all that the document is made from. The types of built-in kinds come with the
    /// version of the crate.
    fn source(&self) -> String {
        let source = |kind: &Arc<Kind>| {
            let subresources = resource::subresources(kind).into_iter().map(|part| part.name);
            let names = [&*kind.group, &kind.version, &kind.plural, &kind.kind];
            let definition = kind.definition.as_ref();
            json!([
                names,
                kind.namespaced,
                subresources.collect::<Vec<_>>(),
                definition.map(|definition| &definition.document),
                definition.map(|definition| definition.selectable_labels()),
            ])
        };
        let sources: Vec<Value> = self.kinds.iter().map(source).collect();
        json!([env!("CARGO_PKG_VERSION"), sources]).to_string()
    }

    fn describes(&self, kinds: &[Arc<Kind>]) -> bool {
        self.kinds.len() == kinds.len()
            && self.kinds.iter().zip(kinds).all(|(own, other)| Arc::ptr_eq(own, other))
    }
}

/// Returns the address of an edition of a document.
pub(super) fn url(name: &str, hash: u64) -> String {
    format!("/openapi/v3/{name}?hash={}", hash_text(hash))
}

/// Returns a hash as addresses and headers have it.
pub(super) fn hash_text(hash: u64) -> String {
    format!("{hash:016X}")
}

/// Returns a hash that is equal for equal documents: clients cache documents by it.
pub(super) fn hash(document: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(document);
    hasher.finish()
}

/// `/apis/apps/v1`
fn root(kind: &Kind) -> String {
    let prefix = if kind.group.is_empty() { "/api" } else { "/apis" };
    format!("{prefix}/{}", kind.api_version())
}

/// Returns the document of a group's version.
fn document(kinds: &[Arc<Kind>]) -> Value {
    let mut schemas = Schemas::default();
    let mut paths = Map::new();
    let is_custom = kinds.iter().all(|kind| kind.custom);
    for kind in kinds {
        if !kind.custom && !paths.contains_key(&format!("{}/", root(kind))) {
            paths::add_root(&mut paths, kind, &mut schemas);
        }
        let schema = schemas.add_kind(kind);
        paths::add_kind(&mut paths, kind, &schema, &mut schemas);
    }
    let (title, version) =
        if is_custom { ("Kubernetes CRD Swagger", "v0.1.0") } else { ("Kubernetes", VERSION) };
    let mut document = json!({
        "openapi": "3.0.0",
        "info": {"title": title, "version": version},
        "paths": paths,
        "components": {"schemas": schemas.into_json()},
    });
    if !is_custom {
        document["components"]["securitySchemes"] = json!({"BearerToken": {
            "type": "apiKey", "description": "Bearer Token authentication",
            "name": "authorization", "in": "header",
        }});
    }
    document
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_version_of_a_group_has_a_document() {
        let kinds = Kinds::new(vec![Kind::custom("example.com", "v1", "Widget", "widgets")]);
        let documents = Documents::of(&kinds, None, Timestamp::UNIX_EPOCH);
        let index: Value = serde_json::from_slice(&documents.index()).unwrap();
        for name in ["api/v1", "apis/apps/v1", "apis/resource.k8s.io/v1", "apis/example.com/v1"] {
            let url = index["paths"][name]["serverRelativeURL"].as_str().unwrap();
            assert!(url.starts_with(&format!("/openapi/v3/{name}?hash=")), "{url}");
            assert!(documents.get(name).is_some(), "{name}");
        }
        assert!(documents.get("apis/nope.example.com/v1").is_none());
    }

    #[test]
    fn new_kind_makes_the_document_of_its_group_alone() {
        let mut kinds = Kinds::new(Vec::new());
        for at in 0..50 {
            kinds = kinds.with_kind(&format!("g{at}.example.com"), "widgets");
        }
        let before = Documents::of(&kinds, None, Timestamp::UNIX_EPOCH);
        let more = kinds.with_kind("g7.example.com", "gadgets");
        let after = Documents::of(&more, Some(&before), Timestamp::UNIX_EPOCH);
        assert_eq!(before.by_name.len(), after.by_name.len());
        let pairs = before.by_name.iter().zip(after.by_name.values());
        let made: Vec<&String> = pairs
            .filter(|((_, old), new)| !Arc::ptr_eq(old, new))
            .map(|((name, _), _)| name)
            .collect();
        assert_eq!(made, ["apis/g7.example.com/v1"]);
        assert_ne!(before.index(), after.index());
    }

    #[test]
    fn document_is_made_at_the_first_request() {
        let build = || {
            let kinds = Kinds::new(Vec::new()).with_kind("a.example.com", "foos");
            let kinds = kinds.with_kind("b.example.com", "foos");
            Documents::of(&kinds, None, Timestamp::UNIX_EPOCH)
        };
        let documents = build();
        let made = || {
            let all = documents.by_name.iter();
            let made = all.filter(|(_, document)| document.body.get().is_some());
            made.map(|(name, _)| name.as_str()).collect::<Vec<_>>()
        };
        assert!(made().is_empty());
        let (body, _) = documents.get("apis/a.example.com/v1").unwrap();
        assert!(body.starts_with(b"{\"components\""), "{body:?}");
        assert_eq!(made(), ["apis/a.example.com/v1"]);
        assert_eq!(documents.index(), build().index(), "another server has equal hashes");
    }

    #[test]
    fn patch_of_every_kind_documents_validation_and_dry_run() {
        let kinds = Kinds::new(Vec::new());
        for kind in kinds.rows().filter(|kind| resource::verbs(kind).contains(&"patch")) {
            let document = document(&[Arc::clone(kind)]);
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
