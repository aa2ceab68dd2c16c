//! Whatever comes in, an answer goes out: requests that nobody in their right mind sends, against a server with objects of
//! every kind. `HOMEOSTAT_CASES` says how many sequences of them are tried.

#![expect(clippy::unwrap_used, reason = "a test that fails is meant to panic")]
#![expect(clippy::print_stdout, reason = "it says what has been tried")]

mod corpus;
mod odd;
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
use tokio::time::timeout;
use tower::ServiceExt as _;

use crate::corpus::{Exchange, StoredObject};
use crate::request::{Hostile, hostile};
use crate::tally::Tally;

/// A list waits three seconds for a version that is yet to come. Nothing takes longer.
const PATIENCE: Duration = Duration::from_secs(4);

/// What a real server does not expect either, and so does not call the client's fault.
const UNEXPECTED: [&str; 9] = [
    "Timeout: Too large resource version: ",
    "strconv.ParseUint: parsing ",
    "resourceVersion should not be set on objects to be created",
    "unknown patch type: ",
    "merging lists cannot yet be specified in the patch",
    "does not contain declared merge key: ",
    "The order in patch list:",
    "list element types are not identical: ",
    "target.name: Required value",
];

/// What all cases start from.
struct Stage {
    corpus: Vec<Exchange>,
    objects: Vec<StoredObject>,
    backup: Backup,
}

/// What came back.
struct Answer {
    code: u16,
    media_type: String,
    body: Bytes,
    is_watch: bool,
}

fn server() -> ApiServer {
    let kind = Kind::custom("samplecontroller.k8s.io", "v1alpha1", "Foo", "foos");
    let kind = kind.with_scale("spec.replicas", "status.availableReplicas", "");
    let epoch = "2026-01-01T00:00:00Z".parse().unwrap();
    ApiServer::builder().seed(5).epoch(epoch).kind(kind).build()
}

/// Sends a request, and reads what is answered; of a watch, what comes at once.
async fn send(server: &ApiServer, request: Request<Full<Bytes>>) -> Result<Answer, TestCaseError> {
    let answered = timeout(PATIENCE, server.service().oneshot(request)).await;
    let answered = answered.map_err(|_| TestCaseError::fail("no answer in time"))?;
    let (parts, body) =
        answered.map_err(|error| TestCaseError::fail(format!("no answer: {error}")))?.into_parts();
    let media_type = parts.headers.get("content-type").map(|value| value.to_str().unwrap());
    let (code, is_watch) = (parts.status.as_u16(), body.size_hint().exact().is_none());
    let body = if is_watch { events(body).await } else { body.collect().await.unwrap().to_bytes() };
    Ok(Answer { code, media_type: media_type.unwrap_or_default().to_owned(), body, is_watch })
}

async fn events(mut body: Body) -> Bytes {
    let mut read = Vec::new();
    while let Ok(Some(frame)) = timeout(Duration::from_secs(1), body.frame()).await {
        read.extend(frame.unwrap().into_data().unwrap());
        if read.len() > 1 << 20 {
            break;
        }
    }
    let whole = read.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    read.truncate(whole);
    read.into()
}

async fn get(server: &ApiServer, path: &str) -> Result<Answer, TestCaseError> {
    send(server, Request::get(path).body(Full::default()).unwrap()).await
}

// === impl Stage ===

impl Stage {
    /// Has every object created that a recorded create made.
    async fn new() -> Self {
        let (corpus, server) = (corpus::read(), server());
        let mut objects = Vec::new();
        for create in corpus.iter().filter(|exchange| exchange.creates) {
            let answer = send(&server, create.request()).await.unwrap();
            if answer.code == 201 && !create.path.contains('?') {
                objects.extend(StoredObject::at(&create.path, &answer.body));
            }
        }
        Self { corpus, objects, backup: server.backup() }
    }

    async fn play(&self, case: &[Hostile], tally: &RefCell<Tally>) -> TestCaseResult {
        let server = server();
        server.restore(&self.backup);
        for hostile in case {
            let Some((request, asked)) = hostile.request(&self.corpus, &self.objects) else {
                continue;
            };
            let collection = asked.collection();
            let before = (server.backup().revision(), get(&server, &collection).await?.body);
            let answer = send(&server, request).await;
            let answer = answer.map_err(|why| TestCaseError::fail(format!("{asked:?}\n{why}")))?;
            tally.borrow_mut().count(&asked, answer.code);
            check_form(&asked.method, &asked.path, &answer)
                .map_err(|why| TestCaseError::fail(format!("{asked:?}\n{}: {why}", answer.code)))?;
            if asked.changes_nothing(answer.code) {
                let after = (server.backup().revision(), get(&server, &collection).await?.body);
                prop_assert!(before == after, "{:?}\n{}: changed", asked, answer.code);
            }
            let alive = get(&server, "/api/v1/namespaces/default").await?;
            prop_assert_eq!(alive.code, 200);
        }
        Ok(())
    }
}

/// A refusal says in its body what it is; a watch is lines of JSON; everything else under these paths is JSON.
fn check_form(method: &str, path: &str, answer: &Answer) -> TestCaseResult {
    let shown = String::from_utf8_lossy(&answer.body[..answer.body.len().min(2000)]).into_owned();
    if !["/api", "/apis"].iter().any(|start| path.starts_with(start)) || method == "HEAD" {
        prop_assert!(method != "HEAD" || answer.body.is_empty(), "{}", shown);
        return Ok(());
    }
    if answer.media_type.starts_with("text/plain") {
        let known = [(404, "404 page not found\n"), (400, "400 Bad Request")];
        prop_assert!(known.contains(&(answer.code, &*shown)), "{} {}", answer.code, shown);
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
        // A watch of lists ends before its first event, which is none.
        prop_assert!(path.contains("watch="), "an empty answer");
        return Ok(());
    }
    let body: Result<Value, _> = serde_json::from_slice(&answer.body);
    let body = match body {
        Ok(body) => body,
        // What nests as deep as can be stored nests deeper in a list.
        Err(error) if answer.code == 200 && error.to_string().contains("recursion") => {
            return Ok(());
        }
        Err(error) => return Err(TestCaseError::fail(format!("{error}: {shown}"))),
    };
    if answer.code >= 400 {
        let said = (body["kind"].as_str(), body["status"].as_str(), body["code"].as_u64());
        let expected = (Some("Status"), Some("Failure"), Some(u64::from(answer.code)));
        prop_assert_eq!(said, expected, "{}", shown);
        let message = body["message"].as_str().unwrap_or_default();
        let expected = answer.code < 500 || UNEXPECTED.iter().any(|text| message.contains(text));
        prop_assert!(body["message"].is_string() && expected, "{}", shown);
    }
    Ok(())
}

#[test]
fn whatever_comes_in_an_answer_goes_out() {
    let cases = std::env::var("HOMEOSTAT_CASES").ok().and_then(|cases| cases.parse().ok());
    let cases = cases.unwrap_or(1024);
    let config = ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let runtime = runtime.unwrap();
    let stage = runtime.block_on(Stage::new());
    let tally = RefCell::new(Tally::default());
    let outcome = TestRunner::new(config).run(&prop::collection::vec(hostile(), 1..8), |case| {
        runtime.block_on(stage.play(&case, &tally))
    });
    outcome.unwrap_or_else(|failure| panic!("{failure}"));
    let tally = tally.into_inner();
    println!("{} recorded requests, {} objects\n{tally}", stage.corpus.len(), stage.objects.len());
    tally.check(cases as usize);
}
