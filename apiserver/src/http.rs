//! HTTP requests and replies: routing, documents, and the errors of a malformed request.

mod admitted;
mod caching;
mod deadline;
mod discovery;
mod health;
mod legacy_watch;
mod metrics;
mod openapi;
mod recording;
mod resource;
mod route;

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use homeostat_core::go_quote;
use http::request::Parts;
use http::{HeaderName, Method, Request, Response, Uri};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use jiff::Timestamp;
use parking_lot::Mutex;
use tower::BoxError;

use crate::access::User;
use crate::api;
use crate::core::Core;
use crate::kinds::{Kinds, Operations};
use crate::media::Media;
use crate::reply::{self, Body, Reply};
use crate::request::params::Params;
use crate::request::target::Target;
use crate::request::{ApiCall, Warnings, negotiate};
use crate::status::{Failure, Result};
use crate::view::ClientView;
use admitted::{Admitted, admit, with_flow, with_warnings};
use openapi::Documents;
use recording::Recording;
use route::{Document, Route, Wanted};

/// The largest request body in bytes, as in the real server.
const MAX_BODY: usize = 3 * 1024 * 1024;

/// The header with the id of a request: the client's, else one of the server.
const AUDIT_ID: HeaderName = HeaderName::from_static("audit-id");

/// The `OpenAPI` documents of one server, made at the first request for them and after each change
/// of the kinds.
#[derive(Debug, Default)]
pub(crate) struct DocumentCache {
    documents: Mutex<Option<Arc<Documents>>>,
}

/// The request body did not arrive in time.
#[derive(Debug)]
pub(crate) struct BodyTimeout;

/// Answers one request. Each failure is a reply, too.
pub(crate) async fn serve<B>(
    core: Arc<Core>,
    documents: Arc<DocumentCache>,
    request: Request<B>,
) -> Response<Body>
where
    B: http_body::Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    let given = request.headers().get(AUDIT_ID).filter(|id| !id.is_empty()).cloned();
    let is_indented = is_indented(&request);
    let (mut parts, body) = request.into_parts();
    let old = legacy_watch::rewrite(&parts.method, &parts.uri)
        .map(|uri| std::mem::replace(&mut parts.uri, uri));
    let (mut response, is_audited) = match admit(&core, &parts) {
        Ok(admitted) => respond(&core, &documents, (parts, old, body), admitted).await,
        Err(response) => (without_body(&parts.method, *response), true),
    };
    if is_indented {
        response = reply::indented(response);
    }
    if is_audited {
        let id = given.unwrap_or_else(|| core.chance.audit_id());
        response.headers_mut().insert(AUDIT_ID, id);
    }
    response
}

/// Returns true if the reply has line breaks for people. The `OpenAPI` documents never have.
fn is_indented<B>(request: &Request<B>) -> bool {
    let (headers, query) = (request.headers(), request.uri().query().unwrap_or_default());
    negotiate::wants_indented(headers, query) && !request.uri().path().starts_with("/openapi/")
}

/// Answers one request. `old` is the URI that the client sent, if the watch has an old path.
/// Returns false with a reply that the real server gives before it assigns an audit id.
async fn respond<B>(
    core: &Arc<Core>,
    documents: &DocumentCache,
    (parts, old, body): (Parts, Option<Uri>, B),
    admitted: Admitted,
) -> (Response<Body>, bool)
where
    B: http_body::Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    let Admitted { limit, user, flow, warning } = admitted;
    let warnings = Warnings::of(warning);
    let query = parts.uri.query().unwrap_or_default();
    let kinds = core.kinds();
    let route = Route::find(&kinds, &parts.method, parts.uri.path(), query);
    let has_media = matches!(&route, Route::Document(document) if document.is_discovery());
    let recording = recording(core, &route, (&parts, old.as_ref()));
    let is_long = recording.as_ref().is_some_and(Recording::is_long);
    let _in_flight = (!is_long).then(|| core.metrics.enter(parts.method == Method::GET));
    let record = |response| match recording {
        Some(recording) => recording.finish(response),
        None => response,
    };
    let reply = match route {
        Route::NotFound => Reply::NotFound,
        Route::NoResource => Reply::Failure(Failure::no_resource()),
        Route::NoSubresource(failure) => Reply::Failure(failure),
        Route::Kubelet(info) => api::answer_without_kubelet(core, &user, &info, &parts.uri).await,
        Route::Malformed => Reply::Malformed,
        Route::Health { check: Some(_), .. } => Reply::Sniffed("ok"),
        Route::Health { kind, check: None } => {
            Reply::Text(health::report(&kind, &Params::parse(query)))
        }
        Route::Metrics => metrics::answer(core, &parts.method),
        Route::Document(document) => show(core, (&kinds, documents), &document, &parts),
        Route::Resource(target) => {
            let response = std::pin::pin!(answer(core, (user, warnings), parts, target, body));
            let response = match deadline::within(limit, response).await {
                Some(response) => with_flow(response, flow.as_ref()),
                // As on the real server, the reply at the deadline has no flow.
                None => Reply::Late.into_response(Media::Json),
            };
            return (record(response), true);
        }
    };
    let media = if has_media || matches!(reply, Reply::Failure(_)) {
        negotiate::status_media(&parts.headers)
    } else {
        Media::Json
    };
    let is_audited = !matches!(reply, Reply::Malformed);
    let response = with_flow(reply.into_response(media), flow.as_ref());
    let response = with_warnings(response, &warnings);
    (record(without_body(&parts.method, response)), is_audited)
}

/// Answers a request for a document.
fn show(
    core: &Core,
    (kinds, documents): (&Kinds, &DocumentCache),
    document: &Document,
    parts: &Parts,
) -> Reply {
    if !document.takes(&parts.method) {
        return Reply::Failure(Failure::method_unknown());
    }
    let params = Params::parse(parts.uri.query().unwrap_or_default());
    let (headers, hash) = (&parts.headers, params.get("hash"));
    let (now, access) = (core.clock.now(), &core.access);
    discovery::answer(kinds, documents, &Wanted { document, headers, hash, now, access })
}

/// Starts to record a request, if such requests are counted. `old` is the old form of a watch.
fn recording(
    core: &Arc<Core>,
    route: &Route,
    (parts, old): (&Parts, Option<&Uri>),
) -> Option<Recording> {
    match route {
        Route::Resource(target) => Some(Recording::of_target(core, target, parts, old)),
        Route::Kubelet(info) => {
            let query = parts.uri.query().unwrap_or_default();
            Some(Recording::of_connection(core, info, query))
        }
        Route::Health { kind, check: None } => {
            Some(Recording::of_health(core, kind, &parts.method))
        }
        _ => None,
    }
}

/// Removes the body of a reply to HEAD.
fn without_body(method: &Method, mut response: Response<Body>) -> Response<Body> {
    if *method == Method::HEAD {
        *response.body_mut() = Body::full("");
    }
    response
}

async fn answer<B>(
    core: &Arc<Core>,
    (user, warnings): (Arc<User>, Warnings),
    mut parts: Parts,
    target: Target,
    body: B,
) -> Response<Body>
where
    B: http_body::Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    let method = parts.method.clone();
    let call = match read(user, &mut parts, target, body).await {
        Ok(call) => ApiCall { warnings, ..call },
        Err(failure) => {
            let media = negotiate::status_media(&parts.headers);
            let response = Reply::Failure(failure).into_response(media);
            return without_body(&method, with_warnings(response, &warnings));
        }
    };
    let definition = call.target.served.kind.definition.as_ref();
    if !matches!(call.target.served.kind.operations, Operations::Read) || call.method == Method::GET
    {
        call.warnings.add(call.target.served.kind.deprecation);
    }
    call.warnings.extend(definition.and_then(|definition| definition.deprecation.clone()));
    let reply = api::dispatch(core, &call).await.unwrap_or_else(Reply::Failure);
    if call.method != Method::GET {
        api::after_write(core, &call.target.served);
    }
    core.metrics.take(call.conversation.take_tally());
    let media = match reply {
        Reply::Failure(_) => negotiate::status_media(&call.headers),
        _ => call.media,
    };
    without_body(&method, with_warnings(reply.into_response(media), &call.warnings))
}

/// Reads a request. If it fails, the headers stay in `parts`.
async fn read<B>(user: Arc<User>, parts: &mut Parts, target: Target, body: B) -> Result<ApiCall>
where
    B: http_body::Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    let offer = negotiate::Offer {
        custom: target.served.kind.custom,
        collection: parts.method == Method::GET && target.info.name.is_none(),
        tables: target.has_tables(),
    };
    let accepted = negotiate::accepted(&parts.headers, offer)?;
    let negotiate::Accepted { form, media } = accepted;
    check_name(target.info.name.as_deref())?;
    let params = Params::parse(parts.uri.query().unwrap_or(""));
    let body = collect(body).await?;
    let client_view = parts.extensions.remove::<ClientView>().unwrap_or_default();
    let (method, headers) = (parts.method.clone(), std::mem::take(&mut parts.headers));
    let (warnings, conversation) = (Warnings::default(), Arc::default());
    Ok(ApiCall {
        method,
        target,
        params,
        form,
        media,
        headers,
        body,
        user,
        client_view,
        warnings,
        conversation,
    })
}

/// Fails if a name cannot be part of a path.
fn check_name(name: Option<&str>) -> Result<()> {
    let Some(name) = name else { return Ok(()) };
    let detail = match name {
        "." | ".." => format!("may not be '{name}'"),
        name if name.contains('%') => "may not contain '%'".to_owned(),
        _ => return Ok(()),
    };
    Err(Failure::bad_request(format!("Name parameter invalid: {}: {detail}", go_quote(name))))
}

async fn collect<B>(body: B) -> Result<Bytes>
where
    B: http_body::Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    let limited = std::pin::pin!(Limited::new(body, MAX_BODY));
    match limited.collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.downcast_ref::<LengthLimitError>().is_some() => {
            let message = format!("Request entity too large: limit is {MAX_BODY}");
            Err(Failure::new(413, "RequestEntityTooLarge", message))
        }
        Err(error) if error.downcast_ref::<BodyTimeout>().is_some() => {
            let message = "Timeout: request did not complete within the allotted timeout";
            Err(Failure::new(504, "Timeout", message))
        }
        Err(error) => {
            Err(Failure::bad_request(format!("the body of the request could not be read: {error}")))
        }
    }
}

// === impl DocumentCache ===

impl DocumentCache {
    fn get(&self, kinds: &Kinds, now: Timestamp) -> Arc<Documents> {
        let mut kept = self.documents.lock();
        match &*kept {
            Some(known) if known.generation() == kinds.generation() => Arc::clone(known),
            known => {
                let documents = Arc::new(Documents::of(kinds, known.as_deref(), now));
                *kept = Some(Arc::clone(&documents));
                documents
            }
        }
    }
}

// === impl BodyTimeout ===

impl fmt::Display for BodyTimeout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the body of the request did not arrive in time")
    }
}

impl std::error::Error for BodyTimeout {}
