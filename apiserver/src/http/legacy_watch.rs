//! The old paths of watches, such as `/api/v1/watch/pods`. Clients use `?watch=true` now.

use http::{Method, Uri};

/// Returns the present form of a request for an old path; `None` for any other request.
pub(super) fn rewrite(method: &Method, uri: &Uri) -> Option<Uri> {
    if *method != Method::GET {
        return None;
    }
    let parts: Vec<&str> = uri.path().split('/').skip(1).collect();
    let (start, rest) = match parts.as_slice() {
        ["api", version, "watch", rest @ ..] => (format!("/api/{version}"), rest),
        ["apis", group, version, "watch", rest @ ..] => (format!("/apis/{group}/{version}"), rest),
        _ => return None,
    };
    let (collection, name) = match rest {
        [resource] => ((*resource).to_owned(), None),
        ["namespaces", namespace, resource] => (format!("namespaces/{namespace}/{resource}"), None),
        ["namespaces", namespace, resource, name] => {
            (format!("namespaces/{namespace}/{resource}"), Some(name))
        }
        [resource, name] => ((*resource).to_owned(), Some(name)),
        _ => return None,
    };
    let mut query: Vec<String> = vec!["watch=true".to_owned()];
    let mut term = name.map(|name| format!("metadata.name%3D{name}"));
    for pair in uri.query().unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
        match (pair.split_once('='), &mut term) {
            (Some(("watch", _)), _) => {}
            (Some(("fieldSelector", selector)), term @ Some(_)) if !selector.is_empty() => {
                let own = term.take().unwrap_or_default();
                query.push(format!("fieldSelector={selector}%2C{own}"));
            }
            _ => query.push(pair.to_owned()),
        }
    }
    query.extend(term.map(|term| format!("fieldSelector={term}")));
    format!("{start}/{collection}?{}", query.join("&")).parse().ok()
}

/// Returns true if an old path names one object.
pub(super) fn names_object(path: &str) -> bool {
    let rest = path.split_once("/watch/").map_or("", |(_, rest)| rest);
    let parts: Vec<&str> = rest.split('/').collect();
    matches!(parts.as_slice(), ["namespaces", _, _, _]) || parts.len() == 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_path_becomes_a_watch_of_the_collection() {
        for (old, new) in [
            ("/api/v1/watch/pods", "/api/v1/pods?watch=true"),
            (
                "/api/v1/watch/namespaces/a?resourceVersion=1",
                "/api/v1/namespaces?watch=true&resourceVersion=1&fieldSelector=metadata.name%3Da",
            ),
            (
                "/apis/apps/v1/watch/namespaces/a/deployments?watch=0",
                "/apis/apps/v1/namespaces/a/deployments?watch=true",
            ),
            (
                "/api/v1/watch/namespaces/a/pods/b?fieldSelector=spec.nodeName%3Dn",
                "/api/v1/namespaces/a/pods?watch=true&fieldSelector=spec.nodeName%3Dn%2C\
                 metadata.name%3Db",
            ),
        ] {
            let rewritten = rewrite(&Method::GET, &old.parse().unwrap());
            assert_eq!(rewritten.map(|uri| uri.to_string()).as_deref(), Some(new));
        }
    }

    #[test]
    fn other_request_is_left_alone() {
        for (method, path) in [
            (Method::GET, "/api/v1/pods"),
            (Method::GET, "/api/v1/namespaces/watch/pods"),
            (Method::GET, "/api/v1/watch"),
            (Method::POST, "/api/v1/watch/pods"),
        ] {
            assert_eq!(rewrite(&method, &path.parse().unwrap()), None, "{path}");
        }
    }
}
