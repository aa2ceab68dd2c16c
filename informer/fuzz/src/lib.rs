//! The bodies of the fuzz targets. Each takes any bytes and asserts a property of the decoders.
//!
//! `informer/tests/fuzz.rs` runs the same bodies as property tests on stable Rust.

use std::convert::Infallible;
use std::fmt::Debug;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use homeostat_informer::list_watch::{
    Decoded, KubeListWatch, ListRequest, ListWatch, WatchEvent, WatchRequest,
};
use homeostat_informer::{Object, ObjectMeta};
use http::{Request, Response};
use http_body_util::StreamBody;
use k8s_openapi::api::core::v1::Pod;
use kube_client::client::Body;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// The limit of one object in bytes.
const MAX_OBJECT: usize = 10_000;

/// An object as a JSON value.
struct Untyped {
    metadata: ObjectMeta,
    value: Value,
}

impl Object for Untyped {
    type Kind = Pod;

    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }
}

impl<'de> Deserialize<'de> for Untyped {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let metadata = ObjectMeta::deserialize(value.get("metadata").unwrap_or(&Value::Null));
        let metadata = metadata.map_err(serde::de::Error::custom)?;
        Ok(Self { metadata, value })
    }
}

/// The events of a watch do not depend on the chunks of its body.
pub fn framing(data: &[u8]) {
    let (sizes, body) = split(data);
    let whole = run(watch(vec![Bytes::copy_from_slice(body)]));
    assert_eq!(run(watch(chunks(body, sizes))), whole);
}

/// The objects of a list do not depend on the chunks of its body, and no body is too much.
pub fn decoding(data: &[u8]) {
    let (sizes, body) = split(data);
    let whole = run(list(vec![Bytes::copy_from_slice(body)]));
    assert_eq!(run(list(chunks(body, sizes))), whole);
    let embedded = [br#"{"metadata":{"resourceVersion":"7"},"items":["#, body, b"]}"].concat();
    let whole = run(list(vec![Bytes::copy_from_slice(&embedded)]));
    assert_eq!(run(list(chunks(&embedded, sizes))), whole);
}

/// A pruned object is the object without the values at the path. The first line of `data` is the
/// path, the rest the members of the object's `spec`.
pub fn pruning(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Some((path, spec)) = text.split_once('\n') else { return };
    let parts: Vec<&str> = path.split('.').collect();
    if path.contains('\\') || parts.iter().any(|part| part.is_empty()) {
        return;
    }
    let path = format!("spec.{path}");
    let Ok(mut expected) = serde_json::from_str::<Value>(spec) else { return };
    // serde keeps the last of two members with one name, and both would be pruned.
    remove(&mut expected, &parts);
    let object = format!(r#"{{"metadata":{{"name":"a"}},"spec":{spec}}}"#);
    let body = format!(r#"{{"metadata":{{"resourceVersion":"7"}},"items":[{object}]}}"#);
    let pruned = run(async move {
        let untyped = KubeListWatch::<Untyped>::new(client(vec![body.into()]), None).prune([path]);
        let mut page = untyped.list(&ListRequest::new()).await.expect("the list is valid");
        match page.items.pop().expect("the list has an item") {
            Decoded::Fits(object) => Some(object.value["spec"].clone()),
            Decoded::Opaque { .. } => None,
        }
    });
    // An object that is too deep for a `Value` is opaque.
    if let Some(pruned) = pruned {
        assert_eq!(pruned, expected);
    }
}

/// Removes the values at a path.
fn remove(value: &mut Value, path: &[&str]) {
    let Some((first, rest)) = path.split_first() else { return };
    match value {
        Value::Object(members) if rest.is_empty() => {
            members.retain(|name, _| *first != "*" && name != first);
        }
        Value::Array(elements) if rest.is_empty() && *first == "*" => elements.clear(),
        Value::Object(members) => {
            let wanted = members.iter_mut().filter(|(name, _)| *first == "*" || name == first);
            wanted.for_each(|(_, member)| remove(member, rest));
        }
        Value::Array(elements) if *first == "*" => {
            for element in elements {
                remove(element, rest);
            }
        }
        _ => {}
    }
}

// === parts ===

/// Splits the input into 4 chunk sizes and a body.
fn split(data: &[u8]) -> (&[u8], &[u8]) {
    data.split_at(data.len().min(4))
}

/// Cuts a body into chunks of these sizes, in turn; without sizes, into one chunk per byte.
fn chunks(body: &[u8], sizes: &[u8]) -> Vec<Bytes> {
    let sizes = if sizes.is_empty() { &[0] } else { sizes };
    let mut rest = body;
    let mut chunks = Vec::new();
    for size in sizes.iter().cycle() {
        let (chunk, after) = rest.split_at(rest.len().min(usize::from(*size) + 1));
        chunks.push(Bytes::copy_from_slice(chunk));
        rest = after;
        if rest.is_empty() {
            break;
        }
    }
    chunks
}

/// Returns a client of a server that answers each request with these chunks.
fn client(chunks: Vec<Bytes>) -> kube_client::Client {
    let service = tower::service_fn(move |_: Request<Body>| {
        let frames =
            chunks.clone().into_iter().map(|it| Ok::<_, Infallible>(http_body::Frame::data(it)));
        let body = StreamBody::new(futures::stream::iter(frames));
        async move { Ok::<_, Infallible>(Response::new(body)) }
    });
    kube_client::Client::new(service, "default")
}

/// Returns the objects of a list and the end of it as text.
async fn list(chunks: Vec<Bytes>) -> (Vec<String>, String) {
    let pods = KubeListWatch::<Pod>::new(client(chunks), None).max_frame(MAX_OBJECT);
    match pods.list(&ListRequest::new()).await {
        Ok(page) => {
            let objects = page.items.iter().map(describe).collect();
            (objects, format!("{} {:?}", page.resource_version, page.continue_token))
        }
        // The place in the text is relative to what had arrived.
        Err(_) => (Vec::new(), "failed".to_owned()),
    }
}

/// Returns the events of a watch and the end of it as text.
async fn watch(chunks: Vec<Bytes>) -> (Vec<String>, String) {
    let pods = KubeListWatch::<Pod>::new(client(chunks), None).max_frame(MAX_OBJECT);
    let request = WatchRequest::after("1".into(), Duration::from_secs(300));
    let mut batches = pods.watch(&request).await.expect("the server answers");
    let mut events = Vec::new();
    while let Some(batch) = batches.next().await {
        match batch {
            Ok(batch) => events.extend(batch.iter().map(|event| match event {
                WatchEvent::Applied(object) | WatchEvent::Deleted(object) => describe(object),
                WatchEvent::Bookmark { resource_version, .. } => resource_version.to_string(),
            })),
            Err(error) => return (events, error.to_string()),
        }
    }
    (events, "closed".to_owned())
}

fn describe(object: &Decoded<Pod>) -> String {
    let fits: &dyn Debug = match object {
        Decoded::Fits(pod) => pod,
        Decoded::Opaque { metadata, .. } => metadata,
    };
    format!("{fits:?}")
}

/// Runs a future on a runtime of its own.
fn run<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    runtime.expect("a runtime of one thread starts").block_on(future)
}
