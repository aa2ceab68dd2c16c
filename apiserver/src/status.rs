//! Errors as `Status` bodies, with the real server's texts.

mod cause;
mod resource_name;

use std::collections::HashSet;

use homeostat_core::go_quote;
use homeostat_schema::aggregate;
use serde_json::{Map, Value, json};

use crate::access::Attributes;

pub(crate) use cause::Cause;
pub(crate) use resource_name::ResourceName;
use resource_name::with_group;

pub(crate) type Result<T> = std::result::Result<T, Failure>;

/// An error that becomes a `Status` body.
#[derive(Debug, Clone)]
pub(crate) struct Failure {
    pub(crate) code: u16,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
    pub(crate) details: Option<Value>,
    /// A fresh continue token, for a reply to an expired one.
    pub(crate) token: Option<String>,
    /// The complete status, if a webhook states it.
    pub(crate) stated: Option<Box<Map<String, Value>>>,
}

// === impl Failure ===

impl Failure {
    pub(crate) fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Self { code, reason, message: message.into(), details: None, token: None, stated: None }
    }

    pub(crate) fn with_details(mut self, details: Value) -> Self {
        self.details = Some(details);
        self
    }

    /// A status that a webhook states.
    pub(crate) fn stated(code: u16, message: String, status: Map<String, Value>) -> Self {
        let details = status.get("details").cloned();
        let stated = Some(Box::new(status));
        Self { details, stated, ..Self::new(code, "", message) }
    }

    /// The request stops at a webhook, which the server calls next. No client sees this.
    pub(crate) fn open_question() -> Self {
        Self::internal("the server has to call a webhook first")
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    /// The watch cache of a restarted server is not ready.
    pub(crate) fn not_ready() -> Self {
        let details = json!({"retryAfterSeconds": 1});
        Self::new(429, "TooManyRequests", "storage is (re)initializing").with_details(details)
    }

    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::new(500, "", message)
    }

    /// An error that the real server did not expect.
    pub(crate) fn internal_error(detail: &str) -> Self {
        let message = format!("Internal error occurred: {detail}");
        let details = json!({"causes": [{"message": detail}]});
        Self::new(500, "InternalError", message).with_details(details)
    }

    pub(crate) fn not_found<'a>(kind: impl Into<ResourceName<'a>>, name: &str) -> Self {
        let kind = kind.into();
        let message = format!("{} {} not found", kind.group_resource(), go_quote(name));
        Self::new(404, "NotFound", message).with_details(resource_details(&kind, name))
    }

    pub(crate) fn already_exists<'a>(
        kind: impl Into<ResourceName<'a>>,
        name: &str,
        terminating: bool,
    ) -> Self {
        let kind = kind.into();
        let prefix = if terminating { "object is being deleted: " } else { "" };
        let message = format!("{prefix}{} \"{name}\" already exists", kind.group_resource());
        Self::new(409, "AlreadyExists", message).with_details(resource_details(&kind, name))
    }

    /// The name of an object with `generateName` was taken, or eight generated ones: the client may
    /// retry.
    pub(crate) fn generated_name_taken<'a>(
        kind: impl Into<ResourceName<'a>>,
        name: &str,
        terminating: bool,
    ) -> Self {
        let mut failure = Self::already_exists(kind, name, terminating);
        failure.message += ", the server was not able to generate a unique name for the object";
        if let Some(details) = &mut failure.details {
            details["retryAfterSeconds"] = json!(1);
        }
        failure
    }

    pub(crate) fn conflict<'a>(
        kind: impl Into<ResourceName<'a>>,
        name: &str,
        detail: &str,
    ) -> Self {
        let kind = kind.into();
        let resource = kind.group_resource();
        let message = format!("Operation cannot be fulfilled on {resource} \"{name}\": {detail}");
        Self::new(409, "Conflict", message).with_details(resource_details(&kind, name))
    }

    pub(crate) fn modified<'a>(kind: impl Into<ResourceName<'a>>, name: &str) -> Self {
        let kind = kind.into();
        let detail = "the object has been modified; please apply your changes to the latest \
            version and try again";
        Self::conflict(kind, name, detail)
    }

    /// A failed precondition of a delete: the only conflict that names the kind, not the resource.
    pub(crate) fn delete_conflict<'a>(
        kind: impl Into<ResourceName<'a>>,
        name: &str,
        detail: &str,
    ) -> Self {
        let kind = kind.into();
        let message =
            format!("Operation cannot be fulfilled on {} \"{name}\": {detail}", kind.group_kind());
        Self::new(409, "Conflict", message).with_details(kind_details(kind.group, kind.kind, name))
    }

    pub(crate) fn forbidden<'a>(
        kind: impl Into<ResourceName<'a>>,
        name: &str,
        detail: &str,
    ) -> Self {
        let kind = kind.into();
        let message = format!("{} \"{name}\" is forbidden: {detail}", kind.group_resource());
        Self::new(403, "Forbidden", message).with_details(resource_details(&kind, name))
    }

    /// The user may not make this request. `reason` may be empty.
    pub(crate) fn access_denied(user: &str, request: &Attributes, reason: &str) -> Self {
        let Attributes { verb, group, resource, name, path, .. } = request;
        let reason = if reason.is_empty() { String::new() } else { format!(": {reason}") };
        let user =
            if user.is_empty() { String::new() } else { format!("User {} ", go_quote(user)) };
        let (message, details) = if let Some(path) = path {
            let path = go_quote(path);
            (format!("forbidden: {user}cannot {verb} path {path}{reason}"), json!({}))
        } else {
            let what = with_group(resource, group);
            let named = if name.is_empty() { what } else { format!("{what} {}", go_quote(name)) };
            let place = place_of(request);
            let message = format!("{named} is forbidden: {user}cannot {verb} {place}{reason}");
            (message, kind_details(group, resource, name))
        };
        Self::new(403, "Forbidden", message).with_details(details)
    }

    /// The credentials of the request are invalid.
    pub(crate) fn unauthorized() -> Self {
        Self::new(401, "Unauthorized", "Unauthorized")
    }

    pub(crate) fn invalid<'a>(
        kind: impl Into<ResourceName<'a>>,
        name: &str,
        causes: &[Cause],
    ) -> Self {
        let kind = kind.into();
        if kind.custom {
            return Self::invalid_as(kind.group, kind.kind, name, causes);
        }
        // As in upstream, checks of built-in kinds report a problem once that two of them find.
        let mut known = HashSet::with_capacity(causes.len());
        let distinct = causes.iter().filter(|cause| known.insert(*cause));
        let distinct: Vec<Cause> = distinct.cloned().collect();
        Self::invalid_as(kind.group, kind.kind, name, &distinct)
    }

    /// Options of a query or a delete's body that exclude each other.
    pub(crate) fn invalid_options(options: &str, causes: &[Cause]) -> Self {
        Self::invalid_as("meta.k8s.io", options, "", causes)
    }

    pub(crate) fn invalid_as(group: &str, kind: &str, name: &str, causes: &[Cause]) -> Self {
        let group_kind = with_group(kind, group);
        let problems = causes.iter().map(Cause::text);
        let message = format!("{group_kind} \"{name}\" is invalid: {}", aggregate(problems));
        let mut details = kind_details(group, kind, name);
        details["causes"] = causes.iter().map(Cause::to_json).collect();
        Self::new(422, "Invalid", message).with_details(details)
    }

    /// The storage has no key for an object without a name.
    pub(crate) fn name_required() -> Self {
        Self::bad_request("Name parameter required.")
    }

    /// Creates the error for a revision of the future. The watch cache says when to try again.
    pub(crate) fn too_large_resource_version(
        requested: u64,
        current: u64,
        retry_after: Option<u64>,
    ) -> Self {
        let message =
            format!("Timeout: Too large resource version: {requested}, current: {current}");
        let mut details = json!({
            "causes": [{"reason": "ResourceVersionTooLarge",
            "message": "Too large resource version"}],
        });
        if let Some(seconds) = retry_after {
            details["retryAfterSeconds"] = json!(seconds);
        }
        Self::new(504, "Timeout", message).with_details(details)
    }

    pub(crate) fn method_not_allowed<'a>(kind: impl Into<ResourceName<'a>>, verb: &str) -> Self {
        let kind = kind.into();
        if !kind.custom {
            return Self::method_unknown();
        }
        let resource = kind.group_resource();
        let message = format!("{verb} is not supported on resources of kind \"{resource}\"");
        Self::new(405, "MethodNotAllowed", message).with_details(resource_details(&kind, ""))
    }

    /// A path in a group of built-in kinds that names no resource.
    pub(crate) fn no_resource() -> Self {
        let message = "the server could not find the requested resource";
        Self::new(404, "NotFound", message).with_details(json!({}))
    }

    /// A request that the real server sends on to a kubelet.
    pub(crate) fn without_kubelet(resource: &str, name: &str, subresource: &str) -> Self {
        let message = format!(
            "{resource} {}: {subresource} is not implemented: the embedded API server runs no \
             containers",
            go_quote(name)
        );
        Self::new(501, "NotImplemented", message)
    }

    /// A method that the path does not support.
    pub(crate) fn method_unknown() -> Self {
        let message = "the server does not allow this method on the requested resource";
        Self::new(405, "MethodNotAllowed", message).with_details(json!({}))
    }

    pub(crate) fn not_acceptable(message: impl Into<String>) -> Self {
        Self::new(406, "NotAcceptable", message)
    }

    /// A patch of a built-in kind in an unknown format.
    pub(crate) fn unknown_patch() -> Self {
        let message = "415: Unsupported Media Type";
        Self::new(415, "UnsupportedMediaType", message).with_details(json!({}))
    }

    pub(crate) fn unsupported_media_type(accepted: &str) -> Self {
        let what = "the body of the request was in an unknown format";
        let message = format!("{what} - accepted media types include: {accepted}");
        Self::new(415, "UnsupportedMediaType", message)
    }

    /// Returns the seconds after which a client may retry.
    pub(crate) fn retry_after(&self) -> Option<u64> {
        self.details.as_ref()?.get("retryAfterSeconds")?.as_u64()
    }

    pub(crate) fn to_json(&self) -> Value {
        if let Some(stated) = &self.stated {
            return Value::Object((**stated).clone());
        }
        let mut status =
            json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"});
        status["message"] = json!(self.message);
        if !self.reason.is_empty() {
            status["reason"] = json!(self.reason);
        }
        if let Some(details) = &self.details {
            status["details"] = details.clone();
        }
        if let Some(token) = &self.token {
            status["metadata"] = json!({"continue": token});
        }
        status["code"] = json!(self.code);
        status
    }
}

/// Returns the body of the reply to a successful delete.
pub(crate) fn deleted<'a>(kind: impl Into<ResourceName<'a>>, name: &str, uid: &str) -> Value {
    let kind = kind.into();
    let mut details = resource_details(&kind, name);
    details["uid"] = json!(uid);
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
        "details": details})
}

/// Returns the resource of a request, and where its objects are.
fn place_of(request: &Attributes) -> String {
    let Attributes { namespace, group, resource, subresource, .. } = request;
    let separator = if subresource.is_empty() { "" } else { "/" };
    let full = go_quote(&format!("{resource}{separator}{subresource}"));
    let place = match namespace.as_str() {
        "" => "at the cluster scope".to_owned(),
        namespace => format!("in the namespace {}", go_quote(namespace)),
    };
    format!("resource {full} in API group {} {place}", go_quote(group))
}

fn resource_details(kind: &ResourceName<'_>, name: &str) -> Value {
    kind_details(kind.group, kind.plural, name)
}

fn kind_details(group: &str, kind: &str, name: &str) -> Value {
    let mut details = Map::new();
    for (key, value) in [("name", name), ("group", group), ("kind", kind)] {
        if !value.is_empty() {
            details.insert(key.to_owned(), json!(value));
        }
    }
    Value::Object(details)
}
