//! Answers without the parts of an object that a controller does not read.

use http::{HeaderValue, Request, header};

/// A server that cannot send partial objects sends complete ones.
const METADATA_ONLY: HeaderValue = HeaderValue::from_static(
    "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json",
);

/// Returns the request with an `Accept` header that asks the server to answer with the metadata of
/// the object alone.
///
/// A server answers a write with the complete object. A controller that reads only its name and
/// version saves the server the rest, and itself the decryption and the decoding. An error is a
/// complete `Status` all the same.
///
/// # Examples
///
/// ```no_run
/// use homeostat::client::metadata_only;
/// use homeostat::kube_client::core::{Request, params::PostParams};
/// # async fn doc(
/// #     client: homeostat::kube_client::Client,
/// #     pod: Vec<u8>,
/// # ) -> Result<(), Box<dyn std::error::Error>> {
///
/// let request = Request::new("/api/v1/namespaces/shop/pods");
/// let request = metadata_only(request.create(&PostParams::default(), pod)?);
/// let answer: serde_json::Value = client.request(request).await?;
/// println!("created {}", answer["metadata"]["name"]);
/// # Ok(())
/// # }
/// ```
pub fn metadata_only<B>(mut request: Request<B>) -> Request<B> {
    request.headers_mut().insert(header::ACCEPT, METADATA_ONLY);
    request
}
