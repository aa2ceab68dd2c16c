//! An API server in this process, the controller beside it, and a record of what it requests.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use homeostat::kube_client::Client;
use homeostat::kube_client::client::Body;
use homeostat_apiserver::{ApiServer, Kind};
use homeostat_faults::Faults;
use homeostat_resourcequota::{Options, RunError, run};
use homeostat_testing::RequestedPermissions;
use http::{Request, Response, StatusCode, Uri, header};
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;
use jiff::Timestamp;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

/// Longer than every back-off and period in these tests, apart from the linger time.
const DEADLINE: Duration = Duration::from_secs(120);

/// The custom resource of these tests. The server stores it at `v1`; the controller sees the
/// version that is [offered](World::offer).
const GROUP: &str = "/apis/example.com/";

/// A cluster with the namespace `shop`.
pub(crate) struct World {
    pub(crate) server: ApiServer,
    user: Client,
    /// The faults between the controller and the server.
    pub(crate) faults: Faults,
    /// The permissions that the controller requested.
    pub(crate) requested: RequestedPermissions,
    seen: Arc<Seen>,
    controller: JoinSet<Result<(), RunError>>,
    stop: oneshot::Sender<()>,
    /// The tasks of the runtime before the controller started.
    tasks: usize,
}

/// The requests of the controller, and the version of the custom resource that it sees.
#[derive(Default)]
struct Seen {
    /// The requests, as `GET /api/v1/pods?watch=true 200`.
    lines: Mutex<Vec<String>>,
    /// The version of the custom resource that discovery shows; empty for none.
    offered: Mutex<String>,
    discovery: Mutex<Discovery>,
    /// Text in the answers to lists and watches that is replaced by another.
    misfit: Mutex<Option<(&'static str, &'static str)>>,
    /// The requests that wait for the start of their answer.
    in_flight: AtomicUsize,
    /// The bodies of status updates with a negative usage.
    negative: Mutex<Vec<Value>>,
}

/// The answers of the server to a discovery.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Discovery {
    /// They are right.
    #[default]
    Works,
    /// Each is an error.
    Fails,
    /// The group `example.com` is stale: the server cannot reach what serves it.
    LacksGroup,
    /// The core group is stale.
    LacksCore,
}

pub(crate) fn epoch() -> Timestamp {
    "2026-06-01T12:00:00Z".parse().expect("a time")
}

/// The options of a controller that never recounts everything.
pub(crate) fn without_period() -> Options {
    Options { sync_period: None, ..Options::default() }
}

pub(crate) fn quota(name: &str, hard: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": name},
           "spec": {"hard": hard}})
}

pub(crate) fn pod(name: &str, cpu: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [
        {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}},
    ]}})
}

pub(crate) fn secret(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}})
}

pub(crate) fn foo(name: &str) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Foo", "metadata": {"name": name}})
}

/// The status of a pod whose container has these requests in effect.
pub(crate) fn resized(cpu: &str) -> Value {
    json!({"containerStatuses": [{
        "name": "c", "image": "i", "imageID": "", "ready": true, "restartCount": 0,
        "resources": {"requests": {"cpu": cpu}},
    }]})
}

/// Returns a list of quantities as `cpu=1,pods=2`; empty if there is none.
fn text(list: &Value) -> String {
    let entries = list.as_object().into_iter().flatten();
    let entry =
        |(name, value): (&String, &Value)| format!("{name}={}", value.as_str().unwrap_or("?"));
    entries.map(entry).collect::<Vec<_>>().join(",")
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::with(without_period()).await
    }

    pub(crate) async fn with(options: Options) -> Self {
        Self::around(Self::builder().build(), options).await
    }

    /// Starts a cluster with other faults and another order of tasks.
    pub(crate) async fn seeded(seed: u64, is_enforcing: bool, options: Options) -> Self {
        let builder = Self::builder().seed(seed);
        let server = if is_enforcing { builder.quota_admission() } else { builder }.build();
        Self::around_with(server, Faults::seeded(seed), options).await
    }

    /// Starts a cluster whose API server enforces quotas.
    pub(crate) async fn enforcing() -> Self {
        Self::around(Self::builder().quota_admission().build(), without_period()).await
    }

    fn builder() -> homeostat_apiserver::Builder {
        let foos = Kind::custom("example.com", "v1", "Foo", "foos");
        ApiServer::builder().seed(7).epoch(epoch()).kind(foos)
    }

    async fn around(server: ApiServer, options: Options) -> Self {
        Self::around_with(server, Faults::seeded(7), options).await
    }

    async fn around_with(server: ApiServer, faults: Faults, options: Options) -> Self {
        let user = server.client();
        let seen: Arc<Seen> = Arc::default();
        let (stop, stopped) = oneshot::channel();
        let (requested, controller) = (RequestedPermissions::default(), JoinSet::new());
        let mut world = Self { server, user, faults, requested, seen, controller, stop, tasks: 0 };
        world.request("POST", "/api/v1/namespaces", &json!({"metadata": {"name": "shop"}})).await;
        world.tasks = running_tasks();
        let client = world.controller_client();
        let options = Options { epoch: Some(epoch()), seed: Some(7), ..options };
        world
            .controller
            .spawn(async move { run(client, options, async { drop(stopped.await) }).await });
        world
    }

    /// Returns the error of a controller that cannot start because of these faults.
    pub(crate) async fn failure(faults: Faults) -> String {
        let mut world = Self::around_with(Self::builder().build(), faults, without_period()).await;
        let ended = timeout(Duration::from_secs(300), world.controller.join_next()).await;
        let ended = ended.expect("it ends").expect("a task").expect("no panic");
        ended.expect_err("it fails").to_string()
    }

    /// Returns a client that records its requests, and repeats them as that of the program does.
    fn controller_client(&self) -> Client {
        let inner = self.faults.client(self.server.client_as("controller"));
        let inner = self.requested.client(inner);
        let seen = Arc::clone(&self.seen);
        let service = tower::service_fn(move |request: Request<Body>| {
            let (inner, seen) = (inner.clone(), Arc::clone(&seen));
            async move { seen.pass(inner, request).await }
        });
        let client = homeostat::client::builder().qps(1000.0).burst(1000).service(service);
        client.build()
    }

    /// Waits until the controller has this number of open watches, and no request of it waits for
    /// its answer.
    pub(crate) async fn wait_for_current_caches(&self, watches: usize) {
        let is_waiting = || self.seen.in_flight.load(Ordering::Relaxed) > 0;
        while self.server.watches() != watches || is_waiting() {
            sleep(Duration::from_millis(50)).await;
        }
    }

    /// Shows the custom resource to the controller at `version`; an empty one hides it.
    pub(crate) fn offer(&self, version: &str) {
        version.clone_into(&mut self.seen.offered.lock());
    }

    /// Sets the answers to discoveries.
    pub(crate) fn discovery(&self, answers: Discovery) {
        *self.seen.discovery.lock() = answers;
    }

    /// Replaces a text in each object that the controller reads from now on.
    pub(crate) fn misfit(&self, text: &'static str, by: &'static str) {
        *self.seen.misfit.lock() = Some((text, by));
    }

    /// Returns the requests of the controller since the last call.
    pub(crate) fn requests(&self) -> Vec<String> {
        std::mem::take(&mut *self.seen.lines.lock())
    }

    async fn request(&self, method: &str, path: &str, body: &Value) -> Value {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(
                "content-type",
                match method {
                    "PATCH" => "application/merge-patch+json",
                    _ => "application/json",
                },
            )
            .body(serde_json::to_vec(body).expect("JSON"))
            .expect("a request");
        let answer = self.user.request_text(request).await;
        let answer = answer.unwrap_or_else(|error| panic!("{method} {path}: {error}"));
        serde_json::from_str(&answer).expect("JSON")
    }

    fn path(object: &Value) -> String {
        let version = object["apiVersion"].as_str().expect("a version");
        let kind = object["kind"].as_str().expect("a kind").to_lowercase();
        let root = if version.contains('/') { "apis" } else { "api" };
        format!("/{root}/{version}/namespaces/shop/{kind}s")
    }

    pub(crate) async fn create(&self, object: &Value) {
        self.request("POST", &Self::path(object), object).await;
    }

    /// Creates an object, and returns its uid.
    pub(crate) async fn create_with_uid(&self, object: &Value) -> String {
        let created = self.request("POST", &Self::path(object), object).await;
        created["metadata"]["uid"].as_str().expect("a uid").to_owned()
    }

    /// Creates an object, unless the server refuses it. Returns true if it is created.
    pub(crate) async fn is_created(&self, object: &Value) -> bool {
        let body = serde_json::to_vec(object).expect("JSON");
        let request = Request::post(Self::path(object)).body(body).expect("a request");
        match self.user.request_text(request).await {
            Ok(_) => true,
            Err(homeostat::kube_client::Error::Api(_)) => false,
            Err(error) => panic!("{error}"),
        }
    }

    /// Creates an object that is refused, and returns the message.
    pub(crate) async fn refusal(&self, object: &Value) -> String {
        let body = serde_json::to_vec(object).expect("JSON");
        let request = Request::post(Self::path(object)).body(body).expect("a request");
        match self.user.request_text(request).await {
            Err(homeostat::kube_client::Error::Api(status)) if status.code == 403 => {
                status.message.clone()
            }
            answer => panic!("expected a refusal, got {answer:?}"),
        }
    }

    /// Creates a priority class.
    pub(crate) async fn create_class(&self, name: &str, value: i32) {
        let class = json!({"metadata": {"name": name}, "value": value});
        self.request("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", &class).await;
    }

    /// Creates a device class that provides an extended resource.
    pub(crate) async fn create_device_class(&self, name: &str, resource: &str) {
        let spec = json!({"extendedResourceName": resource});
        let class = json!({"metadata": {"name": name}, "spec": spec});
        self.request("POST", "/apis/resource.k8s.io/v1/deviceclasses", &class).await;
    }

    pub(crate) async fn delete_device_class(&self, name: &str) {
        let path = format!("/apis/resource.k8s.io/v1/deviceclasses/{name}");
        self.request("DELETE", &path, &json!({})).await;
    }

    /// Merges `patch` into an object, or into its status.
    pub(crate) async fn patch(&self, object: &Value, subresource: &str, patch: &Value) {
        let name = object["metadata"]["name"].as_str().expect("a name");
        let target = format!("{}/{name}{subresource}", Self::path(object));
        self.request("PATCH", &target, patch).await;
    }

    pub(crate) async fn delete(&self, object: &Value) {
        let name = object["metadata"]["name"].as_str().expect("a name");
        let path = format!("{}/{name}", Self::path(object));
        self.request("DELETE", &path, &json!({"gracePeriodSeconds": 0})).await;
    }

    /// Deletes with the grace period of the object.
    pub(crate) async fn delete_gracefully(&self, object: &Value) {
        let name = object["metadata"]["name"].as_str().expect("a name");
        self.request("DELETE", &format!("{}/{name}", Self::path(object)), &json!({})).await;
    }

    /// Raises `status.used`, as admission does before an object is stored.
    pub(crate) async fn charge(&self, name: &str, used: &Value) {
        let quota = quota(name, &json!({}));
        self.patch(&quota, "/status", &json!({"status": {"used": used}})).await;
    }

    /// Returns `status.used` of a quota, as `cpu=1,pods=2`; empty if there is none.
    pub(crate) async fn used(&self, name: &str) -> String {
        let path = format!("/api/v1/namespaces/shop/resourcequotas/{name}");
        let quota = self.request("GET", &path, &json!({})).await;
        text(&quota["status"]["used"])
    }

    /// Waits until the status of a quota has these limits.
    pub(crate) async fn wait_for_hard(&self, name: &str, expected: &str) {
        let path = format!("/api/v1/namespaces/shop/resourcequotas/{name}");
        let arrived = async {
            while text(&self.request("GET", &path, &json!({})).await["status"]["hard"]) != expected
            {
                sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(DEADLINE, arrived).await.expect("the limits arrive");
    }

    /// Waits until a quota has this usage. Returns the time that it took.
    pub(crate) async fn wait_for_used(&self, name: &str, expected: &str) -> Duration {
        let began = Instant::now();
        let arrived = async {
            while self.used(name).await != expected {
                sleep(Duration::from_millis(10)).await;
            }
        };
        if timeout(DEADLINE, arrived).await.is_err() {
            let used = self.used(name).await;
            panic!("{name}: expected {expected}, got {used}\n{:#?}", self.requests());
        }
        began.elapsed()
    }

    /// Stops the controller, and checks that it has left nothing behind.
    pub(crate) async fn stop(mut self) {
        drop(self.stop);
        let ended = timeout(Duration::from_secs(20), self.controller.join_next()).await;
        ended.expect("it ends").expect("a task").expect("no panic").expect("it stops in order");
        sleep(Duration::from_secs(1)).await;
        assert_eq!(self.server.watches(), 0, "no watch is left");
        assert_eq!(running_tasks(), self.tasks, "no task is left");
        let negative = std::mem::take(&mut *self.seen.negative.lock());
        assert!(negative.is_empty(), "negative usage: {negative:#?}");
    }
}

/// Returns the number of tasks of the runtime.
fn running_tasks() -> usize {
    tokio::runtime::Handle::current().metrics().num_alive_tasks()
}

// === impl Seen ===

impl Seen {
    async fn pass(
        &self,
        inner: Client,
        mut request: Request<Body>,
    ) -> Result<Response<Answer>, homeostat::kube_client::Error> {
        let (offered, discovery) = (self.offered.lock().clone(), *self.discovery.lock());
        let line = format!("{} {}", request.method(), request.uri());
        let path = request.uri().path().to_owned();
        if discovery == Discovery::Fails && matches!(path.as_str(), "/api" | "/apis") {
            self.lines.lock().push(format!("{line} 500"));
            let answer = Response::builder().status(StatusCode::INTERNAL_SERVER_ERROR);
            return Ok(self.replaced(answer.body(Body::empty()).expect("a response")));
        }
        if let Some(rest) = path.strip_prefix(GROUP) {
            let (version, rest) = rest.split_once('/').unwrap_or((rest, ""));
            if version != offered {
                self.lines.lock().push(format!("{line} 404"));
                let answer = Response::builder().status(StatusCode::NOT_FOUND);
                return Ok(self.replaced(answer.body(Body::empty()).expect("a response")));
            }
            let query = request.uri().query().unwrap_or_default();
            let stored = format!("{GROUP}v1/{rest}?{query}");
            *request.uri_mut() = stored.parse::<Uri>().expect("a path");
        }
        let request = self.checked(request).await?;
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        let response = inner.send(request).await;
        self.in_flight.fetch_sub(1, Ordering::Relaxed);
        let response = response?;
        self.lines.lock().push(format!("{line} {}", response.status().as_u16()));
        if !matches!(path.as_str(), "/api" | "/apis") || !response.status().is_success() {
            return Ok(self.replaced(response));
        }
        let (mut parts, body) = response.into_parts();
        // It is that of the answer before it is altered.
        parts.headers.remove(header::ETAG);
        let body = body.collect().await?.to_bytes();
        let groups = serde_json::from_slice::<Value>(&body);
        // A fault may have cut the answer.
        let Ok(mut groups) = groups else {
            return Ok(self.replaced(Response::from_parts(parts, body.to_vec().into())));
        };
        alter(groups["items"].as_array_mut().expect("aggregated"), &offered, discovery);
        Ok(self.replaced(Response::from_parts(parts, Body::from(groups.to_string().into_bytes()))))
    }

    /// Returns the request, and notes a status update with a negative usage.
    async fn checked(
        &self,
        request: Request<Body>,
    ) -> Result<Request<Body>, homeostat::kube_client::Error> {
        if request.method() != http::Method::PUT {
            return Ok(request);
        }
        let (parts, body) = request.into_parts();
        let body = body.collect().await?.to_bytes();
        let update: Value = serde_json::from_slice(&body).expect("JSON");
        let used = update["status"]["used"].as_object().into_iter().flatten();
        if used.into_iter().any(|(_, value)| value.as_str().is_none_or(|it| it.starts_with('-'))) {
            self.negative.lock().push(update);
        }
        Ok(Request::from_parts(parts, Body::from(body.to_vec())))
    }

    /// Replaces the text of a misfit in an answer.
    fn replaced(&self, answer: Response<Body>) -> Response<Answer> {
        let misfit = *self.misfit.lock();
        let replace = move |data: Bytes| match (misfit, std::str::from_utf8(&data)) {
            (Some((text, by)), Ok(sent)) => sent.replace(text, by).into(),
            _ => data,
        };
        answer.map(|body| {
            let body = body.map_frame(move |frame| frame.map_data(replace));
            body.map_err(Into::into).boxed_unsync()
        })
    }
}

/// Shows the custom resource in the version `offered`, and the group that `discovery` lacks as
/// stale.
fn alter(groups: &mut Vec<Value>, offered: &str, discovery: Discovery) {
    const CUSTOM: &str = "example.com";
    let name = |group: &Value| group["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    groups.retain(|group| !offered.is_empty() || name(group) != CUSTOM);
    let lacking = match discovery {
        Discovery::LacksGroup => Some(CUSTOM),
        Discovery::LacksCore => Some(""),
        Discovery::Works | Discovery::Fails => None,
    };
    for group in groups {
        if name(group) == CUSTOM {
            group["versions"][0]["version"] = json!(offered);
        }
        if lacking == Some(name(group).as_str()) {
            group["versions"][0]["freshness"] = json!("Stale");
            group["versions"][0]["resources"] = json!([]);
        }
    }
}

/// The body of an answer that the record passes on.
type Answer = UnsyncBoxBody<Bytes, Box<dyn std::error::Error + Send + Sync>>;

/// Returns the resources whose watches are among `requests`.
pub(crate) fn watched(requests: &[String]) -> BTreeSet<String> {
    let watches = requests.iter().filter(|line| line.contains("watch=true"));
    let path = |line: &String| {
        let path = line.split(['?', ' ']).nth(1).unwrap_or_default();
        path.rsplit('/').next().unwrap_or_default().to_owned()
    };
    watches.map(path).collect()
}
