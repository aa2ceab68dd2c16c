//! Error responses that the fault layer sends in place of the server's.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full};
use serde_json::{Map, Value, json};

use crate::request_info::{ClientRequest, Verb};
use crate::response_body::ResponseBody;

/// An error as the API server sends it: an HTTP status code and a `Status` object.
///
/// Where the real server names the object and the resource in the message and in `details`, this
/// error does so too: both are filled in from the request that it answers.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// use homeostat_apiserver::ApiServer;
/// use homeostat_faults::{ApiError, Calls};
/// use k8s_openapi::api::core::v1::Pod;
/// use kube_client::{Api, Error};
///
/// let server = ApiServer::new();
/// server.faults().refuse(Calls::get("pods"), ApiError::forbidden());
/// let pods = Api::<Pod>::default_namespaced(server.client_as("controller"));
/// let Error::Api(status) = pods.get("a").await.unwrap_err() else { panic!("no Status") };
/// assert_eq!(
///     status.message,
///     "pods \"a\" is forbidden: User \"controller\" cannot get resource \"pods\" in API group \
///      \"\" in the namespace \"default\"",
/// );
/// assert_eq!(status.details.unwrap().kind, "pods");
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct ApiError {
    code: StatusCode,
    reason: &'static str,
    message: Message,
    retry_after: Option<Duration>,
}

#[derive(Debug, Clone)]
enum Message {
    /// The same text for every request; `details` stay empty.
    Fixed(String),
    /// RBAC's text about the user, the verb and the resource.
    Forbidden,
    /// `RESOURCE "NAME" SUFFIX`.
    Object(&'static str),
    /// `Operation cannot be fulfilled on RESOURCE "NAME": …`.
    Modified,
}

// === impl ApiError ===

impl ApiError {
    /// 401: the server does not accept the credentials.
    pub fn unauthorized() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "Unauthorized", "Unauthorized")
    }

    /// 403 with the message and the details that RBAC gives. The user is the name of the client,
    /// or `system:anonymous` if it has none.
    pub fn forbidden() -> Self {
        Self::with_message(StatusCode::FORBIDDEN, "Forbidden", Message::Forbidden)
    }

    /// 404: the object does not exist.
    pub fn not_found() -> Self {
        Self::with_message(StatusCode::NOT_FOUND, "NotFound", Message::Object("not found"))
    }

    /// 409: the resource version of the update is not the newest.
    pub fn conflict() -> Self {
        Self::with_message(StatusCode::CONFLICT, "Conflict", Message::Modified)
    }

    /// 409: an object of this name exists. The message of a create has an empty name: its path has
    /// none.
    pub fn already_exists() -> Self {
        let message = Message::Object("already exists");
        Self::with_message(StatusCode::CONFLICT, "AlreadyExists", message)
    }

    /// 410: the resource version is too old.
    pub fn expired() -> Self {
        Self::new(StatusCode::GONE, "Expired", "too old resource version: 1 (2)")
    }

    /// 422: validation rejects the object.
    pub fn invalid() -> Self {
        let message = Message::Object("is invalid: injected by a fault");
        Self::with_message(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", message)
    }

    /// 429: the client must wait for `retry_after`. The protocol counts in seconds; fractions are
    /// rounded up.
    pub fn too_many_requests(retry_after: Duration) -> Self {
        Self::new(StatusCode::TOO_MANY_REQUESTS, "TooManyRequests", "too many requests")
            .retry_after(retry_after)
    }

    /// 429 from a server whose watch cache is not initialized, with a `Retry-After` of 1 s.
    pub fn cache_not_ready() -> Self {
        Self::new(StatusCode::TOO_MANY_REQUESTS, "TooManyRequests", "storage is (re)initializing")
            .retry_after(Duration::from_secs(1))
    }

    /// 500: the server failed.
    pub fn internal_error() -> Self {
        let message = "Internal error occurred: injected by a fault";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", message)
    }

    /// 503: the server is starting or stopping.
    pub fn unavailable() -> Self {
        let message = "the server is currently unable to handle the request";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable", message)
    }

    /// 504: the server did not complete the request in time.
    pub fn timeout() -> Self {
        Self::new(StatusCode::GATEWAY_TIMEOUT, "Timeout", "Timeout: request did not complete")
    }

    /// Creates any other error from a status code, a reason such as `Forbidden`, and a message.
    pub fn new(code: StatusCode, reason: &'static str, message: impl Into<String>) -> Self {
        Self::with_message(code, reason, Message::Fixed(message.into()))
    }

    fn with_message(code: StatusCode, reason: &'static str, message: Message) -> Self {
        Self { code, reason, message, retry_after: None }
    }

    /// Sets the time to wait, sent as `retryAfterSeconds` and as the header `Retry-After`.
    #[must_use]
    pub fn retry_after(mut self, retry_after: Duration) -> Self {
        self.retry_after = Some(retry_after);
        self
    }

    /// Returns the `Status` object for `request`, as JSON.
    pub(crate) fn status(&self, request: &ClientRequest) -> Value {
        let mut status = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message.text(request),
            "reason": self.reason,
            "code": self.code.as_u16(),
        });
        let mut details = self.message.details(request);
        if let Some(seconds) = self.retry_after_seconds() {
            details.get_or_insert_default().insert("retryAfterSeconds".to_owned(), seconds.into());
        }
        if let Some(details) = details {
            status["details"] = Value::Object(details);
        }
        status
    }

    /// Returns the `ERROR` event that reports this error to a watch.
    pub(crate) fn event(&self, request: &ClientRequest) -> Bytes {
        format!("{{\"type\":\"ERROR\",\"object\":{}}}\n", self.status(request)).into()
    }

    pub(crate) fn response(&self, request: &ClientRequest) -> Response<ResponseBody> {
        let body = Full::new(Bytes::from(self.status(request).to_string()));
        let mut response = Response::new(body.map_err(|never| match never {}).boxed_unsync());
        *response.status_mut() = self.code;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(seconds) = self.retry_after_seconds() {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }

    fn retry_after_seconds(&self) -> Option<u64> {
        let after = self.retry_after?;
        Some(after.as_secs().saturating_add(u64::from(after.subsec_nanos() > 0)))
    }
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.code.as_u16(), self.reason)
    }
}

// === impl Message ===

impl Message {
    fn text(&self, request: &ClientRequest) -> String {
        let resource = request.info.group_resource();
        let name = request.info.name.as_deref().unwrap_or_default();
        match self {
            Self::Fixed(text) => text.clone(),
            Self::Forbidden => forbidden(request),
            Self::Object(suffix) => format!("{resource} \"{name}\" {suffix}"),
            Self::Modified => format!(
                "Operation cannot be fulfilled on {resource} \"{name}\": the object has been \
                 modified; please apply your changes to the latest version and try again"
            ),
        }
    }

    /// Returns the `details` of the Status. The real server calls the resource `kind` there.
    fn details(&self, request: &ClientRequest) -> Option<Map<String, Value>> {
        if matches!(self, Self::Fixed(_)) {
            return None;
        }
        let mut details = Map::new();
        let mut add = |key: &str, value: &str| {
            if !value.is_empty() {
                details.insert(key.to_owned(), value.into());
            }
        };
        if request.info.verb != Verb::Other {
            add("name", request.info.name.as_deref().unwrap_or_default());
            add("group", &request.info.group);
            add("kind", &request.info.resource);
        }
        Some(details)
    }
}

/// Returns the message of a 403 from RBAC (`ForbiddenStatusError` in k8s.io/apiserver).
fn forbidden(request: &ClientRequest) -> String {
    let user = if request.client.is_empty() { "system:anonymous" } else { &request.client };
    if request.info.verb == Verb::Other {
        return format!("forbidden: User \"{user}\" cannot get path \"{}\"", request.info.resource);
    }
    // The namespace of a namespace is its own name, as in the real server's request parser.
    let own = request.info.name.as_deref().filter(|_| request.info.resource == "namespaces");
    let scope = match request.info.namespace.as_deref().or(own) {
        Some(namespace) => format!("in the namespace \"{namespace}\""),
        None => "at the cluster scope".to_owned(),
    };
    let name = request.info.name.as_ref().map(|name| format!(" \"{name}\"")).unwrap_or_default();
    format!(
        "{}{name} is forbidden: User \"{user}\" cannot {} resource \"{}\" in API group \"{}\" \
         {scope}",
        request.info.group_resource(),
        request.info.verb,
        request.info.rbac_resource(),
        request.info.group,
    )
}

#[cfg(test)]
mod tests {
    use http::Method;

    use super::*;

    fn status(error: &ApiError, client: &str, method: &Method, uri: &str) -> Value {
        error.status(&ClientRequest::parse(client.into(), method, &uri.parse().unwrap()))
    }

    #[test]
    fn forbidden_has_the_message_and_details_of_rbac() {
        let cases = [
            (
                "jane",
                Method::GET,
                "/api/v1/namespaces/a/pods/p",
                r#"pods "p" is forbidden: User "jane" cannot get resource "pods" in API group "" in the namespace "a""#,
                json!({ "name": "p", "kind": "pods" }),
            ),
            (
                "",
                Method::GET,
                "/apis/apps/v1/replicasets?watch=1",
                r#"replicasets.apps is forbidden: User "system:anonymous" cannot watch resource "replicasets" in API group "apps" at the cluster scope"#,
                json!({ "group": "apps", "kind": "replicasets" }),
            ),
            (
                "jane",
                Method::PUT,
                "/apis/apps/v1/namespaces/a/replicasets/r/status",
                r#"replicasets.apps "r" is forbidden: User "jane" cannot update resource "replicasets/status" in API group "apps" in the namespace "a""#,
                json!({ "name": "r", "group": "apps", "kind": "replicasets" }),
            ),
            (
                "jane",
                Method::DELETE,
                "/api/v1/namespaces/a",
                r#"namespaces "a" is forbidden: User "jane" cannot delete resource "namespaces" in API group "" in the namespace "a""#,
                json!({ "name": "a", "kind": "namespaces" }),
            ),
            (
                "jane",
                Method::GET,
                "/version",
                r#"forbidden: User "jane" cannot get path "/version""#,
                json!({}),
            ),
        ];
        for (client, method, uri, message, details) in cases {
            let status = status(&ApiError::forbidden(), client, &method, uri);
            assert_eq!(status["message"], message);
            assert_eq!(status["details"], details, "{uri}");
        }
    }

    #[test]
    fn object_errors_name_the_object() {
        let (method, uri) = (Method::PUT, "/apis/apps/v1/namespaces/a/replicasets/r");
        let message = |error: &ApiError| status(error, "", &method, uri)["message"].clone();
        assert_eq!(message(&ApiError::not_found()), r#"replicasets.apps "r" not found"#);
        assert_eq!(message(&ApiError::already_exists()), r#"replicasets.apps "r" already exists"#);
        assert_eq!(
            message(&ApiError::conflict()),
            "Operation cannot be fulfilled on replicasets.apps \"r\": the object has been \
             modified; please apply your changes to the latest version and try again"
        );
    }

    #[test]
    fn retry_after_is_rounded_up_to_seconds() {
        let error = ApiError::too_many_requests(Duration::from_millis(1500));
        let status = status(&error, "", &Method::GET, "/api/v1/pods");
        assert_eq!(status["details"], json!({ "retryAfterSeconds": 2 }));
    }
}
