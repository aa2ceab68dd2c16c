//! For unit tests: a scripted API server that records its requests.

use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use kube_client::Client;
use kube_client::client::Body;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tower::BoxError;

/// One request.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    /// `POST /api/v1/…`, without the query.
    pub(crate) line: String,
    pub(crate) text: String,
}

/// The server's reaction to a request.
///
/// `Lost` is the case of a write whose outcome is unknown.
pub(crate) enum Answer {
    /// A status code, and a body.
    Said(u16, Value),
    /// The reply is lost.
    Lost,
}

/// The requests so far.
///
/// A clone shows the same requests.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<Asked>>>);

impl Log {
    pub(crate) fn all(&self) -> Vec<Asked> {
        self.0.lock().clone()
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.all().into_iter().map(|asked| asked.line).collect()
    }
}

/// Returns the answer of a server that refuses a request.
pub(crate) fn refusal(code: u16, message: &str) -> Answer {
    let reason = match code {
        404 => "NotFound",
        409 => "Conflict",
        _ => "Reason",
    };
    Answer::Said(
        code,
        json!({"kind": "Status", "status": "Failure", "code": code, "reason": reason,
               "message": message}),
    )
}

/// Returns a client whose server is `answer`.
///
/// The function of the test gets each request, with its body, after it was added to the log.
pub(crate) fn server(answer: impl Fn(&Asked) -> Answer + Send + Sync + 'static) -> (Client, Log) {
    let (log, answer) = (Log::default(), Arc::new(answer));
    let asked = log.clone();
    let service = tower::service_fn(move |request: Request<Body>| {
        let (asked, answer) = (asked.clone(), Arc::clone(&answer));
        async move {
            let (parts, body) = request.into_parts();
            let text = String::from_utf8(body.collect().await?.to_bytes().to_vec())?;
            let line = format!("{} {}", parts.method, parts.uri.path());
            let request = Asked { line, text };
            asked.0.lock().push(request.clone());
            match answer(&request) {
                Answer::Said(code, body) => {
                    let body = Full::new(Bytes::from(body.to_string()));
                    Ok::<_, BoxError>(Response::builder().status(code).body(body)?)
                }
                Answer::Lost => Err("the connection is reset".into()),
            }
        }
    });
    (Client::new(service, "default"), log)
}
