//! Feeds the metrics of requests: which labels a request has, and when it is over.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use homeostat_faults::RequestInfo;
use http::request::Parts;
use http::{HeaderMap, Method, Response, StatusCode, Uri, header};
use tokio::time::Instant;

use super::legacy_watch;
use crate::core::Core;
use crate::kinds::Kind;
use crate::media;
use crate::metrics::{Finished, Label, RequestLabels};
use crate::reply::Body;
use crate::request::params::Params;
use crate::request::target::Target;

const WATCH: &str = "WATCH";

/// A request that is counted once it is over: when it is answered, or at the end of the stream.
#[derive(Debug)]
#[must_use = "the request is over when this is dropped"]
pub(super) struct Recording {
    core: Arc<Core>,
    labels: RequestLabels,
    start: Instant,
    traits: Traits,
    /// The code and the bytes of the reply; `None` if nothing was answered, or if such replies are
    /// not counted.
    reply: Option<(StatusCode, u64)>,
}

/// The properties of a request that are no labels.
#[derive(Debug, Clone, Copy, Default)]
struct Traits {
    is_deprecated: bool,
    /// True if the sizes of replies to such requests are counted.
    is_sized: bool,
    /// True for a watch, which may last for long.
    is_long: bool,
}

// === impl Recording ===

impl Recording {
    /// Starts to record a request for a resource. `old` is the old form of a watch, if the client
    /// sent one.
    pub(super) fn of_target(
        core: &Arc<Core>,
        target: &Target,
        parts: &Parts,
        old: Option<&Uri>,
    ) -> Self {
        let (kind, info) = (&target.served.kind, &target.info);
        let is_one = parts.method == Method::POST
            || info.name.is_some()
            || old.is_some_and(|old| legacy_watch::names_object(old.path()));
        let scope = match &info.namespace {
            _ if is_one => "resource",
            Some(_) => "namespace",
            None => "cluster",
        };
        let query = parts.uri.query().unwrap_or_default();
        let verb = verb(&parts.method, query, &parts.headers, scope);
        let labels = RequestLabels {
            resource: kind.plural.clone(),
            verb,
            subresource: subresource(info.subresource.as_deref().unwrap_or_default()),
            scope,
            dry_run: dry_run(query),
            group: kind.group.clone(),
            version: kind.version.clone(),
        };
        let traits = Traits {
            is_deprecated: is_deprecated(kind),
            is_sized: parts.method == Method::GET && old.is_none(),
            is_long: verb == WATCH,
        };
        Self::start(core, labels, traits)
    }

    /// Starts to record a request that needs a kubelet.
    pub(super) fn of_connection(core: &Arc<Core>, info: &RequestInfo, query: &str) -> Self {
        let labels = RequestLabels {
            // One of three: the route knows no other.
            resource: Cow::Owned(info.resource.clone()),
            verb: "CONNECT",
            subresource: subresource(info.subresource.as_deref().unwrap_or_default()),
            scope: "resource",
            dry_run: dry_run(query),
            group: Cow::Borrowed(""),
            version: Cow::Borrowed("v1"),
        };
        Self::start(core, labels, Traits { is_long: true, ..Traits::default() })
    }

    /// Starts to record a request for the health of the server.
    pub(super) fn of_health(core: &Arc<Core>, endpoint: &str, method: &Method) -> Self {
        let labels = RequestLabels {
            resource: Cow::Borrowed(""),
            verb: verb(method, "", &HeaderMap::new(), ""),
            subresource: Cow::Owned(format!("/{endpoint}")),
            scope: "",
            dry_run: "",
            group: Cow::Borrowed(""),
            version: Cow::Borrowed(""),
        };
        Self::start(core, labels, Traits { is_sized: true, ..Traits::default() })
    }

    fn start(core: &Arc<Core>, labels: RequestLabels, traits: Traits) -> Self {
        if traits.is_long {
            core.metrics.open(&labels);
        }
        Self { core: Arc::clone(core), labels, start: Instant::now(), traits, reply: None }
    }

    /// Returns true if the request may last for long.
    pub(super) fn is_long(&self) -> bool {
        self.traits.is_long
    }

    /// Counts the request, at the end of its stream if the reply is one.
    pub(super) fn finish(mut self, response: Response<Body>) -> Response<Body> {
        let size = response.body().size();
        if self.counts(response.status()) {
            self.reply = Some((response.status(), size.unwrap_or_default()));
        }
        if size.is_some() {
            return response;
        }
        response.map(|body| body.observed(move |chunk| self.add(chunk)))
    }

    /// Adds a chunk of a stream to the reply.
    fn add(&mut self, chunk: &Bytes) {
        if let Some((_, size)) = &mut self.reply {
            *size += chunk.len() as u64;
        }
    }

    /// Returns true if a reply is counted. The real server refuses a method or the type of a patch
    /// before it knows the resource.
    fn counts(&self, status: StatusCode) -> bool {
        let is_patch = matches!(self.labels.verb, "PATCH" | "APPLY");
        match status {
            StatusCode::METHOD_NOT_ALLOWED => false,
            StatusCode::UNSUPPORTED_MEDIA_TYPE => !is_patch,
            _ => true,
        }
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        let metrics = &self.core.metrics;
        if self.traits.is_long {
            metrics.close(&self.labels);
        }
        let Some((code, size)) = self.reply else { return };
        let finished = Finished {
            code: code.as_u16(),
            time: self.start.elapsed(),
            size: self.traits.is_sized.then_some(size),
            is_deprecated: self.traits.is_deprecated,
        };
        metrics.finish(&self.labels, &finished);
    }
}

fn verb(method: &Method, query: &str, headers: &HeaderMap, scope: &str) -> &'static str {
    let is_watch = || query.contains("watch") && Params::parse(query).flag("watch");
    let is_apply = || headers.get(header::CONTENT_TYPE).is_some_and(|kind| kind == media::APPLY);
    match method.as_str() {
        "GET" if is_watch() => WATCH,
        "GET" | "HEAD" if matches!(scope, "resource" | "") => "GET",
        "GET" | "HEAD" => "LIST",
        "PATCH" if is_apply() => "APPLY",
        "PATCH" => "PATCH",
        "POST" => "POST",
        "PUT" => "PUT",
        "DELETE" => "DELETE",
        _ => "other",
    }
}

/// Returns a subresource, which the kind has: the frequent ones without a copy.
fn subresource(name: &str) -> Label {
    const FREQUENT: [&str; 5] = ["", "binding", "eviction", "scale", "status"];
    match FREQUENT.into_iter().find(|known| *known == name) {
        Some(known) => Cow::Borrowed(known),
        None => Cow::Owned(name.to_owned()),
    }
}

fn dry_run(query: &str) -> &'static str {
    if !query.contains("dryRun") {
        return "";
    }
    match Params::parse(query).all("dryRun").as_slice() {
        [] => "",
        all if all.iter().all(|value| *value == "All") => "All",
        _ => "invalid",
    }
}

fn is_deprecated(kind: &Kind) -> bool {
    let of_definition = kind.definition.as_ref().and_then(|known| known.deprecation.as_ref());
    !kind.deprecation.is_empty() || of_definition.is_some()
}
