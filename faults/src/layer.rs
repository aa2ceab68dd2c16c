//! The layer that wraps a transport in faults, and the clients built with it.

use std::sync::Arc;

use http::Request;
use kube_client::Client;
use kube_client::client::Body;
use tower::{Layer, service_fn};

use crate::faults::Faults;
use crate::service::FaultService;

/// Wraps a transport in [`Faults`]; made by [`Faults::layer`] and [`Faults::layer_as`].
#[derive(Debug, Clone)]
pub struct FaultLayer {
    faults: Faults,
    client: Option<Arc<str>>,
}

// === impl Faults ===

/// Clients and the transports around them.
impl Faults {
    /// Returns the layer for a transport. The name of the client is the `User-Agent` of each
    /// request, up to the first slash.
    pub fn layer(&self) -> FaultLayer {
        FaultLayer { faults: self.clone(), client: None }
    }

    /// Returns the layer for the transport of a client with a name. Requests without a `User-Agent`
    /// get the name as theirs.
    pub fn layer_as(&self, client: &str) -> FaultLayer {
        FaultLayer { client: Some(client.into()), ..self.layer() }
    }

    /// Creates a client whose requests pass through these faults and then through `client`.
    ///
    /// # Panics
    ///
    /// Panics outside a tokio runtime: the client starts a task.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # use homeostat_faults::Faults;
    /// # use kube_client::Client;
    /// # async fn run() -> Result<(), kube_client::Error> {
    /// let faults = Faults::new();
    /// let client = faults.client(Client::try_default().await?);
    /// # Ok(())
    /// # }
    /// ```
    pub fn client(&self, client: Client) -> Client {
        Self::over(client, &self.layer())
    }

    /// Creates a client with a name, by which [`Calls::by`](crate::Calls::by) selects its requests.
    ///
    /// # Panics
    ///
    /// Panics outside a tokio runtime: the client starts a task.
    pub fn client_as(&self, name: &str, client: Client) -> Client {
        Self::over(client, &self.layer_as(name))
    }

    fn over(client: Client, layer: &FaultLayer) -> Client {
        let namespace = client.default_namespace().to_owned();
        let transport = service_fn(move |request: Request<Body>| {
            let client = client.clone();
            async move { client.send(request).await }
        });
        Client::new(layer.layer(transport), namespace)
    }
}

// === impl FaultLayer ===

impl<S> Layer<S> for FaultLayer {
    type Service = FaultService<S>;

    fn layer(&self, inner: S) -> Self::Service {
        FaultService::new(inner, Arc::clone(&self.faults.shared), self.client.clone())
    }
}
