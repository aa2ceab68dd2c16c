//! `/token` of a service account: tokens, which may be bound to a pod, a secret or a node.

use homeostat_core::go_quote;
use jiff::SignedDuration;
use serde_json::{Value, json};

use super::managers::field_manager;
use super::policies::AdmitBody;
use super::renderer::Renderer;
use super::review::{audiences, spec};
use super::webhooks::is_admission_dynamic;
use crate::access::{Holder, Named, Validity};
use crate::admission::field_manager::FieldManager;
use crate::admission::{drop_empty, meta_text, metadata_mut};
use crate::clock::rfc3339;
use crate::core::Core;
use crate::fields::{Fields, read_path, set_or_remove, text};
use crate::object::Stored;
use crate::reply::Reply;
use crate::request::{ApiCall, Warnings};
use crate::status::{Cause, Failure, ResourceName, Result};
use crate::{names, table};

const GROUP: &str = "authentication.k8s.io";
const KIND: &str = "TokenRequest";

/// The lifetime of a token in seconds: the default, and the shortest.
const LIFETIME: i64 = 3600;
const SHORTEST_LIFETIME: i64 = 600;
/// The longest lifetime in seconds, as in the API: 2³² seconds.
const LONGEST_LIFETIME: i64 = 1 << 32;
/// The lifetime that kubelets request for pods. As the real server by default, this one grants them
/// a year, so that old clients that never read the file again keep working.
const KUBELET_LIFETIME: i64 = 3607;
const EXTENDED_LIFETIME: i64 = 365 * 24 * 3600;

/// Issues a token for a service account.
pub(super) fn issue(
    core: &Core,
    call: &ApiCall,
    name: &str,
    mut request: Fields,
    admit: AdmitBody<'_>,
) -> Result<Reply> {
    let (served, manager) = (&call.target.served, &field_manager(core, call));
    let named = meta_text(&request, "name");
    if !named.is_empty() && named != name {
        let detail = "must match the service account name if specified";
        let cause = Cause::invalid("metadata.name", &json!(named), detail);
        return Err(Failure::invalid_as(GROUP, KIND, name, &[cause]));
    }
    let Some(stored) = core.get(served.resource, &served.kind.key(call.namespace(), name)) else {
        return Err(Failure::not_found(&served.kind, name));
    };
    check_uid(&request, name, &stored.selectable.uid)?;
    let asked = spec(&request).get("expirationSeconds").and_then(Value::as_i64);
    let lifetime = asked.unwrap_or(LIFETIME);
    let wanted = audiences(core, spec(&request));
    check(spec(&request), lifetime, &wanted)?;
    if is_admission_dynamic(core) {
        let mut admitted = request.clone();
        complete(&mut admitted, &stored, (lifetime, wanted.clone()), manager);
        admit(&mut admitted)?;
    }
    let mut holder = holder(core, spec(&request), &stored, name)?;
    let lifetime = shortened(core, lifetime, &call.warnings);
    let issued = core.clock.now();
    let expires = issued + SignedDuration::from_secs(lifetime);
    let mut validity = Validity { issued, expires };
    if is_extended(core, lifetime, &holder, &wanted) {
        holder.warns = Some(expires.as_second());
        validity.expires = issued + SignedDuration::from_secs(EXTENDED_LIFETIME);
    }
    let token = core.access.issuer().issue(holder, wanted.clone(), validity);
    let status = json!({"token": token, "expirationTimestamp": rfc3339(expires)});
    complete(&mut request, &stored, (lifetime, wanted), manager);
    request["metadata"]["creationTimestamp"] = json!(rfc3339(issued));
    request.insert("status".to_owned(), status);
    let (renderer, form) = Renderer::of_unstored(core, call, "*authentication.TokenRequest");
    let body = renderer.unstored(table::columns(&served.kind), request);
    form.map(|()| Reply::Json { code: 201, body: body.to_string().into() })
}

/// Fills in what the reply says about the request.
fn complete(
    request: &mut Fields,
    account: &Stored,
    (lifetime, audiences): (i64, Vec<String>),
    manager: &FieldManager,
) {
    request.insert("kind".to_owned(), json!(KIND));
    request.insert("apiVersion".to_owned(), json!("authentication.k8s.io/v1"));
    let spec = request.entry("spec").or_insert_with(|| json!({}));
    if !spec.is_object() {
        *spec = json!({});
    }
    spec["expirationSeconds"] = json!(lifetime);
    if let Some(spec) = spec.as_object_mut() {
        spec.retain(|_, value| !value.is_null());
    }
    drop_empty(metadata_mut(request));
    let owners = manager.create_unstored((GROUP, "v1", KIND), request);
    let known = &account.selectable;
    let metadata = metadata_mut(request);
    for (member, text) in
        [("name", &known.name), ("namespace", &known.namespace), ("uid", &known.uid)]
    {
        metadata.insert(member.to_owned(), json!(&**text));
    }
    set_or_remove(metadata, "managedFields", owners.encode());
    let spec = &mut request["spec"];
    spec["audiences"] = json!(audiences);
    if spec.get("boundObjectRef").is_none() {
        spec["boundObjectRef"] = Value::Null;
    }
}

fn check_uid(request: &Fields, name: &str, uid: &str) -> Result<()> {
    let asked = meta_text(request, "uid");
    if asked.is_empty() || asked == uid {
        return Ok(());
    }
    let detail = format!(
        "the UID in the token request ({asked}) does not match the UID of the service account \
         ({uid})"
    );
    Err(Failure::conflict(ResourceName::built_in(GROUP, KIND), name, &detail))
}

fn check(spec: &Value, lifetime: i64, audiences: &[String]) -> Result<()> {
    let mut causes = Vec::new();
    let detail = match lifetime {
        ..SHORTEST_LIFETIME => "may not specify a duration less than 10 minutes",
        lifetime if lifetime > LONGEST_LIFETIME => {
            "may not specify a duration larger than 2^32 seconds"
        }
        _ => "",
    };
    if !detail.is_empty() {
        causes.push(Cause::invalid("spec.expirationSeconds", &json!(lifetime), detail));
    }
    let attestations = spec.get("attestations").unwrap_or(&Value::Null);
    if is_for_webhooks(spec.get("boundObjectRef").unwrap_or(&Value::Null)) {
        if audiences.len() != 1 {
            let detail = "must be length 1 when bound to a webhook config";
            causes.push(Cause::invalid("spec.audiences", &json!(audiences), detail));
        }
        check_attestations(attestations, &mut causes);
    } else if attestations.as_object().is_some_and(|all| !all.is_empty()) {
        let detail = "attestations may only be specified with a webhook bound object reference";
        causes = vec![Cause::invalid("spec.attestations", attestations, detail)];
    }
    if causes.is_empty() { Ok(()) } else { Err(Failure::invalid_as(GROUP, KIND, "", &causes)) }
}

/// Returns true if a token is bound to the configuration of webhooks.
fn is_for_webhooks(reference: &Value) -> bool {
    let kinds = ["ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"];
    text(reference, "apiVersion") == "admissionregistration.k8s.io/v1"
        && kinds.contains(&text(reference, "kind"))
}

/// Checks that a token for webhooks names the one group of its reviews.
fn check_attestations(attestations: &Value, causes: &mut Vec<Cause>) {
    const AT: &str = "spec.attestations";
    const KEY: &str = "admissionReviewAPIGroups";
    let all: Vec<_> = attestations.as_object().into_iter().flatten().collect();
    let [(key, values)] = all[..] else {
        let detail = "webhook bound requests require exactly one admissionReviewAPIGroups \
                      attestation";
        causes.push(Cause::invalid(AT, attestations, detail));
        return;
    };
    let at = format!("{AT}[{key}]");
    match values.as_array().map_or(&[][..], Vec::as_slice) {
        _ if key != KEY => causes.push(Cause::unsupported(at, &json!(key), &[KEY])),
        [group] => {
            let (name, at) = (group.as_str().unwrap_or_default(), format!("{at}[0]"));
            if name.is_empty() {
                causes.push(Cause::invalid(at, group, "may not be an empty string"));
            } else if name != "*" {
                for reason in names::dns_subdomain(name) {
                    let detail = format!("must specify a valid API Group: {reason}");
                    causes.push(Cause::invalid(&at, group, &detail));
                }
            }
        }
        _ => causes.push(Cause::invalid(at, values, "must specify a single value")),
    }
}

/// Returns the lifetime that the server grants, and warns if it is not the one of the request.
fn shortened(core: &Core, lifetime: i64, warnings: &Warnings) -> i64 {
    let longest = core.access.issuer().settings().longest_lifetime;
    let longest = longest.and_then(|longest| i64::try_from(longest.as_secs()).ok());
    let Some(longest) = longest.filter(|longest| *longest > 0 && *longest < lifetime) else {
        return lifetime;
    };
    warnings
        .add(format!("requested expiration of {lifetime} seconds shortened to {longest} seconds"));
    longest
}

/// Returns true if a token is valid for longer than the request says, as those of kubelets are.
fn is_extended(core: &Core, lifetime: i64, holder: &Holder, audiences: &[String]) -> bool {
    let issuer = core.access.issuer();
    let is_for_server = audiences.iter().all(|audience| issuer.is_audience(audience));
    let is_of_kubelet = holder.pod.is_some() && lifetime == KUBELET_LIFETIME;
    is_of_kubelet && is_for_server && !issuer.settings().refuses_extension
}

/// Returns the account of a token, with the object that the token is bound to.
///
/// # Errors
///
/// Fails if there is no such object, if it has another uid than the request says, or if it is a pod
/// of another service account.
fn holder(core: &Core, spec: &Value, account: &Stored, name: &str) -> Result<Holder> {
    let known = &account.selectable;
    let mut holder = Holder {
        namespace: known.namespace.clone(),
        account: Named { name: name.to_owned(), uid: known.uid.clone() },
        ..Holder::default()
    };
    let Some(reference) = spec.get("boundObjectRef").filter(|one| !one.is_null()) else {
        return Ok(holder);
    };
    let resource = bindable(reference)?;
    let wanted = text(reference, "name");
    if wanted.is_empty() {
        return Err(Failure::name_required());
    }
    let Some(stored) = core.find(resource, &known.namespace, wanted) else {
        return Err(Failure::not_found(ResourceName::built_in("", resource), wanted));
    };
    let object = stored.fields();
    let of_pod = |path: &str| {
        let text = (resource == "pods").then(|| read_path(&object, path)).flatten();
        text.and_then(Value::as_str).unwrap_or_default()
    };
    if resource == "pods" && of_pod("spec.serviceAccountName") != name {
        return Err(Failure::bad_request(format!(
            "cannot bind token for serviceaccount {} to pod running with different serviceaccount \
             name.",
            go_quote(name)
        )));
    }
    let uid = stored.selectable.uid.clone();
    check_bound_uid(reference, &uid)?;
    let object = Some(Named { name: wanted.to_owned(), uid });
    match resource {
        "pods" => {
            holder.node = named_node(core, of_pod("spec.nodeName"));
            holder.pod = object;
        }
        "secrets" => holder.secret = object,
        _ => holder.node = object,
    }
    Ok(holder)
}

/// Returns the resource of the object that a token is bound to.
fn bindable(reference: &Value) -> Result<&'static str> {
    match (text(reference, "apiVersion").contains('/'), text(reference, "kind")) {
        (false, "Pod") => Ok("pods"),
        (false, "Secret") => Ok("secrets"),
        (false, "Node") => Ok("nodes"),
        _ => Err(unbindable(reference)),
    }
}

/// Fails if a request names another uid than that of the object.
fn check_bound_uid(reference: &Value, uid: &str) -> Result<()> {
    let asked = text(reference, "uid");
    if asked.is_empty() || asked == uid {
        return Ok(());
    }
    let detail = format!(
        "the UID in the bound object reference ({asked}) does not match the UID in record. The \
         object might have been deleted and then recreated"
    );
    let kind = ResourceName::built_in("", text(reference, "kind"));
    Err(Failure::conflict(kind, text(reference, "name"), &detail))
}

/// Returns the refusal of a reference to an object of a kind that holds no token.
fn unbindable(reference: &Value) -> Failure {
    let (version, kind) = (text(reference, "apiVersion"), text(reference, "kind"));
    let (group, version) = version.split_once('/').unwrap_or(("", version));
    let feature = if is_for_webhooks(reference) {
        " (feature gate APIServerWebhookAuthenticationToken is disabled)"
    } else {
        ""
    };
    Failure::bad_request(format!(
        "cannot bind token to object of type {group}/{version}, Kind={kind}{feature}"
    ))
}

/// Returns the node of a pod. Its uid is empty if there is no such node.
fn named_node(core: &Core, name: &str) -> Option<Named> {
    let stored = core.find("nodes", "", name);
    let uid = stored.map(|node| node.selectable.uid.clone()).unwrap_or_default();
    (!name.is_empty()).then(|| Named { name: name.to_owned(), uid })
}
