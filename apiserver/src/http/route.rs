//! From a path to what it names.

use super::params::decode;
use crate::kinds::{Kinds, Served};

/// What a path names.
#[derive(Debug)]
pub(crate) enum Route {
    Resource(Target),
    Document(Document),
    Health,
    /// Nothing, in a group of built-in kinds.
    NoResource,
    NotFound,
}

/// What describes the server.
#[derive(Debug)]
pub(crate) enum Document {
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

// === impl Route ===

impl Route {
    pub(crate) fn find(kinds: &Kinds, path: &str) -> Self {
        let Some(parts) =
            path.split('/').skip(1).map(|part| decode(part, false)).collect::<Option<Vec<_>>>()
        else {
            return Self::NotFound;
        };
        let mut parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        if parts.last() == Some(&"") {
            parts.pop();
        }
        match parts.as_slice() {
            ["healthz" | "livez" | "readyz", ..] => Self::Health,
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
