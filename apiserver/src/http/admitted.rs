//! The decision about a request before it is read, and what a reply says of it: the flow, and the
//! warnings.

use std::sync::Arc;
use std::time::Duration;

use http::request::Parts;
use http::{HeaderName, HeaderValue, Response, header};

use super::deadline;
use crate::access::User;
use crate::api;
use crate::core::Core;
use crate::flow_control::Flow;
use crate::reply::{Body, Reply};
use crate::request::{Warnings, negotiate};

/// The headers with the uids of the flow schema and of the priority level of a request.
const FLOW_SCHEMA: HeaderName = HeaderName::from_static("x-kubernetes-pf-flowschema-uid");
const PRIORITY_LEVEL: HeaderName = HeaderName::from_static("x-kubernetes-pf-prioritylevel-uid");

/// A request that is carried out.
pub(super) struct Admitted {
    /// The time that the client gives.
    pub(super) limit: Option<Duration>,
    pub(super) user: Arc<User>,
    pub(super) flow: Option<Flow>,
    /// A warning about the credentials; often empty.
    pub(super) warning: &'static str,
}

/// Fails with the reply to a request that goes no further.
pub(super) fn admit(core: &Core, parts: &Parts) -> Result<Admitted, Box<Response<Body>>> {
    let reply =
        |failure| Reply::Failure(failure).into_response(negotiate::status_media(&parts.headers));
    let limit = deadline::limit(parts).map_err(|failure| Box::new(reply(failure)))?;
    let api::Admitted { user, flow, warning } = api::admit(core, parts);
    let failure = match user {
        Ok(user) => return Ok(Admitted { limit, user, flow, warning }),
        Err(failure) => failure,
    };
    let is_refused = failure.code != 401;
    let response = with_flow(reply(failure), flow.as_ref());
    let mut response = with_warnings(response, &Warnings::of(warning));
    if is_refused {
        let nosniff = HeaderValue::from_static("nosniff");
        response.headers_mut().insert(header::X_CONTENT_TYPE_OPTIONS, nosniff);
    }
    Err(Box::new(response))
}

/// Names the flow of a request in its reply.
pub(super) fn with_flow(mut response: Response<Body>, flow: Option<&Flow>) -> Response<Body> {
    let Some(flow) = flow else { return response };
    let value = |uid: &str| HeaderValue::from_str(uid).expect("a uid is ASCII");
    let headers = response.headers_mut();
    headers.insert(FLOW_SCHEMA, value(&flow.schema));
    headers.insert(PRIORITY_LEVEL, value(&flow.level));
    response
}

/// Adds the warnings of a request to its reply.
pub(super) fn with_warnings(mut response: Response<Body>, warnings: &Warnings) -> Response<Body> {
    for warning in warnings.headers() {
        response.headers_mut().append(header::WARNING, warning);
    }
    response
}
