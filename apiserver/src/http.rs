//! HTTP in, HTTP out: finds out what is asked, and writes down the answer.

pub(crate) mod body;
pub(crate) mod decode;
mod discovery;
mod health;
mod negotiate;
pub(crate) mod openapi;
pub(crate) mod options;
pub(crate) mod params;
mod response;
pub(crate) mod route;
mod warnings;

use std::sync::Arc;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, Method, Request, Response, header};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use tower::BoxError;

pub use body::Body;

use crate::api;
use crate::core::Core;
use crate::listener::Late;
use crate::status::{Failure, Result};
use crate::types::quote;
use crate::view::Sight;
use params::Params;
use response::Reply;
use route::{Route, Target};
use warnings::Warnings;

/// The largest body that is read.
const LARGEST_BODY: usize = 3 * 1024 * 1024;

/// One request for a resource, with its body.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) method: Method,
    pub(crate) target: Target,
    pub(crate) params: Params,
    /// In which form the client wants the answer.
    pub(crate) form: Form,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    /// What the answer may know.
    pub(crate) sight: Sight,
    /// What the client is told beside the answer.
    pub(crate) warnings: Warnings,
}

/// Answers one request. Every failure is an answer.
pub(crate) async fn serve<B>(core: Arc<Core>, request: Request<B>) -> Response<Body>
where
    B: http_body::Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    let (parts, body) = request.into_parts();
    let route = Route::find(&core.kinds, parts.uri.path());
    let reply = match route {
        Route::NotFound => Reply::NotFound,
        Route::NoResource => Reply::Failure(Failure::no_resource()),
        Route::Malformed => Reply::Malformed,
        Route::Health { kind, check } => {
            let params = Params::parse(parts.uri.query().unwrap_or(""));
            Reply::Text(health::report(&kind, check.as_deref(), &params))
        }
        Route::Document(document) if !document.takes(&parts.method) => {
            Reply::Failure(Failure::method_unknown())
        }
        Route::Document(document) => discovery::answer(&core.kinds, &document, &parts.headers),
        Route::Resource(target) => return answer(&core, parts, target, body).await,
    };
    without_body(&parts.method, reply.into_response())
}

/// HEAD wants no body.
fn without_body(method: &Method, mut response: Response<Body>) -> Response<Body> {
    if *method == Method::HEAD {
        *response.body_mut() = Body::full("");
    }
    response
}

async fn answer<B>(core: &Arc<Core>, parts: Parts, target: Target, body: B) -> Response<Body>
where
    B: http_body::Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    let method = parts.method.clone();
    let call = match read(parts, target, body).await {
        Ok(call) => call,
        Err(failure) => return without_body(&method, Reply::Failure(failure).into_response()),
    };
    let reply = api::dispatch(core, &call).await.unwrap_or_else(Reply::Failure);
    let mut response = reply.into_response();
    for warning in call.warnings.headers() {
        response.headers_mut().append(header::WARNING, warning);
    }
    without_body(&method, response)
}

async fn read<B>(mut parts: Parts, target: Target, body: B) -> Result<Call>
where
    B: http_body::Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    let collection = parts.method == Method::GET && target.name.is_none();
    let form = negotiate::form(&parts.headers, target.served.kind.custom, collection)?;
    check_name(target.name.as_deref())?;
    let params = Params::parse(parts.uri.query().unwrap_or(""));
    let body = collect(body).await?;
    let sight = parts.extensions.remove::<Sight>().unwrap_or_default();
    let headers = parts.headers;
    let warnings = Warnings::default();
    Ok(Call { method: parts.method, target, params, form, headers, body, sight, warnings })
}

/// A name must fit into a path.
fn check_name(name: Option<&str>) -> Result<()> {
    let Some(name) = name else { return Ok(()) };
    let why = match name {
        "." | ".." => format!("may not be '{name}'"),
        name if name.contains('%') => "may not contain '%'".to_owned(),
        _ => return Ok(()),
    };
    Err(Failure::bad_request(format!("Name parameter invalid: {}: {why}", quote(name))))
}

async fn collect<B>(body: B) -> Result<Bytes>
where
    B: http_body::Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    let limited = std::pin::pin!(Limited::new(body, LARGEST_BODY));
    match limited.collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.downcast_ref::<LengthLimitError>().is_some() => {
            let message = format!("Request entity too large: limit is {LARGEST_BODY}");
            Err(Failure::new(413, "RequestEntityTooLarge", message))
        }
        Err(error) if error.downcast_ref::<Late>().is_some() => {
            let message = "Timeout: request did not complete within the allotted timeout";
            Err(Failure::new(504, "Timeout", message))
        }
        Err(error) => {
            Err(Failure::bad_request(format!("the body of the request could not be read: {error}")))
        }
    }
}

// === impl Call ===

impl Call {
    /// The media type of the body, without its parameters.
    pub(crate) fn content_type(&self) -> &str {
        let value = self
            .headers
            .get(header::CONTENT_TYPE)
            .and_then(|value| value.to_str().ok())
            .unwrap_or("");
        value.split(';').next().unwrap_or("").trim()
    }

    /// Whether the parameters of its media type are such.
    pub(crate) fn is_well_typed(&self) -> bool {
        let Some(value) = self.headers.get(header::CONTENT_TYPE) else { return true };
        let Ok(value) = value.to_str() else { return false };
        value.matches('"').count() % 2 == 0
    }

    /// The namespace in the path; empty for all of them, and for a kind without namespaces.
    pub(crate) fn namespace(&self) -> &str {
        self.target.namespace.as_deref().unwrap_or("")
    }
}

pub(crate) use negotiate::Form;
pub(crate) use response::Reply as Answer;
