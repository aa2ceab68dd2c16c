//! What a request asks for, read from its method and URI; and which requests a fault hits.

use std::fmt;

use http::{Method, Uri};

/// What a request does, in the words of Kubernetes' access control.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Verb {
    /// Reads one object.
    Get,
    /// Reads a collection.
    List,
    /// Follows a collection, or one object.
    Watch,
    /// POST: also on a subresource, as in `pods/binding`.
    Create,
    /// PUT.
    Update,
    /// PATCH, server-side apply included.
    Patch,
    /// Deletes one object.
    Delete,
    /// Deletes a collection.
    DeleteCollection,
    /// Anything that is about no resource: discovery, `/version`, `/readyz`.
    Other,
}

/// Which requests a fault hits: what they ask for, and the how-manieth of them.
///
/// Made for one verb and one plural resource, without its subresources; by default it is the first
/// such request from now on that is hit, and it alone.
#[derive(Debug, Clone)]
#[must_use = "it says which requests are hit; give it to a fault"]
pub struct Calls {
    /// None: any.
    verb: Option<Verb>,
    /// None: any.
    resource: Option<String>,
    subresource: Subresource,
    namespace: Option<String>,
    name: Option<String>,
    /// The first request that is hit, counted from one.
    pub(super) first: u64,
    /// How many are hit from there on.
    pub(super) times: u64,
}

#[derive(Debug, Clone)]
enum Subresource {
    Is(Option<String>),
    Any,
}

/// One request, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Call {
    pub(super) verb: Verb,
    /// The plural; the path when the request is about no resource.
    pub(super) resource: String,
    pub(super) subresource: Option<String>,
    pub(super) namespace: Option<String>,
    /// None for collections and creates.
    pub(super) name: Option<String>,
}

// === impl Verb ===

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
            Self::Other => "other",
        })
    }
}

// === impl Calls ===

impl Calls {
    /// Any request at all.
    pub fn any() -> Self {
        Self {
            verb: None,
            resource: None,
            subresource: Subresource::Any,
            namespace: None,
            name: None,
            first: 1,
            times: 1,
        }
    }

    /// Requests that do `verb` on `resource`, a plural such as `pods`.
    pub fn to(verb: Verb, resource: impl Into<String>) -> Self {
        Self {
            verb: Some(verb),
            resource: Some(resource.into()),
            subresource: Subresource::Is(None),
            ..Self::any()
        }
    }

    /// Requests of any verb on `resource` and its subresources.
    pub fn on(resource: impl Into<String>) -> Self {
        Self { resource: Some(resource.into()), ..Self::any() }
    }

    /// Reads of one object.
    pub fn get(resource: impl Into<String>) -> Self {
        Self::to(Verb::Get, resource)
    }

    /// Reads of a collection.
    pub fn list(resource: impl Into<String>) -> Self {
        Self::to(Verb::List, resource)
    }

    /// Watches, when they open.
    pub fn watch(resource: impl Into<String>) -> Self {
        Self::to(Verb::Watch, resource)
    }

    /// Creates.
    pub fn create(resource: impl Into<String>) -> Self {
        Self::to(Verb::Create, resource)
    }

    /// Updates (PUT).
    pub fn update(resource: impl Into<String>) -> Self {
        Self::to(Verb::Update, resource)
    }

    /// Patches.
    pub fn patch(resource: impl Into<String>) -> Self {
        Self::to(Verb::Patch, resource)
    }

    /// Deletes of one object.
    pub fn delete(resource: impl Into<String>) -> Self {
        Self::to(Verb::Delete, resource)
    }

    /// Only those on this subresource, for instance `status`.
    pub fn subresource(mut self, subresource: impl Into<String>) -> Self {
        self.subresource = Subresource::Is(Some(subresource.into()));
        self
    }

    /// Only those in this namespace.
    pub fn in_namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = Some(namespace.into());
        self
    }

    /// Only those that name this object in their path; a create does not.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// The first one that is hit, counted from one; those before it pass.
    pub fn nth(mut self, nth: u64) -> Self {
        self.first = nth;
        self
    }

    /// How many in a row are hit.
    pub fn times(mut self, times: u64) -> Self {
        self.times = times;
        self
    }

    /// All from the first one on, until [`Faults::heal`](super::Faults::heal).
    pub fn always(self) -> Self {
        self.times(u64::MAX)
    }

    pub(super) fn matches(&self, call: &Call) -> bool {
        let is = |wanted: &Option<String>, got: Option<&str>| {
            wanted.as_deref().is_none_or(|wanted| got == Some(wanted))
        };
        self.verb.is_none_or(|verb| verb == call.verb)
            && is(&self.resource, Some(&call.resource))
            && is(&self.namespace, call.namespace.as_deref())
            && is(&self.name, call.name.as_deref())
            && match &self.subresource {
                Subresource::Any => true,
                Subresource::Is(subresource) => *subresource == call.subresource,
            }
    }
}

// === impl Call ===

impl Call {
    /// Reads a request as the API server's own request parser does.
    pub(super) fn parse(method: &Method, uri: &Uri) -> Self {
        let parts: Vec<&str> = uri.path().split('/').filter(|part| !part.is_empty()).collect();
        let rest = match parts.as_slice() {
            ["api", _version, rest @ ..] => rest,
            ["apis", _group, _version, rest @ ..] => rest,
            _ => &[],
        };
        let owned = |text: &str| Some(text.to_owned());
        let (namespace, rest) = match rest {
            // These two are subresources of the namespace itself.
            ["namespaces", _, "status" | "finalize"] => (None, rest),
            ["namespaces", namespace, rest @ ..] if !rest.is_empty() => (owned(namespace), rest),
            _ => (None, rest),
        };
        let (resource, name, subresource) = match rest {
            [] => return Self::other(uri.path()),
            [resource] => (resource, None, None),
            [resource, name] => (resource, owned(name), None),
            [resource, name, subresource @ ..] => {
                (resource, owned(name), Some(subresource.join("/")))
            }
        };
        let verb = verb(method, uri, name.is_some());
        Self { verb, resource: (*resource).to_owned(), subresource, namespace, name }
    }

    fn other(path: &str) -> Self {
        Self {
            verb: Verb::Other,
            resource: path.to_owned(),
            subresource: None,
            namespace: None,
            name: None,
        }
    }

    /// The resource as access control writes it: `pods`, `pods/status`.
    pub(super) fn target(&self) -> String {
        match &self.subresource {
            None => self.resource.clone(),
            Some(subresource) => format!("{}/{subresource}", self.resource),
        }
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.verb, self.target())?;
        match (&self.namespace, &self.name) {
            (Some(namespace), Some(name)) => write!(f, " {namespace}/{name}"),
            (Some(namespace), None) => write!(f, " in {namespace}"),
            (None, Some(name)) => write!(f, " {name}"),
            (None, None) => Ok(()),
        }
    }
}

fn verb(method: &Method, uri: &Uri, named: bool) -> Verb {
    match *method {
        Method::POST => Verb::Create,
        Method::PUT => Verb::Update,
        Method::PATCH => Verb::Patch,
        Method::DELETE if named => Verb::Delete,
        Method::DELETE => Verb::DeleteCollection,
        Method::GET if is_watch(uri) => Verb::Watch,
        Method::GET if named => Verb::Get,
        Method::GET => Verb::List,
        _ => Verb::Other,
    }
}

/// Any value but `0` and `false` asks for a watch, an empty one too.
fn is_watch(uri: &Uri) -> bool {
    uri.query().unwrap_or_default().split('&').any(|pair| {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        key == "watch" && !matches!(value, "0" | "false")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(method: &Method, uri: &str) -> String {
        Call::parse(method, &uri.parse().unwrap()).to_string()
    }

    #[test]
    fn requests_are_read_as_the_server_reads_them() {
        let cases = [
            (Method::GET, "/api/v1/pods", "list pods"),
            (Method::GET, "/api/v1/pods?&watch=true&resourceVersion=5", "watch pods"),
            (Method::GET, "/api/v1/pods?watch", "watch pods"),
            (Method::GET, "/api/v1/pods?watch=0", "list pods"),
            (Method::GET, "/api/v1/namespaces/a/pods/p", "get pods a/p"),
            (Method::GET, "/api/v1/namespaces/a/pods/p?watch=1", "watch pods a/p"),
            (Method::POST, "/api/v1/namespaces/a/pods?", "create pods in a"),
            (Method::POST, "/api/v1/namespaces/a/pods/p/binding", "create pods/binding a/p"),
            (Method::PATCH, "/api/v1/namespaces/a/pods/p/status", "patch pods/status a/p"),
            (Method::DELETE, "/api/v1/namespaces/a/pods/p", "delete pods a/p"),
            (Method::DELETE, "/api/v1/namespaces/a/pods", "deletecollection pods in a"),
            (Method::GET, "/api/v1/namespaces", "list namespaces"),
            (Method::GET, "/api/v1/namespaces/a", "get namespaces a"),
            (Method::PUT, "/api/v1/namespaces/a/finalize", "update namespaces/finalize a"),
            (Method::PUT, "/apis/apps/v1/namespaces/a/replicasets/r", "update replicasets a/r"),
            (Method::GET, "/apis/apps/v1", "other /apis/apps/v1"),
            (Method::GET, "/apis", "other /apis"),
            (Method::GET, "/readyz", "other /readyz"),
        ];
        for (method, uri, expected) in cases {
            assert_eq!(call(&method, uri), expected, "{method} {uri}");
        }
    }

    #[test]
    fn a_selector_without_a_subresource_leaves_subresources_alone() {
        let uri = "/api/v1/namespaces/a/pods/p/status".parse().unwrap();
        let status = Call::parse(&Method::PATCH, &uri);
        assert!(!Calls::patch("pods").matches(&status));
        assert!(Calls::patch("pods").subresource("status").matches(&status));
        assert!(Calls::on("pods").matches(&status));
        assert!(Calls::any().matches(&status));
        assert!(Calls::on("pods").named("p").in_namespace("a").matches(&status));
        assert!(!Calls::on("pods").named("q").matches(&status));
        assert!(!Calls::on("pods").in_namespace("b").matches(&status));
    }
}
