//! What a request asks for, read from its method and URI, and who asks.

use std::{fmt, sync::Arc};

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

/// One request, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Call {
    /// Who asks; empty when the client has no name.
    pub(super) client: Arc<str>,
    pub(super) verb: Verb,
    /// The plural; the path when the request is about no resource.
    pub(super) resource: String,
    pub(super) subresource: Option<String>,
    pub(super) namespace: Option<String>,
    /// None for collections and creates.
    pub(super) name: Option<String>,
}

// === impl Verb ===

impl Verb {
    /// Whether it changes what is stored.
    pub fn is_mutating(self) -> bool {
        !matches!(self, Self::Get | Self::List | Self::Watch | Self::Other)
    }
}

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

// === impl Call ===

impl Call {
    /// Reads a request as the API server's own request parser does.
    pub(crate) fn parse(client: Arc<str>, method: &Method, uri: &Uri) -> Self {
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
            [] => return Self::other(client, uri.path()),
            [resource] => (resource, None, None),
            [resource, name] => (resource, owned(name), None),
            [resource, name, subresource @ ..] => {
                (resource, owned(name), Some(subresource.join("/")))
            }
        };
        let verb = verb(method, uri, name.is_some());
        Self { client, verb, resource: (*resource).to_owned(), subresource, namespace, name }
    }

    fn other(client: Arc<str>, path: &str) -> Self {
        Self {
            client,
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
        Call::parse("".into(), method, &uri.parse().unwrap()).to_string()
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
}
