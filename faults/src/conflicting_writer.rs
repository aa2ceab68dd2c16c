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
    /// # Errors
    ///
    /// Returns the reason for which there is no conflict: an object that does not exist has none.
    pub(crate) async fn write(
        &self,
        request: &ClientRequest,
        path: &str,
        number: u64,
    ) -> Result<(), String> {
        let path = match &request.info.subresource {
            Some(subresource) => path.trim_end_matches(subresource.as_str()).trim_end_matches('/'),
            None => path,
        };
        let body =
            format!(r#"{{"metadata":{{"annotations":{{"conflicting-write":"{number}"}}}}}}"#);
        let request = Request::patch(path)
            .header(header::CONTENT_TYPE, "application/merge-patch+json")
            .body(Body::from(body.into_bytes()))
            .map_err(|error| error.to_string())?;
        match self.client.send(request).await {
            Ok(answer) if answer.status().is_success() => Ok(()),
            Ok(answer) => Err(answer.status().to_string()),
            Err(error) => Err(error.to_string()),
        }
    }
}

impl fmt::Debug for ConflictingWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConflictingWriter").finish_non_exhaustive()
    }
}
