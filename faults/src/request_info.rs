//! The verb and the resource of a request, read from its method and path.

use std::fmt;
use std::sync::Arc;

use http::{Method, Uri};
use serde_json::Value;

/// The verb of a request, as Kubernetes RBAC names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Verb {
    /// Reads one object.
    Get,
    /// Reads a collection.
    List,
    /// Watches a collection or one object.
    Watch,
    /// POST, also on a subresource such as `pods/binding`.
    Create,
    /// PUT.
    Update,
    /// PATCH, including server-side apply.
    Patch,
    /// Deletes one object.
    Delete,
    /// Deletes a collection.
    DeleteCollection,
    /// A request for no resource: discovery, `/version`, `/readyz`.
    Other,
}

/// The attributes of one request, as `RequestInfo` of the Kubernetes API server has them. Routing,
/// fault rules and RBAC all read them.
///
/// # Examples
///
/// ```
/// use homeostat_faults::{RequestInfo, Verb};
/// use http::Method;
///
/// let path = "/apis/apps/v1/namespaces/shop/replicasets/web/status";
/// let info = RequestInfo::parse(&Method::PATCH, path, "");
/// assert_eq!(info.verb, Verb::Patch);
/// assert_eq!(info.to_string(), "patch replicasets/status shop/web");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RequestInfo {
    /// The verb of the request.
    pub verb: Verb,
    /// The API group; empty for the core group.
    pub group: String,
    /// The version of the group; empty if the request is for no resource.
    pub version: String,
    /// The plural resource name, or the path if the request is for no resource.
    pub resource: String,
    /// The part after the name: `status`, `scale`.
    pub subresource: Option<String>,
    /// `None` for cluster-scoped resources and for all namespaces.
    pub namespace: Option<String>,
    /// `None` for collections and creates.
    pub name: Option<String>,
}

/// A request and the name of its client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ClientRequest {
    /// The name of the client; empty if it has none.
    pub(crate) client: Arc<str>,
    pub(crate) info: RequestInfo,
    /// The object in the body; `None` unless a rule looks at bodies.
    pub(crate) object: Option<Arc<Value>>,
    /// The version from which a watch starts, if the request names one.
    pub(crate) watched_from: Option<u64>,
}

/// The segments of `/apis/apps/v1/namespaces/shop/replicasets/web/status`: few paths have more.
const USUAL_SEGMENTS: usize = 8;

// === impl Verb ===

impl Verb {
    /// Returns true if the verb changes stored objects.
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

// === impl RequestInfo ===

impl RequestInfo {
    /// Parses a request as the request parser of the real API server does. The escapes of `path`
    /// are decoded by the caller.
    pub fn parse(method: &Method, path: &str, query: &str) -> Self {
        let mut parts = Self::segments(path);
        while parts.len() > 1 && parts.last() == Some(&"") {
            parts.pop();
        }
        let (group, version, rest) = match parts.as_slice() {
            ["api", version, rest @ ..] => ("", *version, rest),
            ["apis", group, version, rest @ ..] => (*group, *version, rest),
            _ => ("", "", &[][..]),
        };
        let owned = |text: &str| Some(text.to_owned());
        let (namespace, rest) = match rest {
            // These two are subresources of the namespace itself.
            ["namespaces", _, "status" | "finalize"] => (None, rest),
            ["namespaces", namespace, rest @ ..] if !rest.is_empty() => (owned(namespace), rest),
            _ => (None, rest),
        };
        let (resource, name, subresource) = match rest {
            [] | [""] => return Self::without_resource(path),
            [resource] => (resource, None, None),
            [resource, name] => (resource, owned(name), None),
            [resource, name, subresource @ ..] => {
                (resource, owned(name), Some(subresource.join("/")))
            }
        };
        let verb = verb(method, query, name.is_some());
        let (group, version) = (group.to_owned(), version.to_owned());
        // An empty namespace means all namespaces.
        let namespace = namespace.filter(|namespace| !namespace.is_empty());
        Self {
            verb,
            group,
            version,
            resource: (*resource).to_owned(),
            subresource,
            namespace,
            name,
        }
    }

    fn without_resource(path: &str) -> Self {
        Self {
            verb: Verb::Other,
            group: String::new(),
            version: String::new(),
            resource: path.to_owned(),
            subresource: None,
            namespace: None,
            name: None,
        }
    }

    /// Returns the segments of a path: the texts after its slashes.
    ///
    /// They are short, so that a loop over the bytes is faster than a search for each slash.
    ///
    /// # Examples
    ///
    /// ```
    /// use homeostat_faults::RequestInfo;
    ///
    /// assert_eq!(RequestInfo::segments("/api/v1/pods/"), ["api", "v1", "pods", ""]);
    /// ```
    pub fn segments(path: &str) -> Vec<&str> {
        let mut segments = Vec::with_capacity(USUAL_SEGMENTS);
        let mut end = path.len();
        for (at, _) in path.bytes().enumerate().rev().filter(|(_, byte)| *byte == b'/') {
            segments.push(&path[at + 1..end]);
            end = at;
        }
        segments.reverse();
        segments
    }

    /// Returns true if the request is for a resource, not for a path such as `/version`.
    pub fn is_for_resource(&self) -> bool {
        !self.version.is_empty()
    }

    /// Returns the resource as RBAC writes it: `pods`, `pods/status`.
    pub fn rbac_resource(&self) -> String {
        match &self.subresource {
            None => self.resource.clone(),
            Some(subresource) => [&self.resource, "/", subresource].concat(),
        }
    }

    /// Returns the resource with its group, as error messages write it: `replicasets.apps`.
    pub fn group_resource(&self) -> String {
        match self.group.as_str() {
            "" => self.resource.clone(),
            group => format!("{}.{group}", self.resource),
        }
    }
}

impl fmt::Display for RequestInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.verb, self.rbac_resource())?;
        match (&self.namespace, &self.name) {
            (Some(namespace), Some(name)) => write!(f, " {namespace}/{name}"),
            (Some(namespace), None) => write!(f, " in {namespace}"),
            (None, Some(name)) => write!(f, " {name}"),
            (None, None) => Ok(()),
        }
    }
}

// === impl ClientRequest ===

impl ClientRequest {
    pub(crate) fn parse(client: Arc<str>, method: &Method, uri: &Uri) -> Self {
        let query = uri.query().unwrap_or_default();
        let info = RequestInfo::parse(method, uri.path(), query);
        let version = || query.split('&').find_map(|pair| pair.strip_prefix("resourceVersion="));
        let is_watch = info.verb == Verb::Watch;
        let watched_from = is_watch.then(version).flatten().and_then(|text| text.parse().ok());
        Self { client, info, object: None, watched_from }
    }
}

impl fmt::Display for ClientRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.info.fmt(f)
    }
}

fn verb(method: &Method, query: &str, has_name: bool) -> Verb {
    match *method {
        Method::POST => Verb::Create,
        Method::PUT => Verb::Update,
        Method::PATCH => Verb::Patch,
        Method::DELETE if has_name => Verb::Delete,
        Method::DELETE => Verb::DeleteCollection,
        // The API server watches collections alone.
        Method::GET | Method::HEAD if has_name => Verb::Get,
        Method::GET | Method::HEAD if is_set(query, "watch") => Verb::Watch,
        Method::GET | Method::HEAD => Verb::List,
        _ => Verb::Other,
    }
}

/// Returns true if the first parameter of this name in the query has any value except `0` and
/// `false`. An empty value counts as true.
pub(crate) fn is_set(query: &str, name: &str) -> bool {
    // The API server ignores pairs with a semicolon, and those that cannot be decoded.
    let pairs = query.split('&').filter(|pair| !pair.contains(';'));
    let mut values = pairs.filter_map(|pair| {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        let value = decoded(value)?;
        (decoded(key)? == name).then_some(value)
    });
    values.next().is_some_and(|value| value != "0" && !value.eq_ignore_ascii_case("false"))
}

/// Decodes the escapes of a query. Returns `None` if one is invalid.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let mut digit = || char::from(rest.next()?).to_digit(16);
                u8::try_from(digit()? * 16 + digit()?).ok()?
            }
            other => other,
        });
    }
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(method: &Method, uri: &str) -> RequestInfo {
        let (path, query) = uri.split_once('?').unwrap_or((uri, ""));
        RequestInfo::parse(method, path, query)
    }

    #[test]
    fn requests_are_parsed_as_the_server_parses_them() {
        let cases = [
            (Method::GET, "/api/v1/pods", "list pods"),
            (Method::GET, "/api/v1/pods?&watch=true&resourceVersion=5", "watch pods"),
            (Method::GET, "/api/v1/pods?watch", "watch pods"),
            (Method::GET, "/api/v1/pods?watch=0", "list pods"),
            (Method::GET, "/api/v1/namespaces/a/pods/p", "get pods a/p"),
            (Method::GET, "/api/v1/namespaces/a/pods/p?watch=1", "get pods a/p"),
            (Method::GET, "/api/v1/pods?watch=FALSE", "list pods"),
            (Method::GET, "/api/v1/pods?watch=0&watch=1", "list pods"),
            (Method::GET, "/api/v1/pods?watch=1&watch=0", "watch pods"),
            (Method::GET, "/api/v1/pods?w%61tch=%31", "watch pods"),
            (Method::GET, "/api/v1/pods?watch=%zz&watch=0", "list pods"),
            (Method::GET, "/api/v1/pods?watch=1;&x", "list pods"),
            (Method::GET, "/api/v1/namespaces/a/pods//", "list pods in a"),
            (Method::HEAD, "/api/v1/pods", "list pods"),
            (Method::HEAD, "/api/v1/namespaces/a/pods/p", "get pods a/p"),
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
            assert_eq!(parse(&method, uri).to_string(), expected, "{method} {uri}");
        }
    }

    #[test]
    fn group_is_part_of_the_qualified_resource() {
        let replica_set = parse(&Method::GET, "/apis/apps/v1/namespaces/a/replicasets/r");
        assert_eq!(replica_set.group_resource(), "replicasets.apps");
        assert_eq!(parse(&Method::GET, "/api/v1/pods").group_resource(), "pods");
    }
}
