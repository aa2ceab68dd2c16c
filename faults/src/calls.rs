//! Selects the requests that a fault rule hits.

use std::fmt;

use serde_json::Value;

use crate::request_info::{ClientRequest, Verb};
use crate::selection::{Selection, is};

/// A selector of requests: by client, verb and resource, by position, and by probability.
///
/// A selector with a verb and a resource, such as [`Calls::create`], does not match requests on
/// subresources. By default a fault rule hits the first matching request after the rule was added,
/// and no later one. Where it selects watches that are open, as for
/// [`hold_watches`](crate::Faults::hold_watches), or the watches of an
/// [`ObjectEvents`](crate::ObjectEvents), neither the position nor the probability counts.
///
/// The resource is the lower-case plural name, such as `configmaps`. A fault method panics if it
/// gets a selector with an invalid or unknown resource name; see [`Faults`](crate::Faults).
///
/// # Examples
///
/// ```
/// use homeostat_faults::Calls;
///
/// // The third create of a pod by the client `controller`.
/// let third = Calls::create("pods").by("controller").nth(3);
/// // Each request with a probability of 5 %.
/// let some = Calls::any().chance(0.05);
/// // The second write that is not an event.
/// let write = Calls::mutating().except("events").nth(2);
/// // The first patch of a Deployment that sets the replicas to 3.
/// let scaling = Calls::patch("deployments").in_group("apps").with_field("/spec/replicas", 3);
/// # let _ = (third, some, write, scaling);
/// ```
#[derive(Debug, Clone)]
#[must_use = "a selector does nothing until it is passed to a fault method"]
pub struct Calls {
    client: Option<String>,
    verbs: Verbs,
    /// `None` matches any resource.
    resource: Option<String>,
    /// Resources that are not matched.
    excluded: Vec<String>,
    subresource: Subresource,
    /// `None` matches any group.
    group: Option<String>,
    /// The object in the path and in the body, and the position.
    pub(crate) selection: Selection,
    /// Probability of a hit; `None` means 1.
    pub(crate) chance: Option<f64>,
}

#[derive(Debug, Clone)]
enum Verbs {
    Any,
    Mutating,
    Is(Verb),
}

#[derive(Debug, Clone)]
enum Subresource {
    Is(Option<String>),
    Any,
}

// === impl Calls ===

impl Calls {
    /// Selects every request.
    pub fn any() -> Self {
        Self {
            client: None,
            verbs: Verbs::Any,
            resource: None,
            excluded: Vec::new(),
            subresource: Subresource::Any,
            group: None,
            selection: Selection::default(),
            chance: None,
        }
    }

    /// Selects requests that write: every verb with [`Verb::is_mutating`], on any resource.
    ///
    /// Posts of events are writes too; [`except("events")`](Self::except) leaves them out.
    pub fn mutating() -> Self {
        Self { verbs: Verbs::Mutating, ..Self::any() }
    }

    /// Selects requests with `verb` on `resource`, a plural name such as `pods`.
    pub fn to(verb: Verb, resource: impl Into<String>) -> Self {
        Self {
            verbs: Verbs::Is(verb),
            resource: Some(resource.into()),
            subresource: Subresource::Is(None),
            ..Self::any()
        }
    }

    /// Selects requests with any verb on `resource` and its subresources.
    pub fn on(resource: impl Into<String>) -> Self {
        Self { resource: Some(resource.into()), ..Self::any() }
    }

    /// Selects reads of one object.
    pub fn get(resource: impl Into<String>) -> Self {
        Self::to(Verb::Get, resource)
    }

    /// Selects reads of a collection.
    pub fn list(resource: impl Into<String>) -> Self {
        Self::to(Verb::List, resource)
    }

    /// Selects watch requests on `resource`.
    pub fn watch(resource: impl Into<String>) -> Self {
        Self::to(Verb::Watch, resource)
    }

    /// Selects watch requests on any resource.
    pub fn watches() -> Self {
        Self { verbs: Verbs::Is(Verb::Watch), ..Self::any() }
    }

    /// Selects creates (POST).
    pub fn create(resource: impl Into<String>) -> Self {
        Self::to(Verb::Create, resource)
    }

    /// Selects updates (PUT).
    pub fn update(resource: impl Into<String>) -> Self {
        Self::to(Verb::Update, resource)
    }

    /// Selects patches, including server-side apply.
    pub fn patch(resource: impl Into<String>) -> Self {
        Self::to(Verb::Patch, resource)
    }

    /// Selects deletes of one object.
    pub fn delete(resource: impl Into<String>) -> Self {
        Self::to(Verb::Delete, resource)
    }

    /// Restricts the selector to the client named `client`.
    pub fn by(mut self, client: impl Into<String>) -> Self {
        self.client = Some(client.into());
        self
    }

    /// Excludes requests on `resource` and its subresources. Can be called several times.
    pub fn except(mut self, resource: impl Into<String>) -> Self {
        self.excluded.push(resource.into());
        self
    }

    /// Restricts the selector to one subresource, for example `status`.
    pub fn subresource(mut self, subresource: impl Into<String>) -> Self {
        self.subresource = Subresource::Is(Some(subresource.into()));
        self
    }

    /// Restricts the selector to one API group, such as `apps`; the core group is `""`. It
    /// distinguishes resources of the same name, such as the events of two groups.
    pub fn in_group(mut self, group: impl Into<String>) -> Self {
        self.group = Some(group.into());
        self
    }

    /// Restricts the selector to requests whose body is an object with this label.
    ///
    /// A patch has the labels that it sets; gets, watches and most deletes have no body. Only JSON
    /// of clients in this process is read, not bodies that arrive over a socket or a pipe.
    pub fn labelled(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.selection.object.label(key.into(), value.into());
        self
    }

    /// Restricts the selector to requests whose body has this value at a JSON pointer (RFC 6901),
    /// such as `/spec/replicas`. The bodies are those that [`labelled`](Self::labelled) reads.
    pub fn with_field(mut self, pointer: impl Into<String>, value: impl Into<Value>) -> Self {
        self.selection.object.field(pointer.into(), value.into());
        self
    }

    /// Restricts the selector to requests whose body satisfies a condition. The bodies are those
    /// that [`labelled`](Self::labelled) reads; that of a JSON patch is an array.
    ///
    /// # Examples
    ///
    /// ```
    /// use homeostat_faults::Calls;
    ///
    /// // Status updates that report at least one ready replica.
    /// let ready = |set: &serde_json::Value| set["status"]["readyReplicas"].as_u64() > Some(0);
    /// let calls = Calls::update("replicasets").subresource("status").with_body(ready);
    /// # let _ = calls;
    /// ```
    pub fn with_body(mut self, holds: impl Fn(&Value) -> bool + Send + Sync + 'static) -> Self {
        self.selection.object.that(holds);
        self
    }

    /// Restricts the selector to one namespace.
    pub fn in_namespace(mut self, namespace: impl Into<String>) -> Self {
        self.selection.namespace = Some(namespace.into());
        self
    }

    /// Restricts the selector to requests with this object name in their path. A create has none.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.selection.name = Some(name.into());
        self
    }

    /// Makes the `nth` matching request the first one that is hit, counted from 1.
    pub fn nth(mut self, nth: u64) -> Self {
        self.selection.first = nth;
        self
    }

    /// Sets the number of hits. They are consecutive, unless [`chance`](Self::chance) is set.
    pub fn times(mut self, times: u64) -> Self {
        self.selection.times = Some(times);
        self
    }

    /// Hits every matching request from the first one on, until
    /// [`Faults::heal`](crate::Faults::heal) removes the rule.
    pub fn always(self) -> Self {
        self.times(u64::MAX)
    }

    /// Hits each matching request with this probability, between 0 and 1, drawn from the seed.
    ///
    /// The number of hits is unlimited, unless [`times`](Self::times) limits it.
    pub fn chance(mut self, probability: f64) -> Self {
        self.chance = Some(probability);
        self
    }

    /// Returns every resource that the selector names.
    pub(crate) fn resources(&self) -> impl Iterator<Item = &str> {
        self.resource.iter().chain(&self.excluded).map(String::as_str)
    }

    /// Returns true if the selector looks at the bodies of requests.
    pub(crate) fn reads_bodies(&self) -> bool {
        !self.selection.object.is_empty()
    }

    pub(crate) fn matches(&self, request: &ClientRequest) -> bool {
        let info = &request.info;
        self.verbs.include(info.verb)
            && is(self.client.as_deref(), Some(&request.client))
            && is(self.resource.as_deref(), Some(&info.resource))
            && !self.excluded.contains(&info.resource)
            && is(self.group.as_deref(), info.is_for_resource().then_some(&*info.group))
            && match &self.subresource {
                Subresource::Any => true,
                Subresource::Is(subresource) => *subresource == info.subresource,
            }
            && self.selection.matches(
                info.namespace.as_deref(),
                info.name.as_deref(),
                request.object.as_deref(),
            )
    }
}

/// Selects the watches of a resource; `"*"` selects the watches of every resource.
impl From<&str> for Calls {
    fn from(resource: &str) -> Self {
        if resource == "*" { Self::watches() } else { Self::watch(resource) }
    }
}

/// Writes the selector for traces and messages: `create pods by controller, from number 3`.
impl fmt::Display for Calls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.verbs {
            Verbs::Any => f.write_str("any verb on ")?,
            Verbs::Mutating => f.write_str("writes to ")?,
            Verbs::Is(verb) => write!(f, "{verb} ")?,
        }
        f.write_str(self.resource.as_deref().unwrap_or("*"))?;
        match self.group.as_deref() {
            None => {}
            Some("") => f.write_str(" of the core group")?,
            Some(group) => write!(f, ".{group}")?,
        }
        if let Subresource::Is(Some(subresource)) = &self.subresource {
            write!(f, "/{subresource}")?;
        }
        match (&self.selection.namespace, &self.selection.name) {
            (Some(namespace), Some(name)) => write!(f, " {namespace}/{name}")?,
            (Some(namespace), None) => write!(f, " in {namespace}")?,
            (None, Some(name)) => write!(f, " {name}")?,
            (None, None) => {}
        }
        self.selection.object.fmt(f)?;
        if !self.excluded.is_empty() {
            write!(f, " except {}", self.excluded.join(", "))?;
        }
        if let Some(client) = &self.client {
            write!(f, " by {client}")?;
        }
        self.selection.write_position(f)?;
        match self.chance {
            Some(probability) => write!(f, ", with probability {probability}"),
            None => Ok(()),
        }
    }
}

// === impl Verbs ===

impl Verbs {
    fn include(&self, verb: Verb) -> bool {
        match self {
            Self::Any => true,
            Self::Mutating => verb.is_mutating(),
            Self::Is(wanted) => *wanted == verb,
        }
    }
}

#[cfg(test)]
mod tests {
    use http::Method;

    use super::*;

    fn patch(uri: &str) -> ClientRequest {
        ClientRequest::parse("me".into(), &Method::PATCH, &uri.parse().unwrap())
    }

    #[test]
    fn selector_without_subresource_does_not_match_subresources() {
        let status = patch("/api/v1/namespaces/a/pods/p/status");
        assert!(!Calls::patch("pods").matches(&status));
        assert!(Calls::patch("pods").subresource("status").matches(&status));
        assert!(Calls::on("pods").matches(&status));
        assert!(Calls::any().matches(&status));
        assert!(Calls::mutating().matches(&status));
        assert!(!Calls::watches().matches(&status));
        assert!(Calls::on("pods").named("p").in_namespace("a").matches(&status));
        assert!(!Calls::on("pods").named("q").matches(&status));
        assert!(!Calls::on("pods").in_namespace("b").matches(&status));
        assert!(Calls::any().by("me").matches(&status));
        assert!(!Calls::any().by("you").matches(&status));
    }

    #[test]
    fn excluded_resource_is_not_matched() {
        let calls = Calls::mutating().except("events").except("leases");
        assert!(calls.matches(&patch("/api/v1/namespaces/a/pods/p")));
        assert!(!calls.matches(&patch("/api/v1/namespaces/a/events/e")));
        assert!(!calls.matches(&patch("/apis/events.k8s.io/v1/namespaces/a/events/e")));
        assert!(!calls.matches(&patch("/apis/coordination.k8s.io/v1/namespaces/a/leases/l")));
    }

    #[test]
    fn group_distinguishes_resources_of_one_name() {
        let core = patch("/api/v1/namespaces/a/events/e");
        let grouped = patch("/apis/events.k8s.io/v1/namespaces/a/events/e");
        let of = |group| Calls::patch("events").in_group(group);
        assert!(of("").matches(&core) && !of("").matches(&grouped));
        assert!(of("events.k8s.io").matches(&grouped) && !of("events.k8s.io").matches(&core));
        assert!(!Calls::any().in_group("").matches(&patch("/version")));
    }

    #[test]
    fn body_restricts_the_selector() {
        let mut request = patch("/apis/apps/v1/namespaces/a/deployments/d");
        let scaling = Calls::mutating().with_field("/spec/replicas", 3).labelled("app", "web");
        assert!(scaling.reads_bodies() && !scaling.matches(&request));
        let body = serde_json::json!({"metadata": {"labels": {"app": "web"}},
            "spec": {"replicas": 3}});
        request.object = Some(body.into());
        assert!(scaling.matches(&request));
        assert!(!scaling.with_body(|body| body["spec"]["paused"] == true).matches(&request));
    }

    #[test]
    fn display_names_every_restriction() {
        let cases = [
            (Calls::any(), "any verb on *"),
            (Calls::mutating().except("events").by("me"), "writes to * except events by me"),
            (Calls::create("pods").nth(3), "create pods, from number 3"),
            (Calls::update("pods").subresource("status").named("p"), "update pods/status p"),
            (Calls::get("pods").in_namespace("a").named("p"), "get pods a/p"),
            (
                Calls::patch("foos").in_group("x.y").labelled("app", "web").by("me"),
                "patch foos.x.y with label app=web by me",
            ),
            (Calls::list("events").in_group(""), "list events of the core group"),
            (
                Calls::any().in_namespace("a").chance(0.5),
                "any verb on * in a, with probability 0.5",
            ),
        ];
        for (calls, expected) in cases {
            assert_eq!(calls.to_string(), expected);
        }
    }
}
