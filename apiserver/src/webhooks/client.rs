//! Calls webhooks: by HTTP over TLS, or in this process.

use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode, Uri, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use super::conversation::{Answer, Question};
use super::directory::{Directory, Function, Server};
use super::review;
use super::webhook::{Address, Target};

/// The longest reply that is read, in bytes. The longest object and a patch for it fit.
const MAX_REPLY: usize = 16 << 20;
/// The longest part of an error's body that its text names, in bytes, as in client-go.
const MAX_SHOWN: usize = 2048;
/// The real server's name for itself; the version is that of the server that this one follows.
const USER_AGENT: &str = "kube-apiserver-admission";

/// Asks a webhook. `resolve` explains why a service without a server in `directory` cannot be
/// reached.
pub(crate) async fn ask(
    question: &Question,
    directory: &Directory,
    resolve: impl Fn(&str, &str, u16) -> String,
) -> Answer {
    let address = &question.address;
    let body = review::request(&question.content, &question.uid, question.version);
    let reply = match &address.target {
        Target::Url(url) => match Place::of_url(url) {
            Some(place) => call(address, &place, body).await,
            None => Err(Trouble::Other("unsupported protocol scheme \"\"".to_owned())),
        },
        Target::Service { namespace, name, port, path } => {
            match directory.find(namespace, name, *port) {
                Some(Server::Function(function)) => {
                    return Answer::Body(run(&*function, path, &body));
                }
                Some(Server::Address(socket)) => {
                    let host = format!("{name}.{namespace}.svc");
                    let dialed = (socket.ip().to_string(), socket.port());
                    let authority = format!("{host}:{port}");
                    call(address, &Place { dialed, host, authority }, body).await
                }
                None => Err(Trouble::Other(resolve(namespace, name, *port))),
            }
        }
    };
    match reply {
        Ok(body) => Answer::Body(body),
        Err(Trouble::Status(why)) => Answer::Failed(why),
        Err(Trouble::Other(why)) => Answer::Failed(format!("Post \"{}\": {why}", address.url())),
    }
}

/// Calls a webhook in this process.
fn run(function: &Function, path: &str, body: &str) -> Bytes {
    let review: Value = serde_json::from_str(body).unwrap_or_default();
    function(path, review).to_string().into()
}

/// The reason why a call has no reply.
enum Trouble {
    /// The server replied with an error: its text.
    Status(String),
    Other(String),
}

/// The server of a URL.
struct Place {
    /// The host and the port to connect to.
    dialed: (String, u16),
    /// The name that the server's certificate must have.
    host: String,
    /// The value of the header `Host`.
    authority: String,
}

/// Sends a review, and returns the body of the reply.
async fn call(address: &Address, place: &Place, body: String) -> Result<Bytes, Trouble> {
    let timeout = address.timeout;
    match tokio::time::timeout(timeout, exchange(address, place, body)).await {
        Ok(reply) => reply,
        Err(_) => Err(Trouble::Other("context deadline exceeded".to_owned())),
    }
}

async fn exchange(address: &Address, place: &Place, body: String) -> Result<Bytes, Trouble> {
    let (host, port) = &place.dialed;
    let stream = TcpStream::connect((host.as_str(), *port)).await;
    let stream = stream.map_err(|error| Trouble::Other(dial_error(host, *port, &error)))?;
    let stream = connect_tls(stream, &place.host, &address.authorities).await;
    send(stream.map_err(Trouble::Other)?, address, place, body).await
}

#[cfg(feature = "tls")]
use super::tls::connect as connect_tls;

/// Fails: this build has no TLS.
#[cfg(not(feature = "tls"))]
async fn connect_tls(_: TcpStream, _: &str, _: &[u8]) -> Result<TcpStream, String> {
    Err("the server is built without the feature `tls`".to_owned())
}

fn dial_error(host: &str, port: u16, error: &std::io::Error) -> String {
    let at = if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
    match error.kind() {
        std::io::ErrorKind::ConnectionRefused => {
            format!("dial tcp {at}: connect: connection refused")
        }
        _ if host.parse::<std::net::IpAddr>().is_err() => {
            format!("dial tcp: lookup {host}: no such host")
        }
        _ => format!("dial tcp {at}: {error}"),
    }
}

async fn send<S>(
    stream: S,
    address: &Address,
    place: &Place,
    body: String,
) -> Result<Bytes, Trouble>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let broken = |error: hyper::Error| {
        let is_closed = error.is_incomplete_message() || error.is_closed() || error.is_canceled();
        Trouble::Other(if is_closed { "EOF".to_owned() } else { error.to_string() })
    };
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(broken)?;
    let request = Request::post(path_of(&address.url()))
        .header(header::HOST, &place.authority)
        .header(header::USER_AGENT, USER_AGENT)
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::ACCEPT, "application/json, */*")
        .body(Full::new(Bytes::from(body)))
        .map_err(|error| Trouble::Other(error.to_string()))?;
    let exchange = async {
        let (head, body) = sender.send_request(request).await.map_err(broken)?.into_parts();
        let body = Limited::new(body, MAX_REPLY).collect().await;
        let body = body.map_err(|error| {
            Trouble::Status(format!(
                "unexpected error when reading response body. Please retry. Original error: {error}"
            ))
        })?;
        judge(head.status, &head.headers, body.to_bytes())
    };
    // The connection ends with the exchange: it has no task of its own that could outlive it.
    let mut connection = std::pin::pin!(connection);
    let mut exchange = std::pin::pin!(exchange);
    let mut is_open = true;
    loop {
        tokio::select! {
            biased;
            reply = &mut exchange => return reply,
            _ = &mut connection, if is_open => is_open = false,
        }
    }
}

/// Returns the path and the query of a URL.
fn path_of(url: &str) -> Uri {
    let uri = url.parse::<Uri>().ok();
    let path = uri.and_then(|uri| uri.path_and_query().cloned());
    path.map_or_else(|| Uri::from_static("/"), Uri::from)
}

/// Returns the body of a reply with a status of success, or else client-go's text for the status.
fn judge(status: StatusCode, headers: &HeaderMap, body: Bytes) -> Result<Bytes, Trouble> {
    if (200..=206).contains(&status.as_u16()) {
        return Ok(body);
    }
    let media = headers.get(header::CONTENT_TYPE).map(|value| value.to_str().unwrap_or_default());
    let is_text = media.is_none_or(|media| media.starts_with("text/"));
    let shown = &body[..body.len().min(MAX_SHOWN)];
    let said = String::from_utf8_lossy(shown);
    let said = if is_text { said.trim() } else { "unknown" };
    Err(Trouble::Status(text_of(status.as_u16(), said)))
}

/// Returns the text of client-go for an error without a `Status` (`NewGenericServerResponse`).
fn text_of(code: u16, said: &str) -> String {
    let text = match code {
        400 => "the server rejected our request for an unknown reason",
        401 => "the server has asked for the client to provide credentials",
        404 => "the server could not find the requested resource",
        405 => "the server does not allow this method on the requested resource",
        406 if matches!(said, "" | "unknown") => {
            "the server was unable to respond with a content type that the client supports"
        }
        403 | 406 | 415 => said,
        409 => "the server reported a conflict",
        422 => "the server rejected our request due to an error in our request",
        429 => "the server has received too many requests and has asked us to try again later",
        503 => "the server is currently unable to handle the request",
        504 => {
            "the server was unable to return a response in the time allotted, but may still be \
             processing the request"
        }
        500.. => {
            let said = homeostat_schema::quote(said);
            return format!(
                "an error on the server ({said}) has prevented the request from succeeding"
            );
        }
        _ => {
            return format!(
                "the server responded with the status code {code} but did not return more \
                 information"
            );
        }
    };
    text.to_owned()
}

// === impl Place ===

impl Place {
    fn of_url(url: &str) -> Option<Self> {
        let uri: Uri = url.parse().ok()?;
        let authority = uri.authority()?;
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        let port = authority.port_u16().unwrap_or(443);
        Some(Self { dialed: (host.clone(), port), host, authority: authority.to_string() })
    }
}
