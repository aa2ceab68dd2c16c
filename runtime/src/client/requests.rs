//! Properties of a request that the layers of the client depend on.

use http::{Request, Uri};
use kube_client::client::Body;

/// Copies the request, or returns `None` if its body is a stream, which can be sent only once.
///
/// Extensions are copied too: layers below read them.
pub(super) fn copy(request: &Request<Body>) -> Option<Request<Body>> {
    let body = request.body().try_clone()?;
    let mut copy = Request::new(body);
    copy.method_mut().clone_from(request.method());
    copy.uri_mut().clone_from(request.uri());
    *copy.version_mut() = request.version();
    copy.headers_mut().clone_from(request.headers());
    copy.extensions_mut().clone_from(request.extensions());
    Some(copy)
}

/// Returns true if the answer is a stream without an end: a watch, a followed log, a session in a
/// container, a proxied connection.
///
/// Such an answer has no timeout between its parts: silence is normal.
pub(super) fn is_long_running(uri: &Uri) -> bool {
    let sessions = ["exec", "attach", "portforward", "proxy"];
    is_watch(uri)
        || subresource(uri.path()).is_some_and(|name| sessions.contains(&name))
        || uri.query().unwrap_or_default().split('&').any(|pair| pair == "follow=true")
}

/// Returns the subresource that a path names. Namespaces and objects may have its name too.
fn subresource(path: &str) -> Option<&str> {
    let mut segments = path.trim_matches('/').split('/');
    let before_plural = match segments.next()? {
        "api" => 1,
        "apis" => 2,
        _ => return None,
    };
    // The names of the namespace and the object, with the plural between them, or the object's.
    let before_subresource = if segments.nth(before_plural)? == "namespaces" { 3 } else { 1 };
    segments.nth(before_subresource)
}

/// Returns true if the request is a watch.
///
/// The API server accepts both forms.
pub(super) fn is_watch(uri: &Uri) -> bool {
    let query = uri.query().unwrap_or_default();
    query.split('&').any(|pair| matches!(pair, "watch=true" | "watch=1"))
}
