//! What is answered when a request cannot be served: `Status` bodies, word for word as the real server's.

use serde_json::{Map, Value, json};

use crate::kinds::Kind;
use crate::types::quote;

pub(crate) type Result<T> = std::result::Result<T, Failure>;

/// A refusal, on its way to becoming a `Status` body.
#[derive(Debug, Clone)]
pub(crate) struct Failure {
    pub(crate) code: u16,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
    pub(crate) details: Option<Value>,
    /// A fresh continue token, sent with an expired one.
    pub(crate) token: Option<String>,
}

/// One thing that is wrong with one field.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Cause {
    reason: &'static str,
    message: String,
    field: String,
}

// === impl Failure ===

impl Failure {
    pub(crate) fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Self { code, reason, message: message.into(), details: None, token: None }
    }

    fn with_details(mut self, details: Value) -> Self {
        self.details = Some(details);
        self
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    /// The watch cache of a server that has just started is not filled yet.
    pub(crate) fn not_ready() -> Self {
        let details = json!({"retryAfterSeconds": 1});
        Self::new(429, "TooManyRequests", "storage is (re)initializing").with_details(details)
    }

    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::new(500, "", message)
    }

    pub(crate) fn not_found(kind: &Kind, name: &str) -> Self {
        let message = format!("{} {} not found", kind.group_resource(), quote(name));
        Self::new(404, "NotFound", message).with_details(resource_details(kind, name))
    }

    pub(crate) fn already_exists(kind: &Kind, name: &str, terminating: bool) -> Self {
        let prefix = if terminating { "object is being deleted: " } else { "" };
        let message = format!("{prefix}{} \"{name}\" already exists", kind.group_resource());
        Self::new(409, "AlreadyExists", message).with_details(resource_details(kind, name))
    }

    /// Eight generated names in a row were taken: try again soon.
    pub(crate) fn generated_name_taken(kind: &Kind, name: &str) -> Self {
        let mut failure = Self::already_exists(kind, name, false);
        if let Some(details) = &mut failure.details {
            details["retryAfterSeconds"] = json!(1);
        }
        failure
    }

    pub(crate) fn conflict(kind: &Kind, name: &str, why: &str) -> Self {
        let resource = kind.group_resource();
        let message = format!("Operation cannot be fulfilled on {resource} \"{name}\": {why}");
        Self::new(409, "Conflict", message).with_details(resource_details(kind, name))
    }

    pub(crate) fn modified(kind: &Kind, name: &str) -> Self {
        let why = "the object has been modified; please apply your changes to the latest version and try again";
        Self::conflict(kind, name, why)
    }

    /// A precondition of a delete: the one conflict that names the kind, not the resource.
    pub(crate) fn delete_conflict(kind: &Kind, name: &str, why: &str) -> Self {
        let message =
            format!("Operation cannot be fulfilled on {} \"{name}\": {why}", kind.group_kind());
        Self::new(409, "Conflict", message).with_details(kind_details(
            &kind.group,
            &kind.kind,
            name,
        ))
    }

    pub(crate) fn forbidden(kind: &Kind, name: &str, why: &str) -> Self {
        let message = format!("{} \"{name}\" is forbidden: {why}", kind.group_resource());
        Self::new(403, "Forbidden", message).with_details(resource_details(kind, name))
    }

    pub(crate) fn invalid(kind: &Kind, name: &str, causes: &[Cause]) -> Self {
        Self::invalid_as(&kind.group, &kind.kind, name, causes)
    }

    /// Options in the query or the body of a delete that make no sense together.
    pub(crate) fn invalid_options(options: &str, causes: &[Cause]) -> Self {
        Self::invalid_as("meta.k8s.io", options, "", causes)
    }

    pub(crate) fn invalid_as(group: &str, kind: &str, name: &str, causes: &[Cause]) -> Self {
        let group_kind = if group.is_empty() { kind.to_owned() } else { format!("{kind}.{group}") };
        let message = format!("{group_kind} \"{name}\" is invalid: {}", aggregate(causes));
        let mut details = kind_details(group, kind, name);
        details["causes"] = causes.iter().map(Cause::to_json).collect();
        Self::new(422, "Invalid", message).with_details(details)
    }

    pub(crate) fn too_large_resource_version(asked: u64, current: u64) -> Self {
        let message = format!("Timeout: Too large resource version: {asked}, current: {current}");
        Self::new(504, "Timeout", message).with_details(json!({
            "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
            "retryAfterSeconds": 1,
        }))
    }

    pub(crate) fn method_not_allowed(kind: &Kind, verb: &str) -> Self {
        if !kind.custom {
            return Self::method_unknown();
        }
        let resource = kind.group_resource();
        let message = format!("{verb} is not supported on resources of kind \"{resource}\"");
        Self::new(405, "MethodNotAllowed", message).with_details(resource_details(kind, ""))
    }

    /// A path in a group of built-in kinds that names nothing.
    pub(crate) fn no_resource() -> Self {
        let message = "the server could not find the requested resource";
        Self::new(404, "NotFound", message).with_details(json!({}))
    }

    /// A method that the path does not have.
    pub(crate) fn method_unknown() -> Self {
        let message = "the server does not allow this method on the requested resource";
        Self::new(405, "MethodNotAllowed", message).with_details(json!({}))
    }

    pub(crate) fn not_acceptable(message: impl Into<String>) -> Self {
        Self::new(406, "NotAcceptable", message)
    }

    /// A patch of a built-in kind in a format that nobody knows.
    pub(crate) fn unknown_patch() -> Self {
        let message = "415: Unsupported Media Type";
        Self::new(415, "UnsupportedMediaType", message).with_details(json!({}))
    }

    pub(crate) fn unsupported_media_type(accepted: &str) -> Self {
        let what = "the body of the request was in an unknown format";
        let message = format!("{what} - accepted media types include: {accepted}");
        Self::new(415, "UnsupportedMediaType", message)
    }

    /// The seconds after which a client may try again.
    pub(crate) fn retry_after(&self) -> Option<u64> {
        self.details.as_ref()?.get("retryAfterSeconds")?.as_u64()
    }

    pub(crate) fn to_json(&self) -> Value {
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

/// The body of a successful delete.
pub(crate) fn deleted(kind: &Kind, name: &str, uid: &str) -> Value {
    let mut details = resource_details(kind, name);
    details["uid"] = json!(uid);
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details})
}

fn resource_details(kind: &Kind, name: &str) -> Value {
    kind_details(&kind.group, &kind.plural, name)
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

/// Joins what is wrong as Go's aggregate errors do: one alone as it is, several in brackets, each said once.
fn aggregate(causes: &[Cause]) -> String {
    let mut texts: Vec<String> = Vec::new();
    for cause in causes {
        let text = format!("{}: {}", cause.field, cause.message);
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    match texts.as_slice() {
        [one] => one.clone(),
        several => format!("[{}]", several.join(", ")),
    }
}

// === impl Cause ===

impl Cause {
    pub(crate) fn invalid(field: impl Into<String>, value: &Value, why: &str) -> Self {
        let message = format!("Invalid value: {value}: {why}");
        Self { reason: "FieldValueInvalid", message, field: field.into() }
    }

    /// An invalid value that is shown as something else than JSON.
    pub(crate) fn invalid_shown(field: impl Into<String>, shown: &str, why: &str) -> Self {
        let why = if why.is_empty() { String::new() } else { format!(": {why}") };
        let message = format!("Invalid value: {shown}{why}");
        Self { reason: "FieldValueInvalid", message, field: field.into() }
    }

    pub(crate) fn required(field: impl Into<String>, why: &str) -> Self {
        let message = if why.is_empty() {
            "Required value".to_owned()
        } else {
            format!("Required value: {why}")
        };
        Self { reason: "FieldValueRequired", message, field: field.into() }
    }

    pub(crate) fn forbidden(field: impl Into<String>, why: &str) -> Self {
        let message = format!("Forbidden: {why}");
        Self { reason: "FieldValueForbidden", message, field: field.into() }
    }

    pub(crate) fn unsupported(field: impl Into<String>, value: &Value, supported: &[&str]) -> Self {
        let list: Vec<String> = supported.iter().map(|one| format!("\"{one}\"")).collect();
        let message = format!("Unsupported value: {value}: supported values: {}", list.join(", "));
        Self { reason: "FieldValueNotSupported", message, field: field.into() }
    }

    pub(crate) fn duplicate(field: impl Into<String>, value: &Value) -> Self {
        let message = format!("Duplicate value: {value}");
        Self { reason: "FieldValueDuplicate", message, field: field.into() }
    }

    /// A duplicate that is more than a JSON value.
    pub(crate) fn duplicate_shown(field: impl Into<String>, shown: &str) -> Self {
        let message = format!("Duplicate value: {shown}");
        Self { reason: "FieldValueDuplicate", message, field: field.into() }
    }

    pub(crate) fn not_found(field: impl Into<String>, value: &Value, why: &str) -> Self {
        let why = if why.is_empty() { String::new() } else { format!(": {why}") };
        let message = format!("Not found: {value}{why}");
        Self { reason: "FieldValueNotFound", message, field: field.into() }
    }

    pub(crate) fn too_long(field: impl Into<String>, most: usize) -> Self {
        let message = format!("Too long: may not be more than {most} bytes");
        Self { reason: "FieldValueTooLong", message, field: field.into() }
    }

    pub(crate) fn too_many(field: impl Into<String>, found: usize, most: usize) -> Self {
        let message = format!("Too many: {found}: must have at most {most} items");
        Self { reason: "FieldValueTooMany", message, field: field.into() }
    }

    #[cfg(test)]
    pub(crate) fn field(&self) -> &str {
        &self.field
    }

    fn to_json(&self) -> Value {
        json!({"reason": self.reason, "message": self.message, "field": self.field})
    }
}
