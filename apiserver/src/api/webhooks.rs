//! Admission by webhooks and mutating policies: the changes that they make, and the calls.

use std::time::Duration;

use homeostat_core::go_quote;
use homeostat_schema::ManagedFields;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::limits;
use super::managers::field_manager;
use super::policies::{Plugins, asked};
use crate::admission::field_manager::replicas_path;
use crate::admission::owners::{Admitted, Ownership};
use crate::admission::target::Target;
use crate::admission::update::{self, Change};
use crate::admission::{create, meta_text, metadata, metadata_mut};
use crate::core::Core;
use crate::fields::{Fields, read_path};
use crate::kinds::{Kind, Scale, Served};
use crate::policies::{Attributes, GroupKind, Operation};
use crate::request::ApiCall;
use crate::request::decode::check_same_namespace;
use crate::request::params::Params;
use crate::status::{Failure, Result};
use crate::webhooks::{Answered, Conversation};

/// The longest time of a write (`requestTimeoutUpperBound` of the real server's handlers).
pub(super) const LONGEST: Duration = Duration::from_secs(34);

/// Carries out a part of a request that may stop at a webhook: calls the webhook, and carries out
/// the part again, until it does not stop.
///
/// # Cancel safety
///
/// A part that stops has changed nothing, so a request that is cancelled during a call has no
/// effect.
pub(super) async fn replay<T>(
    core: &Core,
    (conversation, params): (&Conversation, &Params),
    part: impl Fn() -> Result<T>,
) -> Result<T> {
    let limit = params.time_limit().map_or(LONGEST, |limit| limit.min(LONGEST));
    replay_within(core, conversation, limit, part).await
}

/// Carries out a part of a request as [`replay`] does. `limit` is the time that webhooks learn of.
pub(super) async fn replay_within<T>(
    core: &Core,
    conversation: &Conversation,
    limit: Duration,
    part: impl Fn() -> Result<T>,
) -> Result<T> {
    loop {
        let result = part();
        let open = conversation.take_open();
        if open.is_empty() {
            return result;
        }
        // The time of the client ends the request elsewhere. Webhooks learn how much is left.
        let now = Instant::now();
        let start = conversation.start(now);
        let left = limit.saturating_sub(now - start);
        let unreachable = |namespace: &str, name: &str, port| service(core, namespace, name, port);
        let open = open.into_iter();
        let open = open.map(|question| question.with_uid(core.chance.review_id()));
        let asked = open.map(async |question| {
            let answer = core.webhook_client.ask(&question, left, unreachable).await;
            (question, Answered { answer, time: now.elapsed() })
        });
        let answers =
            tokio::time::timeout_at(start + LONGEST, futures::future::join_all(asked)).await;
        conversation.keep(answers.map_err(|_| too_late())?);
    }
}

fn too_late() -> Failure {
    let message =
        "Timeout: request did not complete within requested timeout - context deadline exceeded";
    Failure::new(504, "Timeout", message).with_details(json!({}))
}

/// Returns the reason why a service cannot be reached, in the words of the real server. Nothing
/// listens at the addresses of services here.
fn service(core: &Core, namespace: &str, name: &str, port: u16) -> String {
    let Some(stored) = core.find("services", namespace, name) else {
        return format!("service {} not found", go_quote(name));
    };
    let service = stored.fields();
    let text = |path| read_path(&service, path).and_then(Value::as_str).unwrap_or_default();
    let ports = read_path(&service, "spec.ports").and_then(Value::as_array);
    match (text("spec.type"), text("spec.clusterIP")) {
        ("ExternalName", _) => {
            format!("dial tcp: lookup {}: no such host", text("spec.externalName"))
        }
        ("ClusterIP", "None") => "cannot route to service with ClusterIP \"None\"".to_owned(),
        _ if !ports.into_iter().flatten().any(|known| known["port"] == port) => {
            format!("no service port {port} found for service {}", go_quote(name))
        }
        (_, address) => format!("dial tcp {address}:{port}: connect: connection refused"),
    }
}

/// Changes a new object as mutating policies and webhooks say. `again` applies the other admission.
///
/// Returns the owners of the object. The client does not own what they change.
pub(super) fn mutate_new(
    core: &Core,
    call: &ApiCall,
    object: &mut Fields,
    (owners, dry_run): (Ownership, bool),
    again: &dyn Fn(&mut Fields) -> Result<()>,
) -> Result<Ownership> {
    let Some(plugins) = Plugins::mutating(core) else { return Ok(owners) };
    let served = &call.target.served;
    let before = owners.clone();
    let owners = match owners {
        Ownership::Tracked(manager) => create::owners(served, &manager, object),
        Ownership::Known(owners) | Ownership::Admitted(Admitted { owners, .. }) => owners,
        Ownership::Kept => ManagedFields::new(),
    };
    let name = meta_text(object, "name").to_owned();
    let mut shown = object.clone();
    served.home.complete(&mut shown);
    if served.kind.namespaced {
        metadata_mut(&mut shown).insert("namespace".to_owned(), json!(call.namespace()));
    }
    set_owners(&mut shown, owners.encode());
    let mut request = Attributes {
        object: asked::shown(served, &shown),
        options: asked::write_options("CreateOptions", &call.params),
        dry_run,
        ..asked::of_call(call, Operation::Create, &name)
    };
    let again = |object: Value| reapplied(served, object, again);
    if !plugins.mutate((core, Some(served)), &mut request, call, &again)? {
        return Ok(before);
    }
    *object = stored(served, request.object);
    check_same_namespace(meta_text(object, "namespace"), call.namespace())?;
    let owners = admitted_owners((core, call), object, owners);
    warn_of_repeated_owners(call, object);
    Ok(owners)
}

/// Changes the new state of a stored object as mutating policies and webhooks say. Returns the
/// owners of the new state, if it has changed.
pub(super) fn mutate_change(
    core: &Core,
    (call, target, dry_run): (&ApiCall, Target, bool),
    change: &mut Change<'_>,
) -> Result<Option<Ownership>> {
    // The request for such a change was admitted as the creation of its body.
    if target == Target::AllMembers {
        return Ok(None);
    }
    let Some(plugins) = Plugins::mutating(core) else { return Ok(None) };
    let served = &call.target.served;
    let scale = served.kind.scale.as_ref();
    let scale = scale.filter(|_| call.target.info.subresource.as_deref() == Some("scale"));
    let before = Change { new: change.new.clone(), ..*change };
    let owners = update::owners(served.rules(), &served.kind, before);
    let (object, old) = shown_states(core, call, scale, change, owners.clone());
    let name = call.target.info.name.as_deref().unwrap_or_default();
    let mut request = Attributes {
        object,
        old,
        options: asked::write_options("UpdateOptions", &call.params),
        dry_run,
        ..asked::of_call(call, Operation::Update, name)
    };
    if scale.is_some() {
        request.kind = GroupKind::new("autoscaling", "v1", "Scale");
    }
    let old = change.old;
    let complete = |object: &mut Fields| {
        limits::complete_update(core, served, old, target, object);
        Ok(())
    };
    let again = |object: Value| match scale {
        Some(_) => Ok(object),
        None => reapplied(served, object, &complete),
    };
    if !plugins.mutate((core, Some(served)), &mut request, call, &again)? {
        return Ok(None);
    }
    if let Some(scale) = scale {
        if let Value::Object(mutated) = request.object {
            scale.write(&mut change.new, &mutated);
        }
        return Ok(None);
    }
    change.new = stored(served, request.object);
    let owners = owners.as_ref().and_then(Value::as_str).map(ManagedFields::from_json);
    let owners = admitted_owners((core, call), &mut change.new, owners.unwrap_or_default());
    warn_of_repeated_owners(call, &mut change.new);
    Ok(Some(owners))
}

/// Returns the new and the stored state of a change, as plugins see them.
fn shown_states(
    core: &Core,
    call: &ApiCall,
    scale: Option<&Scale>,
    change: &Change<'_>,
    owners: Option<Value>,
) -> (Value, Value) {
    let served = &call.target.served;
    let mut new = change.new.clone();
    served.rules().complete(&mut new);
    set_owners(&mut new, owners);
    let Some(scale) = scale else {
        return (asked::shown(served, &new), asked::shown(served, change.old));
    };
    let shown = |object: &Fields| Value::Object(scale.read(&asked::fields(served, object)));
    let (mut new, mut old) = (shown(&new), shown(change.old));
    let now = field_manager(core, call).now;
    show_scale_owners((&mut new, &mut old), change, &served.kind, &now);
    (new, old)
}

/// Returns the owners of a stored object, packed.
fn packed_owners(object: &Fields) -> &str {
    read_path(object, "metadata.managedFields").and_then(Value::as_str).unwrap_or_default()
}

/// Shows the owners of the replicas of an object as those of its new and its old scale.
fn show_scale_owners(
    (new, old): (&mut Value, &mut Value),
    change: &Change<'_>,
    kind: &Kind,
    now: &str,
) {
    let before = ManagedFields::from_json(packed_owners(change.old));
    let after = match change.owners {
        Ownership::Known(owners) => owners,
        _ => &before,
    };
    set_scale_owners(new, after, kind);
    set_times(new, now);
    set_scale_owners(old, &before, kind);
}

fn set_scale_owners(scale: &mut Value, owners: &ManagedFields, kind: &Kind) {
    let owners = owners.of_scale(&|version| replicas_path(kind, version));
    if let Value::Object(scale) = scale {
        set_owners(scale, owners.encode());
    }
}

/// Sets the time of a new entry. Only a scale shows it: the entry of the object has none.
fn set_times(scale: &mut Value, now: &str) {
    let entries = scale["metadata"]["managedFields"].as_array_mut();
    for entry in entries.into_iter().flatten().filter_map(Value::as_object_mut) {
        entry.entry("time").or_insert_with(|| json!(now));
    }
}

fn warn_of_repeated_owners(call: &ApiCall, object: &mut Fields) {
    let when = " after mutating admission happens";
    call.warnings.extend(metadata::drop_repeated_owners(object, when));
}

fn set_owners(object: &mut Fields, owners: Option<Value>) {
    let metadata = metadata_mut(object);
    match owners {
        Some(owners) => metadata.insert("managedFields".to_owned(), owners),
        None => metadata.remove("managedFields"),
    };
}

/// Applies other admission to an object in the form that webhooks see.
fn reapplied(
    served: &Served,
    object: Value,
    apply: &dyn Fn(&mut Fields) -> Result<()>,
) -> Result<Value> {
    let mut object = stored(served, object);
    apply(&mut object)?;
    Ok(asked::shown(served, &object))
}

/// Returns an object that webhooks have seen in the form in which it is stored.
fn stored(served: &Served, object: Value) -> Fields {
    let Value::Object(mut object) = object else { return Fields::new() };
    if served.kind.definition.is_none() {
        served.kind.rename_for_storage(&mut object);
    }
    object
}

/// Takes the owners from an object that webhooks have changed: those of `before` if a webhook has
/// made them invalid.
fn admitted_owners(
    (core, call): (&Core, &ApiCall),
    object: &mut Fields,
    before: ManagedFields,
) -> Ownership {
    let found = metadata_mut(object).remove("managedFields").unwrap_or_else(|| json!([]));
    let now = field_manager(core, call).now;
    Ownership::Admitted(match ManagedFields::decode(&found) {
        Ok(owners) => Admitted { owners, given: found, now },
        Err(error) => {
            call.warnings.add(format!(
                ".metadata.managedFields was in an invalid state after admission; this could be \
                 caused by an outdated mutating admission controller; please fix your requests: \
                 {error}"
            ));
            Admitted { owners: before, given: Value::Null, now }
        }
    })
}

/// Removes the unknown members that webhooks have added to a custom object. Until the object is
/// stored they count, as on the real server.
pub(super) fn prune(served: &Served, object: &mut Fields) {
    if let Some(definition) = &served.kind.definition {
        definition.prune(object);
    }
}

/// Returns true if webhooks or policies may see requests.
pub(super) fn is_admission_dynamic(core: &Core) -> bool {
    core.policies().is_some() || core.webhooks().is_some() || core.mutating_policies().is_some()
}
