//! Reads the object in a request body without consuming the body.

use std::any::Any;
use std::sync::Arc;

use bytes::Bytes;
use futures::FutureExt as _;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use kube_client::client::Body;
use serde_json::Value;

/// Returns the object in the body of a request if the body is in memory and JSON.
pub(crate) fn object_of<B: 'static>(request: &Request<B>) -> Option<Arc<Value>> {
    serde_json::from_slice(&in_memory(request.body())?).ok().map(Arc::new)
}

fn in_memory(body: &dyn Any) -> Option<Bytes> {
    if let Some(body) = body.downcast_ref::<Body>() {
        ready(body.try_clone()?)
    } else {
        ready(body.downcast_ref::<Full<Bytes>>()?.clone())
    }
}

/// Returns the data of a body that is there already.
fn ready(body: impl http_body::Body<Data = Bytes>) -> Option<Bytes> {
    Some(body.collect().now_or_never()?.ok()?.to_bytes())
}
