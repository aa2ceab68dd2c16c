//! POSTs on subresources: bindings, evictions, tokens.

use serde_json::{Value, json};

use super::commit::{Replacement, commit};
use super::eviction::Eviction;
use super::renderer::Renderer;
use super::{policies, token_request};
use crate::admission::delete::DeleteOptions;
use crate::admission::meta_text;
use crate::admission::owners::Ownership;
use crate::admission::target::Target;
use crate::admission::update::{Change, precondition_failed};
use crate::clock::rfc3339;
use crate::core::Core;
use crate::fields::Fields;
use crate::kinds::{Action, ActionError, Effect, Kind, Relay};
use crate::reply::Reply;
use crate::request::ApiCall;
use crate::request::decode::Wanted;
use crate::status::{Failure, Result};
use crate::types::{Expected, Types};

/// The change of an object by an action.
struct ActionChange<'a> {
    core: &'a Core,
    call: &'a ApiCall,
    key: &'a str,
    name: &'a str,
    action: &'a Action,
    /// Changes the object as the body requests, at the given time.
    apply: fn(&mut Fields, &Fields, &str) -> std::result::Result<(), ActionError>,
}

/// Carries out a POST on a subresource: the server changes the object on behalf of the client.
pub(super) fn post(core: &Core, call: &ApiCall, name: &str, action: &str) -> Result<Reply> {
    post_for(core, call, (name, action), call)
}

/// Carries out a POST on a subresource, which policies see as the request `asked`.
fn post_for(
    core: &Core,
    call: &ApiCall,
    (name, action): (&str, &str),
    asked: &ApiCall,
) -> Result<Reply> {
    let options = call.params.write_options("CreateOptions")?;
    let dry_run = options.dry_run;
    let served = &call.target.served;
    let Some(action) = served.kind.action(action) else {
        return Err(Failure::method_not_allowed(&served.kind, "create"));
    };
    let expected = Types::all().named(action.body_type).map_or(Expected::Any, Expected::Kind);
    let Action { body: kind, api_version, older, .. } = *action;
    let wanted = Wanted { kind, api_version, older, expected };
    let mut body = call.any_object(&wanted, options.validation)?;
    let key = served.kind.key(call.namespace(), name);
    if let Effect::IssueToken = action.effect {
        let admit = |body: &mut Fields| {
            policies::check_action(core, asked, (action, body), (name, dry_run))
        };
        return token_request::issue(core, call, name, body, &admit);
    }
    if meta_text(&body, "name") != name {
        let detail = format!("name in URL does not match name in {} object", action.body);
        return Err(Failure::bad_request(detail));
    }
    if let Some(complete) = action.complete.filter(|one| core.kinds().runs(one.plugin)) {
        let find = |name: &str| core.find("nodes", "", name).map(|node| node.fields());
        (complete.apply)(&mut body, &find);
    }
    policies::check_action(core, asked, (action, &mut body), (name, dry_run))?;
    let Effect::Change(change_object) = action.effect else {
        let options = delete_options(&body, &call.params.all("dryRun"))?;
        Eviction { core, served, key: &key, name, options }.carry_out()?;
        return Ok(action_done());
    };
    let change = ActionChange { core, call, key: &key, name, action, apply: change_object };
    change.carry_out(&body, dry_run)?;
    Ok(action_done())
}

// === impl ActionChange ===

impl ActionChange<'_> {
    fn carry_out(&self, body: &Fields, dry_run: bool) -> Result<()> {
        let Self { core, call, key, .. } = *self;
        let served = &call.target.served;
        // The reply is a status, which has any form.
        let renderer = Renderer::of_whole_objects(core, call);
        loop {
            let Some(stored) = core.get(served.resource, key) else {
                return Err(self.of_unknown(body));
            };
            let old = core.fields(served, &stored);
            let new = self.changed(&old, body, dry_run)?;
            let (target, owners) = (Target::AllMembers, &Ownership::Kept);
            let change = Change { old: &old, new, target, owners };
            let replacement = Replacement { change, dry_run, call };
            if commit(core, &renderer, key, &stored, replacement)?.is_some() {
                return Ok(());
            }
        }
    }

    /// Returns the failure of an action on an unknown object: its body is checked first.
    fn of_unknown(&self, body: &Fields) -> Failure {
        match (self.apply)(&mut Fields::new(), body, "") {
            Err(ActionError::Invalid(detail)) => Failure::internal(detail),
            _ if self.name.is_empty() => Failure::name_required(),
            _ => Failure::not_found(&self.call.target.served.kind, self.name),
        }
    }

    /// Returns the changed object.
    fn changed(&self, old: &Fields, body: &Fields, dry_run: bool) -> Result<Fields> {
        let kind = &self.call.target.served.kind;
        let mut new = old.clone();
        let changed = (self.apply)(&mut new, body, &rfc3339(self.core.clock.now()));
        if !matches!(changed, Err(ActionError::Invalid(_))) {
            check_preconditions(kind, body, old, dry_run)?;
        }
        changed.map_err(|error| match error {
            ActionError::Invalid(detail) => Failure::internal(detail),
            ActionError::Conflict(detail) => {
                let resource = format!("{}/{}", kind.plural, self.action.name);
                let kind = Kind { plural: resource.into(), ..(**kind).clone() };
                Failure::conflict(&kind, self.name, &detail)
            }
        })?;
        Ok(new)
    }
}

/// Returns the options of an eviction. `dry_run` are those of the request.
fn delete_options(eviction: &Fields, dry_run: &[&str]) -> Result<DeleteOptions> {
    let options = eviction.get("deleteOptions").and_then(Value::as_object);
    let mut options = DeleteOptions::read(options.cloned().unwrap_or_default())
        .map_err(|error| Failure::bad_request(error.to_string()))?;
    if options.dry_run.is_empty() {
        options.dry_run = dry_run.iter().map(|value| (*value).to_owned()).collect();
    } else if !dry_run.is_empty() && options.dry_run != dry_run {
        return Err(Failure::internal(format!(
            "Non-matching dry-run options in request and content: [{}] and [{}]",
            dry_run.join(" "),
            options.dry_run.join(" ")
        )));
    }
    Ok(options)
}

/// Fails if the body of an action names another uid or version than that of the object.
fn check_preconditions(kind: &Kind, body: &Fields, old: &Fields, dry_run: bool) -> Result<()> {
    let names = [("UID", "uid"), ("ResourceVersion", "resourceVersion")];
    names.into_iter().try_for_each(|(shown, name)| {
        let (wanted, stored) = (meta_text(body, name), meta_text(old, name));
        if wanted.is_empty() || wanted == stored {
            return Ok(());
        }
        let place = (meta_text(old, "namespace"), meta_text(old, "name"));
        Err(precondition_failed(kind, place, shown, (wanted, stored), dry_run))
    })
}

/// Carries out a create that is a POST to a subresource of the object that the body names.
pub(super) fn relay(core: &Core, call: &ApiCall, relay: Relay) -> Result<Reply> {
    let options = call.params.write_options("CreateOptions")?;
    let object = call.object(&core.kinds(), options.validation)?;
    let name = meta_text(&object, "name").to_owned();
    let Some(served) = core.kinds().find("", "v1", relay.plural) else {
        return Err(Failure::no_resource());
    };
    let part = call.to_subresource(served, &name, relay.action);
    post_for(core, &part, (&name, relay.action), call)
}

/// Returns the reply to a completed POST on a subresource.
fn action_done() -> Reply {
    let done = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
        "code": 201});
    Reply::Json { code: 201, body: done.to_string().into() }
}
