//! Requests that the real server sends on, to a kubelet or to pods. There are none.

use super::access;
use homeostat_faults::{RequestInfo, Verb};

use crate::access::User;
use crate::core::Core;
use crate::fields::read_path;
use crate::status::Failure;

/// Returns the error for a request that needs a kubelet. The checks before that are the real
/// server's.
pub(crate) fn refuse(core: &Core, user: &User, info: &RequestInfo) -> Failure {
    let name = info.name.as_deref().unwrap_or_default();
    let subresource = info.subresource.as_deref().unwrap_or_default();
    let nowhere = Failure::without_kubelet(&info.resource, name, subresource);
    let opens_stream = matches!(subresource, "attach" | "exec" | "portforward");
    if info.resource != "pods" || !(opens_stream || subresource == "log") {
        return nowhere;
    }
    match info.verb {
        Verb::Get => {}
        Verb::Create if opens_stream => {}
        _ => return Failure::method_unknown(),
    }
    // A GET may open a stream, which is more than a read.
    if opens_stream && let Err(failure) = access::check_as(core, user, info, "create") {
        return failure;
    }
    let Some(pods) = core.kinds().find("", "v1", "pods") else { return nowhere };
    let key = pods.kind.key(info.namespace.as_deref().unwrap_or_default(), name);
    let Some(pod) = core.get(pods.resource, &key) else {
        return Failure::not_found(&pods.kind, name);
    };
    if opens_stream && read_path(&core.fields(&pods, &pod), "spec.nodeName").is_none() {
        return Failure::bad_request(format!("pod {name} does not have a host assigned"));
    }
    nowhere
}
