//! [`KubeListWatch`]: a [`ListWatch`] over a Kubernetes API server.
//!
//! One value serves one collection: it builds the query, sends the request with `kube_client`, and
//! hands the body to a decoder. It holds no state between requests and never retries. The parts:
//!
//! * `framing` splits the body of a watch into lines, whatever the chunks of the connection are.
//! * `decode` turns a line into an event, and the chunks of a body into a page.
//! * `prune` and `skip` drop members that the author does not need while `decode` parses.
//! * `failure` turns an answer that is not a success into an error.
//! * `stream` joins them into batches, and spreads the decoding over tasks if the author wants
//!   that.

mod decode;
mod failure;
mod framing;
mod options;
mod prune;
mod query;
mod skip;
mod stream;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt;
use http::{Request, Response, header};
use http_body_util::BodyExt;
use kube_client::client::Body;
use kube_core::GroupVersionResource;
use serde::de::DeserializeOwned;
use tokio::time;

use self::decode::{Decoder, ListDecoder, Progress};
use self::failure::{Failure, cause};
use self::query::{push_encoded, target};
use self::stream::Frames;
use super::{ListError, ListRequest, ListWatch, Page, WatchError, WatchRequest, WatchStream};
use crate::object::{Dynamic, Object};
use crate::scope::Scope;

/// Lists and watches the objects of one kind on an API server, in one namespace or in all.
///
/// Each object is decoded once, straight into an `Arc<K>`. `metadata.managedFields` is skipped
/// while parsing: it takes half of an object's memory, and controllers do not read it. An object
/// that is valid JSON but does not fit `K` becomes [`Decoded::Opaque`](super::Decoded::Opaque). A
/// frame that is not valid JSON ends the watch, so that no event is skipped.
///
/// `K` decides how much memory an object takes: a complete type such as `Pod`,
/// [`Lazy`](crate::Lazy), [`Metadata`](crate::Metadata), [`Dynamic`], or a struct of the author's
/// that names only the fields it needs. A field that the struct does not name is skipped without
/// being decoded.
///
/// For single reads and for writes use [`kube_client::Api`]; this type serves only caches of whole
/// collections.
///
/// # Examples
///
/// ```
/// use homeostat_informer::SharedIndexInformer;
/// use homeostat_informer::list_watch::KubeListWatch;
/// use k8s_openapi::api::core::v1::Pod;
///
/// fn web_pods(client: kube_client::Client) -> SharedIndexInformer<Pod> {
///     let pods = KubeListWatch::new(client, Some("shop"))
///         .label_selector("app=web")
///         .field_selector("status.phase!=Failed");
///     SharedIndexInformer::builder(pods).build()
/// }
/// ```
pub struct KubeListWatch<K> {
    /// Sends the requests. Authentication, TLS and timeouts of the connection are its own.
    client: kube_client::Client,
    /// The path of the collection, without a query. It is the identity of the resource: no two
    /// resources share a path.
    path: String,
    /// The resource in log lines and errors.
    target: Arc<str>,
    resource: GroupVersionResource,
    /// The namespace and the selectors, which are part of each request.
    scope: Scope,
    max_frame: usize,
    decoder: Decoder<K>,
    decoders: usize,
}

/// The limit of one watch event in bytes: 16 MiB. API servers store at most 1.5 MiB per object by
/// default, so this leaves room for ten times that.
const MAX_FRAME: usize = 16 << 20;

/// The longest gap between two chunks of a list. An API server ends a request after one minute.
const SILENCE: Duration = Duration::from_secs(75);

/// The `Accept` value for complete objects. Protobuf is not offered: the decoders read JSON, which
/// custom resources have too.
const JSON: &str = "application/json";

/// The `Accept` values for metadata-only requests. A server that cannot send partial objects sends
/// complete ones, and the decoder skips the rest.
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
    /// Lists and watches `K`'s kind in `namespace`, or in all namespaces.
    ///
    /// Sends no request: the informer does when it starts. For a kind without namespaces pass
    /// `None`.
    ///
    /// # Examples
    ///
    /// ```
    /// use homeostat_informer::Metadata;
    /// use homeostat_informer::list_watch::KubeListWatch;
    /// use k8s_openapi::api::core::v1::Secret;
    ///
    /// fn all_secrets(client: kube_client::Client) -> KubeListWatch<Metadata<Secret>> {
    ///     KubeListWatch::new(client, None)
    /// }
    /// ```
    pub fn new(client: kube_client::Client, namespace: Option<&str>) -> Self {
        let group = <K::Kind as kube_core::Resource>::group(&());
        let plural = <K::Kind as kube_core::Resource>::plural(&());
        let version = <K::Kind as kube_core::Resource>::version(&());
        let path = <K::Kind as kube_core::Resource>::url_path(&(), namespace);
        Self::at(client, path, GroupVersionResource::gvr(&group, &version, &plural), namespace)
    }
}

impl<K: Object<Kind = Dynamic> + DeserializeOwned> KubeListWatch<K> {
    /// Lists and watches a resource that is known only at run time, in `namespace`, or in all
    /// namespaces.
    ///
    /// `K` is [`Dynamic`], [`Metadata<Dynamic>`](crate::Metadata), or a type of the author's whose
    /// `Kind` is `Dynamic`.
    ///
    /// # Examples
    ///
    /// ```
    /// use homeostat_informer::Dynamic;
    /// use homeostat_informer::list_watch::KubeListWatch;
    /// use kube_core::GroupVersionResource;
    ///
    /// fn certificates(client: kube_client::Client) -> KubeListWatch<Dynamic> {
    ///     let resource = GroupVersionResource::gvr("cert-manager.io", "v1", "certificates");
    ///     KubeListWatch::of_resource(client, &resource, Some("shop"))
    /// }
    /// ```
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
    /// Creates a list-watch for the collection at `path` with the default options.
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
}

impl<K: Object + DeserializeOwned> KubeListWatch<K> {
    /// Decodes a list while it arrives, and yields to other tasks after each 64 KiB.
    ///
    /// # Errors
    ///
    /// `Corrupt` if the body is no list or a value is too long, `TimedOut` after a gap of 75 s,
    /// `Unreachable` if the connection breaks.
    async fn page(&self, mut body: Body) -> Result<Page<K>, ListError> {
        let corrupt = |error| ListError::Corrupt { target: self.target(), error };
        let unreachable =
            |error| ListError::Unreachable { target: self.target(), source: cause(error) };
        let timed_out = |_| ListError::TimedOut { target: self.target(), timeout: SILENCE };
        let mut list = ListDecoder::new(self.decoder.clone(), self.max_frame);
        let mut is_complete = false;
        loop {
            while !is_complete && !list.is_filled() {
                let frame = time::timeout(SILENCE, body.frame()).await.map_err(timed_out)?;
                match frame.transpose().map_err(unreachable)? {
                    Some(frame) => list.feed(&frame.into_data().unwrap_or_default()),
                    None => is_complete = true,
                }
            }
            match list.decode().map_err(corrupt)? {
                Progress::Busy => tokio::task::yield_now().await,
                Progress::Idle if is_complete => return list.finish().map_err(corrupt),
                Progress::Idle => {}
            }
        }
    }
}

impl<K> KubeListWatch<K> {
    /// Returns the path of the collection, which identifies the resource.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    pub(crate) fn resource(&self) -> &GroupVersionResource {
        &self.resource
    }

    pub(crate) fn scope(&self) -> &Scope {
        &self.scope
    }

    /// Sends a GET request, and returns a successful answer. `operation` names it for layers of the
    /// client, and `query` is already encoded.
    async fn send(
        &self,
        operation: &'static str,
        accept: &'static str,
        query: &str,
    ) -> Result<Response<Body>, Failure> {
        let mut request = Request::get(format!("{}?{query}", self.path))
            .header(header::ACCEPT, accept)
            // A compressed watch is one compressed member per flush, which common decoders misread.
            // Between a controller and its API server, compression costs more than it saves.
            .header(header::ACCEPT_ENCODING, "identity")
            .body(Body::empty())
            .map_err(|error| Failure::unsendable(&error))?;
        // kube-client stores the operation name here, too; tracing and metrics layers read it.
        request.extensions_mut().insert(operation);
        let response = self.client.send(request).await.map_err(Failure::unanswered)?;
        if response.status().is_success() {
            return Ok(response);
        }
        Err(Failure::refused(response).await)
    }
}

#[async_trait]
impl<K: Object + DeserializeOwned> ListWatch<K> for KubeListWatch<K> {
    fn target(&self) -> Arc<str> {
        Arc::clone(&self.target)
    }

    async fn list(&self, request: &ListRequest) -> Result<Page<K>, ListError> {
        let accept = if K::METADATA_ONLY { METADATA_LIST } else { JSON };
        let query = self.list_query(request);
        let response = self.send("list", accept, &query).await;
        let response = response.map_err(|failure| failure.of_list(self.target()))?;
        self.page(response.into_body()).await
    }

    async fn watch(&self, request: &WatchRequest) -> Result<WatchStream<K>, WatchError> {
        let accept = if K::METADATA_ONLY { METADATA_WATCH } else { JSON };
        let query = self.watch_query(request);
        let response = self.send("watch", accept, &query).await;
        let response = response.map_err(|failure| failure.of_watch(self.target()))?;
        let decoder = self.decoder.clone();
        let body = response.into_body();
        let frames = Frames::new(body, self.target(), self.max_frame, decoder, self.decoders);
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

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
