//! Hostile requests: every request gets a well-formed response. The server has objects of every
//! kind.
//!
//! `HOMEOSTAT_CASES` sets the number of request sequences; the default is 1024.

#![expect(clippy::unwrap_used, reason = "a test that fails is meant to panic")]
#![expect(clippy::print_stdout, reason = "the test prints its statistics")]

mod corpus;
mod odd;
mod protobuf;
mod request;
mod tally;

use std::cell::RefCell;
use std::time::Duration;

use bytes::Bytes;
use homeostat_apiserver::{ApiServer, Backup, Body, Kind};
use http::Request;
use http_body::Body as _;
use http_body_util::{BodyExt as _, Full};
use proptest::prelude::*;
use proptest::test_runner::{TestCaseResult, TestRunner};
use serde_json::Value;
use tokio::runtime::Runtime;
use tokio::time::timeout;
use tower::ServiceExt as _;

use crate::corpus::{Exchange, StoredObject};
use crate::protobuf::PROTOBUF;
use crate::request::{Hostile, hostile};
use crate::tally::Tally;

/// Timeout of a response: a list waits 3 s for a future version, and nothing takes longer.
const TIMEOUT: Duration = Duration::from_secs(4);

/// Messages that the real server sends with a 5xx code, too.
const SERVER_ERRORS: [&str; 31] = [
    "content is not a list",
    "no unsafe deleter provided, can not honor ",
    "no endpoints available for service ",
    "no service port ",
    "no preferred addresses found; known addresses: ",
    "Timeout: Too large resource version: ",
    "strconv.ParseUint: parsing ",
    "resourceVersion should not be set on objects to be created",
    "unknown patch type: ",
    "merging lists cannot yet be specified in the patch",
    "does not contain declared merge key: ",
    "The order in patch list:",
    "list element types are not identical: ",
    "target.name: Required value",
    "failed to create typed patch object ",
    "failed to create typed live object ",
    "the spec replicas field \".spec.replicas\" does not exist",
    "request to convert CR to an invalid group/version: autoscaling/v1",
    "is not implemented: the embedded API server runs no containers",
    "duplicate nodePort: ",
    "failed to allocate requested HealthCheck NodePort ",
    "This pod has more than one PodDisruptionBudget",
    "Non-matching dry-run options in request and content: ",
    "target.kind: Unsupported value: ",
    " accessor error: ",
    "Object 'apiVersion' is missing in ",
    "failed to convert new object ",
    "etcdserver: request is too large",
    "trying to send message larger than max ",
    "strict decoding error: ",
    "json: cannot unmarshal ",
];

/// The state from which every case starts.
struct Fixture {
    corpus: Vec<Exchange>,
    objects: Vec<StoredObject>,
    backup: Backup,
}

/// A response.
struct Answer {
    code: u16,
    media_type: String,
    body: Bytes,
    is_watch: bool,
}

/// Longer than the server needs to carry out the effects of a definition.
const SETTLED: Duration = Duration::from_secs(1);

fn server() -> ApiServer {
    let kind = Kind::custom("samplecontroller.k8s.io", "v1alpha1", "Foo", "foos");
    let kind = kind.with_scale("spec.replicas", "status.availableReplicas", "");
    let epoch = "2026-01-01T00:00:00Z".parse().unwrap();
    ApiServer::builder().seed(5).epoch(epoch).kind(kind).build()
}

/// Sends a request and reads the response; of a watch, the events of the first second.
async fn send(server: &ApiServer, request: Request<Full<Bytes>>) -> Result<Answer, TestCaseError> {
    let answered = timeout(TIMEOUT, server.service().oneshot(request)).await;
    let answered = answered.map_err(|_| TestCaseError::fail("no response in time"))?;
    let (parts, body) = answered
        .map_err(|error| TestCaseError::fail(format!("no response: {error}")))?
        .into_parts();
    let media_type = parts.headers.get("content-type").map(|value| value.to_str().unwrap());
    let is_protobuf = media_type.is_some_and(|media_type| media_type.starts_with(PROTOBUF));
    // The size of a watch that consists of one error is known.
    let is_watch = body.size_hint().exact().is_none()
        || media_type.is_some_and(|media_type| media_type.ends_with("stream=watch"));
    let code = parts.status.as_u16();
    let body = if is_watch {
        events(body, is_protobuf).await
    } else {
        body.collect().await.unwrap().to_bytes()
    };
    Ok(Answer { code, media_type: media_type.unwrap_or_default().to_owned(), body, is_watch })
}

async fn events(mut body: Body, is_protobuf: bool) -> Bytes {
    let mut read = Vec::new();
    while let Ok(Some(frame)) = timeout(Duration::from_secs(1), body.frame()).await {
        read.extend(frame.unwrap().into_data().unwrap());
        if read.len() > 1 << 20 {
            break;
        }
    }
    if is_protobuf {
        return read.into();
    }
    let complete = read.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    read.truncate(complete);
    read.into()
}

async fn get(server: &ApiServer, path: &str) -> Result<Answer, TestCaseError> {
    send(server, Request::get(path).body(Full::default()).unwrap()).await
}

// === impl Fixture ===

impl Fixture {
    /// Creates every object that a recorded exchange creates.
    async fn new() -> Self {
        let (corpus, server) = (corpus::read(), server());
        let mut objects = Vec::new();
        for create in corpus.iter().filter(|exchange| exchange.creates) {
            let answer = send(&server, create.request()).await.unwrap();
            if answer.code == 201 && !create.path.contains('?') {
                objects.extend(StoredObject::at(&create.path, &answer.body));
            }
        }
        tokio::time::sleep(SETTLED).await;
        Self { corpus, objects, backup: server.backup() }
    }

    async fn play(&self, case: &[Hostile], tally: &RefCell<Tally>) -> TestCaseResult {
        let server = server();
        server.restore(&self.backup);
        for hostile in case {
            if let Some(made) = hostile.request(&self.corpus, &self.objects) {
                check_exchange(&server, made, tally).await?;
            }
        }
        Ok(())
    }

    /// Sends every recorded request as it is, each to a server in the same state. Returns what is
    /// wrong with the responses.
    async fn replay(&self, tally: &RefCell<Tally>) -> Vec<TestCaseError> {
        let (server, mut failures) = (server(), Vec::new());
        for recorded in &self.corpus {
            if server.backup().revision() != self.backup.revision() {
                server.restore(&self.backup);
            }
            if let Some(request) = recorded.try_request() {
                let checked = check_exchange(&server, (request, recorded.clone()), tally).await;
                failures.extend(checked.err());
            }
        }
        failures
    }
}

/// Sends a request and checks its response, and that a refused request has changed nothing.
async fn check_exchange(
    server: &ApiServer,
    (request, asked): (Request<Full<Bytes>>, Exchange),
    tally: &RefCell<Tally>,
) -> TestCaseResult {
    let collection = asked.collection();
    let before = (server.backup().revision(), get(server, &collection).await?.body);
    let answer = send(server, request).await;
    let answer = answer.map_err(|why| TestCaseError::fail(format!("{asked:?}\n{why}")))?;
    // A definition has effects of its own a moment later.
    let may_have_changed = !asked.changes_nothing(answer.code, &answer.body);
    if asked.path.contains("customresourcedefinitions") && may_have_changed {
        tokio::time::sleep(SETTLED).await;
    }
    tally.borrow_mut().count(&asked, answer.code);
    check_form(&asked.method, &asked.path, &answer)
        .map_err(|why| TestCaseError::fail(format!("{asked:?}\n{}: {why}", answer.code)))?;
    if !may_have_changed {
        let after = (server.backup().revision(), get(server, &collection).await?.body);
        prop_assert!(before == after, "{:?}\n{}: changed", asked, answer.code);
    }
    let alive = get(server, "/api/v1/namespaces/default").await?;
    prop_assert_eq!(alive.code, 200);
    Ok(())
}

/// Checks the form of a response: an error is a `Status`, a watch consists of lines of JSON or of
/// events in protobuf, and every other response under the API paths is JSON or protobuf.
fn check_form(method: &str, path: &str, answer: &Answer) -> TestCaseResult {
    let shown = String::from_utf8_lossy(&answer.body[..answer.body.len().min(2000)]).into_owned();
    if !["/api", "/apis"].iter().any(|start| path.starts_with(start)) || method == "HEAD" {
        prop_assert!(method != "HEAD" || answer.body.is_empty(), "{}", shown);
        return Ok(());
    }
    if answer.media_type.starts_with("text/plain") {
        let known = [(404, "404 page not found\n"), (400, "400 Bad Request")];
        // The status of a request whose time is over has no kind.
        let is_late = answer.code == 504 && shown.contains("\"reason\":\"Timeout\"");
        let is_known = known.contains(&(answer.code, &*shown)) || is_late;
        prop_assert!(is_known, "{} {}", answer.code, shown);
        return Ok(());
    }
    if answer.is_watch && answer.media_type.starts_with(PROTOBUF) {
        prop_assert!(protobuf::are_events(&answer.body), "{}", shown);
        return Ok(());
    }
    if answer.is_watch {
        for line in answer.body.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let is_event = line.starts_with(b"{\"type\":\"") && line.ends_with(b"}");
            prop_assert!(is_event, "{}", String::from_utf8_lossy(line));
        }
        return Ok(());
    }
    if answer.code == 200 && answer.body.is_empty() {
        // A watch with the list representation ends before its first event.
        let is_watch = path.contains("watch=") || path.contains("/watch/");
        prop_assert!(is_watch, "empty response");
        return Ok(());
    }
    if answer.code == 204 {
        // The log of a pod that was never on a node.
        prop_assert!(path.contains("/log") && answer.body.is_empty(), "{}", shown);
        return Ok(());
    }
    let body = match decoded(answer) {
        Ok(body) => {
            prop_assert!(body.is_object(), "{}", shown);
            body
        }
        // An object with the maximum nesting exceeds it in a list.
        Err(error) if answer.code == 200 && error.contains("recursion") => {
            return Ok(());
        }
        Err(error) => return Err(TestCaseError::fail(format!("{error}: {shown}"))),
    };
    if answer.code >= 400 {
        let found = (body["kind"].as_str(), body["status"].as_str(), body["code"].as_u64());
        let expected = (Some("Status"), Some("Failure"), Some(u64::from(answer.code)));
        prop_assert_eq!(found, expected, "{}", shown);
        let message = body["message"].as_str().unwrap_or_default();
        let expected = answer.code < 500 || SERVER_ERRORS.iter().any(|text| message.contains(text));
        prop_assert!(body["message"].is_string() && expected, "{}", shown);
    }
    Ok(())
}

/// Decodes a body that is one object, in the format that the answer names.
fn decoded(answer: &Answer) -> Result<Value, String> {
    if answer.media_type.starts_with(PROTOBUF) {
        return Ok(protobuf::decode(&answer.body));
    }
    if answer.media_type.starts_with("application/yaml") {
        let text = String::from_utf8_lossy(&answer.body);
        return serde_saphyr::from_str(&text).map_err(|error| error.to_string());
    }
    serde_json::from_slice(&answer.body).map_err(|error| error.to_string())
}

fn paused() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap()
}

#[test]
fn recorded_request_gets_a_well_formed_response() {
    let (runtime, tally) = (paused(), RefCell::default());
    let fixture = runtime.block_on(Fixture::new());
    let failures = runtime.block_on(fixture.replay(&tally));
    assert!(failures.is_empty(), "{failures:#?}");
    println!("{}", tally.into_inner());
    assert!(fixture.corpus.len() > 5000, "{} recorded requests", fixture.corpus.len());
}

#[test]
fn hostile_request_gets_a_well_formed_response() {
    let cases = std::env::var("HOMEOSTAT_CASES").ok().and_then(|cases| cases.parse().ok());
    let cases = cases.unwrap_or(1024);
    let config = ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
    let runtime = paused();
    let fixture = runtime.block_on(Fixture::new());
    let tally = RefCell::new(Tally::default());
    let outcome = TestRunner::new(config).run(&prop::collection::vec(hostile(), 1..8), |case| {
        runtime.block_on(fixture.play(&case, &tally))
    });
    outcome.unwrap_or_else(|failure| panic!("{failure}"));
    let tally = tally.into_inner();
    println!(
        "{} recorded requests, {} objects\n{tally}",
        fixture.corpus.len(),
        fixture.objects.len()
    );
    tally.check(cases as usize);
}
