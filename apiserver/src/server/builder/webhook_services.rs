//! The servers behind the services that webhooks name.

use std::net::SocketAddr;
use std::sync::Arc;

use serde_json::Value;

use super::{Builder, ServiceName};
use crate::webhooks::Server;

/// The port of a service that names none.
const HTTPS: u16 = 443;

impl Builder {
    /// Sends the webhooks of a service to this address. The port is that of the service.
    ///
    /// There is no network of services here: without this, a webhook whose configuration names a
    /// service fails as one that cannot be reached. The server at the address needs a certificate
    /// for `NAME.NAMESPACE.svc`, as in a cluster, and is called over a socket, in real time. A
    /// webhook with a `url` needs none of this.
    ///
    /// # Examples
    ///
    /// ```
    /// use homeostat_apiserver::ApiServer;
    ///
    /// let address = ([127, 0, 0, 1], 9443).into();
    /// let server = ApiServer::builder().webhook_service("shop", "checks", 443, address).build();
    /// ```
    pub fn webhook_service(
        self,
        namespace: impl Into<String>,
        name: impl Into<String>,
        port: u16,
        address: SocketAddr,
    ) -> Self {
        self.with_service((namespace.into(), name.into(), port), Server::Address(address))
    }

    /// Answers the webhooks of a service, at port 443, by a function in this process. It gets the
    /// path of the webhook and the `AdmissionReview` or `ConversionReview`, and returns the review
    /// with its response.
    ///
    /// Nothing waits for a socket, so a test can keep tokio's clock paused.
    ///
    /// # Examples
    ///
    /// ```
    /// use homeostat_apiserver::ApiServer;
    /// use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use kube_client::Api;
    /// use kube_client::api::PostParams;
    /// use serde_json::{Value, json};
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let refuse = |_path: &str, mut review: Value| {
    ///     let uid = review["request"]["uid"].take();
    ///     review["response"] = json!({"uid": uid, "allowed": false, "status": {"message": "no"}});
    ///     review
    /// };
    /// let server = ApiServer::builder().webhook_function("shop", "checks", refuse).build();
    /// let configuration = serde_json::from_value(json!({
    ///     "metadata": {"name": "checks"},
    ///     "webhooks": [{
    ///         "name": "maps.example.com",
    ///         "sideEffects": "None",
    ///         "admissionReviewVersions": ["v1"],
    ///         "clientConfig": {"service": {"namespace": "shop", "name": "checks"}},
    ///         "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"],
    ///             "resources": ["configmaps"]}],
    ///     }],
    /// }))?;
    /// let configurations = Api::<ValidatingWebhookConfiguration>::all(server.client());
    /// configurations.create(&PostParams::default(), &configuration).await?;
    ///
    /// let maps = Api::<ConfigMap>::default_namespaced(server.client());
    /// let map = serde_json::from_value(json!({"metadata": {"name": "m"}}))?;
    /// let error = maps.create(&PostParams::default(), &map).await.unwrap_err();
    /// let denied = "admission webhook \"maps.example.com\" denied the request: no";
    /// assert!(error.to_string().contains(denied));
    /// # Ok(())
    /// # }
    /// ```
    pub fn webhook_function(
        self,
        namespace: impl Into<String>,
        name: impl Into<String>,
        function: impl Fn(&str, Value) -> Value + Send + Sync + 'static,
    ) -> Self {
        let service = (namespace.into(), name.into(), HTTPS);
        self.with_service(service, Server::Function(Arc::new(function)))
    }

    fn with_service(mut self, service: ServiceName, server: Server) -> Self {
        self.services.push((service, server));
        self
    }
}
