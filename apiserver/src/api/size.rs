//! The size of an object. The etcd of a real server refuses large ones.

use crate::fields::Fields;
use crate::kinds::Served;
use crate::media;
use crate::object::{Encoded, without_owners};
use crate::request::ApiCall;
use crate::status::{Failure, Result};

/// The largest object in bytes: etcd's default limit of a request.
const MAX_OBJECT: usize = 1_572_864;

/// The largest request in bytes that the client of etcd sends.
const MAX_REQUEST: usize = 2 * 1024 * 1024;

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
    let mut encoded = encode(object)?;
    let mut stored = size(served, &encoded);
    if stored > MAX_OBJECT && call.content_type() != media::APPLY {
        encoded = encode(without_owners(encoded.object()))?;
        stored = size(served, &encoded);
    }
    if stored <= MAX_OBJECT {
        return Ok(encoded);
    }
    let request = request_size(served, &encoded, stored);
    if request <= MAX_REQUEST {
        return Err(Failure::internal("etcdserver: request is too large"));
    }
    Err(Failure::internal(format!(
        "rpc error: code = ResourceExhausted desc = trying to send message larger than max \
         ({request} vs. {MAX_REQUEST})"
    )))
}

/// Returns the size of an object in the form that the real server stores: protobuf, or JSON for a
/// custom resource. The size of a small object may be that of its JSON, which is never smaller.
fn size(served: &Served, encoded: &Encoded) -> usize {
    if encoded.len() <= MAX_OBJECT || served.home.custom {
        // The resourceVersion is not stored, and a line break is.
        return encoded.len() + 1 - r#""resourceVersion":"","#.len();
    }
    media::protobuf_size(encoded.at(0).bytes()) - 1
}

/// Returns the size of the request to etcd that creates an object, which has the size `stored`: a
/// transaction that compares the revision of the key and stores the object. One that updates it has
/// some bytes more, and so has one with a built-in object, of which the real server stores empty
/// members, too.
fn request_size(served: &Served, encoded: &Encoded, stored: usize) -> usize {
    let metadata = &encoded.object()["metadata"];
    let text = |member: &str| metadata[member].as_str().unwrap_or_default();
    let key = field(served.home.storage_key(text("namespace"), text("name")).len());
    // A target and an empty revision have two bytes each.
    let comparison = field(2 + key + 2);
    let put = field(key + field(stored));
    comparison + field(put)
}

/// Returns the size of a field of protobuf whose content has this length.
fn field(length: usize) -> usize {
    let bits = usize::BITS - (length | 1).leading_zeros();
    1 + bits.div_ceil(7) as usize + length
}
