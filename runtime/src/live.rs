//! Requests about single objects, of which only the metadata is read. Projections need no full
//! type for them.
//!
//! The requests name the resource by the path of its kind. A read asks for `PartialObjectMetadata`,
//! which saves the transfer of the object.

use homeostat_informer::ObjectMeta;
use kube_client::core::Request;
use kube_client::core::params::{GetParams, Patch, PatchParams};
use kube_client::{Client, Error, Resource};
use serde::{Deserialize, Serialize};

/// The objects of one kind in one namespace, at the server.
///
/// It reads and writes at the server, not in a cache.
pub(crate) struct Live<'a> {
    client: &'a Client,
    requests: Request,
}

/// The part of any object that is read.
#[derive(Deserialize)]
struct WithMetadata {
    metadata: ObjectMeta,
}

// === impl Live ===

impl<'a> Live<'a> {
    /// Returns the objects of `Kind` in the namespace of `metadata`.
    pub(crate) fn beside<Kind: Resource<DynamicType = ()>>(
        client: &'a Client,
        metadata: &ObjectMeta,
    ) -> Self {
        let path = Kind::url_path(&(), metadata.namespace.as_deref());
        Self { client, requests: Request::new(path) }
    }

    /// Reads the metadata of an object.
    ///
    /// # Errors
    ///
    /// The error of the client; 404 if there is no such object.
    pub(crate) async fn metadata(&self, name: &str) -> Result<ObjectMeta, Error> {
        self.send(self.requests.get_metadata(name, &GetParams::default())).await
    }

    /// Sends a patch, and returns the metadata of the patched object.
    ///
    /// # Errors
    ///
    /// The error of the client.
    pub(crate) async fn patch<P: Serialize + std::fmt::Debug>(
        &self,
        name: &str,
        patch: &Patch<P>,
    ) -> Result<ObjectMeta, Error> {
        self.send(self.requests.patch(name, &PatchParams::default(), patch)).await
    }

    async fn send(
        &self,
        request: Result<http::Request<Vec<u8>>, kube_client::core::request::Error>,
    ) -> Result<ObjectMeta, Error> {
        let answer = self.client.request_text(request.map_err(Error::BuildRequest)?).await?;
        let object: WithMetadata = serde_json::from_str(&answer).map_err(Error::SerdeError)?;
        Ok(object.metadata)
    }
}
