//! Generates hostile requests: a recorded request, or a request for a stored object, with changes.

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::{Value, json};

use crate::corpus::{self, Exchange, StoredObject};
use crate::odd;

/// A generated request, independent of the corpus and the stored objects.
#[derive(Debug, Clone)]
pub(crate) struct Hostile {
    base: Base,
    changes: Vec<Change>,
}

#[derive(Debug, Clone)]
enum Base {
    /// One of the recorded requests.
    Recorded(Index),
    /// A request for a stored object.
    Object(Index, Verb),
    /// A JSON patch that nests values with these numbers of levels, in an object without a schema.
    Dig(Vec<usize>),
}

#[derive(Debug, Clone)]
enum Verb {
    Get,
    List,
    Watch,
    Delete,
    Create,
    Update(&'static str),
    /// The complete object as a patch of a type, on a subresource.
    Patch(&'static str, &'static str),
    JsonPatch(Vec<Operation>),
}

/// An operation of a JSON patch with its `path` and `from`.
#[derive(Debug, Clone)]
struct Operation {
    op: &'static str,
    /// Relative to the root if no known pointer is selected.
    at: Option<Index>,
    below: String,
    from: Index,
    value: usize,
}

#[derive(Debug, Clone)]
enum Change {
    Method(&'static str),
    Part(Index, &'static str),
    Shorter(Index),
    Longer(&'static str),
    Parameter(&'static str, &'static str),
    Header(&'static str, &'static str),
    /// Replaces a value in the body by an odd one.
    Value(Index, usize),
    /// Adds a member to some object in the body.
    Member(Index, &'static str, usize),
    Cut(Index),
    Insert(Index, usize),
    Body(&'static str),
}

const SUBRESOURCES: &[&str] = &[
    "",
    "",
    "",
    "/status",
    "/scale",
    "/finalize",
    "/ephemeralcontainers",
    "/resize",
    "/binding",
    "/eviction",
];
const MERGES: &[&str] = &["application/merge-patch+json", "application/strategic-merge-patch+json"];

// === strategies ===

pub(crate) fn hostile() -> impl Strategy<Value = Hostile> {
    let base = prop_oneof![
        2 => any::<Index>().prop_map(Base::Recorded),
        3 => (any::<Index>(), verb()).prop_map(|(at, verb)| Base::Object(at, verb)),
        1 => prop::collection::vec(1..100_usize, 1..4).prop_map(Base::Dig),
    ];
    (base, prop::collection::vec(change(), 0..=2))
        .prop_map(|(base, changes)| Hostile { base, changes })
}

fn verb() -> impl Strategy<Value = Verb> {
    let operations = prop::collection::vec(operation(), 1..4);
    prop_oneof![
        1 => Just(Verb::Get),
        1 => Just(Verb::List),
        1 => Just(Verb::Watch),
        1 => Just(Verb::Delete),
        2 => Just(Verb::Create),
        2 => select(SUBRESOURCES).prop_map(Verb::Update),
        5 => (select(MERGES), select(SUBRESOURCES))
            .prop_map(|(merge, below)| Verb::Patch(merge, below)),
        3 => operations.prop_map(Verb::JsonPatch),
    ]
}

fn operation() -> impl Strategy<Value = Operation> {
    let ops = select(&["add", "replace", "replace", "remove", "test", "move", "copy", "x"][..]);
    let below = &["", "", "", "", "", "/-", "/0", "/a", "/01", "/~2", "/99999999999999999999", "a"];
    let wild = (ops, any::<Index>().prop_map(Some), select(&below[..]), any::<Index>(), value());
    // Members that accept any value, and deep paths into values of earlier operations.
    let places =
        &["/metadata/annotations/a", "/metadata/labels/a", "/data/a", "/spec/a", "/spec/b"];
    let deep = (select(&["/0", "/a"][..]), 0..130_usize)
        .prop_map(|(step, depth)| step.repeat(depth.saturating_sub(40)));
    let place = (select(&places[..]), deep).prop_map(|(place, deep)| place.to_owned() + &deep);
    let tame = (Just("add"), Just(None), place, any::<Index>(), value());
    prop_oneof![
        wild.prop_map(|(op, at, below, from, value)| (op, at, below.to_owned(), from, value)),
        tame
    ]
    .prop_map(|(op, at, below, from, value)| Operation { op, at, below, from, value })
}

fn value() -> impl Strategy<Value = usize> {
    0..odd::VALUES.len()
}

fn change() -> impl Strategy<Value = Change> {
    let header = prop_oneof![
        select(odd::ACCEPTED).prop_map(|value| ("Accept", value)),
        select(odd::TYPES).prop_map(|value| ("Content-Type", value)),
    ];
    prop_oneof![
        1 => select(odd::METHODS).prop_map(Change::Method),
        1 => (any::<Index>(), select(odd::PARTS)).prop_map(|(at, part)| Change::Part(at, part)),
        1 => any::<Index>().prop_map(Change::Shorter),
        1 => select(odd::PARTS).prop_map(Change::Longer),
        4 => (select(odd::PARAMETERS), select(odd::ARGUMENTS))
            .prop_map(|(name, value)| Change::Parameter(name, value)),
        2 => header.prop_map(|(name, value)| Change::Header(name, value)),
        12 => (any::<Index>(), value()).prop_map(|(at, value)| Change::Value(at, value)),
        4 => (any::<Index>(), select(odd::MEMBERS), value())
            .prop_map(|(at, name, value)| Change::Member(at, name, value)),
        1 => any::<Index>().prop_map(Change::Cut),
        1 => (any::<Index>(), value()).prop_map(|(at, value)| Change::Insert(at, value)),
        1 => select(odd::BODIES).prop_map(Change::Body),
    ]
}

// === impl Hostile ===

impl Hostile {
    /// Returns the request and its description, or `None` if it is not valid HTTP.
    pub(crate) fn request(
        &self,
        corpus: &[Exchange],
        objects: &[StoredObject],
    ) -> Option<(Request<Full<Bytes>>, Exchange)> {
        let mut exchange = match &self.base {
            Base::Recorded(at) => at.get(corpus).clone(),
            Base::Object(at, verb) => verb.about(at.get(objects)),
            Base::Dig(levels) => nested_patch(levels),
        };
        self.changes.iter().for_each(|change| change.make(&mut exchange));
        Some((exchange.try_request()?, exchange))
    }
}

fn nested_patch(levels: &[usize]) -> Exchange {
    let mut path = "/spec/deep".to_owned();
    let mut operations = Vec::new();
    for depth in levels {
        let value = "{\"a\":".repeat(*depth) + "{}" + &"}".repeat(*depth);
        operations.push(format!("{{\"op\":\"add\",\"path\":\"{path}\",\"value\":{value}}}"));
        path += &"/a".repeat(*depth);
    }
    let path = format!("{}/{}", corpus::FOOS, corpus::FOO);
    let media_type = "application/json-patch+json".to_owned();
    Exchange {
        method: "PATCH".to_owned(),
        path,
        headers: vec![("Content-Type".to_owned(), media_type)],
        body: format!("[{}]", operations.join(",")),
        creates: false,
    }
}

// === impl Verb ===

impl Verb {
    fn about(&self, stored: &StoredObject) -> Exchange {
        let StoredObject { collection, name, object } = stored;
        let at = format!("{collection}/{name}");
        let mut object = object.clone();
        let (method, path, media_type, body) = match self {
            Self::Get => ("GET", at, "", String::new()),
            Self::List => ("GET", collection.clone(), "", String::new()),
            Self::Watch => ("GET", format!("{collection}?watch=true"), "", String::new()),
            Self::Delete => ("DELETE", at, "", String::new()),
            Self::Create => {
                object["metadata"] =
                    json!({"name": "fresh", "labels": object["metadata"]["labels"]});
                ("POST", collection.clone(), "application/json", object.to_string())
            }
            Self::Update(below) => ("PUT", at + below, "application/json", object.to_string()),
            Self::Patch(merge, below) => ("PATCH", at + below, *merge, object.to_string()),
            Self::JsonPatch(operations) => {
                let operations: Vec<_> =
                    operations.iter().map(|operation| operation.text(&object)).collect();
                ("PATCH", at, "application/json-patch+json", format!("[{}]", operations.join(",")))
            }
        };
        let headers = vec![("Content-Type".to_owned(), media_type.to_owned())];
        Exchange { method: method.to_owned(), path, headers, body, creates: false }
    }
}

impl Operation {
    fn text(&self, object: &Value) -> String {
        let places = pointers(object);
        let at = self.at.map_or_else(String::new, |at| at.get(&places).clone()) + &self.below;
        let from = self.from.get(&places);
        let value = &odd::VALUES[self.value];
        format!(
            "{{\"op\":\"{}\",\"path\":{},\"from\":{},\"value\":{value}}}",
            self.op,
            json!(at),
            json!(from)
        )
    }
}

/// Returns a JSON pointer to each value.
fn pointers(value: &Value) -> Vec<String> {
    let mut all = vec![String::new()];
    let mut add = |name: &str, value: &Value| {
        let name = name.replace('~', "~0").replace('/', "~1");
        all.extend(pointers(value).into_iter().map(|below| format!("/{name}{below}")));
    };
    match value {
        Value::Object(members) => members.iter().for_each(|(name, value)| add(name, value)),
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(at, value)| add(&at.to_string(), value));
        }
        _ => {}
    }
    all
}

// === impl Change ===

impl Change {
    fn make(&self, exchange: &mut Exchange) {
        match self {
            Self::Method(method) => (*method).clone_into(&mut exchange.method),
            Self::Part(at, part) => exchange.change_parts(|parts| {
                let at = at.index(parts.len());
                (*part).clone_into(&mut parts[at]);
            }),
            Self::Shorter(at) => {
                exchange.change_parts(|parts| drop(parts.remove(at.index(parts.len()))));
            }
            Self::Longer(part) => exchange.change_parts(|parts| parts.push((*part).to_owned())),
            Self::Parameter(name, value) => {
                let sign = if exchange.path.contains('?') { '&' } else { '?' };
                exchange.path = format!("{}{sign}{name}={value}", exchange.path);
            }
            Self::Header(name, value) => {
                exchange.headers.retain(|(known, _)| known != name);
                exchange.headers.push(((*name).to_owned(), (*value).to_owned()));
            }
            Self::Value(at, value) => {
                exchange
                    .change_body(*at, *value, |place, raw| *place = Value::String(raw.to_owned()));
            }
            Self::Member(at, name, value) => exchange.change_body(*at, *value, |place, raw| {
                if let Value::Object(members) = place {
                    members.insert((*name).to_owned(), Value::String(raw.to_owned()));
                }
            }),
            Self::Cut(at) => {
                let at = exchange.place(*at);
                exchange.body.truncate(at);
            }
            Self::Insert(at, value) => {
                let at = exchange.place(*at);
                exchange.body.insert_str(at, &odd::VALUES[*value]);
            }
            Self::Body(body) => (*body).clone_into(&mut exchange.body),
        }
    }
}

// === impl Exchange ===

impl Exchange {
    fn change_parts(&mut self, change: impl FnOnce(&mut Vec<String>)) {
        let (path, query) = self.path.split_once('?').unwrap_or((&self.path, ""));
        let mut parts: Vec<String> = path.split('/').skip(1).map(str::to_owned).collect();
        if parts.is_empty() {
            return;
        }
        change(&mut parts);
        let sign = if query.is_empty() { "" } else { "?" };
        self.path = format!("/{}{sign}{query}", parts.join("/"));
    }

    /// Returns a position in the body between two characters.
    fn place(&self, at: Index) -> usize {
        let ends = self.body.char_indices().map(|(at, _)| at).chain([self.body.len()]);
        *at.get(&ends.collect::<Vec<_>>())
    }

    /// Changes one value of a JSON body. A placeholder stands for the new value, which need not be
    /// JSON.
    fn change_body(&mut self, at: Index, value: usize, change: impl FnOnce(&mut Value, &str)) {
        const MARK: &str = "@the odd value@";
        let Ok(mut body) = serde_json::from_str::<Value>(&self.body) else { return };
        let places = pointers(&body);
        if let Some(place) = body.pointer_mut(at.get(&places[..]).as_str()) {
            change(place, MARK);
        }
        self.body = body.to_string().replace(&format!("\"{MARK}\""), &odd::VALUES[value]);
    }

    /// Returns the path of the list that shows the effect of the request.
    pub(crate) fn collection(&self) -> String {
        let path = self.path.split('?').next().unwrap_or_default();
        let parts: Vec<&str> = path.split('/').collect();
        let own = match parts.as_slice() {
            ["", "api", "v1", "namespaces", _, "status" | "finalize"] => String::new(),
            ["", "api", version, "namespaces", _, plural, ..]
            | ["", "api", version, plural, ..] => {
                format!("/api/{version}/{plural}")
            }
            ["", "apis", group, version, "namespaces", _, plural, ..]
            | ["", "apis", group, version, plural, ..] => {
                format!("/apis/{group}/{version}/{plural}")
            }
            _ => String::new(),
        };
        let is_plain =
            own.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/.-".contains(&byte));
        if is_plain && !own.is_empty() { own } else { "/api/v1/namespaces".to_owned() }
    }

    /// Returns true if a response with `code` and `body` means that nothing has changed.
    pub(crate) fn changes_nothing(&self, code: u16, body: &[u8]) -> bool {
        let deletes = self.method == "DELETE";
        // The deletion of a collection may fail after some of its objects, also by a policy.
        let is_denied = || memchr::memmem::find(body, b"denied request").is_some();
        // A write looks at the form of its reply last, as on the real server.
        let has_no_table = || memchr::memmem::find(body, b"Unable to convert to Table").is_some();
        let is_no_list = || memchr::memmem::find(body, b"content is not a list").is_some();
        let is_late =
            code == 406 || (code == 400 && has_no_table()) || (code == 500 && is_no_list());
        let refused = code >= 400 && !is_late && !(deletes && (code == 409 || is_denied()));
        let only_reads = !deletes && !matches!(&*self.method, "POST" | "PUT" | "PATCH");
        let only_tries = !deletes && self.path.contains("dryRun=All");
        refused || only_reads || only_tries
    }
}
