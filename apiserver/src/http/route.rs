//! From a path to what it names.

use http::Method;

use super::health;
use super::params::decode_lossy;
use crate::kinds::{Kinds, Served};

/// What a path names.
#[derive(Debug)]
pub(crate) enum Route {
    Resource(Target),
    Document(Document),
    /// Whether the server is well, or one of its checks.
    Health {
        kind: String,
        check: Option<String>,
    },
    /// No path at all: an escape that is none.
    Malformed,
    /// Nothing, in a group of built-in kinds.
    NoResource,
    NotFound,
}

/// What describes the server.
#[derive(Debug)]
pub(crate) enum Document {
    /// Which paths there are.
    Root,
    Version,
    CoreVersions,
    Groups,
    Group(String),
    Resources {
        group: String,
        version: String,
    },
    /// The index of the `OpenAPI` documents.
    OpenApi,
    /// One of them.
    Schemas(String),
}

/// A collection, an object, or a subresource.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) served: Served,
    pub(crate) namespace: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) subresource: Option<String>,
}

/// Paths below which a slash at the end counts.
const HEALTH: [&str; 3] = ["healthz", "livez", "readyz"];

// === impl Route ===

impl Route {
    pub(crate) fn find(kinds: &Kinds, path: &str) -> Self {
        let Some(path) = decode_lossy(path) else { return Self::Malformed };
        let mut parts: Vec<&str> = path.split('/').skip(1).collect();
        if parts.len() > 1 && parts.last() == Some(&"") && !HEALTH.contains(&parts[0]) {
            parts.pop();
        }
        match parts.as_slice() {
            [""] => Self::Document(Document::Root),
            [kind @ ("healthz" | "livez" | "readyz")] => {
                Self::Health { kind: (*kind).to_owned(), check: None }
            }
            ["healthz" | "livez" | "readyz", check] if health::is_check(check) => {
                Self::Health { kind: parts[0].to_owned(), check: Some((*check).to_owned()) }
            }
            ["version"] => Self::Document(Document::Version),
            ["api"] => Self::Document(Document::CoreVersions),
            ["apis"] => Self::Document(Document::Groups),
            ["openapi", "v3"] => Self::Document(Document::OpenApi),
            ["openapi", "v3", rest @ ..] => Self::Document(Document::Schemas(rest.join("/"))),
            ["api", version, rest @ ..] => Self::in_group(kinds, "", version, rest),
            ["apis", group] if kinds.rows().iter().any(|kind| kind.group == *group) => {
                Self::Document(Document::Group((*group).to_owned()))
            }
            ["apis", group, version, rest @ ..] => Self::in_group(kinds, group, version, rest),
            _ => Self::NotFound,
        }
    }

    fn in_group(kinds: &Kinds, group: &str, version: &str, rest: &[&str]) -> Self {
        if rest.is_empty() {
            let known =
                kinds.rows().iter().any(|kind| kind.group == group && kind.version == version);
            let (group, version) = (group.to_owned(), version.to_owned());
            return if known {
                Self::Document(Document::Resources { group, version })
            } else {
                Self::nothing(kinds, &group)
            };
        }
        Target::find(kinds, group, version, rest)
            .map_or_else(|| Self::nothing(kinds, group), Self::Resource)
    }

    fn nothing(kinds: &Kinds, group: &str) -> Self {
        let built_in = kinds.rows().iter().any(|kind| kind.group == group && !kind.custom);
        if built_in { Self::NoResource } else { Self::NotFound }
    }
}

// === impl Document ===

impl Document {
    /// Whether it is the answer to such a request: the oldest documents do not care.
    pub(crate) fn takes(&self, method: &Method) -> bool {
        *method == Method::GET || matches!(self, Self::Root | Self::Groups | Self::Group(_))
    }
}

// === impl Target ===

impl Target {
    fn find(kinds: &Kinds, group: &str, version: &str, rest: &[&str]) -> Option<Self> {
        // `namespaces/x/status` is a subresource of a namespace, `namespaces/x/pods` a collection in it.
        let (namespace, rest) = match rest {
            ["namespaces", name, plural, rest @ ..]
                if group.is_empty()
                    && rest.is_empty()
                    && kinds.namespaces().kind.has_subresource(plural) =>
            {
                return Self::new(kinds.namespaces(), None, &[name, plural]);
            }
            ["namespaces", namespace, rest @ ..] if !rest.is_empty() => (Some(*namespace), rest),
            _ => (None, rest),
        };
        let (plural, rest) = rest.split_first()?;
        Self::new(kinds.find(group, version, plural)?, namespace, rest)
    }

    fn new(served: Served, namespace: Option<&str>, rest: &[&str]) -> Option<Self> {
        let (name, subresource) = match rest {
            [] => (None, None),
            [name] => (Some(*name), None),
            [name, subresource] if served.kind.has_subresource(subresource) => {
                (Some(*name), Some(*subresource))
            }
            _ => return None,
        };
        let kind = &served.kind;
        // No namespace is every namespace.
        let namespace = namespace.filter(|namespace| !namespace.is_empty());
        // An object of a namespaced kind has a namespace; a kind without namespaces has none anywhere.
        let misplaced = if kind.namespaced {
            name.is_some() && namespace.is_none()
        } else {
            namespace.is_some()
        };
        if misplaced || name.is_some_and(str::is_empty) {
            return None;
        }
        let owned = |part: Option<&str>| part.map(str::to_owned);
        Some(Self {
            namespace: owned(namespace),
            name: owned(name),
            subresource: owned(subresource),
            served,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Named = (String, Option<String>, Option<String>, Option<String>);

    fn target(path: &str) -> Option<Named> {
        match Route::find(&Kinds::new(Vec::new()), path) {
            Route::Resource(Target { served, namespace, name, subresource }) => {
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
