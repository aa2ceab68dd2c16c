//! Routing: the meaning of a path.

use std::borrow::Cow;

use homeostat_faults::{RequestInfo, Verb};
use http::{HeaderMap, Method};
use jiff::Timestamp;

use super::health::{self, ENDPOINTS};
use crate::access::Access;
use crate::kinds::Kinds;
use crate::request::params::decode_lossy;
use crate::request::target::Target;
use crate::status::Failure;

/// The meaning of a path.
#[derive(Debug)]
pub(crate) enum Route {
    Resource(Target),
    Document(Document),
    /// The health of the server, or one of its checks.
    Health {
        kind: String,
        check: Option<String>,
    },
    /// The metrics of the server.
    Metrics,
    /// An invalid percent-encoding.
    Malformed,
    /// A path in a group of built-in kinds that names no resource.
    NoResource,
    /// A subresource that the definition of a kind does not have.
    NoSubresource(Failure),
    /// A subresource that needs a kubelet.
    Kubelet(RequestInfo),
    NotFound,
}

/// A document that describes the server.
#[derive(Debug)]
pub(crate) enum Document {
    /// The list of paths.
    Root,
    Version,
    CoreVersions,
    Groups,
    Group(String),
    Resources {
        group: String,
        version: String,
    },
    /// The issuer of the tokens of service accounts.
    Issuer,
    /// The public keys of the issuer.
    SigningKeys,
    /// The `OpenAPI` v2 document.
    Swagger,
    /// The index of the `OpenAPI` documents.
    OpenApi,
    /// One `OpenAPI` document.
    Schemas(String),
}

/// A request for a document.
pub(super) struct Wanted<'a> {
    pub(super) document: &'a Document,
    pub(super) headers: &'a HeaderMap,
    /// The parameter `hash`: the edition that the client knows of; often empty.
    pub(super) hash: &'a str,
    pub(super) now: Timestamp,
    pub(super) access: &'a Access,
}

// === impl Route ===

impl Route {
    pub(crate) fn find(kinds: &Kinds, method: &Method, path: &str, query: &str) -> Self {
        let Some(path) = decode_lossy(path) else { return Self::Malformed };
        let mut parts = RequestInfo::segments(&path);
        while parts.len() > 1 && parts.last() == Some(&"") && !ENDPOINTS.contains(&parts[0]) {
            // Below a health endpoint the slash is significant.
            parts.pop();
        }
        match parts.as_slice() {
            [""] => Self::Document(Document::Root),
            [kind @ ("healthz" | "livez" | "readyz")] => {
                Self::Health { kind: (*kind).to_owned(), check: None }
            }
            [kind @ ("healthz" | "livez" | "readyz"), check @ ..]
                if health::is_check(kind, check) =>
            {
                Self::Health { kind: (*kind).to_owned(), check: Some(check.join("/")) }
            }
            ["metrics"] => Self::Metrics,
            ["version"] => Self::Document(Document::Version),
            [".well-known", "openid-configuration"] => Self::Document(Document::Issuer),
            ["openid", "v1", "jwks"] => Self::Document(Document::SigningKeys),
            [".well-known", "openid-configuration", ..] | ["openid", "v1", "jwks", ..] => {
                Self::NoResource
            }
            ["api"] => Self::Document(Document::CoreVersions),
            ["apis"] => Self::Document(Document::Groups),
            ["openapi", "v2"] => Self::Document(Document::Swagger),
            ["openapi", "v3"] => Self::Document(Document::OpenApi),
            ["openapi", "v3", rest @ ..] => Self::Document(Document::Schemas(rest.join("/"))),
            ["api", version] => Self::group_version(kinds, "", version),
            ["api", ..] => {
                let path = without_proxied(&path, &parts);
                Self::resource(kinds, "", RequestInfo::parse(method, &path, query))
            }
            ["apis", group] if kinds.has_group(group) => {
                Self::Document(Document::Group((*group).to_owned()))
            }
            ["apis", group, version] => Self::group_version(kinds, group, version),
            ["apis", group, _, ..] => {
                Self::resource(kinds, group, RequestInfo::parse(method, &path, query))
            }
            _ => Self::NotFound,
        }
    }

    /// Returns the list of resources of a group's version, if the path names nothing in it.
    fn group_version(kinds: &Kinds, group: &str, version: &str) -> Self {
        let known = kinds.rows_of_group(group).any(|kind| kind.version == version);
        if !known {
            return Self::nothing(kinds, group);
        }
        let (group, version) = (group.to_owned(), version.to_owned());
        Self::Document(Document::Resources { group, version })
    }

    fn resource(kinds: &Kinds, group: &str, info: RequestInfo) -> Self {
        if let ("", Some(subresource), Some(_)) = (group, &info.subresource, &info.name)
            && needs_kubelet(&info.resource, subresource)
        {
            return Self::Kubelet(info);
        }
        let defined = kinds.find(&info.group, &info.version, &info.resource);
        let defined = defined.filter(|served| served.kind.definition.is_some());
        match (defined, &info.subresource, &info.name) {
            // Only lists and watches read all namespaces.
            (Some(served), ..)
                if served.kind.namespaced
                    && info.namespace.is_none()
                    && !matches!(info.verb, Verb::List | Verb::Watch) =>
            {
                Self::NotFound
            }
            (Some(served), Some(subresource), Some(name))
                if !served.kind.has_subresource(subresource) =>
            {
                Self::NoSubresource(Failure::not_found(&served.kind, name))
            }
            _ => Target::find(kinds, info)
                .map_or_else(|| Self::nothing(kinds, group), Self::Resource),
        }
    }

    fn nothing(kinds: &Kinds, group: &str) -> Self {
        let built_in = kinds.built_in_rows().any(|kind| kind.group == group && !kind.custom);
        if built_in { Self::NoResource } else { Self::NotFound }
    }
}

/// Returns the path without what follows `proxy`, which is a path of the pod, service or node.
fn without_proxied<'a>(path: &'a str, parts: &[&str]) -> Cow<'a, str> {
    let kept = match parts {
        [_, _, "namespaces", _, "pods" | "services", _, "proxy", ..] => 7,
        [_, _, "nodes", _, "proxy", ..] => 5,
        _ => return Cow::Borrowed(path),
    };
    Cow::Owned(format!("/{}", parts[..kept].join("/")))
}

/// Returns true if the real server sends requests for a subresource on, to the kubelet or the pods.
fn needs_kubelet(resource: &str, subresource: &str) -> bool {
    match resource {
        "pods" => matches!(subresource, "attach" | "exec" | "log" | "portforward" | "proxy"),
        "nodes" | "services" => subresource == "proxy",
        _ => false,
    }
}

// === impl Document ===

impl Document {
    /// Returns true if the document lists groups, versions or resources. It exists in YAML and
    /// protobuf, too.
    pub(crate) fn is_discovery(&self) -> bool {
        use Document::{CoreVersions, Group, Groups, Resources};
        matches!(self, CoreVersions | Groups | Group(_) | Resources { .. })
    }

    /// Returns true if the document answers requests with this method: the oldest documents and
    /// those of `OpenAPI` accept any.
    pub(crate) fn takes(&self, method: &Method) -> bool {
        let is_resource =
            matches!(self, Self::Version | Self::CoreVersions | Self::Resources { .. });
        let is_of_issuer = matches!(self, Self::Issuer | Self::SigningKeys);
        *method == Method::GET || !(is_resource || is_of_issuer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Named = (String, Option<String>, Option<String>, Option<String>);

    fn target(path: &str) -> Option<Named> {
        match Route::find(&Kinds::new(Vec::new()), &Method::GET, path, "") {
            Route::Resource(Target { served, info }) => {
                let RequestInfo { namespace, name, subresource, .. } = info;
                Some((served.kind.plural.to_string(), namespace, name, subresource))
            }
            _ => None,
        }
    }

    #[test]
    fn paths_name_collections_objects_and_subresources() {
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(target("/api/v1/pods"), Some(("pods".into(), None, None, None)));
        let named = ("pods".into(), some("n"), some("p"), some("status"));
        assert_eq!(target("/api/v1/namespaces/n/pods/p/status"), Some(named));
        assert_eq!(
            target("/api/v1/namespaces/n"),
            Some(("namespaces".into(), None, some("n"), None))
        );
        let finalize = ("namespaces".into(), None, some("n"), some("finalize"));
        assert_eq!(target("/api/v1/namespaces/n/finalize"), Some(finalize));
        assert_eq!(target("/apis/apps/v1/namespaces/n/replicasets").unwrap().1, some("n"));
        for unknown in [
            "/api/v1/pods/p",
            "/api/v1/bars",
            "/apis/nope.io/v1/foos",
            "/api/v1/namespaces/n/nodes",
            "/x",
        ] {
            assert_eq!(target(unknown), None, "{unknown}");
        }
    }
}
