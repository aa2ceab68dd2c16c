//! Requests that the real server sends on, to a kubelet or to pods. There are none.

use std::sync::Arc;

use homeostat_faults::{RequestInfo, Verb};
use http::Uri;
use serde_json::{Value, json};

use super::{policies, proxies, roles, webhooks};
use crate::access::User;
use crate::admission::meta_text;
use crate::core::Core;
use crate::fields::{Fields, read_path};
use crate::reply::{Document, Reply};
use crate::request::params::Params;
use crate::status::{Cause, Failure, ResourceName, Result};
use crate::webhooks::Conversation;

/// Returns the reply to a request that needs a kubelet or a pod that answers. The checks before
/// that are the real server's.
pub(crate) async fn answer(core: &Core, user: &User, info: &RequestInfo, uri: &Uri) -> Reply {
    let conversation = Arc::<Conversation>::default();
    // The client does not limit the time: a stream may last for long.
    let params = Params::default();
    let reply = || Ok(answer_once(core, (user, info, uri), &conversation));
    let reply = webhooks::replay(core, (&conversation, &params), reply).await;
    core.metrics.take(conversation.take_tally());
    reply.unwrap_or_else(Reply::Failure)
}

fn answer_once(
    core: &Core,
    (user, info, uri): (&User, &RequestInfo, &Uri),
    conversation: &Arc<Conversation>,
) -> Reply {
    let name = info.name.as_deref().unwrap_or_default();
    let subresource = info.subresource.as_deref().unwrap_or_default();
    let params = &Params::parse(uri.query().unwrap_or_default());
    let checked = match (&*info.resource, subresource) {
        ("pods", "attach" | "exec" | "portforward") => {
            stream(core, (user, info, params), conversation)
        }
        ("pods", "log") => match log(core, info, params) {
            // A pod that was never on a node has logged nothing.
            Ok(false) => return Reply::Document(Document::empty(204)),
            Ok(true) => Ok(()),
            Err(failure) => Err(failure),
        },
        _ => policies::check_connect(core, user, info, (params, uri.path()), conversation)
            .and_then(|()| proxies::check(core, info)),
    };
    let unanswered = || Failure::without_kubelet(&info.resource, name, subresource);
    Reply::Failure(checked.err().unwrap_or_else(unanswered))
}

/// Checks a request that opens a stream to a container.
fn stream(
    core: &Core,
    (user, info, params): (&User, &RequestInfo, &Params),
    conversation: &Arc<Conversation>,
) -> Result<()> {
    if !matches!(info.verb, Verb::Get | Verb::Create) {
        return Err(Failure::method_unknown());
    }
    // A GET may open a stream, which is more than a read.
    roles::check_as(core, user, info, "create")?;
    policies::check_connect(core, user, info, (params, ""), conversation)?;
    let pod = find(core, info, "pods")?;
    if info.subresource.as_deref() != Some("portforward") {
        check_container(&pod, params.get("container"))?;
    }
    if !is_on_node(core, &pod)? {
        let name = info.name.as_deref().unwrap_or_default();
        return Err(Failure::bad_request(format!("pod {name} does not have a host assigned")));
    }
    Ok(())
}

/// Checks a request for a log. Returns true if the pod is on a node.
fn log(core: &Core, info: &RequestInfo, params: &Params) -> Result<bool> {
    if info.verb != Verb::Get {
        return Err(Failure::method_unknown());
    }
    let causes = log_option_causes(params)?;
    if !causes.is_empty() {
        let name = info.name.as_deref().unwrap_or_default();
        return Err(Failure::invalid_as("", "PodLogOptions", name, &causes));
    }
    let pod = find(core, info, "pods")?;
    check_container(&pod, params.get("container"))?;
    is_on_node(core, &pod)
}

/// Returns the problems of the parameters of a request for a log.
fn log_option_causes(params: &Params) -> Result<Vec<Cause>> {
    let since = params.number("sinceSeconds")?;
    let (tail, limit) = (params.number("tailLines")?, params.number("limitBytes")?);
    let mut causes = Vec::new();
    let mut check = |at: &str, number: Option<i64>, least: i64, detail: &str| {
        if let Some(number) = number.filter(|number| *number < least) {
            causes.push(Cause::invalid(at, &json!(number), detail));
        }
    };
    check("tailLines", tail, 0, "must be greater than or equal to 0");
    check("limitBytes", limit, 1, "must be greater than 0");
    if since.is_some() && params.is_present("sinceTime") {
        let detail = "at most one of `sinceTime` or `sinceSeconds` may be specified";
        causes.push(Cause::forbidden("[]", detail));
    } else {
        check("sinceSeconds", since, 1, "must be greater than 0");
    }
    if params.is_present("stream") {
        causes.push(Cause::forbidden("stream", "may not be specified"));
    }
    Ok(causes)
}

/// Fails if the pod does not have the container, or has several and none is named.
fn check_container(pod: &Fields, container: &str) -> Result<()> {
    let of = |list: &str| {
        let containers = read_path(pod, list).and_then(Value::as_array).into_iter().flatten();
        containers.filter_map(|container| container["name"].as_str()).collect::<Vec<_>>()
    };
    let containers = of("spec.containers");
    let all = [of("spec.initContainers"), containers.clone(), of("spec.ephemeralContainers")];
    let (all, name) = (all.concat(), meta_text(pod, "name"));
    if container.is_empty() && containers.len() > 1 {
        let names = all.join(" ");
        return Err(Failure::bad_request(format!(
            "a container name must be specified for pod {name}, choose one of: [{names}]"
        )));
    }
    if !container.is_empty() && !all.contains(&container) {
        let message = format!("container {container} is not valid for pod {name}");
        return Err(Failure::bad_request(message));
    }
    Ok(())
}

/// Returns true if a pod is on a node.
///
/// # Errors
///
/// Fails if the node does not exist, or has no address.
fn is_on_node(core: &Core, pod: &Fields) -> Result<bool> {
    let Some(name) = read_path(pod, "spec.nodeName").and_then(Value::as_str) else {
        return Ok(false);
    };
    let Some(node) = core.find("nodes", "", name) else {
        // The real server names the resource of the request here.
        return Err(Failure::not_found(ResourceName::built_in("", "pods"), name));
    };
    let node = node.fields();
    let addresses = read_path(&node, "status.addresses").and_then(Value::as_array);
    if addresses.is_none_or(Vec::is_empty) {
        let message = "no preferred addresses found; known addresses: []";
        return Err(Failure::new(500, "", message));
    }
    Ok(true)
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
