//! Plays a case: configures its webhooks, sends its requests, and writes down what happens.

use std::fmt::Write as _;
use std::time::Duration;

use http::Request;
use http_body_util::BodyExt as _;
use kube_client::Client;
use kube_client::client::Body;
use serde_json::{Map, Value, json};
use tokio::time::{Instant, sleep};

use crate::cases::{Case, Send};
use crate::hooks::Hooks;

/// The time in which a real server sees a new configuration.
const TIMEOUT: Duration = Duration::from_secs(60);
const CONFIGURATIONS: &str = "/apis/admissionregistration.k8s.io/v1";

/// One reply: the status, the warnings and the body.
struct Reply {
    code: u16,
    warnings: Vec<String>,
    body: String,
}

/// Plays a case, and returns its text.
pub(crate) async fn play(case: &Case, client: &Client, hooks: &Hooks) -> String {
    let player = Player { client, hooks, case: case.name.replace('_', "-") };
    let mut text = String::new();
    let namespace = json!({"metadata": {"name": player.case, "labels": {"in": "case"}}});
    player.send("POST", "/api/v1/namespaces", "", &namespace).await;
    for send in &case.before {
        let reply = player.send(send.method, &player.path(send.path), send.media, &send.body).await;
        assert!(reply.code < 300, "{} {}: {}", send.method, send.path, reply.body);
    }
    if let Some(path) = case.until {
        player.wait_until_found(&player.path(path)).await;
    }
    if let Some(send) = &case.until_refused {
        player.wait_until_refused(send).await;
    }
    for part in &case.parts {
        for (kind, webhooks) in [("mutating", &part.mutating), ("validating", &part.validating)] {
            player.configure(kind, webhooks).await;
        }
        writeln!(text, "=== {}", part.name).unwrap();
        hooks.take();
        for send in &part.sends {
            // The real server asks validating webhooks at the same time.
            let is_ordered = !part.mutating.is_empty();
            player.write_exchange(send, is_ordered, &mut text).await;
        }
        player.remove_configurations().await;
    }
    text
}

struct Player<'a> {
    client: &'a Client,
    hooks: &'a Hooks,
    /// The name of the case and of its namespace.
    case: String,
}

impl Player<'_> {
    /// Replaces `NS` in a path by the namespace of the case.
    fn path(&self, path: &str) -> String {
        path.replace("NS", &self.case)
    }

    async fn send(&self, method: &str, path: &str, media: &str, body: &Value) -> Reply {
        let media = if media.is_empty() { "application/json" } else { media };
        let mut body = body.clone();
        self.name_hooks(&mut body);
        let bytes = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let request = Request::builder().method(method).uri(path).header("Content-Type", media);
        let request = request.header("User-Agent", "case/1").body(Body::from(bytes)).unwrap();
        let response = self.client.send(request).await.unwrap();
        let (head, body) = response.into_parts();
        let warnings = head.headers.get_all("Warning").iter();
        let warnings = warnings.map(|text| text.to_str().unwrap().to_owned()).collect();
        let body = body.collect().await.unwrap().to_bytes();
        let body = String::from_utf8_lossy(&body).into_owned();
        Reply { code: head.status.as_u16(), warnings, body }
    }

    async fn wait_until_found(&self, path: &str) {
        let deadline = Instant::now() + TIMEOUT;
        while self.send("GET", path, "", &Value::Null).await.code != 200 {
            assert!(Instant::now() < deadline, "{path} does not appear");
            sleep(Duration::from_millis(50)).await;
        }
    }

    async fn wait_until_refused(&self, send: &Send) {
        let deadline = Instant::now() + TIMEOUT;
        let path = self.path(send.path);
        while self.send(send.method, &path, send.media, &send.body).await.code < 300 {
            assert!(Instant::now() < deadline, "{path} is not refused");
            sleep(Duration::from_millis(50)).await;
        }
    }

    /// Creates the configuration of webhooks of a kind, and waits until the server acts on it: the
    /// last webhook refuses an object with a label of its own.
    async fn configure(&self, kind: &str, webhooks: &[Value]) {
        if webhooks.is_empty() {
            return;
        }
        let mut all: Vec<Value> = webhooks.iter().map(|hook| self.completed(hook)).collect();
        let path = format!("/probe/{kind}");
        all.push(self.completed(&json!({
            "name": "probe.example.com", "path": path,
            "objectSelector": {"matchLabels": {"probe": format!("{}-{kind}", self.case)}},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"],
                "resources": ["configmaps"]}],
        })));
        let body = json!({"metadata": {"name": self.case}, "webhooks": all});
        let path = format!("{CONFIGURATIONS}/{kind}webhookconfigurations");
        let reply = self.send("POST", &path, "", &body).await;
        assert_eq!(reply.code, 201, "{}", reply.body);
        self.wait_for_probe(kind, false).await;
    }

    async fn wait_for_probe(&self, kind: &str, is_accepted: bool) {
        let path = format!("/api/v1/namespaces/{}/configmaps?dryRun=All", self.case);
        let probe = format!("{}-{kind}", self.case);
        let body = json!({"metadata": {"name": "probe", "labels": {"probe": probe}}});
        let deadline = Instant::now() + TIMEOUT;
        loop {
            let reply = self.send("POST", &path, "", &body).await;
            let is_refused = reply.body.contains("denied the request: ready");
            if is_refused != is_accepted {
                return;
            }
            assert!(
                Instant::now() < deadline,
                "the {kind} webhooks are not called: {}",
                reply.body
            );
            sleep(Duration::from_millis(50)).await;
        }
    }

    async fn remove_configurations(&self) {
        for kind in ["mutating", "validating"] {
            let path = format!("{CONFIGURATIONS}/{kind}webhookconfigurations/{}", self.case);
            if self.send("DELETE", &path, "", &Value::Null).await.code == 200 {
                self.wait_for_probe(kind, true).await;
            }
        }
    }

    /// Fills in the members that all webhooks of the cases share.
    fn completed(&self, webhook: &Value) -> Value {
        let mut webhook = webhook.as_object().cloned().unwrap();
        if let Some(path) = webhook.remove("path") {
            let config = self.hooks.client_config(path.as_str().unwrap());
            webhook.insert("clientConfig".to_owned(), config);
        }
        if let Some(bundle) = webhook.remove("bundle") {
            let other = Hooks::other_bundle();
            webhook["clientConfig"]["caBundle"] = if bundle == "other" { other } else { json!("") };
        }
        if let Some(config) = webhook.get_mut("clientConfig").and_then(Value::as_object_mut) {
            config.entry("caBundle").or_insert_with(|| json!(self.hooks.bundle()));
        }
        let usual = json!({"sideEffects": "None", "admissionReviewVersions": ["v1"]});
        for (name, value) in usual.as_object().cloned().unwrap() {
            webhook.entry(name).or_insert(value);
        }
        webhook.entry("objectSelector").or_insert_with(
            || json!({"matchExpressions": [{"key": "probe", "operator": "DoesNotExist"}]}),
        );
        webhook
            .entry("namespaceSelector")
            .or_insert_with(|| json!({"matchLabels": {"kubernetes.io/metadata.name": self.case}}));
        Value::Object(webhook)
    }

    /// Waits until the server's cache has all writes to a collection: a list does. A real server
    /// takes the object that a patch changes from its cache, and may first call webhooks with an
    /// older one.
    async fn wait_for_cache(&self, path: &str) {
        let namespace = format!("/namespaces/{}/", self.case);
        let Some((before, after)) = path.split_once(&namespace) else { return };
        let plural = after.split(['/', '?']).next().unwrap_or_default();
        self.send("GET", &format!("{before}{namespace}{plural}"), "", &Value::Null).await;
    }

    async fn write_exchange(&self, send: &Send, is_ordered: bool, text: &mut String) {
        let path = self.path(send.path);
        self.wait_for_cache(&path).await;
        let reply = self.send(send.method, &path, send.media, &send.body).await;
        writeln!(text, "\n> {} {path} {}", send.method, send.body).unwrap();
        let mut received = self.hooks.take();
        if !is_ordered {
            received.sort_by(|(one, _), (other, _)| one.cmp(other));
        }
        for (path, mut review) in received {
            masked(&mut review);
            writeln!(text, "  {path} {}", self.plain(&review.to_string())).unwrap();
        }
        for warning in reply.warnings {
            writeln!(text, "! {}", self.plain(&warning)).unwrap();
        }
        // The events of a watch have a line each.
        let lines = reply.body.lines().map(|line| match serde_json::from_str::<Value>(line) {
            Ok(mut body) => {
                masked(&mut body);
                body.to_string()
            }
            Err(_) => line.to_owned(),
        });
        let body = lines.collect::<Vec<_>>().join("\n");
        writeln!(text, "< {} {}", reply.code, self.plain(&body)).unwrap();
    }

    /// Replaces `{"hook": PATH}` by the configuration of a client for the path.
    fn name_hooks(&self, value: &mut Value) {
        if let Some(path) = value.get("hook").and_then(Value::as_str) {
            *value = self.hooks.client_config(path);
            return;
        }
        match value {
            Value::Object(members) => members.values_mut().for_each(|value| self.name_hooks(value)),
            Value::Array(items) => items.iter_mut().for_each(|value| self.name_hooks(value)),
            _ => {}
        }
    }

    /// Replaces what differs between two runs.
    fn plain(&self, text: &str) -> String {
        text.replace(&self.hooks.address(), "HOOKS")
    }
}

/// Masks the values that differ between two runs.
fn masked(value: &mut Value) {
    match value {
        Value::Object(members) => members.iter_mut().for_each(|(name, value)| mask(name, value)),
        Value::Array(items) => items.iter_mut().for_each(masked),
        Value::String(text) => {
            for mask in [without_uids, without_revision] {
                *text = mask(text).unwrap_or_else(|| std::mem::take(text));
            }
        }
        _ => {}
    }
}

fn mask(name: &str, value: &mut Value) {
    let is_text = value.is_string();
    match name {
        "continue" if is_text && value != "" => *value = json!("MASKED"),
        "uid" | "resourceVersion" | "creationTimestamp" | "time" | "deletionTimestamp"
        | "lastTransitionTime"
            if is_text && value != "u" && value != "" =>
        {
            *value = json!("MASKED");
        }
        "userInfo" => *value = Value::Object(Map::new()),
        // Their order depends on their times.
        "managedFields" => {
            masked(value);
            if let Value::Array(entries) = value {
                entries.sort_by_cached_key(Value::to_string);
            }
        }
        _ => masked(value),
    }
}

/// Replaces the revision in the text of an error.
fn without_revision(text: &str) -> Option<String> {
    const NAME: &str = "revision=";
    let at = text.find(NAME)? + NAME.len();
    let rest = text[at..].trim_start_matches(|c: char| c.is_ascii_digit());
    Some(format!("{}N{rest}", &text[..at]))
}

/// Replaces the uids in a text, such as those of reviews that an error names.
fn without_uids(text: &str) -> Option<String> {
    const HYPHENS: [usize; 4] = [8, 13, 18, 23];
    let is_uid = |part: &[u8]| {
        part.iter().enumerate().all(|(at, byte)| {
            if HYPHENS.contains(&at) { *byte == b'-' } else { byte.is_ascii_hexdigit() }
        })
    };
    let at = text.as_bytes().windows(36).position(is_uid)?;
    let rest = &text[at + 36..];
    let rest = without_uids(rest).unwrap_or_else(|| rest.to_owned());
    Some(format!("{}UID{rest}", &text[..at]))
}
