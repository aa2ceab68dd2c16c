//! The source of hostile requests: exchanges recorded from a real kube-apiserver, and their
//! objects.

use std::fs;
use std::path::Path;

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use serde_json::Value;

use crate::protobuf::{self, PROTOBUF};

/// A recorded request.
#[derive(Debug, Clone, Default)]
pub(crate) struct Exchange {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
    /// True if the request created an object.
    pub(crate) creates: bool,
}

/// A stored object and its collection.
#[derive(Debug)]
pub(crate) struct StoredObject {
    pub(crate) collection: String,
    pub(crate) name: String,
    pub(crate) object: Value,
}

/// The collection of a kind without a schema, which accepts every member.
pub(crate) const FOOS: &str = "/apis/samplecontroller.k8s.io/v1alpha1/namespaces/default/foos";
pub(crate) const FOO: &str = "anything";

/// Marks the place of a byte that is not UTF-8.
const NO_TEXT: char = '\u{10ffff}';

/// Longer bodies are left out; the conformance test sends them.
const MAX_BODY: usize = 50_000;

/// Reads all requests in `conformance/`.
pub(crate) fn read() -> Vec<Exchange> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("conformance");
    let mut files: Vec<_> =
        fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "txt"));
    // Its many creates of one kind would crowd out the other requests.
    files.retain(|path| !path.ends_with("definitions.txt"));
    files.sort();
    let texts = files.iter().map(|path| fs::read_to_string(path).unwrap());
    let mut all: Vec<_> = texts.flat_map(|text| parse(&text)).collect();
    all.retain(|exchange| exchange.body.len() <= MAX_BODY);
    all.push(Exchange {
        method: "POST".to_owned(),
        path: FOOS.to_owned(),
        headers: Vec::new(),
        body: format!("{{\"metadata\":{{\"name\":\"{FOO}\"}},\"spec\":{{}}}}"),
        creates: true,
    });
    all
}

fn parse(text: &str) -> Vec<Exchange> {
    text.split("\n### ").skip(1).filter_map(Exchange::parse).collect()
}

// === impl Exchange ===

impl Exchange {
    fn parse(part: &str) -> Option<Self> {
        let mut exchange = Self::default();
        let (mut body, mut is_setup) = (Vec::new(), false);
        for line in part.lines().skip(1) {
            match line.split_at_checked(1).unwrap_or_default() {
                (">", line) => body.push(line.strip_prefix(' ').unwrap_or(line)),
                ("@", directive) => is_setup |= directive.starts_with("setup"),
                ("<", status) => {
                    exchange.creates |= exchange.method == "POST" && status == " 201";
                }
                ("" | "#" | "~", _) => {}
                _ if exchange.method.is_empty() => {
                    let (method, path) = line.split_once(' ')?;
                    (exchange.method, exchange.path) = (method.to_owned(), expand(path));
                }
                _ => {
                    let (name, value) = line.split_once(": ")?;
                    exchange.headers.push((name.to_owned(), value.to_owned()));
                }
            }
        }
        exchange.creates |= is_setup && exchange.method == "POST";
        exchange.body = expand(&body.join("\n"));
        let typed = exchange.headers.iter().any(|(name, _)| name == "Content-Type");
        if exchange.method == "PATCH" && !typed {
            let merge = "application/merge-patch+json".to_owned();
            exchange.headers.push(("Content-Type".to_owned(), merge));
        }
        Some(exchange)
    }

    pub(crate) fn request(&self) -> Request<Full<Bytes>> {
        self.try_request().unwrap()
    }

    /// Returns `None` if the request is not valid HTTP.
    pub(crate) fn try_request(&self) -> Option<Request<Full<Bytes>>> {
        let mut request = Request::builder().method(&*self.method).uri(&self.path);
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        let mut body = Vec::with_capacity(self.body.len());
        for part in self.body.split_inclusive(NO_TEXT) {
            match part.strip_suffix(NO_TEXT) {
                Some(text) => body.extend([text.as_bytes(), &[0xff]].concat()),
                None => body.extend(part.as_bytes()),
            }
        }
        let is_protobuf =
            |(name, value): &(String, String)| name == "Content-Type" && value == PROTOBUF;
        if self.headers.iter().any(is_protobuf) {
            body = protobuf::encode(&body).unwrap_or(body);
        }
        request.body(Full::new(Bytes::from(body))).ok()
    }
}

/// Replaces `{{3 times the text}}` by the repeated text, and every saved value by `1`.
fn expand(text: &str) -> String {
    let mut parts = text.split("{{");
    let mut expanded = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (inner, rest) = part.split_once("}}").unwrap_or((part, ""));
        match inner.split_once(" times ").map(|(count, what)| (count.parse::<usize>(), what)) {
            Some((Ok(count), what)) => expanded += &what.repeat(count.min(2 * MAX_BODY)),
            _ => expanded.push('1'),
        }
        expanded += rest;
    }
    expanded
}

// === impl StoredObject ===

impl StoredObject {
    pub(crate) fn at(collection: &str, body: &[u8]) -> Option<Self> {
        let object: Value = serde_json::from_slice(body).ok()?;
        let name = object["metadata"]["name"].as_str()?.to_owned();
        Some(Self { collection: collection.to_owned(), name, object })
    }
}
