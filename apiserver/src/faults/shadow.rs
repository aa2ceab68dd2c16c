//! A conflict that is real: another writer comes between a client's read and its write.

use std::fmt;

use http::{Request, header};
use kube_client::{Client, client::Body};

use super::call::Call;

/// Writes to the object that a request is about, just before that request.
#[derive(Clone)]
pub(super) struct Writer {
    client: Client,
}

// === impl Writer ===

impl Writer {
    pub(super) fn new(client: Client) -> Self {
        Self { client }
    }

    /// Changes an annotation of the object, so that it has a new resourceVersion. What comes of it is not looked at:
    /// an object that is not there has no conflicts.
    pub(super) async fn write(&self, call: &Call, path: &str, mark: u64) {
        let path = match &call.subresource {
            Some(subresource) => path.trim_end_matches(subresource.as_str()).trim_end_matches('/'),
            None => path,
        };
        let body = format!(r#"{{"metadata":{{"annotations":{{"shadow-writer":"{mark}"}}}}}}"#);
        let request = Request::patch(path)
            .header(header::CONTENT_TYPE, "application/merge-patch+json")
            .body(Body::from(body.into_bytes()));
        match request {
            Ok(request) => {
                if let Err(error) = self.client.send(request).await {
                    tracing::debug!(%error, "the shadow writer could not write");
                }
            }
            Err(error) => tracing::debug!(%error, "the shadow writer has nothing to write to"),
        }
    }
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer").finish_non_exhaustive()
    }
}
