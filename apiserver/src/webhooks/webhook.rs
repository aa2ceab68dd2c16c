//! Webhooks, as their configurations describe them.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use homeostat_schema::Policy;
use serde_json::Value;

use crate::fields::{Fields, read_path, text};
use crate::policies::MatchResources;

/// One webhook of a configuration.
#[derive(Debug)]
pub(crate) struct Webhook {
    /// The configuration, the name and the position: unique among all webhooks of its kind.
    pub(super) id: String,
    pub(super) name: String,
    /// None if the webhook has no rules, and is never called.
    pub(super) resources: Option<MatchResources>,
    /// None if there are no conditions.
    pub(super) conditions: Option<Policy>,
    pub(super) ignores_failures: bool,
    /// True if the webhook may not be called for a dry run.
    pub(super) has_side_effects: bool,
    /// True if the webhook is called again after later changes.
    pub(super) is_reinvoked: bool,
    /// The version of the reviews that it is sent; `None` if it reads no known one.
    pub(super) version: Option<&'static str>,
    pub(super) address: Arc<Address>,
}

/// The server of a webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Address {
    pub(super) target: Target,
    /// Certificates of the authorities of the server, in PEM.
    pub(super) authorities: Vec<u8>,
    pub(super) timeout: Duration,
}

/// The place of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Target {
    Url(String),
    Service { namespace: String, name: String, port: u16, path: String },
}

/// All webhooks, in the order in which they are called: that of the names of their configurations.
#[derive(Debug, Default)]
pub(crate) struct Webhooks {
    pub(super) mutating: Vec<Arc<Webhook>>,
    pub(super) validating: Vec<Arc<Webhook>>,
}

/// The versions of reviews.
const VERSIONS: [&str; 2] = ["v1", "v1beta1"];

pub(super) fn items<'a>(of: &'a Value, name: &str) -> &'a [Value] {
    of.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Returns the first version of reviews in a list that the server knows.
pub(super) fn first_known(accepted: &[Value]) -> Option<&'static str> {
    let mut accepted = accepted.iter().filter_map(Value::as_str);
    accepted.find_map(|one| VERSIONS.into_iter().find(|known| *known == one))
}

// === impl Webhook ===

impl Webhook {
    /// Reads the webhooks of a configuration.
    pub(super) fn read_all(configuration: &Fields) -> Vec<Arc<Self>> {
        let name = read_path(configuration, "metadata.name").and_then(Value::as_str);
        let webhooks =
            configuration.get("webhooks").and_then(Value::as_array).into_iter().flatten();
        let numbered = webhooks.enumerate();
        numbered.map(|(at, of)| Arc::new(Self::read(name.unwrap_or_default(), at, of))).collect()
    }

    fn read(configuration: &str, position: usize, of: &Value) -> Self {
        let name = text(of, "name");
        let has_conditions = !items(of, "matchConditions").is_empty();
        Self {
            id: format!("{configuration}/{name}/{position}"),
            name: name.to_owned(),
            resources: MatchResources::of_webhook(of),
            conditions: has_conditions.then(|| Policy::compile(&conditions(of))),
            ignores_failures: of["failurePolicy"] == "Ignore",
            has_side_effects: !matches!(text(of, "sideEffects"), "None" | "NoneOnDryRun"),
            is_reinvoked: of["reinvocationPolicy"] == "IfNeeded",
            version: first_known(items(of, "admissionReviewVersions")),
            address: Arc::new(Address::read(of)),
        }
    }
}

/// Returns the conditions of a webhook in the form of a policy's `spec`.
fn conditions(of: &Value) -> Value {
    let members = ["matchConditions", "failurePolicy"];
    let members = members.map(|name| (name.to_owned(), of[name].clone()));
    Value::Object(Fields::from_iter(members))
}

// === impl Address ===

impl Address {
    fn read(webhook: &Value) -> Self {
        let timeout = Duration::from_secs(webhook["timeoutSeconds"].as_u64().unwrap_or(10));
        Self::of_client(&webhook["clientConfig"], timeout)
    }

    /// Reads the `clientConfig` of a webhook.
    pub(super) fn of_client(config: &Value, timeout: Duration) -> Self {
        let service = &config["service"];
        let port = service["port"].as_u64().and_then(|port| u16::try_from(port).ok());
        let target = match config["url"].as_str() {
            Some(url) if service.is_null() => Target::Url(url.to_owned()),
            _ => Target::Service {
                namespace: text(service, "namespace").to_owned(),
                name: text(service, "name").to_owned(),
                port: port.unwrap_or(443),
                path: text(service, "path").to_owned(),
            },
        };
        Self {
            target,
            authorities: STANDARD.decode(text(config, "caBundle")).unwrap_or_default(),
            timeout,
        }
    }

    /// Returns the URL of a call with this timeout.
    pub(super) fn url(&self, seconds: u64) -> String {
        let (base, path) = match &self.target {
            Target::Url(url) => {
                let host = url.find("://").map_or(0, |scheme| scheme + 3);
                let end = url[host..].find('/').map_or(url.len(), |slash| host + slash);
                (url[..end].to_owned(), &url[end..])
            }
            Target::Service { namespace, name, port, path } => {
                (format!("https://{name}.{namespace}.svc:{port}"), path.as_str())
            }
        };
        format!("{base}{}?timeout={seconds}s", cleaned(path))
    }
}

/// Returns a path as Go's `path.Join` does: without empty steps, `.` and `..`.
fn cleaned(path: &str) -> String {
    let mut steps = Vec::new();
    for step in path.split('/') {
        match step {
            "" | "." => {}
            ".." => drop(steps.pop()),
            step => steps.push(step),
        }
    }
    format!("/{}", steps.join("/"))
}

// === impl Webhooks ===

impl Webhooks {
    /// Returns true if a webhook may change objects.
    pub(crate) fn may_mutate(&self) -> bool {
        !self.mutating.is_empty()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.mutating.is_empty() && self.validating.is_empty()
    }
}
