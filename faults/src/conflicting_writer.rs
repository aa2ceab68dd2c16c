//! A second writer that causes real conflicts: it writes between a client's read and its write.

use std::fmt;

use http::{Request, header};
use kube_client::Client;
use kube_client::client::Body;

use crate::request_info::ClientRequest;

/// Writes to the object of a request just before that request is sent.
#[derive(Clone)]
pub(crate) struct ConflictingWriter {
    client: Client,
}

// === impl ConflictingWriter ===

impl ConflictingWriter {
    pub(crate) fn new(client: Client) -> Self {
        Self { client }
    }

    /// Changes an annotation of the object, so that it gets a new resource version.
    ///
    /// A failure is only logged: an object that does not exist has no conflicts.
    pub(crate) async fn write(&self, request: &ClientRequest, path: &str, number: u64) {
        let path = match &request.info.subresource {
            Some(subresource) => path.trim_end_matches(subresource.as_str()).trim_end_matches('/'),
            None => path,
        };
        let body =
            format!(r#"{{"metadata":{{"annotations":{{"conflicting-write":"{number}"}}}}}}"#);
        let request = Request::patch(path)
            .header(header::CONTENT_TYPE, "application/merge-patch+json")
            .body(Body::from(body.into_bytes()));
        match request {
            Ok(request) => {
                if let Err(error) = self.client.send(request).await {
                    tracing::debug!(%error, path, "conflicting write failed");
                }
            }
            Err(error) => tracing::debug!(%error, path, "cannot build the conflicting write"),
        }
    }
}

impl fmt::Debug for ConflictingWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConflictingWriter").finish_non_exhaustive()
    }
}
