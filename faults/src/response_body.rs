//! [`ResponseBody`]: the body of a response that has met the faults.

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use tower::BoxError;

/// The body of every response that has passed through [`Faults`](crate::Faults).
pub type ResponseBody = UnsyncBoxBody<Bytes, BoxError>;
