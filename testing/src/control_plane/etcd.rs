//! etcd on a Unix socket: start, health check and compaction.

use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, header};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::UnixStream;
use tokio::time::timeout;
use tower::BoxError;

use super::error::ControlPlaneError;
use super::launch::{PROBE_TIMEOUT, Probing};
use super::process::Process;

/// The program and arguments of etcd.
pub(super) struct Launch<'a> {
    pub(super) program: &'a Path,
    pub(super) args: &'a [String],
    pub(super) socket: &'a Path,
}

// === impl Launch ===

impl Launch<'_> {
    /// Starts etcd with its data in `directory`, and waits until it serves.
    pub(super) async fn start(
        &self,
        directory: &Path,
        start_timeout: Duration,
    ) -> Result<Process, ControlPlaneError> {
        let client_url = format!("unix://{}", self.socket.display());
        let mut args = vec![
            format!("--data-dir={}", directory.join("etcd").display()),
            format!("--listen-client-urls={client_url}"),
            format!("--advertise-client-urls={client_url}"),
            // A member without peers: the kernel chooses the port, which is not used.
            "--listen-peer-urls=http://127.0.0.1:0".to_owned(),
            // The data need not survive a power failure.
            "--unsafe-no-fsync=true".to_owned(),
        ];
        args.extend_from_slice(self.args);
        let mut etcd = Process::spawn("etcd", self.program, &args, directory.join("etcd.log"))?;
        let mut probing = Probing::new(start_timeout);
        loop {
            etcd.check_running()?;
            match health(self.socket).await {
                Ok(()) => return Ok(etcd),
                Err(error) => probing.wait(&etcd, error.to_string()).await?,
            }
        }
    }
}

/// Compacts all revisions before the current one, and returns the current one.
pub(super) async fn compact(socket: &Path) -> Result<u64, BoxError> {
    let status = post(socket, "/v3/maintenance/status", &json!({})).await?;
    // The gateway writes 64-bit numbers as strings.
    let revision = status["header"]["revision"].as_str().ok_or("etcd returned no revision")?;
    let request = json!({ "revision": revision, "physical": true });
    post(socket, "/v3/kv/compaction", &request).await?;
    Ok(revision.parse()?)
}

async fn health(socket: &Path) -> Result<(), BoxError> {
    let request = Request::get("/health").body(Full::default())?;
    let answer = timeout(PROBE_TIMEOUT, send(socket, request)).await??;
    let answer: Value = serde_json::from_slice(&answer)?;
    if answer["health"] == "true" { Ok(()) } else { Err(answer.to_string().into()) }
}

async fn post(socket: &Path, path: &str, body: &Value) -> Result<Value, BoxError> {
    let body = Full::new(Bytes::from(body.to_string()));
    Ok(serde_json::from_slice(&send(socket, Request::post(path).body(body)?).await?)?)
}

/// Sends one request on a connection of its own, and drives the connection until the response.
async fn send(socket: &Path, mut request: Request<Full<Bytes>>) -> Result<Bytes, BoxError> {
    request.headers_mut().insert(header::HOST, header::HeaderValue::from_static("localhost"));
    let stream = TokioIo::new(UnixStream::connect(socket).await?);
    let (mut sender, connection) = http1::handshake(stream).await?;
    let exchange = async move {
        let response = sender.send_request(request).await?;
        let status = response.status();
        let body = response.into_body().collect().await?.to_bytes();
        if status.is_success() {
            return Ok(body);
        }
        Err(BoxError::from(format!("{status}: {}", String::from_utf8_lossy(&body))))
    };
    let (answer, _connection) = tokio::join!(exchange, connection);
    answer
}
