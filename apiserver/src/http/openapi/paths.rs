//! The paths of a document and their operations, with the real server's names and texts.

use serde_json::{Map, Value, json};

use super::names::{action, article, capitalized, group_version, method, tag};
use super::parameters;
use super::schema::{Schemas, gvk, reference};
use crate::http::resource;
use crate::kinds::{Kind, Operations};

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";

/// The documented formats of a patch. kubectl takes merge keys from these schemas if a kind accepts
/// strategic merge patches; custom kinds accept none.
const PATCHES: [&str; 3] =
    ["application/apply-patch+yaml", "application/json-patch+json", "application/merge-patch+json"];
const STRATEGIC: &str = "application/strategic-merge-patch+json";

/// The paths of one kind.
struct Paths<'a> {
    kind: &'a Kind,
    /// The reference to the schema of the kind.
    schema: &'a Value,
    items: &'a mut Map<String, Value>,
}

/// The place of a path: what it is under, and what it names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    namespaced: bool,
    named: bool,
}

/// The subresource of an operation.
#[derive(Default)]
struct Part<'a> {
    name: &'a str,
    schema: Option<Value>,
    gvk: Option<Value>,
    /// The kind of its bodies, if it has one of its own.
    kind: Option<&'a str>,
}

/// Adds the path that lists the resources of a version.
pub(super) fn add_root(paths: &mut Map<String, Value>, kind: &Kind, schemas: &mut Schemas) {
    let list = schemas.add_meta(kind, "APIResourceList");
    let get = json!({
        "tags": [tag(kind)],
        "description": "get available resources",
        "operationId": format!("get{}APIResources", group_version(kind)),
        "responses": {
            "200": {"description": "OK", "content": content(JSON_AND_OTHERS, &list)},
            "401": {"description": "Unauthorized"},
        },
    });
    paths.insert(format!("{}/", super::root(kind)), json!({"get": get}));
}

/// Adds the paths of a kind: for all objects, for those of one namespace, for one object, for its
/// subresources, and for watches by path.
pub(super) fn add_kind(
    paths: &mut Map<String, Value>,
    kind: &Kind,
    schema: &Value,
    schemas: &mut Schemas,
) {
    for name in ["Status", "DeleteOptions", "Patch", "WatchEvent"] {
        let is_used = match name {
            "WatchEvent" => !kind.custom,
            _ => kind.operations == Operations::All,
        };
        if is_used && resource::verbs(kind).len() > 2 {
            schemas.add_meta(kind, name);
        }
    }
    let mut added = Paths { kind, schema, items: paths };
    added.add_collections();
    added.add_subresources(schemas);
    if !kind.custom && resource::verbs(kind).contains(&"watch") {
        added.add_watches();
    }
}

// === impl Paths ===

impl Paths<'_> {
    fn add_collections(&mut self) {
        let kind = self.kind;
        let verbs = resource::verbs(kind);
        let every = Place { namespaced: false, named: false };
        if kind.namespaced && verbs.contains(&"list") {
            self.add("", every, &["list"], &Part::default());
        }
        let place = Place { namespaced: kind.namespaced, named: false };
        let (of_many, of_one): (Vec<&str>, Vec<&str>) = verbs
            .iter()
            .filter(|verb| **verb != "watch")
            .partition(|verb| matches!(**verb, "create" | "list" | "deletecollection"));
        self.add("", place, &of_many, &Part::default());
        self.add("", Place { named: true, ..place }, &of_one, &Part::default());
    }

    fn add_subresources(&mut self, schemas: &mut Schemas) {
        let kind = self.kind;
        let place = Place { namespaced: kind.namespaced, named: true };
        for subresource in resource::subresources(kind) {
            let body = subresource.body_type();
            let schema = body.map(|body| schemas.add_named(body));
            let part = Part {
                name: subresource.name,
                gvk: body.filter(|_| !kind.custom).map(|body| {
                    let (group, version) = body.0.split_once('/').unwrap_or(("", body.0));
                    json!({"group": group, "version": version, "kind": body.1})
                }),
                kind: body.map(|body| body.1),
                schema,
            };
            self.add("", place, subresource.verbs, &part);
        }
    }

    fn add_watches(&mut self) {
        let namespaced = self.kind.namespaced;
        let part =
            Part { schema: Some(reference(&format!("{META}.WatchEvent"))), ..Part::default() };
        if namespaced {
            let every = Place { namespaced: false, named: false };
            self.add("watch/", every, &["watchlist"], &part);
        }
        self.add("watch/", Place { namespaced, named: false }, &["watchlist"], &part);
        if resource::verbs(self.kind).contains(&"get") {
            self.add("watch/", Place { namespaced, named: true }, &["watch"], &part);
        }
    }

    /// Adds a path. The parameters that all its operations have are those of the path.
    fn add(&mut self, prefix: &str, place: Place, verbs: &[&str], part: &Part<'_>) {
        if verbs.is_empty() {
            return;
        }
        let all: Vec<Vec<Value>> =
            verbs.iter().map(|verb| self.parameters(verb, place, part)).collect();
        let is_shared = |parameter: &Value| all.iter().all(|list| list.contains(parameter));
        let mut item = Map::new();
        for (verb, list) in verbs.iter().zip(&all) {
            let own: Vec<Value> = list.iter().filter(|one| !is_shared(one)).cloned().collect();
            item.insert(method(verb).to_owned(), self.operation(verb, place, part, &own));
        }
        let shared: Vec<Value> = all[0].iter().filter(|one| is_shared(one)).cloned().collect();
        if !shared.is_empty() {
            item.insert("parameters".to_owned(), json!(shared));
        }
        self.items.insert(self.path(prefix, place, part.name), Value::Object(item));
    }

    fn path(&self, prefix: &str, place: Place, part: &str) -> String {
        let root = super::root(self.kind);
        let namespace = if place.namespaced { "namespaces/{namespace}/" } else { "" };
        let name = if place.named { "/{name}" } else { "" };
        let separator = if part.is_empty() { "" } else { "/" };
        format!("{root}/{prefix}{namespace}{}{name}{separator}{part}", self.kind.plural)
    }

    /// Returns the parameters of an operation, sorted by name.
    fn parameters(&self, verb: &str, place: Place, part: &Part<'_>) -> Vec<Value> {
        let custom = self.kind.custom;
        let of_query = match verb {
            "list" | "watch" | "watchlist" => parameters::OF_LIST,
            "create" => parameters::OF_CREATE,
            "update" => parameters::OF_UPDATE,
            "patch" => parameters::OF_PATCH,
            "delete" => parameters::OF_DELETE,
            "deletecollection" if custom => parameters::OF_LIST,
            "deletecollection" => parameters::OF_DELETE_COLLECTION,
            "get" if custom => parameters::OF_CUSTOM_READ,
            _ => &[],
        };
        let mut list: Vec<Value> = of_query.iter().map(parameters::of_query).collect();
        list.push(parameters::pretty());
        if place.namespaced {
            list.push(parameters::namespace());
        }
        if place.named {
            let named = part.kind.filter(|_| !custom).unwrap_or(&self.kind.kind);
            list.push(parameters::name_of(named));
        }
        list.sort_by(|a, b| a["name"].as_str().cmp(&b["name"].as_str()));
        list
    }

    fn operation(&self, verb: &str, place: Place, part: &Part<'_>, own: &[Value]) -> Value {
        let kind = self.kind;
        let own_gvk = || gvk(kind, &kind.kind);
        let mut operation = json!({
            "tags": [tag(kind)],
            "description": self.description(verb, part.name),
            "operationId": self.operation_id(verb, place, part.name),
            "responses": self.responses(verb, part),
            "x-kubernetes-action": action(verb),
            "x-kubernetes-group-version-kind": part.gvk.clone().unwrap_or_else(own_gvk),
        });
        if !own.is_empty() {
            operation["parameters"] = json!(own);
        }
        if let Some(body) = self.body(verb, part) {
            operation["requestBody"] = body;
        }
        operation
    }

    fn body(&self, verb: &str, part: &Part<'_>) -> Option<Value> {
        let custom = self.kind.custom;
        let media: &[&str] = if custom { CUSTOM } else { &["*/*"] };
        let schema = part.schema.as_ref().unwrap_or(self.schema);
        match verb {
            "create" | "update" => {
                Some(json!({"required": true, "content": content(media, schema)}))
            }
            "delete" | "deletecollection" if verb == "delete" || !custom => {
                let options = reference(&format!("{META}.DeleteOptions"));
                Some(json!({"content": content(media, &options)}))
            }
            "patch" => {
                let strategic = (!custom).then_some(STRATEGIC);
                let media: Vec<&str> = PATCHES.into_iter().chain(strategic).collect();
                let patch = reference(&format!("{META}.Patch"));
                Some(json!({"required": true, "content": content(&media, &patch)}))
            }
            _ => None,
        }
    }

    fn responses(&self, verb: &str, part: &Part<'_>) -> Value {
        let custom = self.kind.custom;
        let is_stream = matches!(verb, "list" | "watch" | "watchlist");
        let media = match (custom, is_stream) {
            (true, _) => CUSTOM,
            (false, true) => STREAMED,
            (false, false) => JSON_AND_OTHERS,
        };
        let is_status = match verb {
            "deletecollection" => true,
            // A deleted namespace is returned while it is emptied; the documents do not say so.
            "delete" => !self.kind.returns_deleted || self.kind.finalize.is_some(),
            _ => false,
        };
        let schema = if is_status {
            reference(&format!("{META}.Status"))
        } else if verb == "list" {
            Schemas::reference_to_list(self.schema, self.kind)
        } else {
            part.schema.clone().unwrap_or_else(|| self.schema.clone())
        };
        let mut responses = Map::new();
        for (code, text) in successes(verb, custom) {
            let content = content(media, &schema);
            let response = json!({"description": text, "content": content});
            responses.insert((*code).to_owned(), response);
        }
        responses.insert("401".to_owned(), json!({"description": "Unauthorized"}));
        Value::Object(responses)
    }

    fn description(&self, verb: &str, part: &str) -> String {
        let kind = &self.kind.kind;
        let of_part = if part.is_empty() { String::new() } else { format!("{part} of ") };
        let article = article(kind, " ");
        match verb {
            "list" if !self.kind.custom && resource::verbs(self.kind).contains(&"watch") => {
                format!("list or watch objects of kind {kind}")
            }
            "list" => format!("list objects of kind {kind}"),
            "get" => format!("read {of_part}the specified {kind}"),
            "update" => format!("replace {of_part}the specified {kind}"),
            "patch" => format!("partially update {of_part}the specified {kind}"),
            "create" => format!("create {of_part}{article}{kind}"),
            "delete" => format!("delete {of_part}{article}{kind}"),
            "deletecollection" => format!("delete collection of {kind}"),
            "watch" => format!(
                "watch changes to an object of kind {kind}. deprecated: use the 'watch' parameter \
                 with a list operation instead, filtered to a single item with the 'fieldSelector' \
                 parameter."
            ),
            _ => format!(
                "watch individual changes to a list of {kind}. deprecated: use the 'watch' \
                 parameter with a list operation instead."
            ),
        }
    }

    /// `listAppsV1NamespacedDeployment`
    fn operation_id(&self, verb: &str, place: Place, part: &str) -> String {
        let kind = self.kind;
        let (verb, infix, suffix) = match verb {
            "get" => ("read", "", ""),
            "update" => ("replace", "", ""),
            "deletecollection" => ("delete", "Collection", ""),
            "watchlist" => ("watch", "", "List"),
            other => (other, "", ""),
        };
        let scope = if place.namespaced { "Namespaced" } else { "" };
        let is_every = kind.namespaced && !place.namespaced;
        let every = if is_every { "ForAllNamespaces" } else { "" };
        let (version, name, part) = (group_version(kind), &kind.kind, capitalized(part));
        format!("{verb}{version}{infix}{scope}{name}{part}{suffix}{every}")
    }
}

const JSON_AND_OTHERS: &[&str] =
    &["application/json", "application/vnd.kubernetes.protobuf", "application/yaml"];
const STREAMED: &[&str] = &[
    "application/json",
    "application/json;stream=watch",
    "application/vnd.kubernetes.protobuf",
    "application/vnd.kubernetes.protobuf;stream=watch",
    "application/yaml",
];
const CUSTOM: &[&str] = &["application/json", "application/yaml"];

fn content(media: &[&str], schema: &Value) -> Value {
    media.iter().map(|media| ((*media).to_owned(), json!({"schema": schema}))).collect()
}

/// Returns the codes of the answers to a verb that succeeds, with their texts.
fn successes(verb: &str, custom: bool) -> &'static [(&'static str, &'static str)] {
    match verb {
        "create" => &[("200", "OK"), ("201", "Created"), ("202", "Accepted")],
        "update" => &[("200", "OK"), ("201", "Created")],
        "patch" if !custom => &[("200", "OK"), ("201", "Created")],
        "delete" => &[("200", "OK"), ("202", "Accepted")],
        _ => &[("200", "OK")],
    }
}
