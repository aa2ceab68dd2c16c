//! One pass, with caches that the test fills and a server that a script answers.

use std::sync::Arc;

use bytes::Bytes;
use homeostat::informer::testing::Store;
use homeostat::kube_client::Client;
use homeostat::kube_client::client::Body;
use homeostat::{Object as _, ObjectMeta};
use http_body_util::{BodyExt as _, Full};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::*;
use crate::foo::FooStatus;
use crate::plan::tests::{foo, stored_deployment_of};

/// The reply to a request: a status code and a body, or a broken connection.
type Reply = Option<(u16, Value)>;

/// A reconciler, its caches, and the requests that it has sent.
struct Pass {
    foos: Store<Foo>,
    deployments: Store<Deployment>,
    reconciler: FooReconciler,
    sent: Arc<Mutex<Vec<(String, Value)>>>,
}

// === impl Pass ===

impl Pass {
    /// Returns a reconciler with empty caches, whose server is `answer`.
    fn new(answer: impl Fn(&str, &Value) -> Reply + Send + Sync + 'static) -> Self {
        let (sent, answer) = (Arc::<Mutex<Vec<_>>>::default(), Arc::new(answer));
        let log = Arc::clone(&sent);
        let service = tower::service_fn(move |request: http::Request<Body>| {
            let (log, answer) = (Arc::clone(&log), Arc::clone(&answer));
            async move {
                let (parts, body) = request.into_parts();
                let body = body.collect().await?.to_bytes();
                let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
                let line = format!("{} {}", parts.method, parts.uri.path());
                let reply = answer(&line, &body);
                log.lock().push((line, body));
                let (code, body) = reply.ok_or("the connection is reset")?;
                let body = Full::new(Bytes::from(body.to_string()));
                Ok::<_, BoxError>(http::Response::builder().status(code).body(body)?)
            }
        });
        let client = Client::new(service, "default");
        let (foos, deployments) = (Store::<Foo>::new(), Store::<Deployment>::new());
        let reconciler = FooReconciler {
            foos: foos.lister(),
            deployments: deployments.lister(),
            requests: Requests::new(client.clone()),
            events: EventRecorder::new(client, "sample-controller"),
            reported: Reported::default(),
        };
        Self { foos, deployments, reconciler, sent }
    }

    /// Runs one pass, which may fail. A pass that succeeds waits for the next change.
    async fn reconcile(&self, foo: &Foo) -> Result<(), BoxError> {
        let action = self.reconciler.reconcile(&Request::new(foo.key())).await?;
        assert_eq!(action, Action::AwaitChange);
        Ok(())
    }

    /// Returns the requests without those of events.
    fn lines(&self) -> Vec<String> {
        let sent = self.sent.lock();
        let lines = sent.iter().map(|(line, _)| line.clone());
        lines.filter(|line| !line.contains("/events")).collect()
    }

    /// Returns the number of events that were recorded, after they have been sent.
    async fn events(&self) -> u64 {
        self.reconciler.events.shut_down().await;
        self.reconciler.events.counts().recorded
    }
}

/// Echoes a create as the server stores it, and answers patches with the patched object.
fn echo(line: &str, body: &Value) -> (u16, Value) {
    let mut stored = body.clone();
    if line.starts_with("POST") {
        stored["metadata"]["uid"] = json!("uid-of-deployment");
        stored["metadata"]["resourceVersion"] = json!("10");
        return (201, stored);
    }
    if line.ends_with("/status") {
        return (200, serde_json::to_value(foo(Some(2))).unwrap());
    }
    let mut patched = serde_json::to_value(stored_deployment_of(&foo(Some(2)))).unwrap();
    patched["spec"]["replicas"] = body["spec"]["replicas"].clone();
    (200, patched)
}

fn refusal(code: u16, reason: &str) -> (u16, Value) {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code,
        "reason": reason, "message": format!("refused as {reason}"),
    });
    (code, status)
}

const CREATE: &str = "POST /apis/apps/v1/namespaces/shop/deployments";
const GET: &str = "GET /apis/apps/v1/namespaces/shop/deployments/nginx";
const SCALE: &str = "PATCH /apis/apps/v1/namespaces/shop/deployments/nginx";
const STATUS: &str = "PATCH /apis/samplecontroller.k8s.io/v1alpha1/namespaces/shop/foos/web/status";

#[tokio::test]
async fn new_foo_gets_a_deployment_a_status_and_an_event() {
    let pass = Pass::new(|line, body| Some(echo(line, body)));
    let web = foo(Some(2));
    pass.foos.apply(web.clone());
    pass.reconcile(&web).await.unwrap();
    assert_eq!(pass.lines(), [CREATE, STATUS]);
    let sent = pass.sent.lock().clone();
    assert_eq!(sent[0].1["metadata"]["ownerReferences"][0]["uid"], "uid-of-foo");
    let status = json!({"metadata": {"uid": "uid-of-foo"}, "status": {"availableReplicas": 0}});
    assert_eq!(sent[1].1, status);
    assert_eq!(pass.events().await, 1);
}

#[tokio::test]
async fn settled_foo_causes_no_request_and_no_event() {
    let pass = Pass::new(|line, _| panic!("{line}"));
    let mut web = foo(Some(2));
    web.status = Some(FooStatus::default());
    pass.foos.apply(web.clone());
    pass.deployments.apply(stored_deployment_of(&web));
    pass.reconcile(&web).await.unwrap();
    assert_eq!(pass.events().await, 0);
}

#[tokio::test]
async fn other_number_of_replicas_is_patched_alone() {
    let pass = Pass::new(|line, body| Some(echo(line, body)));
    let web = foo(Some(5));
    pass.foos.apply(web.clone());
    pass.deployments.apply(stored_deployment_of(&foo(Some(2))));
    pass.reconcile(&web).await.unwrap();
    assert_eq!(pass.lines(), [SCALE, STATUS]);
    let patch = json!({
        "metadata": { "uid": "uid-of-deployment", "resourceVersion": "9" },
        "spec": { "replicas": 5 },
    });
    assert_eq!(pass.sent.lock()[0].1, patch);
}

#[tokio::test]
async fn taken_name_is_reported_once_and_never_written() {
    let pass = Pass::new(|line, body| {
        assert!(line.contains("/events"), "{line}");
        assert_eq!(body["reason"], "ErrResourceExists");
        let text = "Resource \"nginx\" already exists and is not managed by Foo";
        assert_eq!(body["message"], text);
        Some((201, body.clone()))
    });
    let web = foo(Some(5));
    pass.foos.apply(web.clone());
    let mut taken = stored_deployment_of(&web);
    taken.metadata.owner_references = None;
    pass.deployments.apply(taken);
    let error = pass.reconcile(&web).await.unwrap_err();
    assert!(TerminalError::is_cause_of(&*error), "{error}");
    for _ in 0..3 {
        pass.reconcile(&web).await.unwrap();
    }
    assert_eq!(pass.events().await, 1);
}

#[tokio::test]
async fn foo_whose_taken_name_is_released_gets_its_deployment() {
    let pass = Pass::new(|line, body| Some(echo(line, body)));
    let web = foo(Some(2));
    pass.foos.apply(web.clone());
    let mut taken = stored_deployment_of(&web);
    taken.metadata.owner_references = None;
    pass.deployments.apply(taken.clone());
    pass.reconcile(&web).await.unwrap_err();
    pass.deployments.delete(taken);
    pass.reconcile(&web).await.unwrap();
    assert_eq!(pass.lines(), [CREATE, STATUS]);
}

#[tokio::test]
async fn create_that_meets_an_own_deployment_uses_it() {
    let pass = Pass::new(|line, body| match line {
        CREATE => Some(refusal(409, "AlreadyExists")),
        GET => Some((200, serde_json::to_value(stored_deployment_of(&foo(Some(2)))).unwrap())),
        _ => Some(echo(line, body)),
    });
    let web = foo(Some(5));
    pass.foos.apply(web.clone());
    pass.reconcile(&web).await.unwrap();
    assert_eq!(pass.lines(), [CREATE, GET, SCALE, STATUS]);
}

#[tokio::test]
async fn create_that_meets_a_foreign_deployment_reports_it() {
    let pass = Pass::new(|line, body| match line {
        CREATE => Some(refusal(409, "AlreadyExists")),
        GET => {
            let mut foreign = stored_deployment_of(&foo(Some(2)));
            foreign.metadata.owner_references = None;
            Some((200, serde_json::to_value(foreign).unwrap()))
        }
        _ => Some((201, body.clone())),
    });
    let web = foo(Some(5));
    pass.foos.apply(web.clone());
    let error = pass.reconcile(&web).await.unwrap_err();
    assert!(TerminalError::is_cause_of(&*error), "{error}");
    assert_eq!(pass.lines(), [CREATE, GET]);
    assert_eq!(pass.events().await, 1);
}

#[tokio::test]
async fn create_with_a_lost_reply_looks_before_it_fails() {
    let pass = Pass::new(|line, body| match line {
        CREATE => None,
        GET => Some((200, serde_json::to_value(stored_deployment_of(&foo(Some(2)))).unwrap())),
        _ => Some(echo(line, body)),
    });
    let web = foo(Some(2));
    pass.foos.apply(web.clone());
    pass.reconcile(&web).await.unwrap();
    assert_eq!(pass.lines(), [CREATE, GET, STATUS]);

    let lost = Pass::new(|line, _| (line == GET).then(|| refusal(404, "NotFound")));
    lost.foos.apply(web.clone());
    let error = lost.reconcile(&web).await.unwrap_err();
    assert!(!TerminalError::is_cause_of(&*error), "it is retried: {error}");
    assert_eq!(lost.lines(), [CREATE, GET]);
}

#[tokio::test]
async fn refusal_of_the_content_is_not_repeated_until_the_foo_changes() {
    let pass = Pass::new(|_, _| Some(refusal(422, "Invalid")));
    let mut web = foo(Some(2));
    pass.foos.apply(web.clone());
    let error = pass.reconcile(&web).await.unwrap_err();
    assert!(TerminalError::is_cause_of(&*error), "{error}");
    pass.reconcile(&web).await.unwrap();
    pass.reconcile(&web).await.unwrap();
    assert_eq!(pass.lines(), [CREATE]);
    web.metadata.resource_version = Some("8".to_owned());
    pass.foos.apply(web.clone());
    pass.reconcile(&web).await.unwrap_err();
    assert_eq!(pass.lines(), [CREATE, CREATE]);
}

#[tokio::test]
async fn other_refusals_are_retried() {
    for (code, reason) in [(403, "Forbidden"), (404, "NotFound"), (429, "TooManyRequests")] {
        let pass = Pass::new(move |_, _| Some(refusal(code, reason)));
        let web = foo(Some(2));
        pass.foos.apply(web.clone());
        let error = pass.reconcile(&web).await.unwrap_err();
        assert!(!TerminalError::is_cause_of(&*error), "{error}");
        assert!(error.to_string().contains(&format!("refused as {reason}")), "{error}");
        pass.reconcile(&web).await.unwrap_err();
        assert_eq!(pass.lines(), [CREATE, CREATE]);
    }
}

#[tokio::test]
async fn conflict_of_a_scale_is_retried() {
    let pass = Pass::new(|_, _| Some(refusal(409, "Conflict")));
    let web = foo(Some(5));
    pass.foos.apply(web.clone());
    pass.deployments.apply(stored_deployment_of(&foo(Some(2))));
    let error = pass.reconcile(&web).await.unwrap_err();
    assert!(!TerminalError::is_cause_of(&*error), "{error}");
    assert_eq!(pass.lines(), [SCALE]);
}

#[tokio::test]
async fn missing_status_subresource_is_named_and_retried() {
    let pass = Pass::new(|line, body| match line {
        STATUS => Some(refusal(404, "NotFound")),
        _ => Some(echo(line, body)),
    });
    let web = foo(Some(2));
    pass.foos.apply(web.clone());
    let error = pass.reconcile(&web).await.unwrap_err();
    assert!(error.to_string().contains("does its definition have /status"), "{error}");
    assert!(!TerminalError::is_cause_of(&*error), "{error}");
}

#[tokio::test]
async fn replicas_that_a_webhook_resets_cause_no_loop() {
    let pass = Pass::new(|line, _| match line {
        SCALE => Some((200, serde_json::to_value(stored_deployment_of(&foo(Some(2)))).unwrap())),
        _ => panic!("{line}"),
    });
    let web = foo(Some(5));
    pass.foos.apply(web.clone());
    pass.deployments.apply(stored_deployment_of(&foo(Some(2))));
    pass.reconcile(&web).await.unwrap();
    assert_eq!(pass.lines(), [SCALE, SCALE, SCALE]);
}

#[tokio::test]
async fn deployment_that_does_not_decode_is_left_alone_and_reported_once() {
    let pass = Pass::new(|line, _| panic!("{line}"));
    let web = foo(Some(2));
    pass.foos.apply(web.clone());
    let metadata: ObjectMeta = stored_deployment_of(&web).metadata;
    pass.deployments.apply_opaque(metadata);
    let error = pass.reconcile(&web).await.unwrap_err();
    assert!(error.to_string().contains("\"nginx\" does not decode"), "{error}");
    assert!(TerminalError::is_cause_of(&*error), "{error}");
    pass.reconcile(&web).await.unwrap();
}

#[tokio::test]
async fn foo_without_a_name_is_reported_once() {
    let pass = Pass::new(|line, _| panic!("{line}"));
    let mut web = foo(Some(2));
    web.spec.deployment_name.clear();
    pass.foos.apply(web.clone());
    let error = pass.reconcile(&web).await.unwrap_err();
    assert_eq!(error.to_string(), "Deployment name missing from object reference");
    pass.reconcile(&web).await.unwrap();
    web.metadata.resource_version = Some("8".to_owned());
    pass.foos.apply(web.clone());
    pass.reconcile(&web).await.unwrap_err();
}

#[tokio::test]
async fn foo_that_is_gone_is_forgotten() {
    let pass = Pass::new(|_, _| Some(refusal(422, "Invalid")));
    let web = foo(Some(2));
    pass.foos.apply(web.clone());
    pass.reconcile(&web).await.unwrap_err();
    pass.foos.delete(web.clone());
    pass.reconcile(&web).await.unwrap();
    pass.foos.apply(web.clone());
    pass.reconcile(&web).await.unwrap_err();
}
