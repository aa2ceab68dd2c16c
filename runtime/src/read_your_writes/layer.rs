//! The layer of a client that records the versions of the writes that pass it.

use std::borrow::Cow;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use homeostat_expectations::GroupResource;
use http::{Method, Request, Response};
use http_body_util::{BodyExt, Either, Full};
use serde::Deserialize;
use tower::{BoxError, Layer, Service};

tokio::task_local! {
    /// Records a write of the reconcile that runs in this task.
    pub(super) static WRITTEN: Written;
}

/// It has no key in its signature: the key is captured by
/// [`ReadYourWrites::recording`](super::ReadYourWrites::recording).
pub(super) type Written = Arc<dyn Fn(&GroupResource, &str) + Send + Sync>;

/// A layer of a client that records the versions of writes; see
/// [`ReadYourWrites::layer`](super::ReadYourWrites::layer).
#[derive(Debug, Clone, Copy, Default)]
pub struct RecordWritesLayer(());

/// The service of a [`RecordWritesLayer`].
#[derive(Debug, Clone)]
pub struct RecordWrites<S> {
    inner: S,
}

/// Only the version of the answer is read. A field that it needs and does not find counts as empty.
#[derive(Deserialize)]
struct Answer<'a> {
    #[serde(borrow, default)]
    metadata: AnswerMetadata<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct AnswerMetadata<'a> {
    #[serde(borrow)]
    resource_version: Cow<'a, str>,
}

// === impl RecordWritesLayer ===

impl<S> Layer<S> for RecordWritesLayer {
    type Service = RecordWrites<S>;

    fn layer(&self, inner: S) -> RecordWrites<S> {
        RecordWrites { inner }
    }
}

// === impl RecordWrites ===

type Recorded<B> = Response<Either<B, Full<Bytes>>>;

impl<S, R, B> Service<Request<R>> for RecordWrites<S>
where
    S: Service<Request<R>, Response = Response<B>>,
    S::Future: Send + 'static,
    S::Error: Into<BoxError>,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Recorded<B>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Recorded<B>, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    /// The body of a write is buffered to its end before the answer is returned. A failure to read
    /// it is the error of the request.
    fn call(&mut self, request: Request<R>) -> Self::Future {
        let resource = written_resource(&request);
        let answer = self.inner.call(request);
        Box::pin(async move {
            let answer = answer.await.map_err(Into::into)?;
            // The future is polled by the task that sent the request, the reconcile's.
            let written = WRITTEN.try_with(Arc::clone).ok();
            let (Some(resource), Some(written)) = (resource, written) else {
                return Ok(answer.map(Either::Left));
            };
            let (parts, body) = answer.into_parts();
            let body = body.collect().await.map_err(Into::into)?.to_bytes();
            if parts.status.is_success()
                && let Ok(answer) = serde_json::from_slice::<Answer<'_>>(&body)
                && !answer.metadata.resource_version.is_empty()
            {
                written(&resource, &answer.metadata.resource_version);
            }
            Ok(Response::from_parts(parts, Either::Right(Full::new(body))))
        })
    }
}

/// Returns the resource that `request` writes, or `None` if it writes nothing.
///
/// A write to a subresource is a write of the resource: it changes the same version. A dry run
/// writes nothing.
fn written_resource<R>(request: &Request<R>) -> Option<GroupResource> {
    let is_write =
        matches!(*request.method(), Method::POST | Method::PUT | Method::PATCH | Method::DELETE);
    let is_dry = request.uri().query().is_some_and(|query| query.contains("dryRun="));
    if !is_write || is_dry {
        return None;
    }
    let segments: Vec<&str> = request.uri().path().trim_matches('/').split('/').collect();
    let (group, rest) = match segments.as_slice() {
        ["api", _version, rest @ ..] => ("", rest),
        ["apis", group, _version, rest @ ..] => (*group, rest),
        _ => return None,
    };
    let resource = match rest {
        // The subresources of a namespace: no resource of the core has these names.
        ["namespaces", _, "status" | "finalize"] if group.is_empty() => "namespaces",
        ["namespaces", _, resource, ..] | [resource, ..] => *resource,
        [] => return None,
    };
    Some(GroupResource::new(group.to_owned(), resource.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resource_of_a_write_is_read_from_its_path() {
        let written = |method: Method, path: &str| {
            let request = Request::builder().method(method).uri(path).body(()).unwrap();
            written_resource(&request)
        };
        let name =
            |group: &'static str, resource: &'static str| Some(GroupResource::new(group, resource));
        assert_eq!(written(Method::POST, "/api/v1/namespaces/ns/pods"), name("", "pods"));
        assert_eq!(written(Method::PUT, "/api/v1/nodes/n/status"), name("", "nodes"));
        assert_eq!(written(Method::DELETE, "/api/v1/namespaces/ns"), name("", "namespaces"));
        for subresource in ["status", "finalize"] {
            let path = format!("/api/v1/namespaces/ns/{subresource}");
            assert_eq!(written(Method::PUT, &path), name("", "namespaces"));
        }
        assert_eq!(
            written(Method::PATCH, "/apis/apps/v1/namespaces/ns/replicasets/a/status?force=true"),
            name("apps", "replicasets")
        );
        assert_eq!(written(Method::GET, "/api/v1/namespaces/ns/pods"), None);
        assert_eq!(written(Method::POST, "/api/v1/namespaces/ns/pods?dryRun=All"), None);
        assert_eq!(written(Method::POST, "/version"), None);
    }
}
