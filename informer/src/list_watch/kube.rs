//! [`KubeListWatch`]: lists and watches a kind of a Kubernetes API server.

mod decode;
mod framing;
mod skip_managed_fields;
mod stream;

use std::{fmt, sync::Arc, time::Duration};

use async_trait::async_trait;
use futures::StreamExt;
use http::{Request, Response, header};
use http_body_util::BodyExt;
use kube_client::client::Body;
use serde::de::DeserializeOwned;

use self::{decode::Decoder, stream::Frames};
use super::{
    BoxError, ListError, ListRequest, ListWatch, Page, Refusal, WatchError, WatchRequest,
    WatchStream,
};
use crate::{
    factory::Scope,
    object::{Dynamic, Object},
};
use kube_core::GroupVersionResource;

/// Lists and watches the objects of one kind, in one namespace or in all.
///
/// What the server sends is decoded once, straight into `Arc<K>`. `metadata.managedFields` is skipped while parsing:
/// it is half of what an object takes in memory, and no controller reads it. An object that is valid JSON but does
/// not fit `K` becomes [`Decoded::Opaque`](super::Decoded::Opaque); a frame that is not valid ends the watch, so that
/// nothing is ever skipped.
///
/// How much an object weighs is `K`'s choice: a whole type, [`Lazy`](crate::Lazy), [`Metadata`](crate::Metadata),
/// [`Dynamic`], or a struct of yours with the fields that you read: what it does not name is skipped, not decoded.
///
/// Use a [`kube_client::Api`] instead for anything but keeping a whole collection in memory.
pub struct KubeListWatch<K> {
    client: kube_client::Client,
    /// The path of the collection, without a query.
    path: String,
    target: Arc<str>,
    resource: GroupVersionResource,
    scope: Scope,
    max_frame: usize,
    decoder: Decoder<K>,
    decoders: usize,
}

/// The longest watch event: API servers store at most 1.5 MiB unless told otherwise, so this leaves room for ten.
const MAX_FRAME: usize = 16 << 20;

/// The longest explanation of a refusal that we read.
const MAX_REFUSAL: usize = 64 << 10;

/// The longest page of a list: 500 objects of 1.5 MiB fit.
const MAX_PAGE: usize = 1 << 30;

const JSON: &str = "application/json";

/// A server that cannot leave the rest out sends whole objects: then it is skipped here.
const METADATA_LIST: &str =
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";
const METADATA_WATCH: &str =
    "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";

// === impl KubeListWatch ===

impl<K> KubeListWatch<K>
where
    K: Object + DeserializeOwned,
    K::Kind: kube_core::Resource<DynamicType = ()>,
{
    /// Lists and watches `K`'s kind in `namespace`, or everywhere.
    pub fn new(client: kube_client::Client, namespace: Option<&str>) -> Self {
        let group = <K::Kind as kube_core::Resource>::group(&());
        let plural = <K::Kind as kube_core::Resource>::plural(&());
        let version = <K::Kind as kube_core::Resource>::version(&());
        let path = <K::Kind as kube_core::Resource>::url_path(&(), namespace);
        Self::at(client, path, GroupVersionResource::gvr(&group, &version, &plural), namespace)
    }
}

impl<K: Object<Kind = Dynamic> + DeserializeOwned> KubeListWatch<K> {
    /// Lists and watches a resource that is known only at run time, in `namespace`, or everywhere. `K` is [`Dynamic`],
    /// [`Metadata<Dynamic>`](crate::Metadata), or a type of yours whose `Kind` is `Dynamic`.
    pub fn of_resource(
        client: kube_client::Client,
        resource: &GroupVersionResource,
        namespace: Option<&str>,
    ) -> Self {
        let GroupVersionResource { group, version, resource: plural, .. } = resource;
        let mut path = if group.is_empty() { "/api" } else { "/apis" }.to_owned();
        let group_version = [group, version].into_iter().filter(|part| !part.is_empty());
        let place = namespace.into_iter().flat_map(|namespace| ["namespaces", namespace]);
        for part in group_version.map(String::as_str).chain(place).chain([plural.as_str()]) {
            path.push('/');
            push_encoded(&mut path, part);
        }
        Self::at(client, path, resource.clone(), namespace)
    }
}

impl<K: Object + DeserializeOwned> KubeListWatch<K> {
    fn at(
        client: kube_client::Client,
        path: String,
        resource: GroupVersionResource,
        namespace: Option<&str>,
    ) -> Self {
        Self {
            client,
            path,
            target: target(&resource.group, &resource.resource, namespace).into(),
            resource,
            scope: namespace.map_or_else(Scope::all, Scope::namespace),
            max_frame: MAX_FRAME,
            decoder: Decoder::new(),
            decoders: 1,
        }
    }

    /// Takes only objects whose labels match, in the API server's syntax: `app=web,tier!=cache`. The last one given counts.
    #[must_use]
    pub fn label_selector(mut self, selector: &str) -> Self {
        self.scope = self.scope.labels(selector);
        self
    }

    /// Takes only objects whose fields match, in the API server's syntax: `status.phase!=Failed`. The last one given counts.
    #[must_use]
    pub fn field_selector(mut self, selector: &str) -> Self {
        self.scope = self.scope.fields(selector);
        self
    }

    /// Ends a watch whose next event takes more than this many bytes. The default is 16 MiB.
    ///
    /// What is decoded is larger than its text: some ten times for labels, and a container of which nothing but the name is said
    /// takes a kilobyte. [`Lazy`](crate::Lazy) keeps the text instead.
    #[must_use]
    pub fn max_frame(mut self, bytes: usize) -> Self {
        self.max_frame = bytes;
        self
    }

    /// Keeps `metadata.managedFields`. The default is to skip them while parsing.
    #[must_use]
    pub fn managed_fields(mut self, keep: bool) -> Self {
        self.decoder.managed_fields = keep;
        self
    }

    /// Clones each object once when it is decoded, and keeps the clone: its vectors and strings then take no more
    /// memory than they hold. For pods that is a fifth less, for a quarter more time.
    #[must_use]
    pub fn compact(mut self) -> Self
    where
        K: Clone,
    {
        self.decoder.share = |object| Arc::new(object.clone());
        self
    }

    /// How many tasks decode what a watch brings in bulk, as its initial state; the order stays the server's. The
    /// default is 1: everything is decoded where it is read. One core decodes some 40,000 pods in a second, which is
    /// more than most servers send; beyond that, and with cores to spare, 2 to 4 pay. On a runtime with one thread
    /// this changes nothing.
    ///
    /// A page of a list is decoded by one task, whatever this says: lists are asked for only where a watch cannot bring the
    /// initial state, and the usual page of 500 objects takes some ten milliseconds between two waits for the server.
    #[must_use]
    pub fn decoders(mut self, tasks: usize) -> Self {
        self.decoders = tasks;
        self
    }
}

impl<K> KubeListWatch<K> {
    /// Where it looks, for machines: no two resources have the same path.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    pub(crate) fn resource(&self) -> &GroupVersionResource {
        &self.resource
    }

    pub(crate) fn scope(&self) -> &Scope {
        &self.scope
    }

    /// The selectors, encoded for a query.
    fn selectors(&self) -> String {
        let mut query = String::new();
        for (name, selector) in self.scope.selectors() {
            push_pair(&mut query, name, selector);
        }
        query
    }

    async fn send(
        &self,
        operation: &'static str,
        accept: &'static str,
        query: &str,
    ) -> Result<Response<Body>, kube_client::Error> {
        let mut request = Request::get(format!("{}?{query}", self.path))
            .header(header::ACCEPT, accept)
            // A compressed watch is one compressed member per flush, which common decoders read wrong; and on the
            // links between a controller and its server compression costs more than it saves.
            .header(header::ACCEPT_ENCODING, "identity")
            .body(Body::empty())
            .map_err(kube_client::Error::HttpError)?;
        // Where kube-client's own calls leave the name of the operation, for layers that measure.
        request.extensions_mut().insert(operation);
        self.client.send(request).await
    }

    fn list_query(&self, request: &ListRequest) -> String {
        let mut query = self.selectors();
        if let Some(limit) = request.limit {
            push_pair(&mut query, "limit", &limit.to_string());
        }
        if let Some(token) = &request.continue_token {
            push_pair(&mut query, "continue", token);
        } else if let Some(version) = &request.resource_version {
            push_pair(&mut query, "resourceVersion", version.as_str());
            push_pair(&mut query, "resourceVersionMatch", "NotOlderThan");
        }
        query
    }

    fn watch_query(&self, request: &WatchRequest) -> String {
        let mut query = self.selectors();
        push_pair(&mut query, "watch", "true");
        push_pair(&mut query, "allowWatchBookmarks", "true");
        push_pair(&mut query, "timeoutSeconds", &request.timeout.as_secs().max(1).to_string());
        if request.initial_events {
            push_pair(&mut query, "sendInitialEvents", "true");
            push_pair(&mut query, "resourceVersionMatch", "NotOlderThan");
        }
        if let Some(version) = &request.resource_version {
            push_pair(&mut query, "resourceVersion", version.as_str());
        }
        query
    }
}

#[async_trait]
impl<K: Object + DeserializeOwned> ListWatch<K> for KubeListWatch<K> {
    fn target(&self) -> Arc<str> {
        Arc::clone(&self.target)
    }

    async fn list(&self, request: &ListRequest) -> Result<Page<K>, ListError> {
        let target = || self.target();
        let unreachable = |error| ListError::Unreachable { target: target(), source: cause(error) };
        let accept = if K::METADATA_ONLY { METADATA_LIST } else { JSON };
        let query = self.list_query(request);
        let response = match self.send("list", accept, &query).await {
            Err(kube_client::Error::HttpError(error)) => {
                let refusal = unaskable(&error);
                return Err(ListError::Refused { target: target(), refusal });
            }
            response => response.map_err(unreachable)?,
        };
        if !response.status().is_success() {
            return Err(ListError::Refused { target: target(), refusal: refusal(response).await });
        }
        let body = collect(response, MAX_PAGE).await.map_err(unreachable)?;
        self.decoder.page(&body).map_err(|error| ListError::Corrupt { target: target(), error })
    }

    async fn watch(&self, request: &WatchRequest) -> Result<WatchStream<K>, WatchError> {
        let accept = if K::METADATA_ONLY { METADATA_WATCH } else { JSON };
        let query = self.watch_query(request);
        let response = match self.send("watch", accept, &query).await {
            Err(kube_client::Error::HttpError(error)) => {
                let refusal = unaskable(&error);
                return Err(WatchError::Refused { target: self.target(), refusal });
            }
            response => response.map_err(|error| WatchError::Unreachable {
                target: self.target(),
                source: cause(error),
            })?,
        };
        if !response.status().is_success() {
            let refusal = refusal(response).await;
            return Err(WatchError::Refused { target: self.target(), refusal });
        }
        let frames = Frames::new(
            response.into_body(),
            self.target(),
            self.max_frame,
            self.decoder,
            self.decoders,
        );
        let batches = futures::stream::unfold(frames, |mut frames| async move {
            frames.next_batch().await.map(|batch| (batch, frames))
        });
        Ok(batches.boxed())
    }
}

impl<K> fmt::Debug for KubeListWatch<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KubeListWatch").field("target", &self.target).finish_non_exhaustive()
    }
}

// === parts ===

/// What went wrong, without the client's name for the layer that noticed.
fn cause(error: kube_client::Error) -> BoxError {
    match error {
        kube_client::Error::Service(source) => source,
        kube_client::Error::HyperError(source) => Box::new(source),
        other => Box::new(other),
    }
}

/// What a server would say to a question that fits into no request, with a version of 100 KB for instance: who takes it
/// for a server out of reach would ask it for ever.
fn unaskable(error: &http::Error) -> Refusal {
    Refusal::new(400, "BadRequest", error.to_string())
}

/// What is listed, for people: `replicasets.apps in namespace shop`.
fn target(group: &str, plural: &str, namespace: Option<&str>) -> String {
    let mut target = plural.to_owned();
    if !group.is_empty() {
        target.extend([".", group]);
    }
    if let Some(namespace) = namespace {
        target.extend([" in namespace ", namespace]);
    }
    target
}

/// Adds `name=value` to a query.
fn push_pair(query: &mut String, name: &str, value: &str) {
    if !query.is_empty() {
        query.push('&');
    }
    query.extend([name, "="]);
    push_encoded(query, value);
}

/// Adds a value to a path or a query, encoded so that no value can become a part of its structure.
fn push_encoded(text: &mut String, value: &str) {
    use fmt::Write as _;
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~') {
            text.push(char::from(byte));
        } else {
            write!(text, "%{byte:02X}").expect("writing to a String cannot fail");
        }
    }
}

/// The whole body, up to `limit` bytes.
async fn collect(response: Response<Body>, limit: usize) -> Result<Vec<u8>, kube_client::Error> {
    let expected = response
        .headers()
        .get(header::CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok()?.parse::<usize>().ok())
        .unwrap_or(0);
    let mut body = response.into_body();
    let mut bytes = Vec::with_capacity(expected.min(limit).min(64 << 20));
    while let Some(frame) = body.frame().await {
        let Ok(chunk) = frame?.into_data() else { continue };
        if chunk.len() > limit - bytes.len() {
            return Err(kube_client::Error::Service("the answer is too long".into()));
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

/// What a failed answer says. An answer that is no Status (a proxy's page) is known by its HTTP status alone.
async fn refusal(response: Response<Body>) -> Refusal {
    let code = response.status().as_u16();
    let retry_after = retry_after(response.headers());
    let mut refusal = match collect(response, MAX_REFUSAL).await {
        Ok(body) => decode::status(&body).unwrap_or_else(|| Refusal::new(code, "", "")),
        Err(_) => Refusal::new(code, "", ""),
    };
    refusal.code = code;
    refusal.retry_after = retry_after.or(refusal.retry_after);
    refusal
}

/// How long the server asks to wait: so many seconds, or until a date. A date is taken by the server's own clock, which the
/// answer tells too; ours may be wrong.
fn retry_after(headers: &header::HeaderMap) -> Option<Duration> {
    let text = |name| headers.get(name)?.to_str().ok().map(str::trim);
    let after = text(header::RETRY_AFTER)?;
    if let Ok(seconds) = after.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = |text| k8s_openapi::jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(text);
    let wait = date(after).ok()?.duration_since(date(text(header::DATE)?).ok()?);
    Duration::try_from(wait).ok()
}

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
