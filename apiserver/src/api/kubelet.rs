//! Requests that the real server sends on, to a kubelet or to pods. There are none.

use homeostat_faults::{RequestInfo, Verb};
use homeostat_schema::quote;

use super::access;
use crate::access::User;
use crate::core::Core;
use crate::fields::{Fields, read_path};
use crate::status::{Failure, ResourceName, Result};

/// Returns the error for a request that needs a kubelet or a pod that answers. The checks before
/// that are the real server's.
pub(crate) fn refuse(core: &Core, user: &User, info: &RequestInfo) -> Failure {
    let name = info.name.as_deref().unwrap_or_default();
    let subresource = info.subresource.as_deref().unwrap_or_default();
    let refusal = match (&*info.resource, subresource) {
        ("pods", "attach" | "exec" | "portforward") => stream(core, user, info),
        ("pods", "log") => log(core, info),
        ("pods", _) => find(core, info, "pods").and_then(|pod| match read_path(&pod, POD_IP) {
            None => Err(Failure::bad_request("address not allowed")),
            Some(_) => Ok(()),
        }),
        ("nodes", _) => find(core, info, "nodes").map(|_| ()),
        ("services", _) => find(core, info, "endpoints").map(|_| ()).map_err(|_| {
            let message = format!("no endpoints available for service {}", quote(name));
            Failure::new(503, "ServiceUnavailable", message)
        }),
        _ => Ok(()),
    };
    let unanswered = || Failure::without_kubelet(&info.resource, name, subresource);
    refusal.err().unwrap_or_else(unanswered)
}

const POD_IP: &str = "status.podIP";

/// Checks a request that opens a stream to a container.
fn stream(core: &Core, user: &User, info: &RequestInfo) -> Result<()> {
    if !matches!(info.verb, Verb::Get | Verb::Create) {
        return Err(Failure::method_unknown());
    }
    // A GET may open a stream, which is more than a read.
    access::check_as(core, user, info, "create")?;
    let pod = find(core, info, "pods")?;
    if read_path(&pod, "spec.nodeName").is_none() {
        let name = info.name.as_deref().unwrap_or_default();
        return Err(Failure::bad_request(format!("pod {name} does not have a host assigned")));
    }
    Ok(())
}

fn log(core: &Core, info: &RequestInfo) -> Result<()> {
    match info.verb {
        Verb::Get => find(core, info, "pods").map(|_| ()),
        _ => Err(Failure::method_unknown()),
    }
}

/// Returns the object of a kind of the core group that has the name in a request.
fn find(core: &Core, info: &RequestInfo, plural: &str) -> Result<Fields> {
    let namespace = info.namespace.as_deref().unwrap_or_default();
    let name = info.name.as_deref().unwrap_or_default();
    match core.find(plural, namespace, name) {
        Some(stored) => Ok(stored.fields()),
        None => Err(Failure::not_found(ResourceName::built_in("", plural), name)),
    }
}
