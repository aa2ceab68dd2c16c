//! For unit tests: a scripted API server that records its requests.

use std::sync::Arc;

use homeostat::kube_client::Client;
use homeostat::kube_client::client::Body;
use http::{Request, Response, header};
use http_body_util::BodyExt;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tower::BoxError;

use crate::workload::ReplicaSet;

/// One request.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    /// `POST /api/v1/…`, without the query.
    pub(crate) line: String,
    pub(crate) body: Value,
    /// The body as text.
    pub(crate) text: String,
    /// The form of the answer that the client prefers, or empty.
    pub(crate) accept: String,
}

/// The server's reaction to a request.
pub(crate) enum Answer {
    /// A status code, and a body.
    Said(u16, Value),
    /// The reply got lost.
    Lost,
}

/// The requests so far.
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

/// Returns a client whose server is `answer`, which gets the number of earlier requests.
pub(crate) fn server(
    answer: impl Fn(usize, &Asked) -> Answer + Send + Sync + 'static,
) -> (Client, Log) {
    let (log, answer) = (Log::default(), Arc::new(answer));
    let asked = log.clone();
    let service = tower::service_fn(move |request: Request<Body>| {
        let (asked, answer) = (asked.clone(), Arc::clone(&answer));
        async move {
            let (parts, body) = request.into_parts();
            let text = String::from_utf8(body.collect().await?.to_bytes().to_vec())?;
            let body = serde_json::from_str(&text).unwrap_or_default();
            let line = format!("{} {}", parts.method, parts.uri.path());
            let accept = parts.headers.get(header::ACCEPT).map(|it| it.to_str()).transpose()?;
            let accept = accept.unwrap_or_default().to_owned();
            let request = Asked { line, body, text, accept };
            let before = {
                let mut asked = asked.0.lock();
                asked.push(request.clone());
                asked.len() - 1
            };
            let Answer::Said(code, body) = answer(before, &request) else {
                return Err(std::io::Error::from(std::io::ErrorKind::ConnectionReset).into());
            };
            let body = Body::from(body.to_string().into_bytes());
            Ok::<_, BoxError>(Response::builder().status(code).body(body)?)
        }
    });
    (Client::new(service, "default"), log)
}

/// Returns a refusal.
pub(crate) fn refusal(code: u16, message: &str) -> Answer {
    let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code,
                        "reason": "Reason", "message": message});
    Answer::Said(code, status)
}

/// `shop/web` with uid `owner`, which selects `app=web`.
pub(crate) fn web(replicas: i32) -> ReplicaSet {
    let set = json!({
        "metadata": {"namespace": "shop", "name": "web", "uid": "owner", "resourceVersion": "10",
                     "generation": 1},
        "spec": {
            "replicas": replicas, "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}},
                         "spec": {"containers": [{"name": "c", "image": "i"}]}},
        },
    });
    serde_json::from_str(&set.to_string()).unwrap()
}
