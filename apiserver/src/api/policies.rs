//! Admission by policies: the requests that they see, and the objects that they read.

mod asked;
mod world;

use homeostat_faults::RequestInfo;
use serde_json::{Map, Value, json};

use self::world::CoreWorld;
use crate::access::User;
use crate::admission::delete::DeleteOptions;
use crate::admission::update::Target;
use crate::core::Core;
use crate::fields::Fields;
use crate::kinds::{Action, Served};
use crate::policies::{Attributes, Denial, GroupKind, Operation, Outcome, Place, Policies, decide};
use crate::request::ApiCall;
use crate::request::params::Params;
use crate::status::{Failure, ResourceName, Result};

/// The admission of an object or a body by policies.
pub(super) type Admit<'a> = &'a dyn Fn(&Fields) -> Result<()>;

/// Checks the creation of an object, which is complete apart from its version.
pub(super) fn check_create(
    core: &Core,
    call: &ApiCall,
    new: &Fields,
    (name, dry_run): (&str, bool),
) -> Result<()> {
    let Some(policies) = core.policies() else { return Ok(()) };
    let served = &call.target.served;
    let request = Attributes {
        object: asked::shown(served, new),
        options: asked::write_options("CreateOptions", &call.params),
        dry_run,
        ..asked::of_call(call, Operation::Create, name)
    };
    enforce(core, &policies, Some(served), &request).report(call)
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
    let Some(policies) = core.policies() else { return Ok(()) };
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
    enforce(core, &policies, Some(served), &request).report(call)
}

/// Checks the deletion of an object. `name` is empty for one of a collection.
pub(super) fn check_delete(
    core: &Core,
    call: &ApiCall,
    old: &Fields,
    (name, options): (&str, &DeleteOptions),
) -> Result<()> {
    let Some(policies) = core.policies() else { return Ok(()) };
    let served = &call.target.served;
    let request = Attributes {
        old: asked::shown(served, old),
        options: asked::delete_options(options),
        dry_run: options.is_dry_run(),
        ..asked::of_call(call, Operation::Delete, name)
    };
    enforce(core, &policies, Some(served), &request).report(call)
}

/// Checks a POST on a subresource, such as an eviction.
pub(super) fn check_action(
    core: &Core,
    call: &ApiCall,
    (action, body): (&Action, &Fields),
    (name, dry_run): (&str, bool),
) -> Result<()> {
    let Some(policies) = core.policies() else { return Ok(()) };
    let (group, version) = action.api_version.split_once('/').unwrap_or(("", action.api_version));
    let kind = GroupKind::new(group, version, action.body);
    let mut object = body.clone();
    object.insert("kind".to_owned(), json!(action.body));
    object.insert("apiVersion".to_owned(), json!(action.api_version));
    let request = Attributes {
        kind,
        object: Value::Object(object),
        options: asked::write_options("CreateOptions", &call.params),
        dry_run,
        ..asked::of_call(call, Operation::Create, name)
    };
    enforce(core, &policies, None, &request).report(call)
}

/// Checks a request that the real server would send on to a kubelet or a pod.
pub(super) fn check_connect(
    core: &Core,
    user: &User,
    info: &RequestInfo,
    (params, path): (&Params, &str),
) -> Result<()> {
    let Some(policies) = core.policies() else { return Ok(()) };
    let subresource = info.subresource.as_deref().unwrap_or_default();
    let Some((kind, object)) = asked::connection(&info.resource, subresource, (params, path))
    else {
        return Ok(());
    };
    let request = Attributes {
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
    enforce(core, &policies, None, &request).refusal.map_or(Ok(()), Err)
}

/// The decision of the policies on one request.
struct Verdict {
    refusal: Option<Failure>,
    warnings: Vec<String>,
}

// === impl Verdict ===

impl Verdict {
    fn report(self, call: &ApiCall) -> Result<()> {
        call.warnings.extend(self.warnings);
        self.refusal.map_or(Ok(()), Err)
    }
}

fn enforce(
    core: &Core,
    policies: &Policies,
    served: Option<&Served>,
    request: &Attributes<'_>,
) -> Verdict {
    let world = CoreWorld::new(core, served, request.user);
    let Outcome { denial, warnings } = decide(policies, request, &world);
    Verdict { refusal: denial.map(|denial| refusal(request, denial)), warnings }
}

fn refusal(request: &Attributes<'_>, denial: Denial) -> Failure {
    let (name, message, reason) = match denial {
        Denial::NoNamespace(name) => {
            return Failure::not_found(ResourceName::built_in("", "namespaces"), &name);
        }
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
