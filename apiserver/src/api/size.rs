//! The size of an object. The etcd of a real server refuses large ones.

use crate::fields::Fields;
use crate::kinds::Served;
use crate::media;
use crate::object::{Encoded, without_owners};
use crate::request::ApiCall;
use crate::status::{Failure, Result};

/// The largest object in bytes: etcd's default limit of a request.
const MAX_OBJECT: usize = 1_572_864;

/// Encodes an object for storage. If it is too large, its owners are removed: they can be larger
/// than the rest.
///
/// # Errors
///
/// Fails with 500 if the object is still too large. After an apply the owners are needed.
pub(super) fn limited(
    served: &Served,
    call: &ApiCall,
    object: Fields,
    encode: &dyn Fn(Fields) -> Result<Encoded>,
) -> Result<Encoded> {
    let encoded = encode(object)?;
    if !is_too_large(served, &encoded) {
        return Ok(encoded);
    }
    if call.content_type() != media::APPLY {
        let encoded = encode(without_owners(encoded.object()))?;
        if !is_too_large(served, &encoded) {
            return Ok(encoded);
        }
    }
    Err(Failure::internal("etcdserver: request is too large"))
}

/// Returns true if the object is too large in the form that the real server stores: protobuf, or
/// JSON for a custom resource.
fn is_too_large(served: &Served, encoded: &Encoded) -> bool {
    // Protobuf is never larger than JSON.
    encoded.len() > MAX_OBJECT
        && (served.home.custom || media::protobuf_size(encoded.at(0).bytes()) > MAX_OBJECT)
}
