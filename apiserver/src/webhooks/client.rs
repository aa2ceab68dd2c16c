//! Calls webhooks: by HTTP over TLS, or in this process.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode, Uri, header};
use http_body_util::Full;
use serde_json::Value;
use tokio::net::TcpStream;

use super::connections::{Connection, Connections, Place, SendError};
use super::conversation::{Answer, Question};
use super::directory::{Directory, Function, Server};
use super::review;
use super::webhook::Target;

/// The longest part of an error's body that its text names, in bytes, as in client-go.
const MAX_SHOWN: usize = 2048;
/// The real server's name for itself; the version is that of the server that this one follows.
const USER_AGENT: &str = "kube-apiserver-admission";

/// The code of a call without a reply.
const UNAVAILABLE: u16 = 503;

/// Calls webhooks, and keeps the connections to their servers.
#[derive(Debug, Default)]
pub(crate) struct Client {
    pub(crate) directory: Directory,
    connections: Connections,
}

// === impl Client ===

impl Client {
    /// Asks a webhook. `left` is the time that its request has. `resolve` explains why a service
    /// that the directory does not have cannot be reached.
    pub(crate) async fn ask(
        &self,
        question: &Question,
        left: Duration,
        resolve: impl Fn(&str, &str, u16) -> String,
    ) -> Answer {
        let address = &question.address;
        let left = if question.review.shows_time_left { left } else { Duration::MAX };
        let url = address.url(whole_seconds(address.timeout.min(left)));
        let Question { review, content, uid, version, .. } = question;
        let body = review::request(review, content, uid, version);
        let reply = match &address.target {
            Target::Url(target) => match Place::of_url(target, &address.authorities) {
                Some(place) => self.call(address.timeout, place, &url, body).await,
                None => Err(Trouble::Other("unsupported protocol scheme \"\"".to_owned())),
            },
            Target::Service { namespace, name, port, path } => {
                match self.directory.find(namespace, name, *port) {
                    Some(Server::Function(function)) => {
                        return Answer::Body(run(&*function, path, &body));
                    }
                    Some(Server::Address(socket)) => {
                        let host = format!("{name}.{namespace}.svc");
                        let dialed = (socket.ip().to_string(), socket.port());
                        let authority = format!("{host}:{port}");
                        let authorities = address.authorities.clone();
                        let place = Place { dialed, host, authority, authorities };
                        self.call(address.timeout, place, &url, body).await
                    }
                    None => Err(Trouble::Other(resolve(namespace, name, *port))),
                }
            }
        };
        match reply {
            Ok(body) => Answer::Body(body),
            Err(Trouble::Status { code, why }) => Answer::Failed { code, why },
            Err(Trouble::Other(why)) => {
                let why = format!("Post \"{url}\": {why}");
                Answer::Failed { code: UNAVAILABLE, why }
            }
        }
    }

    /// Sends a review, and returns the body of the reply.
    async fn call(
        &self,
        timeout: Duration,
        place: Place,
        url: &str,
        body: String,
    ) -> Result<Bytes, Trouble> {
        let exchange = async {
            let request = request(&place, url, body)?;
            let reply = self.exchange(place, request).await?;
            judge(reply.status(), reply.headers(), reply.body())?;
            Ok(reply.into_body())
        };
        match tokio::time::timeout(timeout, exchange).await {
            Ok(reply) => reply,
            Err(_) => Err(Trouble::Other("context deadline exceeded".to_owned())),
        }
    }

    /// Sends a request on a connection that was kept, or else on a new one.
    async fn exchange(
        &self,
        place: Place,
        request: Request<Full<Bytes>>,
    ) -> Result<Response<Bytes>, Trouble> {
        let (mut connection, mut is_kept) = match self.connections.take(&place).await {
            Some(connection) => (connection, true),
            None => (connect(&place).await?, false),
        };
        loop {
            match connection.send(request.clone()).await {
                Ok(reply) => {
                    self.connections.keep(place, connection);
                    return Ok(reply);
                }
                // The server has closed it before the request was sent.
                Err(SendError::Request(error)) if is_kept && error.is_canceled() => {
                    (connection, is_kept) = (connect(&place).await?, false);
                }
                Err(SendError::Request(error)) => return Err(Trouble::Other(broken(&error))),
                Err(SendError::Body(error)) => {
                    let why = format!(
                        "unexpected error when reading response body. Please retry. Original \
                         error: {error}"
                    );
                    return Err(Trouble::Status { code: UNAVAILABLE, why });
                }
            }
        }
    }
}

/// Rounds up, as the real server does in the parameter `timeout`.
fn whole_seconds(time: Duration) -> u64 {
    time.as_secs() + u64::from(time.subsec_nanos() > 0)
}

/// Calls a webhook in this process.
fn run(function: &Function, path: &str, body: &str) -> Bytes {
    let review: Value = serde_json::from_str(body).unwrap_or_default();
    function(path, review).to_string().into()
}

/// The reason why a call has no reply.
enum Trouble {
    /// The server replied with an error: its code and its text.
    Status {
        code: u16,
        why: String,
    },
    Other(String),
}

/// Opens a connection to a server.
async fn connect(place: &Place) -> Result<Connection, Trouble> {
    let (host, port) = &place.dialed;
    let stream = TcpStream::connect((host.as_str(), *port)).await;
    let stream = stream.map_err(|error| Trouble::Other(dial_error(host, *port, &error)))?;
    let stream = connect_tls(stream, &place.host, &place.authorities).await;
    let opened = Connection::open(stream.map_err(Trouble::Other)?).await;
    opened.map_err(|error| Trouble::Other(broken(&error)))
}

#[cfg(feature = "tls")]
use super::tls::connect as connect_tls;

/// Fails: this build has no TLS.
#[cfg(not(feature = "tls"))]
#[expect(clippy::unused_async, reason = "the function with TLS waits")]
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

/// Returns the text of an error of a connection.
fn broken(error: &hyper::Error) -> String {
    let is_closed = error.is_incomplete_message() || error.is_closed() || error.is_canceled();
    if is_closed { "EOF".to_owned() } else { error.to_string() }
}

fn request(place: &Place, url: &str, body: String) -> Result<Request<Full<Bytes>>, Trouble> {
    Request::post(path_of(url))
        .header(header::HOST, &place.authority)
        .header(header::USER_AGENT, USER_AGENT)
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::ACCEPT, "application/json, */*")
        .body(Full::new(Bytes::from(body)))
        .map_err(|error| Trouble::Other(error.to_string()))
}

/// Returns the path and the query of a URL.
fn path_of(url: &str) -> Uri {
    let uri = url.parse::<Uri>().ok();
    let path = uri.and_then(|uri| uri.path_and_query().cloned());
    path.map_or_else(|| Uri::from_static("/"), Uri::from)
}

/// Fails with client-go's text for a status that is no success.
fn judge(status: StatusCode, headers: &HeaderMap, body: &Bytes) -> Result<(), Trouble> {
    if (200..=206).contains(&status.as_u16()) {
        return Ok(());
    }
    let media = headers.get(header::CONTENT_TYPE).map(|value| value.to_str().unwrap_or_default());
    let is_text = media.is_none_or(|media| media.starts_with("text/"));
    let shown = &body[..body.len().min(MAX_SHOWN)];
    let said = String::from_utf8_lossy(shown);
    let said = if is_text { said.trim() } else { "unknown" };
    let code = status.as_u16();
    Err(Trouble::Status { code, why: text_of(code, said) })
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
            let said = homeostat_core::go_quote(said);
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
