//! Requests over pipes to servers in the same process, under a paused clock.

use std::convert::Infallible;
use std::future::pending;
use std::io;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use http_body_util::{Collected, Full};
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper::server::conn::http2::Builder;
use hyper::service::service_fn;
use hyper_util::client::legacy::connect::Connected;
use hyper_util::rt::TokioIo;
use tokio::io::DuplexStream;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::*;

mod frames;

/// One more byte than the server may send ahead.
const MORE_THAN_A_WINDOW: usize = (4 << 20) + 1;
/// The number of requests that the server allows on a connection.
const REQUESTS_AT_ONCE: u32 = 3;
const MINUTE: Duration = Duration::from_secs(60);

/// A server that gets a new pipe for each connection.
#[derive(Clone, Default)]
struct Server {
    connects: Arc<AtomicUsize>,
    /// Writes of the client, on all connections.
    writes: Arc<AtomicUsize>,
    /// If true, connections are accepted and never read.
    is_dead: bool,
    /// If true, connections are refused.
    is_down: Arc<Mutex<bool>>,
    /// Cancelled when connections are to be closed once their requests are answered.
    leaving: Arc<Mutex<CancellationToken>>,
    /// Cancelled when the client has cancelled `/never`.
    cancelled: CancellationToken,
    /// One task per connection, and the ends of pipes that are not read.
    connections: Arc<Mutex<JoinSet<()>>>,
}

/// The client's end of an HTTP/2 connection.
struct Pipe {
    io: TokioIo<DuplexStream>,
    writes: Arc<AtomicUsize>,
}

// === impl Server ===

impl Server {
    fn connect(&self) -> Result<Pipe, &'static str> {
        self.connects.fetch_add(1, Ordering::Relaxed);
        if *self.is_down.lock() {
            return Err("refused");
        }
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let server = self.clone();
        let mut connections = self.connections.lock();
        if self.is_dead {
            connections.spawn(async move {
                let _open = theirs;
                pending::<()>().await;
            });
        } else {
            connections.spawn(server.serve(theirs));
        }
        Ok(Pipe { io: TokioIo::new(ours), writes: Arc::clone(&self.writes) })
    }

    async fn serve(self, io: DuplexStream) {
        let leaving = self.leaving.lock().clone();
        let answer = service_fn(move |request| self.clone().answer(request));
        let mut http2 = Builder::new(TokioExecutor::new());
        http2.max_concurrent_streams(REQUESTS_AT_ONCE);
        let connection = http2.serve_connection(TokioIo::new(io), answer);
        let mut connection = pin!(connection);
        let served = tokio::select! {
            served = &mut connection => served,
            () = leaving.cancelled() => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        drop(served); // An error is a client that went away.
    }

    /// Answers a request when its body has arrived.
    async fn answer(self, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
        let body = match request.uri().path() {
            "/large" => Bytes::from(vec![b'x'; MORE_THAN_A_WINDOW]),
            "/slow" => {
                sleep(MINUTE).await;
                Bytes::new()
            }
            "/never" => {
                let _cancelled = self.cancelled.drop_guard();
                pending().await
            }
            _ => request.into_body().collect().await.map(Collected::to_bytes).unwrap_or_default(),
        };
        Ok(Response::new(Full::new(body)))
    }

    fn connects(&self) -> usize {
        self.connects.load(Ordering::Relaxed)
    }

    /// Closes connections once their requests are answered, as an API server does that stops.
    fn leave(&self) {
        std::mem::take(&mut *self.leaving.lock()).cancel();
    }

    /// Returns a pool whose attempts to connect take one second.
    fn pool(&self) -> Pool<impl Connector> {
        self.pool_that(WhenFull::Waits)
    }

    fn pool_that(&self, when_full: WhenFull) -> Pool<impl Connector> {
        let server = self.clone();
        let connector = tower::service_fn(move |_: Uri| {
            let server = server.clone();
            async move {
                sleep(Duration::from_secs(1)).await;
                server.connect()
            }
        });
        Pool::new(ConnectTimeout::new(connector, None), when_full)
    }
}

fn post(path: &str, bytes: usize) -> Request<Body> {
    let uri = format!("https://server{path}");
    Request::post(uri).body(Body::from(vec![b'x'; bytes])).unwrap()
}

/// Sends a request and returns the length of the answer.
async fn send(pool: &Pool<impl Connector>, path: &str, bytes: usize) -> Result<usize, String> {
    let answer = pool.clone().request(post(path, bytes)).await;
    let answer = answer.map_err(|failure| match failure {
        Failure::NotSent(error) => format!("not sent: {error}"),
        Failure::NotProcessed(error) => format!("not processed: {error}"),
        Failure::NoAnswer(error) => format!("no answer: {error}"),
    })?;
    Ok(answer.into_body().collect().await.map_err(|error| error.to_string())?.to_bytes().len())
}

/// Lets the tasks of connections run.
async fn settle() {
    sleep(Duration::from_millis(1)).await;
}

#[tokio::test(start_paused = true)]
async fn head_and_body_of_requests_leave_in_one_write() {
    let server = Server::default();
    let pool = server.pool();
    assert_eq!(send(&pool, "/echo", 1).await, Ok(1));
    let settled = server.writes.load(Ordering::Relaxed);
    // h2 copies short bodies behind their heads. A stream without vectored writes, as this one,
    // gets longer bodies in writes of their own.
    let answers = tokio::join!(send(&pool, "/echo", 200), send(&pool, "/echo", 200));
    assert_eq!(answers, (Ok(200), Ok(200)));
    assert_eq!(server.writes.load(Ordering::Relaxed) - settled, 1);
}

#[tokio::test(start_paused = true)]
async fn body_without_an_end_in_one_window_arrives() {
    let pool = Server::default().pool();
    let large = tokio::time::timeout(MINUTE, send(&pool, "/large", 0)).await;
    assert_eq!(large, Ok(Ok(MORE_THAN_A_WINDOW)));
    let large = tokio::time::timeout(MINUTE, send(&pool, "/echo", MORE_THAN_A_WINDOW)).await;
    assert_eq!(large, Ok(Ok(MORE_THAN_A_WINDOW)));
}

#[tokio::test(start_paused = true)]
async fn requests_that_wait_share_one_attempt_to_connect() {
    let server = Server::default();
    let pool = server.pool();
    let begun = Instant::now();
    let answers = {
        let mut dropped = pin!(send(&pool, "/echo", 1));
        assert!(futures::poll!(&mut dropped).is_pending());
        tokio::join!(send(&pool, "/echo", 2), send(&pool, "/echo", 3))
    };
    assert_eq!(answers, (Ok(2), Ok(3)));
    assert_eq!((server.connects(), begun.elapsed().as_secs()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn refused_connection_fails_all_that_wait_and_the_next_request_tries_again() {
    let server = Server::default();
    *server.is_down.lock() = true;
    let pool = server.pool();
    let refused = Err("not sent: refused".to_owned());
    let answers = tokio::join!(send(&pool, "/echo", 1), send(&pool, "/echo", 1));
    assert_eq!(answers, (refused.clone(), refused));
    assert_eq!(server.connects(), 1);
    *server.is_down.lock() = false;
    assert_eq!(send(&pool, "/echo", 1).await, Ok(1));
    assert_eq!(server.connects(), 2);
}

#[tokio::test(start_paused = true)]
async fn abandoned_attempt_to_connect_is_begun_again() {
    let server = Server::default();
    let pool = server.pool();
    {
        let mut dropped = pin!(send(&pool, "/echo", 1));
        assert!(futures::poll!(&mut dropped).is_pending());
    }
    assert_eq!(send(&pool, "/echo", 1).await, Ok(1));
    assert_eq!(server.connects(), 1);
}

#[tokio::test(start_paused = true)]
async fn request_on_a_dead_connection_fails_after_its_ping() {
    let server = Server { is_dead: true, ..Server::default() };
    let pool = server.pool();
    let begun = Instant::now();
    let dead = Err("no answer: no answer to a ping within 10s".to_owned());
    let first = tokio::time::timeout(MINUTE, send(&pool, "/echo", 1)).await;
    assert_eq!(first, Ok(dead.clone()));
    assert_eq!(begun.elapsed().as_secs(), 1 + 15 + 10);
    assert_eq!(send(&pool, "/echo", 1).await, dead);
    assert_eq!(server.connects(), 2);
}

#[tokio::test(start_paused = true)]
async fn slow_answer_arrives_on_a_connection_that_answers_pings() {
    let server = Server::default();
    let pool = server.pool();
    assert_eq!(send(&pool, "/slow", 0).await, Ok(0));
    assert_eq!(server.connects(), 1);
}

#[tokio::test(start_paused = true)]
async fn connection_without_requests_is_not_pinged() {
    let server = Server::default();
    let pool = server.pool();
    assert_eq!(send(&pool, "/echo", 1).await, Ok(1));
    settle().await;
    let settled = server.writes.load(Ordering::Relaxed);
    sleep(MINUTE).await;
    assert_eq!(server.writes.load(Ordering::Relaxed), settled);
}

#[tokio::test(start_paused = true)]
async fn server_that_leaves_answers_what_it_has_and_gets_nothing_new() {
    let server = Server::default();
    let pool = server.pool();
    assert_eq!(send(&pool, "/echo", 1).await, Ok(1));
    let mut slow = pin!(send(&pool, "/slow", 0));
    assert!(futures::poll!(&mut slow).is_pending());
    settle().await;
    server.leave();
    settle().await;
    assert_eq!(send(&pool, "/echo", 1).await, Ok(1));
    assert_eq!(server.connects(), 2);
    assert_eq!(slow.await, Ok(0));
}

/// Sends as many requests without an answer as one connection allows, and one more. Returns its
/// answer, if there is one within a minute.
async fn one_more(pool: &Pool<impl Connector>) -> Option<Result<usize, String>> {
    let mut endless: FuturesUnordered<_> =
        (0..REQUESTS_AT_ONCE).map(|_| send(pool, "/never", 0)).collect();
    assert!(tokio::time::timeout(MINUTE, endless.next()).await.is_err());
    tokio::time::timeout(MINUTE, send(pool, "/echo", 1)).await.ok()
}

#[tokio::test(start_paused = true)]
async fn watch_beyond_the_limit_of_a_connection_opens_another() {
    let server = Server::default();
    let pool = server.pool_that(WhenFull::Connects);
    assert_eq!(send(&pool, "/echo", 1).await, Ok(1));
    assert_eq!(one_more(&pool).await, Some(Ok(1)));
    assert_eq!(server.connects(), 2);
}

#[tokio::test(start_paused = true)]
async fn requests_that_are_not_sent_yet_count_towards_the_limit() {
    let connection = Http2::open(Server::default().connect().unwrap()).await.unwrap();
    settle().await; // The limit arrives.
    let reserve = || connection.reserve(WhenFull::Connects);
    let mut reserved: Vec<_> = (0..REQUESTS_AT_ONCE).map_while(|_| reserve()).collect();
    assert_eq!(reserved.len(), 3);
    assert!(reserve().is_none());
    assert!(connection.reserve(WhenFull::Waits).is_some());
    reserved.pop();
    assert!(reserve().is_some());
}

#[tokio::test(start_paused = true)]
async fn call_beyond_the_limit_of_a_connection_waits() {
    let server = Server::default();
    let pool = server.pool();
    assert_eq!(one_more(&pool).await, None);
    // Those without an answer are cancelled now.
    assert_eq!(send(&pool, "/echo", 1).await, Ok(1));
    assert_eq!(server.connects(), 1);
}

#[tokio::test(start_paused = true)]
async fn dropped_request_is_cancelled_on_the_server() {
    let server = Server::default();
    let pool = server.pool();
    {
        let mut never = pin!(send(&pool, "/never", 0));
        assert!(tokio::time::timeout(MINUTE, &mut never).await.is_err());
        assert!(!server.cancelled.is_cancelled());
    }
    settle().await;
    assert!(server.cancelled.is_cancelled());
    assert_eq!(send(&pool, "/echo", 1).await, Ok(1));
    assert_eq!(server.connects(), 1);
}

#[tokio::test(start_paused = true)]
async fn connection_closes_when_its_pool_and_its_answers_are_gone() {
    let server = Server::default();
    let pool = server.pool();
    let slow = pool.clone().request(post("/slow", 0)).await.unwrap();
    drop(pool);
    settle().await;
    let mut connections = std::mem::take(&mut *server.connections.lock());
    assert!(connections.try_join_next().is_none());
    drop(slow);
    assert!(tokio::time::timeout(Duration::from_secs(1), connections.join_next()).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn idle_connection_closes_when_its_pool_is_gone() {
    let server = Server::default();
    let pool = server.pool();
    assert_eq!(send(&pool, "/echo", 1).await, Ok(1));
    settle().await;
    drop(pool);
    let mut connections = std::mem::take(&mut *server.connections.lock());
    assert!(tokio::time::timeout(Duration::from_secs(1), connections.join_next()).await.is_ok());
}

// === impl Pipe ===

impl Read for Pipe {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(cx, buffer)
    }
}

impl Write for Pipe {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.writes.fetch_add(1, Ordering::Relaxed);
        Pin::new(&mut self.io).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}

impl Connection for Pipe {
    fn connected(&self) -> Connected {
        Connected::new().negotiated_h2()
    }
}
