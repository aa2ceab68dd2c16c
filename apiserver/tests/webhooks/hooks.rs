//! A webhook server with TLS. The path of a request says what it answers.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use crate::convert::convert;

/// The reviews that the server got: the path, and the body.
type Received = Arc<Mutex<Vec<(String, Value)>>>;

/// The names in the certificates.
const NAMES: [&str; 3] = ["localhost", "127.0.0.1", "hook.shop.svc"];

/// Makes an authority.
fn authority(name: &str) -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// A running webhook server.
pub(crate) struct Hooks {
    address: SocketAddr,
    /// The certificate of its authority, in PEM and Base64.
    bundle: String,
    received: Received,
    connections: Arc<AtomicUsize>,
    /// Ends with this value.
    _server: JoinSet<()>,
}

impl Hooks {
    /// Starts a server at a free port of 127.0.0.1.
    pub(crate) async fn start() -> Self {
        let (authority, key) = (authority("hooks"), KeyPair::generate().unwrap());
        let params = CertificateParams::new(NAMES.map(str::to_owned)).unwrap();
        let certificate = params.signed_by(&key, &*authority).unwrap();
        Self::start_with(certificate.der().clone(), &key, &authority.pem()).await
    }

    /// Starts a server whose certificate is its own authority.
    pub(crate) async fn start_self_signed() -> Self {
        let mut params = CertificateParams::new(NAMES.map(str::to_owned)).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        Self::start_with(certificate.der().clone(), &key, &certificate.pem()).await
    }

    async fn start_with(
        certificate: CertificateDer<'static>,
        key: &KeyPair,
        authority: &str,
    ) -> Self {
        let chain = vec![certificate];
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .unwrap();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (received, connections) = (Received::default(), Arc::<AtomicUsize>::default());
        let mut server = JoinSet::new();
        let tls = TlsAcceptor::from(Arc::new(config));
        server.spawn(accept(listener, tls, received.clone(), connections.clone()));
        Self { address, bundle: STANDARD.encode(authority), received, connections, _server: server }
    }

    /// Returns the configuration of a client for a path.
    pub(crate) fn client_config(&self, path: &str) -> Value {
        json!({"url": format!("https://{}{path}", self.address), "caBundle": self.bundle})
    }

    /// Returns an authority that has not signed the server's certificate.
    pub(crate) fn other_bundle() -> Value {
        json!(STANDARD.encode(authority("other").pem()))
    }

    pub(crate) fn socket(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn bundle(&self) -> &str {
        &self.bundle
    }

    /// Returns the address, as texts of errors have it.
    pub(crate) fn address(&self) -> String {
        self.address.to_string()
    }

    /// Returns the number of connections that the server has accepted.
    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    /// Takes the reviews that the server got.
    pub(crate) fn take(&self) -> Vec<(String, Value)> {
        std::mem::take(&mut self.received.lock())
    }
}

async fn accept(
    listener: TcpListener,
    tls: TlsAcceptor,
    received: Received,
    connections: Arc<AtomicUsize>,
) {
    let mut tasks = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        connections.fetch_add(1, Ordering::Relaxed);
        let (tls, received) = (tls.clone(), received.clone());
        tasks.spawn(async move {
            let Ok(stream) = tls.accept(stream).await else { return };
            let service = service_fn(|request| answer(request, &received));
            let connection = hyper::server::conn::http1::Builder::new();
            // A client that goes away is none of this test's concerns.
            drop(connection.serve_connection(TokioIo::new(stream), service).await);
        });
    }
}

async fn answer(
    request: Request<Incoming>,
    received: &Received,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let path = request.uri().path().to_owned();
    let query = request.uri().query().unwrap_or_default().to_owned();
    let body = request.into_body().collect().await.unwrap().to_bytes();
    let review: Value = serde_json::from_slice(&body).unwrap();
    let milliseconds = match path.split_once("/slow/") {
        Some((_, milliseconds)) => milliseconds.parse().unwrap(),
        None => 0,
    };
    if milliseconds > 0 {
        received.lock().push((format!("{path}?{query}"), review.clone()));
        tokio::time::sleep(Duration::from_millis(milliseconds)).await;
    } else if !path.starts_with("/probe") && path != "/convert" {
        received.lock().push((path.clone(), review.clone()));
    }
    let reply = Response::builder().header("Content-Type", "application/json");
    if let Some(code) = path.strip_prefix("/status/") {
        let reply = Response::builder().status(code.parse::<u16>().unwrap());
        let reply = reply.header("Content-Type", "text/plain; charset=utf-8");
        return Ok(reply.body(Full::from("something \"odd\"\n")).unwrap());
    }
    if path == "/convert" {
        let (code, text) = convert(&review);
        let media = if code == 200 { "application/json" } else { "text/plain; charset=utf-8" };
        let reply = Response::builder().status(code).header("Content-Type", media);
        return Ok(reply.body(Full::from(text)).unwrap());
    }
    let text = match path.as_str() {
        "/not-json" => "nonsense".to_owned(),
        "/empty" => String::new(),
        "/other-kind" => r#"{"kind":"Pod","apiVersion":"v1"}"#.to_owned(),
        _ => respond(&path, review).to_string(),
    };
    // The server closes such a connection after the reply.
    let reply = if path == "/close" { reply.header("Connection", "close") } else { reply };
    Ok(reply.body(Full::from(text)).unwrap())
}

/// Returns a review with the response that a path asks for.
fn respond(path: &str, mut review: Value) -> Value {
    let request = review["request"].take();
    let (verb, rest) = path[1..].split_once('/').unwrap_or_else(|| (&path[1..], ""));
    let mut response = match (verb, rest) {
        ("probe", _) => json!({"allowed": false, "status": {"message": "ready"}}),
        ("deny", which) => denied(which),
        ("warn", "") => {
            let warnings = ["first \"quoted\"", "second", "first \"quoted\""];
            json!({"allowed": true, "warnings": warnings})
        }
        ("warn", _) => json!({"allowed": false, "warnings": ["before"]}),
        ("annotate", _) => json!({"allowed": true, "auditAnnotations": {"a": "b"}}),
        ("label", name) => {
            let labels = &request["object"]["metadata"]["labels"];
            if labels.is_null() {
                patched(&json!([{"op": "add", "path": "/metadata/labels", "value": {name: "set"}}]))
            } else {
                let at = format!("/metadata/labels/{name}");
                patched(&json!([{"op": "add", "path": at, "value": "set"}]))
            }
        }
        // Sets the label to the number of labels, so that each call changes it.
        ("count", name) => {
            let labels = request["object"]["metadata"]["labels"].as_object();
            let count = labels.map_or(0, serde_json::Map::len).to_string();
            let at = format!("/metadata/labels/{name}");
            patched(&json!([{"op": "add", "path": at, "value": count}]))
        }
        ("patch", which) => patched(&operations(which)),
        _ => odd_patch(verb, rest).unwrap_or_else(|| json!({"allowed": true})),
    };
    response["uid"] = if verb == "wrong-uid" { json!("other") } else { request["uid"].clone() };
    let (kind, api_version) = (&review["kind"], &review["apiVersion"]);
    match verb {
        "no-kind" => json!({"response": response}),
        "beta" => json!({"kind": kind, "apiVersion": "admission.k8s.io/v1beta1",
            "response": response}),
        "no-response" => json!({"kind": kind, "apiVersion": api_version}),
        _ => json!({"kind": kind, "apiVersion": api_version, "response": response}),
    }
}

fn denied(which: &str) -> Value {
    let status = match which {
        "" => return json!({"allowed": false}),
        "reason" => json!({"reason": "Teapot", "code": 418}),
        "success" => json!({"status": "Success", "code": 200, "reason": "Odd"}),
        "details" => json!({
            "message": "wrong", "reason": "Invalid", "code": 422, "status": "Failure",
            "details": {"name": "x", "kind": "y", "retryAfterSeconds": 3, "causes": [
                {"reason": "FieldValueInvalid", "message": "bad", "field": "data"}]},
        }),
        _ => json!({"message": "no way"}),
    };
    json!({"allowed": false, "status": status})
}

fn patched(operations: &Value) -> Value {
    let encoded = STANDARD.encode(operations.to_string());
    json!({"allowed": true, "patch": encoded, "patchType": "JSONPatch"})
}

/// Returns a response with a patch that breaks a rule.
fn odd_patch(verb: &str, which: &str) -> Option<Value> {
    const EMPTY: &str = "W10=";
    Some(match verb {
        "patch-without-type" => json!({"allowed": true, "patch": EMPTY}),
        "type-without-patch" => json!({"allowed": true, "patchType": "JSONPatch"}),
        "empty-type" => json!({"allowed": true, "patch": EMPTY, "patchType": ""}),
        "other-type" => {
            let mut response = patched(&operations("data"));
            response["patchType"] = json!("Merge");
            response
        }
        "bad-patch" => {
            let text = match which {
                "object" => "{}",
                "text" => "nonsense",
                _ => "[]",
            };
            json!({"allowed": true, "patch": STANDARD.encode(text), "patchType": "JSONPatch"})
        }
        "odd-type" => of_odd_type(which),
        _ => return None,
    })
}

/// Returns a response with a member of a wrong type.
fn of_odd_type(member: &str) -> Value {
    let mut response = json!({"allowed": true});
    let (name, value) = match member {
        "allowed" => ("allowed", json!("yes")),
        "base64" => ("patch", json!("W10=!")),
        "patch" => ("patch", json!(5)),
        "type" => ("patchType", json!(5)),
        "warnings" => ("warnings", json!("text")),
        "warning" => ("warnings", json!(["text", 5])),
        "annotations" => ("auditAnnotations", json!({"a": 5})),
        "status" => ("status", json!("text")),
        _ => ("status", json!({"code": "x"})),
    };
    response[name] = value;
    if member == "base64" {
        response["patchType"] = json!("JSONPatch");
    }
    response
}

/// Returns the operations of a patch with a name.
fn operations(which: &str) -> Value {
    match which {
        "data" => json!([{"op": "add", "path": "/data", "value": {"hook": "was here"}}]),
        "path" => json!([{"op": "add", "path": "/spec/deep/er", "value": 1}]),
        "absent" => json!([{"op": "remove", "path": "/data/absent"}]),
        "test" => json!([{"op": "test", "path": "/data/a", "value": "other"}]),
        "kind" => json!([{"op": "dance", "path": "/data/a"}]),
        "type" => json!([{"op": "add", "path": "/data", "value": "text"}]),
        "unknown" => json!([{"op": "add", "path": "/unknown", "value": {"x": 1}},
            {"op": "add", "path": "/immutable", "value": true}]),
        "invalid" => json!([{"op": "add", "path": "/metadata/labels", "value": {"a": "b/c!"}}]),
        "name" => json!([{"op": "replace", "path": "/metadata/name", "value": "renamed"}]),
        "nothing" => json!([{"op": "replace", "path": "/kind", "value": "ConfigMap"}]),
        "managers" => json!([{"op": "add", "path": "/metadata/managedFields", "value": [
            {"manager": "x", "operation": "Wrong", "apiVersion": "v1", "fieldsType": "FieldsV1",
                "fieldsV1": {}}]}]),
        "long-manager" => json!([{"op": "add", "path": "/metadata/managedFields/-", "value":
            {"manager": "x".repeat(129), "operation": "Update", "apiVersion": "v1",
                "fieldsType": "FieldsV1", "fieldsV1": {}}}]),
        "long-subresource" => json!([{"op": "add", "path": "/metadata/managedFields/-", "value":
            {"manager": "x", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1",
                "fieldsV1": {}, "subresource": "s".repeat(257)}}]),
        "no-managers" => json!([{"op": "remove", "path": "/metadata/managedFields"}]),
        "owners" => json!([{"op": "add", "path": "/metadata/ownerReferences", "value": [
            {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "u"},
            {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "u"}]}]),
        "finalizer" => {
            json!([{"op": "add", "path": "/metadata/finalizers", "value": ["example.com/f"]}])
        }
        "image" => json!([
            {"op": "add", "path": "/spec/template/spec/containers/-",
                "value": {"name": "side", "image": "side"}},
            {"op": "remove", "path": "/spec/template/spec/containers/0/imagePullPolicy"},
        ]),
        "container" => json!([{"op": "add", "path": "/spec/containers/-",
            "value": {"name": "side", "image": "side"}}]),
        "status" => json!([{"op": "add", "path": "/status/phase", "value": "Succeeded"}]),
        "replicas" => json!([{"op": "replace", "path": "/spec/replicas", "value": 7}]),
        "widget" => json!([{"op": "add", "path": "/spec/size", "value": 3},
            {"op": "add", "path": "/spec/pruned", "value": true},
            {"op": "remove", "path": "/spec/color"}]),
        "wrong-widget" => json!([{"op": "add", "path": "/spec/size", "value": "large"}]),
        "targets" => json!([{"op": "replace", "path": "/spec/maxReplicas", "value": 9}]),
        other => panic!("no patch has the name {other}"),
    }
}
