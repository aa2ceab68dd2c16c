//! Reviews: kinds whose create is a question that the server answers. Nothing is stored.

use std::collections::BTreeMap;
use std::sync::Arc;

use homeostat_schema::aggregate;
use serde_json::{Value, json};

use super::bearer::{Bearer, bearer_of};
use super::managers::field_manager;
use super::renderer::Renderer;
use super::review_selectors;
use super::roles::{self, Decision};
use crate::access::{Attributes, PolicyRule, User};
use crate::admission::{meta_text, metadata_mut};
use crate::clock::rfc3339;
use crate::core::Core;
use crate::fields::{Fields, text};
use crate::kinds::{Kind, Review, selectors};
use crate::reply::Reply;
use crate::request::ApiCall;
use crate::status::{Cause, Failure, Result};
use crate::table;

/// Answers the create of a review.
pub(super) fn create(core: &Core, call: &ApiCall, review: Review) -> Result<Reply> {
    let (renderer, form) = Renderer::of_write(core, call);
    let options = call.params.write_options("CreateOptions")?;
    let mut object = call.object(&core.kinds(), options.validation)?;
    let kind = &call.target.served.kind;
    kind.complete(&mut object);
    let owners = field_manager(core, call).create(kind, &object, None).encode();
    if let Some(owners) = owners.filter(|_| review != Review::OwnRules) {
        metadata_mut(&mut object).insert("managedFields".to_owned(), owners);
    }
    if review == Review::Own {
        let now = rfc3339(core.clock.now());
        object.insert("metadata".to_owned(), json!({"creationTimestamp": now}));
    }
    let status = match review {
        Review::Token => token_review(core, call, &object)?,
        Review::Own => json!({"userInfo": user_info(&call.user)}),
        Review::Access => subject_access(core, call, &object)?,
        Review::OwnAccess => {
            let request = requested(call, &object, Vec::new())?;
            decision_status(&roles::decide(core, &call.user, &request), &object)
        }
        Review::OwnRules => own_rules(core, call, &object)?,
    };
    if review == Review::OwnRules {
        // The real server's answer does not repeat the question.
        for member in ["metadata", "spec"] {
            object.insert(member.to_owned(), json!({}));
        }
    }
    object.insert("status".to_owned(), status);
    object.insert("kind".to_owned(), json!(kind.kind));
    object.insert("apiVersion".to_owned(), json!(kind.api_version()));
    let body = renderer.unstored(table::columns(kind), object);
    form.map(|()| Reply::Json { code: 201, body: body.to_string().into() })
}

pub(super) fn spec(object: &Fields) -> &Value {
    object.get("spec").unwrap_or(&Value::Null)
}

fn texts(value: &Value, key: &str) -> Vec<String> {
    let list = value.get(key).and_then(Value::as_array).into_iter().flatten();
    list.filter_map(Value::as_str).map(str::to_owned).collect()
}

fn user_info(user: &User) -> Value {
    let mut info = Fields::new();
    info.insert("username".to_owned(), json!(user.name));
    if !user.uid.is_empty() {
        info.insert("uid".to_owned(), json!(user.uid));
    }
    info.insert("groups".to_owned(), json!(user.groups));
    if !user.extra.is_empty() {
        info.insert("extra".to_owned(), json!(user.extra));
    }
    Value::Object(info)
}

// === tokens ===

fn token_review(core: &Core, call: &ApiCall, object: &Fields) -> Result<Value> {
    let token = text(spec(object), "token");
    if token.is_empty() {
        let detail = "token is required for TokenReview in authentication";
        return Err(Failure::bad_request(detail));
    }
    let wanted = audiences(core, spec(object));
    // The real server reads it as the rest of a header.
    Ok(match bearer_of(core, token.trim_end(), &wanted) {
        Ok(Bearer { user, audiences, warning }) => {
            call.warnings.add(warning);
            json!({"authenticated": true, "user": user_info(&user), "audiences": audiences})
        }
        Err(detail) => json!({"user": {}, "error": detail}),
    })
}

/// Returns the audiences of a request; without any, the API server itself.
pub(super) fn audiences(core: &Core, spec: &Value) -> Vec<String> {
    let wanted = texts(spec, "audiences");
    if wanted.is_empty() { core.access.issuer().settings().audiences.clone() } else { wanted }
}

// === access ===

fn subject_access(core: &Core, call: &ApiCall, object: &Fields) -> Result<Value> {
    let spec = spec(object);
    let mut causes = Vec::new();
    let user = User {
        name: text(spec, "user").to_owned(),
        uid: text(spec, "uid").to_owned(),
        groups: texts(spec, "groups"),
        extra: BTreeMap::new(),
    };
    if user.name.is_empty() && user.groups.is_empty() {
        let detail = "at least one of user or group must be specified";
        causes.push(Cause::invalid("spec.user", &json!(""), detail));
    }
    let request = requested(call, object, causes)?;
    Ok(decision_status(&roles::decide(core, &user, &request), object))
}

/// Returns the status of the review `object`.
fn decision_status(decision: &Decision, object: &Fields) -> Value {
    let mut status = json!({"allowed": decision.allowed});
    if !decision.reason.is_empty() {
        status["reason"] = json!(decision.reason);
    }
    let attributes = spec(object).get("resourceAttributes");
    if let Some(error) = attributes.and_then(review_selectors::evaluation_error) {
        status["evaluationError"] = json!(error);
    }
    status
}

/// Returns the request that a review asks about. Fails if there are causes already.
fn requested(call: &ApiCall, object: &Fields, others: Vec<Cause>) -> Result<Attributes> {
    let mut causes = Vec::new();
    let kind = &call.target.served.kind;
    let spec = spec(object);
    let given = |name: &str| spec.get(name).filter(|value| !value.is_null());
    let (resource, path) = (given("resourceAttributes"), given("nonResourceAttributes"));
    // The real server shows its own type, which has other names.
    let shown_path = path.map_or(
        Value::Null,
        |path| json!({"Path": text(path, "path"), "Verb": text(path, "verb")}),
    );
    if resource.is_some() == path.is_some() {
        let detail = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
        causes.push(Cause::invalid("spec", &shown_path, detail));
    }
    causes.extend(others);
    if let Some(resource) = resource {
        selectors::of_review(resource, "spec.resourceAttributes", &mut causes);
    }
    causes.extend(named(kind, object));
    if kind.namespaced {
        let namespace = resource.map(|resource| text(resource, "namespace"));
        let own = meta_text(object, "namespace");
        if let Some(namespace) = namespace.filter(|namespace| *namespace != own) {
            let at = "spec.resourceAttributes.namespace";
            let detail = "must match metadata.namespace";
            causes.push(Cause::invalid(at, &json!(namespace), detail));
        }
        if path.is_some() {
            let detail = "disallowed on this kind of request";
            causes.push(Cause::invalid("spec.nonResourceAttributes", &shown_path, detail));
        }
    }
    if causes.is_empty() {
        Ok(attributes(resource, path))
    } else {
        Err(Failure::invalid_as(&kind.group, "", "", &causes))
    }
}

/// Returns the request to a resource, or to a path.
fn attributes(resource: Option<&Value>, path: Option<&Value>) -> Attributes {
    let member =
        |name: &str| resource.or(path).map_or("", |request| text(request, name)).to_owned();
    if resource.is_none() {
        let path = Some(member("path"));
        return Attributes { verb: member("verb"), path, ..Attributes::default() };
    }
    Attributes {
        verb: member("verb"),
        namespace: member("namespace"),
        group: member("group"),
        resource: member("resource"),
        subresource: member("subresource"),
        name: member("name"),
        path: None,
    }
}

/// Returns the cause for which a review with metadata is refused.
fn named(kind: &Kind, object: &Fields) -> Option<Cause> {
    let metadata = object.get("metadata").unwrap_or(&Value::Null);
    let is_allowed =
        |name: &str| name == "managedFields" || (name == "namespace" && kind.namespaced);
    let mut names = metadata.as_object().into_iter().flatten().map(|(name, _)| name);
    let detail =
        if kind.namespaced { "must be empty except for namespace" } else { "must be empty" };
    names.any(|name| !is_allowed(name)).then(|| Cause::invalid("metadata", metadata, detail))
}

fn own_rules(core: &Core, call: &ApiCall, object: &Fields) -> Result<Value> {
    let namespace = text(spec(object), "namespace");
    if namespace.is_empty() {
        return Err(Failure::bad_request("no namespace on request"));
    }
    if !core.access.is_enforced() {
        let any = json!(["*"]);
        return Ok(json!({
            "resourceRules": [{"verbs": any, "apiGroups": any, "resources": any}],
            "nonResourceRules": [{"verbs": any, "nonResourceURLs": any}],
            "incomplete": false,
        }));
    }
    let user: &Arc<User> = &call.user;
    let (rules, errors) = roles::rules_of(core, user, namespace);
    let of = |is: fn(&PolicyRule) -> bool| -> Vec<&PolicyRule> {
        rules.iter().filter(|rule| is(rule)).collect()
    };
    let mut status = json!({
        "resourceRules": of(PolicyRule::is_for_resources),
        "nonResourceRules": of(PolicyRule::is_for_paths),
        "incomplete": false,
    });
    if !errors.is_empty() {
        status["evaluationError"] = json!(aggregate(errors));
        status["incomplete"] = json!(true);
    }
    Ok(status)
}
