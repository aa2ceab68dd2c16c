//! Load for an API server: the same requests for ours and for a real one, through the same client.

mod objects;

use anyhow::Context as _;
use futures::io::{AsyncBufRead, AsyncBufReadExt as _};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use homeostat::kube_client::Client;
use http::{Method, Request};
use serde_json::{Value, json};

use self::objects::{deployment, large_pod, map};

/// The requests of the benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub enum Verb {
    /// Gets a `ConfigMap` of 1 kB by its name.
    Get,
    /// Lists 1,000 of them.
    List,
    /// Creates one.
    Create,
    /// Replaces the content of an existing one, without a resourceVersion.
    Update,
    /// Sets the conditions of a pod with a strategic merge patch.
    PatchStatus,
    /// Applies a Deployment with another number of replicas.
    Apply,
    /// Replaces the content of a `ConfigMap` without owners: it has no `managedFields`.
    UpdateUnowned,
    /// Sets the conditions of a pod without owners.
    PatchStatusUnowned,
}

/// A client with its own namespaces.
#[derive(Clone)]
#[expect(missing_debug_implementations, reason = "a client has none")]
pub struct Load {
    client: Client,
    namespace: String,
    /// The namespace of the objects without owners.
    unowned: String,
}

/// A watch of all maps in the namespace. It only counts events.
#[expect(missing_debug_implementations, reason = "a body has none")]
pub struct Watcher {
    lines: Box<dyn AsyncBufRead + Send + Unpin>,
}

/// Number of objects to get, update and list.
pub const OBJECTS: u64 = 1_000;

/// Number of requests in flight.
pub const IN_FLIGHT: usize = 16;

// === impl Verb ===

impl Verb {
    /// All verbs. A write to objects without owners stands before the same write with them.
    pub const ALL: [Self; 8] = [
        Self::Get,
        Self::List,
        Self::Create,
        Self::UpdateUnowned,
        Self::Update,
        Self::PatchStatusUnowned,
        Self::PatchStatus,
        Self::Apply,
    ];

    /// Returns the name of the verb in reports.
    pub fn title(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list of 1,000",
            Self::Create => "create",
            Self::Update => "update",
            Self::PatchStatus => "status patch",
            Self::Apply => "apply of a Deployment",
            Self::UpdateUnowned => "update, no owners",
            Self::PatchStatusUnowned => "status patch, no owners",
        }
    }
}

// === impl Load ===

impl Load {
    /// Creates the namespace: with 1,000 maps, pods and Deployments, and as many maps and pods
    /// without owners in another namespace; or empty if `small`.
    ///
    /// # Errors
    ///
    /// Returns an error if a request fails.
    pub async fn prepare(client: Client, namespace: &str, small: bool) -> anyhow::Result<Self> {
        let (namespace, unowned) = (namespace.to_owned(), format!("{namespace}-unowned"));
        let load = Self { client, namespace, unowned };
        load.create_namespace(&load.namespace).await?;
        if small {
            return Ok(load);
        }
        load.repeat(Verb::Create, 0, OBJECTS).await?;
        load.repeat(Verb::Apply, 0, OBJECTS).await?;
        load.create_namespace(&load.unowned).await?;
        let created = stream::iter(0..OBJECTS).map(|index| load.create_unowned(index));
        created.buffer_unordered(IN_FLIGHT).try_collect::<()>().await?;
        Ok(load)
    }

    /// Creates a pod in both namespaces, and a map in the second one, without owners there.
    async fn create_unowned(&self, index: u64) -> anyhow::Result<()> {
        self.create_pod(&self.namespace, index).await?;
        self.create_pod(&self.unowned, index).await?;
        self.disown("pods", &format!("pod-{index}")).await?;
        let maps = format!("/api/v1/namespaces/{}/configmaps", self.unowned);
        self.send(Method::POST, &maps, JSON, &map(index, index)).await?;
        self.disown("configmaps", &format!("map-{index}")).await
    }

    /// Sends requests, numbered from `first`, with [`IN_FLIGHT`] of them at a time.
    ///
    /// # Errors
    ///
    /// Returns an error if a request fails.
    pub async fn repeat(&self, verb: Verb, first: u64, count: u64) -> anyhow::Result<()> {
        let numbers = stream::iter(first..first + count);
        let requests = numbers.map(|number| self.ask(verb, number));
        requests.buffer_unordered(IN_FLIGHT).try_for_each(|_| async { Ok(()) }).await
    }

    /// Sends one request. Returns the number of bytes of the answer.
    ///
    /// # Errors
    ///
    /// Returns an error if the request fails.
    pub async fn ask(&self, verb: Verb, number: u64) -> anyhow::Result<usize> {
        let index = number % OBJECTS;
        let namespace = match verb {
            Verb::UpdateUnowned | Verb::PatchStatusUnowned => &self.unowned,
            _ => &self.namespace,
        };
        let maps = format!("/api/v1/namespaces/{namespace}/configmaps");
        match verb {
            Verb::Get => {
                self.send(Method::GET, &format!("{maps}/map-{index}"), JSON, &Value::Null).await
            }
            Verb::List => {
                self.send(Method::GET, &format!("{maps}?limit=1000"), JSON, &Value::Null).await
            }
            Verb::Create => self.send(Method::POST, &maps, JSON, &map(number, number)).await,
            Verb::Update | Verb::UpdateUnowned => {
                let body = map(index, number);
                self.send(Method::PUT, &format!("{maps}/map-{index}"), JSON, &body).await
            }
            Verb::PatchStatus | Verb::PatchStatusUnowned => {
                let path = format!("/api/v1/namespaces/{namespace}/pods/pod-{index}/status");
                let flag = if (number / OBJECTS).is_multiple_of(2) { "True" } else { "False" };
                let condition =
                    json!({ "type": "Ready", "status": flag, "reason": number.to_string() });
                let body = json!({ "status": { "phase": "Running", "conditions": [condition] } });
                self.send(Method::PATCH, &path, STRATEGIC, &body).await
            }
            Verb::Apply => {
                let deployments = format!("/apis/apps/v1/namespaces/{namespace}/deployments");
                let path = format!("{deployments}/web-{index}?fieldManager=bench");
                let body = deployment(index, number / OBJECTS);
                self.send(Method::PATCH, &path, APPLY, &body).await
            }
        }
    }

    /// Watches all maps from `version` on.
    ///
    /// # Errors
    ///
    /// Returns an error if the watch cannot be opened.
    pub async fn watch(&self, version: &str) -> anyhow::Result<Watcher> {
        let path = format!(
            "/api/v1/namespaces/{}/configmaps?watch=true&resourceVersion={version}",
            self.namespace
        );
        let request = Request::get(path).body(Vec::new())?;
        let lines = self.client.request_stream(request).await?;
        Ok(Watcher { lines: Box::new(Box::pin(lines)) })
    }

    /// Returns the current version of the store.
    ///
    /// # Errors
    ///
    /// Returns an error if the list fails.
    pub async fn version(&self) -> anyhow::Result<String> {
        let path = format!("/api/v1/namespaces/{}/configmaps?limit=1", self.namespace);
        let list: Value = self.client.request(Request::get(path).body(Vec::new())?).await?;
        Ok(list["metadata"]["resourceVersion"].as_str().context("a version")?.to_owned())
    }

    /// Requests the first page of the maps. The list stays open until its token expires.
    ///
    /// # Errors
    ///
    /// Returns an error if the list fails.
    pub async fn open_page(&self) -> anyhow::Result<()> {
        let path = format!("/api/v1/namespaces/{}/configmaps?limit=500", self.namespace);
        self.send(Method::GET, &path, JSON, &Value::Null).await.map(drop)
    }

    /// Creates a pod of about 12 kB with three containers and the fields that operators set.
    ///
    /// # Errors
    ///
    /// Returns an error if the request fails.
    pub async fn create_large_pod(&self, index: u64) -> anyhow::Result<usize> {
        let path = format!("/api/v1/namespaces/{}/pods", self.namespace);
        self.send(Method::POST, &path, JSON, &large_pod(index)).await
    }

    async fn create_namespace(&self, name: &str) -> anyhow::Result<()> {
        let body = json!({ "metadata": { "name": name } });
        self.send(Method::POST, "/api/v1/namespaces", JSON, &body).await.map(drop)
    }

    /// Removes the owners of an object. Later writes record none.
    async fn disown(&self, plural: &str, name: &str) -> anyhow::Result<()> {
        let path = format!("/api/v1/namespaces/{}/{plural}/{name}", self.unowned);
        let body = json!({ "metadata": { "managedFields": [{}] } });
        self.send(Method::PATCH, &path, MERGE, &body).await.map(drop)
    }

    async fn create_pod(&self, namespace: &str, index: u64) -> anyhow::Result<()> {
        let body = json!({
            "metadata": { "name": format!("pod-{index}"), "labels": { "app": "web" } },
            "spec": { "containers": [{ "name": "c", "image": "registry.example.com/web:1.2.3" }] },
        });
        let path = format!("/api/v1/namespaces/{namespace}/pods");
        self.send(Method::POST, &path, JSON, &body).await.map(drop)
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        content_type: &str,
        body: &Value,
    ) -> anyhow::Result<usize> {
        let bytes = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let request = Request::builder().method(method).uri(path);
        let request = request.header("content-type", content_type).body(bytes)?;
        Ok(self.client.request_text(request).await?.len())
    }
}

// === impl Watcher ===

impl Watcher {
    /// Reads until `count` further events have arrived.
    ///
    /// # Errors
    ///
    /// Returns an error if the watch ends before that.
    pub async fn events(&mut self, mut count: usize) -> anyhow::Result<()> {
        while count > 0 {
            let chunk = self.lines.fill_buf().await?;
            anyhow::ensure!(!chunk.is_empty(), "the watch has ended, {count} events too early");
            let size = chunk.len();
            let lines = chunk.split(|byte| *byte == b'\n').count() - 1;
            count = count.saturating_sub(lines);
            self.lines.consume_unpin(size);
        }
        Ok(())
    }
}

const JSON: &str = "application/json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const MERGE: &str = "application/merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";
