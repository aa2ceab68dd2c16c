//! Admission by policies and webhooks: the requests that they see, and the objects that they read.

pub(super) mod asked;
mod world;

use std::sync::Arc;

use homeostat_faults::RequestInfo;
use serde_json::{Map, Value, json};

use self::world::CoreWorld;
use super::managers::field_manager;
use crate::access::User;
use crate::admission::delete::DeleteOptions;
use crate::admission::metadata_mut;
use crate::admission::target::Target;
use crate::core::Core;
use crate::fields::Fields;
use crate::kinds::{Action, Served};
use crate::metrics::Counter;
use crate::policies::{
    Attributes, Denial, Enforcement, GroupKind, Mutation, Operation, Outcome, Place, Policies,
    Reinvocation, decide,
};
use crate::request::ApiCall;
use crate::request::params::Params;
use crate::status::{Failure, ResourceName, Result};
use crate::webhooks::{Admission, Conversation, Webhooks};

/// The policies and webhooks that may refuse or change a request.
pub(super) struct Plugins {
    mutating: Option<Arc<Policies>>,
    policies: Option<Arc<Policies>>,
    webhooks: Option<Arc<Webhooks>>,
}

/// The admission of the body of a POST on a subresource.
pub(super) type AdmitBody<'a> = &'a dyn Fn(&mut Fields) -> Result<()>;

/// The admission of an object.
pub(super) type Admit<'a> = &'a dyn Fn(&Fields) -> Result<()>;

/// Checks the creation of an object, which is complete apart from its version.
pub(super) fn check_create(
    core: &Core,
    call: &ApiCall,
    new: &Fields,
    (name, dry_run): (&str, bool),
) -> Result<()> {
    let Some(plugins) = Plugins::of(core) else { return Ok(()) };
    let served = &call.target.served;
    let request = Attributes {
        object: asked::shown(served, new),
        options: asked::write_options("CreateOptions", &call.params),
        dry_run,
        ..asked::of_call(call, Operation::Create, name)
    };
    plugins.check(core, Some(served), &request, call)
}

/// Checks a change of a stored object.
pub(super) fn check_update(
    core: &Core,
    replacement: (&ApiCall, Target, bool),
    old: &Fields,
    new: &Fields,
) -> Result<()> {
    let (call, target, dry_run) = replacement;
    // The request for such a change was checked as the creation of its body.
    if target == Target::AllMembers {
        return Ok(());
    }
    let Some(plugins) = Plugins::of(core) else { return Ok(()) };
    let served = &call.target.served;
    let name = call.target.info.name.as_deref().unwrap_or_default();
    let scale = served.kind.scale.as_ref();
    let scale = scale.filter(|_| call.target.info.subresource.as_deref() == Some("scale"));
    let shown = |object: &Fields| match scale {
        Some(scale) => Value::Object(scale.read(&asked::fields(served, object))),
        None => asked::shown(served, object),
    };
    let mut request = Attributes {
        object: shown(new),
        old: shown(old),
        options: asked::write_options("UpdateOptions", &call.params),
        dry_run,
        ..asked::of_call(call, Operation::Update, name)
    };
    if scale.is_some() {
        request.kind = GroupKind::new("autoscaling", "v1", "Scale");
    }
    plugins.check(core, Some(served), &request, call)
}

/// Checks the deletion of an object. `name` is empty for one of a collection.
pub(super) fn check_delete(
    core: &Core,
    call: &ApiCall,
    old: &Fields,
    (name, options): (&str, &DeleteOptions),
) -> Result<()> {
    let Some(plugins) = Plugins::of(core) else { return Ok(()) };
    let served = &call.target.served;
    let mut request = Attributes {
        old: asked::shown(served, old),
        options: asked::delete_options(options),
        dry_run: options.is_dry_run(),
        ..asked::of_call(call, Operation::Delete, name)
    };
    plugins.mutate((core, Some(served)), &mut request, call, &Ok)?;
    plugins.check(core, Some(served), &request, call)
}

/// Changes and checks the body of a POST on a subresource, such as an eviction.
pub(super) fn check_action(
    core: &Core,
    call: &ApiCall,
    (action, body): (&Action, &mut Fields),
    (name, dry_run): (&str, bool),
) -> Result<()> {
    let Some(plugins) = Plugins::of(core) else { return Ok(()) };
    let (group, version) = action.api_version.split_once('/').unwrap_or(("", action.api_version));
    let kind = GroupKind::new(group, version, action.body);
    let mut object = body.clone();
    let metadata = metadata_mut(&mut object);
    metadata.insert("namespace".to_owned(), json!(call.namespace()));
    let manager = field_manager(core, call);
    let owners = manager.create_unstored((group, version, action.body), body).encode();
    metadata.extend(owners.map(|owners| ("managedFields".to_owned(), owners)));
    object.insert("kind".to_owned(), json!(action.body));
    object.insert("apiVersion".to_owned(), json!(action.api_version));
    let mut request = Attributes {
        kind,
        object: Value::Object(object),
        options: asked::write_options("CreateOptions", &call.params),
        dry_run,
        ..asked::of_call(call, Operation::Create, name)
    };
    if plugins.mutate((core, None), &mut request, call, &Ok)?
        && let Value::Object(mutated) = &request.object
    {
        body.clone_from(mutated);
    }
    plugins.check(core, None, &request, call)
}

/// Checks a request that the real server would send on to a kubelet or a pod.
pub(super) fn check_connect(
    core: &Core,
    user: &User,
    info: &RequestInfo,
    (params, path): (&Params, &str),
    conversation: &Arc<Conversation>,
) -> Result<()> {
    let Some(plugins) = Plugins::of(core) else { return Ok(()) };
    let subresource = info.subresource.as_deref().unwrap_or_default();
    let Some((kind, object)) = asked::connection(&info.resource, subresource, (params, path))
    else {
        return Ok(());
    };
    let mut request = Attributes {
        operation: Operation::Connect,
        resource: Place::new("", "v1", &info.resource),
        subresource,
        kind: GroupKind::new("", "v1", kind),
        namespace: info.namespace.as_deref().unwrap_or_default(),
        name: info.name.as_deref().unwrap_or_default(),
        object,
        old: Value::Null,
        options: Value::Null,
        dry_run: false,
        user,
    };
    // The reply has no place for warnings.
    let asking = Asking { core, served: None, conversation, warn: &drop };
    plugins.mutate_with(&asking, &mut request, &Ok)?;
    plugins.check_with(&asking, &request)
}

/// The state that policies and webhooks read, and the request's place for what they say.
struct Asking<'a> {
    core: &'a Core,
    /// The kind of the request's object; `None` for an object that is not stored.
    served: Option<&'a Served>,
    conversation: &'a Arc<Conversation>,
    warn: &'a dyn Fn(String),
}

// === impl Plugins ===

impl Plugins {
    /// Returns the policies and webhooks of a server; `None` if there are none.
    fn of(core: &Core) -> Option<Self> {
        let (mutating, webhooks) = (core.mutating_policies(), core.webhooks());
        Self { mutating, policies: core.policies(), webhooks }.if_any()
    }

    /// Returns the policies and webhooks of a server that may change objects; `None` if there are
    /// none.
    pub(super) fn mutating(core: &Core) -> Option<Self> {
        let webhooks = core.webhooks().filter(|webhooks| webhooks.may_mutate());
        Self { mutating: core.mutating_policies(), policies: None, webhooks }.if_any()
    }

    fn if_any(self) -> Option<Self> {
        let Self { mutating, policies, webhooks } = &self;
        let is_any = mutating.is_some() || policies.is_some() || webhooks.is_some();
        is_any.then_some(self)
    }

    /// Changes the object of a request as mutating policies and webhooks say. `again` applies the
    /// other admission a second time, after a change. Returns true if the object changed.
    pub(super) fn mutate(
        &self,
        (core, served): (&Core, Option<&Served>),
        request: &mut Attributes<'_>,
        call: &ApiCall,
        again: &dyn Fn(Value) -> Result<Value>,
    ) -> Result<bool> {
        let warn = |text: String| call.warnings.add(text);
        let asking = Asking { core, served, conversation: &call.conversation, warn: &warn };
        self.mutate_with(&asking, request, again)
    }

    fn mutate_with(
        &self,
        asking: &Asking<'_>,
        request: &mut Attributes<'_>,
        again: &dyn Fn(Value) -> Result<Value>,
    ) -> Result<bool> {
        let mut passes = [Reinvocation::default(), Reinvocation::default()];
        self.pass(asking, request, &mut passes)?;
        if !passes.iter().any(Reinvocation::is_changed) {
            return Ok(false);
        }
        request.object = again(std::mem::take(&mut request.object))?;
        self.pass(asking, request, &mut passes)?;
        Ok(true)
    }

    /// Applies the policies, then asks the webhooks, in a first or a second pass.
    fn pass(
        &self,
        asking: &Asking<'_>,
        request: &mut Attributes<'_>,
        [of_policies, of_webhooks]: &mut [Reinvocation; 2],
    ) -> Result<()> {
        if let Some(policies) = &self.mutating {
            let world = CoreWorld::new(asking, request.user);
            let mutation = Mutation { policies, world: &world, codec: &world };
            mutation.pass(request, of_policies)?;
        }
        let Some(webhooks) = &self.webhooks else { return Ok(()) };
        let user = request.user;
        asking.ask(webhooks, user, |admission| admission.mutate(request, of_webhooks))
    }

    /// Checks a request by the policies, then by the validating webhooks.
    fn check(
        &self,
        core: &Core,
        served: Option<&Served>,
        request: &Attributes<'_>,
        call: &ApiCall,
    ) -> Result<()> {
        let warn = |text: String| call.warnings.add(text);
        let asking = Asking { core, served, conversation: &call.conversation, warn: &warn };
        self.check_with(&asking, request)
    }

    fn check_with(&self, asking: &Asking<'_>, request: &Attributes<'_>) -> Result<()> {
        if let Some(policies) = &self.policies {
            let world = CoreWorld::new(asking, request.user);
            let Outcome { denial, warnings, enforcements } = decide(policies, request, &world);
            warnings.into_iter().for_each(asking.warn);
            for Enforcement { policy, binding, action, error } in enforcements {
                let labels = [action.into(), error.into(), policy.into(), binding.into()];
                asking.conversation.count(Counter::PolicyChecks, &labels);
            }
            denial.map_or(Ok(()), |denial| Err(refusal(request, denial)))?;
        }
        let Some(webhooks) = &self.webhooks else { return Ok(()) };
        asking.ask(webhooks, request.user, |admission| admission.validate(request))
    }
}

// === impl Asking ===

impl Asking<'_> {
    fn ask<T>(&self, webhooks: &Webhooks, user: &User, ask: impl FnOnce(Admission<'_>) -> T) -> T {
        let world = CoreWorld::new(self, user);
        ask(Admission {
            webhooks,
            world: &world,
            codec: &world,
            conversation: self.conversation,
            warn: self.warn,
        })
    }
}

fn refusal(request: &Attributes<'_>, denial: Denial) -> Failure {
    let (name, message, reason) = match denial {
        Denial::NoNamespace(name) => {
            return Failure::not_found(ResourceName::built_in("", "namespaces"), &name);
        }
        Denial::Unconverted(why) => return Failure::internal_error(&why),
        Denial::Refused { name, message, reason } => (name, message, reason),
    };
    let (code, reason) = match reason.as_deref() {
        Some("Forbidden") => (403, "Forbidden"),
        Some("RequestEntityTooLarge") => (413, "RequestEntityTooLarge"),
        Some("Unauthorized") => (401, "Unauthorized"),
        _ => (422, "Invalid"),
    };
    let resource = ResourceName::built_in(&request.resource.group, &request.resource.plural);
    let mut failure = Failure { code, reason, ..Failure::forbidden(resource, &name, &message) };
    let details = failure.details.get_or_insert_with(|| Value::Object(Map::new()));
    details["causes"] = json!([{"message": message}]);
    failure
}
