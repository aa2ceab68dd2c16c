//! The services of the cluster that are webhooks' servers.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use parking_lot::RwLock;
use serde_json::Value;

/// The servers behind the services that configurations of webhooks name.
#[derive(Debug, Default)]
pub(crate) struct Directory {
    servers: RwLock<BTreeMap<Name, Server>>,
}

/// The namespace, the name and the port of a service.
type Name = (String, String, u16);

/// The server behind a service.
#[derive(Clone)]
pub(crate) enum Server {
    /// A server with TLS.
    Address(SocketAddr),
    /// A function in this process: it gets the path and the review, and returns the review with
    /// its response.
    Function(Arc<Function>),
}

/// A webhook in this process.
pub(crate) type Function = dyn Fn(&str, Value) -> Value + Send + Sync;

// === impl Directory ===

impl Directory {
    pub(crate) fn add(&self, (namespace, name, port): (&str, &str, u16), server: Server) {
        let key = (namespace.to_owned(), name.to_owned(), port);
        self.servers.write().insert(key, server);
    }

    pub(super) fn find(&self, namespace: &str, name: &str, port: u16) -> Option<Server> {
        let key = (namespace.to_owned(), name.to_owned(), port);
        self.servers.read().get(&key).cloned()
    }
}

// === impl Server ===

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => f.debug_tuple("Address").field(address).finish(),
            Self::Function(_) => f.debug_tuple("Function").finish_non_exhaustive(),
        }
    }
}
