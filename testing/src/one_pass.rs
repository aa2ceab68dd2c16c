//! One pass of a controller against an embedded server, and the calls that it makes.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use homeostat_apiserver::ApiServer;
use homeostat_faults::RequestInfo;
use http::Request;
use kube_client::Client;
use kube_client::client::Body;
use parking_lot::Mutex;
use serde_json::Value;
use tower::{BoxError, ServiceExt as _, service_fn};

/// Runs one pass of a reconciler against an embedded server, and returns the calls that it made.
///
/// The test fills the caches of the reconciler itself, with the objects that the server has or with
/// others: a cache may be behind. With homeostat it uses `homeostat::informer::testing::Store`.
///
/// # Examples
///
/// ```
/// use homeostat_testing::OnePass;
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube_client::api::{Api, DeleteParams, PostParams};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let pass = OnePass::start();
/// let maps = Api::<ConfigMap>::default_namespaced(pass.client());
/// let map = serde_json::from_value(serde_json::json!({"metadata": {"name": "web"}})).unwrap();
/// // In a test: `reconciler.reconcile(&Request::new(key))`.
/// let (outcome, calls) = pass
///     .run(async {
///         maps.create(&PostParams::default(), &map).await?;
///         maps.delete("other", &DeleteParams::default()).await.map(drop)
///     })
///     .await;
/// assert!(outcome.is_err());
/// let calls: Vec<_> = calls.iter().map(ToString::to_string).collect();
/// assert_eq!(calls, ["201 create configmaps in default", "404 delete configmaps default/other"]);
/// # }
/// ```
#[expect(missing_debug_implementations, reason = "a client has none")]
pub struct OnePass {
    server: ApiServer,
    client: Client,
    calls: Arc<Mutex<Vec<Call>>>,
}

/// One call of a pass, with the answer of the server.
///
/// Its text is the status code and the request: `201 create pods in shop`.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Call {
    /// The verb, the resource and the object.
    pub request: RequestInfo,
    /// The body; `null` if there is none or if it is not JSON.
    pub body: Value,
    /// The status code of the answer.
    pub code: u16,
}

// === impl OnePass ===

impl OnePass {
    /// Starts an embedded server with a fixed seed.
    ///
    /// # Panics
    ///
    /// Panics outside of a tokio runtime.
    pub fn start() -> Self {
        Self::around(ApiServer::builder().seed(7).build())
    }

    /// As [`start`](Self::start), with this server: for example one with custom kinds.
    ///
    /// # Panics
    ///
    /// Panics outside of a tokio runtime.
    pub fn around(server: ApiServer) -> Self {
        let calls = Arc::<Mutex<Vec<Call>>>::default();
        let (inner, log) = (server.service(), Arc::clone(&calls));
        let service = service_fn(move |request: Request<Body>| {
            let (inner, log) = (inner.clone(), Arc::clone(&log));
            async move {
                let (parts, body) = request.into_parts();
                let body = body.collect_bytes().await?;
                let query = parts.uri.query().unwrap_or_default();
                let request = RequestInfo::parse(&parts.method, parts.uri.path(), query);
                let sent = serde_json::from_slice(&body).unwrap_or_default();
                let answer = inner.oneshot(Request::from_parts(parts, Body::from(body.to_vec())));
                let answer = answer.await?;
                let code = answer.status().as_u16();
                log.lock().push(Call { request, body: sent, code });
                Ok::<_, BoxError>(answer)
            }
        });
        Self { server, client: Client::new(service, "default"), calls }
    }

    /// Returns the server: fill it through [`ApiServer::client`], whose calls are not recorded.
    pub fn server(&self) -> &ApiServer {
        &self.server
    }

    /// Returns the client of the reconciler, whose calls are recorded. It repeats no request.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// Runs `pass`, and returns its outcome with the calls that the client made meanwhile, in the
    /// order of their answers.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the pass. The server may carry out a request that was sent.
    pub async fn run<T>(&self, pass: impl Future<Output = T>) -> (T, Vec<Call>) {
        self.take();
        let outcome = pass.await;
        (outcome, self.take())
    }

    /// Removes the calls that were recorded so far.
    fn take(&self) -> Vec<Call> {
        std::mem::take(&mut *self.calls.lock())
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.code, self.request)
    }
}
