//! [`Loaded`]: credentials as they were read at one moment, with the client certificate.

use std::sync::Arc;

use http::HeaderValue;
use tokio::time::Instant;

use crate::client::identity::ClientIdentity;
use crate::client::material::PemPair;

/// Credentials as they were read at one moment.
///
/// A value is never changed: a reload makes a new one, so that a request keeps the credentials that
/// it was sent with.
#[derive(Clone)]
pub(in crate::client) struct Loaded {
    /// The `Authorization` header.
    pub(in crate::client) authorization: Option<HeaderValue>,
    /// The client certificate with its key. Equal certificates are the same `Arc`.
    pub(in crate::client) identity: Option<Arc<Identity>>,
    /// The time of the next reload.
    pub(super) due: Option<Instant>,
    /// The time from which on the server refuses them.
    pub(super) expires: Option<Instant>,
}

/// A client certificate, as text to notice a change, and in the form that TLS needs.
///
/// Its address identifies it: connections are pooled by the `Arc`.
pub(in crate::client) struct Identity {
    pub(super) pem: PemPair,
    pub(in crate::client) key: ClientIdentity,
}

// === impl Loaded ===

impl Loaded {
    /// Returns true if the credentials have to be loaded again before the next request.
    pub(super) fn is_due(&self) -> bool {
        self.due.is_some_and(|due| due <= Instant::now())
    }

    /// Returns true if the server refuses the credentials by now. Credentials without an expiry
    /// never expire.
    pub(super) fn is_expired(&self) -> bool {
        self.expires.is_some_and(|expires| expires <= Instant::now())
    }

    /// Returns true if a request with these credentials may succeed where one with `other` was
    /// refused.
    pub(super) fn differs_from(&self, other: &Self) -> bool {
        self.authorization != other.authorization
            || !same_identity(self.identity.as_ref(), other.identity.as_ref())
    }
}

/// Returns true if both are the same certificate, or neither is one.
pub(in crate::client) fn same_identity(
    a: Option<&Arc<Identity>>,
    b: Option<&Arc<Identity>>,
) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => Arc::ptr_eq(a, b),
        (None, None) => true,
        _ => false,
    }
}
