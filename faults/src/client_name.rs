//! The name of the client that sent a request.

use std::sync::Arc;

use http::{Request, header};

/// The name of the client that sent an in-process request: an extension of the request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClientName(pub Arc<str>);

/// The longest part of a `User-Agent` that is used as a name, in bytes.
const MAX_NAME: usize = 256;

// === impl ClientName ===

impl ClientName {
    /// Returns the name of a request's client: the extension, else the product of its `User-Agent`,
    /// else empty.
    pub fn of<B>(request: &Request<B>) -> Self {
        if let Some(name) = request.extensions().get::<Self>() {
            return name.clone();
        }
        let agent = request.headers().get(header::USER_AGENT);
        let agent = agent.and_then(|agent| agent.to_str().ok()).unwrap_or_default();
        let product = agent.split(['/', ' ']).next().unwrap_or_default();
        // Header values that are text are ASCII, so that every index is a boundary.
        Self(product.get(..MAX_NAME).unwrap_or(product).into())
    }
}
