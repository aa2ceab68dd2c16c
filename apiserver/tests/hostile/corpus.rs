//! What requests are made from: those that were recorded from a real kube-apiserver, and the objects that they create.

use std::fs;
use std::path::Path;

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use serde_json::Value;

/// A recorded request.
#[derive(Debug, Clone, Default)]
pub(crate) struct Exchange {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
    /// Whether it made an object.
    pub(crate) creates: bool,
}

/// An object that the server has, and where.
#[derive(Debug)]
pub(crate) struct StoredObject {
    pub(crate) collection: String,
    pub(crate) name: String,
    pub(crate) object: Value,
}

/// An object without a schema: nothing in it is refused.
pub(crate) const FOOS: &str = "/apis/samplecontroller.k8s.io/v1alpha1/namespaces/default/foos";
pub(crate) const FOO: &str = "anything";

/// Stands for a byte that is in no text.
const NO_TEXT: char = '\u{10ffff}';

/// Longer ones are tested elsewhere, and take their time.
const LONGEST: usize = 50_000;

/// All requests in `conformance/`.
pub(crate) fn read() -> Vec<Exchange> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("conformance");
    let mut files: Vec<_> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "txt"));
    files.sort();
    let texts = files.iter().map(|path| fs::read_to_string(path).unwrap());
    let mut all: Vec<_> = texts.flat_map(|text| parse(&text)).collect();
    all.retain(|exchange| exchange.body.len() <= LONGEST);
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
        let (mut body, mut sets_the_stage) = (Vec::new(), false);
        for line in part.lines().skip(1) {
            match line.split_at_checked(1).unwrap_or_default() {
                (">", line) => body.push(line.strip_prefix(' ').unwrap_or(line)),
                ("@", directive) => sets_the_stage |= directive.starts_with("setup"),
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
        exchange.creates |= sets_the_stage && exchange.method == "POST";
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

    /// None if it cannot be said in HTTP.
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
        request.body(Full::new(Bytes::from(body))).ok()
    }
}

/// Puts texts where `{{3 times the text}}` stands. What would have been saved from an answer is some text, too.
fn expand(text: &str) -> String {
    let mut parts = text.split("{{");
    let mut expanded = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (inner, rest) = part.split_once("}}").unwrap_or((part, ""));
        match inner.split_once(" times ").map(|(count, what)| (count.parse::<usize>(), what)) {
            Some((Ok(count), what)) => expanded += &what.repeat(count.min(2 * LONGEST)),
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
