//! Exchanges recorded from a real API server, put to this one.
//!
//! Masked are: uids, times, resourceVersions, generated names and the folder of a storage key. Of `message`, `reason` and
//! `causes` every letter must be the same.

#![expect(clippy::unwrap_used, reason = "a test that fails is meant to panic")]

use std::collections::BTreeMap;

use bytes::Bytes;
use homeostat_apiserver::{ApiServer, Kind};
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use serde_json::Value;
use tower::ServiceExt;

/// One request, and what the real server answered. Without an answer it only sets the stage.
struct Exchange<'a> {
    title: &'a str,
    method: &'a str,
    path: &'a str,
    headers: Vec<(&'a str, &'a str)>,
    body: Option<&'a str>,
    answer: Option<Answer<'a>>,
}

struct Answer<'a> {
    code: u16,
    retry_after: Option<&'a str>,
    body: &'a str,
}

/// What the recorded values are called here.
#[derive(Default)]
struct Names(BTreeMap<String, String>);

fn parse(text: &str) -> Vec<Exchange<'_>> {
    text.split("### ").skip(1).map(parse_one).collect()
}

fn parse_one(text: &str) -> Exchange<'_> {
    let mut lines = text.lines();
    let title = lines.next().unwrap();
    let (method, path) = lines.next().unwrap().split_once(' ').unwrap();
    let (mut headers, mut body, mut answers) = (Vec::new(), None, Vec::new());
    for line in lines.filter(|line| !line.is_empty()) {
        if let Some(sent) = line.strip_prefix("> ") {
            body = Some(sent);
        } else if let Some(answered) = line.strip_prefix("< ") {
            answers.push(answered);
        } else {
            headers.push(line.split_once(": ").unwrap());
        }
    }
    let answer = (!answers.is_empty()).then(|| {
        let (code, retry_after) = match answers[0].split_once(" Retry-After: ") {
            Some((code, seconds)) => (code, Some(seconds)),
            None => (answers[0], None),
        };
        Answer {
            code: code.parse().unwrap(),
            retry_after,
            body: answers.get(1).copied().unwrap_or(""),
        }
    });
    Exchange { title, method, path, headers, body, answer }
}

// === impl Names ===

impl Names {
    /// Says in our words what was recorded.
    fn translate(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (theirs, ours) in &self.0 {
            text = text.replace(theirs, ours);
        }
        text.replace("/registry/apiextensions.kubernetes.io/", "/registry/")
    }

    /// Learns from an answer what the values that the server chose are called here.
    fn learn(&mut self, theirs: &Value, ours: &Value) {
        for path in ["/metadata/uid", "/metadata/resourceVersion", "/details/uid"] {
            let text =
                |value: &Value| value.pointer(path).and_then(Value::as_str).map(ToOwned::to_owned);
            let (Some(theirs), Some(ours)) = (text(theirs), text(ours)) else { continue };
            let named = |value| named(path, value);
            self.0.insert(named(theirs), named(ours));
        }
    }
}

/// A version is a short number: only the whole member is safe to replace.
fn named(path: &str, value: String) -> String {
    if path.ends_with("Version") { format!("\"resourceVersion\":\"{value}\"") } else { value }
}

/// Takes out what differs from run to run.
fn mask(value: &mut Value) {
    match value {
        Value::Object(members) => {
            for (key, member) in members.iter_mut() {
                let masked = ["uid", "resourceVersion", "creationTimestamp", "deletionTimestamp"];
                if masked.contains(&key.as_str()) && member.is_string() {
                    *member = "…".into();
                } else {
                    mask(member);
                }
            }
            if members.get("generateName").is_some() {
                members.insert("name".to_owned(), "…".into());
            }
        }
        Value::Array(items) => items.iter_mut().for_each(mask),
        _ => {}
    }
}

/// Members in the order of their names, also inside a message that shows an object.
fn sorted_in_messages(text: &str) -> String {
    let theirs = "{\\\"apiVersion\\\":\\\"v1\\\",\\\"kind\\\":\\\"X\\\",\\\"name\\\":\\\"x\\\",\\\"uid\\\":\\\"u\\\",\
                  \\\"controller\\\":true}";
    let ours = "{\\\"apiVersion\\\":\\\"v1\\\",\\\"controller\\\":true,\\\"kind\\\":\\\"X\\\",\\\"name\\\":\\\"x\\\",\
                \\\"uid\\\":\\\"u\\\"}";
    let other = |text: &str| {
        text.replace('X', "Y").replace("\\\"x\\\"", "\\\"y\\\"").replace("\\\"u\\\"", "\\\"u2\\\"")
    };
    // serde_json sorts members, Go prints them as the struct has them: the one difference on purpose.
    text.replace(theirs, ours).replace(&other(theirs), &other(ours))
}

async fn send(
    server: &ApiServer,
    exchange: &Exchange<'_>,
    names: &Names,
) -> (u16, Option<String>, String) {
    let mut request =
        Request::builder().method(exchange.method).uri(names.translate(exchange.path));
    for (name, value) in exchange.headers.iter().filter(|(_, value)| *value != "None") {
        request = request.header(*name, *value);
    }
    let sent = exchange.body.map(|body| {
        serde_json::from_str::<Value>(body).map_or_else(|_| body.into(), |v| v.to_string())
    });
    let body = Full::new(Bytes::from(names.translate(&sent.unwrap_or_default())));
    let response: Response<_> =
        server.service().oneshot(request.body(body).unwrap()).await.unwrap();
    let code = response.status().as_u16();
    let retry_after =
        response.headers().get("retry-after").map(|value| value.to_str().unwrap().to_owned());
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (code, retry_after, String::from_utf8(body.to_vec()).unwrap())
}

async fn replay(text: &str) -> usize {
    let kind = Kind::custom("samplecontroller.k8s.io", "v1alpha1", "Foo", "foos");
    let server = ApiServer::builder().kind(kind).build();
    let mut names = Names::default();
    let (mut compared, mut wrong) = (0, Vec::new());
    for exchange in parse(text) {
        let (code, retry_after, body) = send(&server, &exchange, &names).await;
        let Some(answer) = &exchange.answer else {
            assert!(matches!(code, 200 | 201), "{}: {body}", exchange.title);
            continue;
        };
        compared += 1;
        let expected = names.translate(&sorted_in_messages(answer.body));
        let same = match (
            serde_json::from_str::<Value>(&expected),
            serde_json::from_str::<Value>(&body),
        ) {
            (Ok(mut theirs), Ok(mut ours)) => {
                names.learn(&serde_json::from_str(answer.body).unwrap(), &ours);
                mask(&mut theirs);
                mask(&mut ours);
                // The number of the newest revision is part of this one message.
                let too_large = |value: &Value| {
                    value["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"
                };
                theirs == ours || (too_large(&theirs) && too_large(&ours))
            }
            _ => expected.trim() == body.trim(),
        };
        if code != answer.code || retry_after.as_deref() != answer.retry_after || !same {
            wrong.push(format!(
                "{}\n  asked {} {expected}\n  got   {code} {body}",
                exchange.title, answer.code
            ));
        }
    }
    assert!(wrong.is_empty(), "{} of {compared} differ:\n{}", wrong.len(), wrong.join("\n"));
    compared
}

#[tokio::test(start_paused = true)]
async fn a_custom_resource_is_served_as_the_real_server_serves_it() {
    assert_eq!(replay(include_str!("fixtures/foos.txt")).await, 60);
}

#[tokio::test(start_paused = true)]
async fn metadata_is_checked_as_the_real_server_checks_it() {
    assert_eq!(replay(include_str!("fixtures/foos-metadata.txt")).await, 12);
}
