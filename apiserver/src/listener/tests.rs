//! Tests with real sockets, which need real time: the limits are short, and so are the tests.

use std::net::Ipv4Addr;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty, Full};
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use super::*;

mod hostile;

/// Limits short enough for a test.
const SHORT: Limits = Limits {
    head: Duration::from_millis(200),
    idle: Duration::from_millis(400),
    body: Duration::from_millis(200),
    unread: Duration::from_millis(300),
    connections: 64,
    streams: 100,
};

/// A busy machine may need seconds.
const TEST_TIMEOUT: Duration = Duration::from_secs(20);

const GET: &str = "GET /api/v1/namespaces/default HTTP/1.1\r\nhost: a\r\n\r\n";
const WATCH: &str = "/api/v1/namespaces/default/configmaps?watch=true";

/// A server on a socket.
struct Scene {
    server: ApiServer,
    listener: Listener,
}

impl Scene {
    async fn new(limits: Limits) -> Self {
        let server = ApiServer::new();
        let address = (Ipv4Addr::LOCALHOST, 0).into();
        let listener = Listener::bind_with(server.clone(), address, limits).await.unwrap();
        Self { server, listener }
    }

    /// Returns a connection on which these bytes were sent.
    async fn send(&self, words: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.listener.addr()).await.unwrap();
        stream.write_all(words.as_bytes()).await.unwrap();
        stream
    }

    /// Checks that another client is served meanwhile.
    async fn check_others_are_served(&self) {
        let words = GET.replace("\r\n\r\n", "\r\nconnection: close\r\n\r\n");
        let answer = rest(self.send(&words).await).await;
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    }

    async fn create_map(&self, name: &str, data: &str) {
        let body =
            format!("{{\"metadata\":{{\"name\":\"{name}\"}},\"data\":{{\"a\":\"{data}\"}}}}");
        let request = Request::post("/api/v1/namespaces/default/configmaps");
        let request =
            request.header("content-type", "application/json").body(Full::new(body.into()));
        let answer = tower::Service::call(&mut self.server.service(), request.unwrap());
        assert_eq!(answer.await.unwrap().status(), 201);
    }

    /// Returns an HTTP/2 client, and the task that runs its connection.
    async fn http2(&self) -> (SendRequest<Empty<Bytes>>, JoinSet<()>) {
        let stream = TcpStream::connect(self.listener.addr()).await.unwrap();
        let io = TokioIo::new(stream);
        let (sender, connection) = http2::handshake(TokioExecutor::new(), io).await.unwrap();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move { drop(connection.await) });
        (sender, tasks)
    }
}

/// Returns everything up to the end of the connection.
async fn rest(mut stream: TcpStream) -> String {
    let mut bytes = Vec::new();
    let read = timeout(TEST_TIMEOUT, stream.read_to_end(&mut bytes)).await;
    // A reset ends the connection, too.
    drop(read.expect("the connection ends"));
    String::from_utf8_lossy(&bytes).into_owned()
}

fn get(path: &str) -> Request<Empty<Bytes>> {
    Request::get(format!("http://a{path}")).body(Empty::new()).unwrap()
}

#[tokio::test]
async fn unfinished_request_is_closed_after_timeout() {
    let scene = Scene::new(SHORT).await;
    let silent = scene.send("").await;
    let half_a_preface = scene.send("PRI * HTTP/2.0\r\n").await;
    let half_a_head = scene.send("GET /api HTTP/1.1\r\nhost: a\r\n").await;
    let mut slow = scene.send("GET /api HTTP/1.1\r\n").await;
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        // A byte now and then does not complete a request.
        while slow.write_all(b"a").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    scene.check_others_are_served().await;
    for stream in [silent, half_a_preface, half_a_head] {
        assert_eq!(rest(stream).await, "");
    }
    timeout(TEST_TIMEOUT, tasks.join_next()).await.unwrap().unwrap().unwrap();
}

#[tokio::test]
async fn large_head_of_a_request_is_accepted() {
    let scene = Scene::new(Limits::DEFAULT).await;
    let names: Vec<String> = (0..2000).map(|n| format!("name-{n:06}")).collect();
    let long = format!("/api/v1/pods?labelSelector=a+in+({})", names.join(","));
    let groups: Vec<String> = (0..500).map(|n| format!("impersonate-group: g{n}\r\n")).collect();
    let groups = groups.concat();
    let head = format!("GET {long} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n");
    let answer =
        rest(scene.send(&format!("{head}impersonate-user: u\r\n{groups}\r\n")).await).await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    let (mut sender, _tasks) = scene.http2().await;
    assert_eq!(sender.send_request(get(&long)).await.unwrap().status(), 200);
}

#[tokio::test]
async fn idle_connection_is_closed_after_timeout() {
    let scene = Scene::new(SHORT).await;
    let since = Instant::now();
    let answer = rest(scene.send(GET).await).await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(since.elapsed() >= SHORT.idle, "{:?}", since.elapsed());
}

#[tokio::test]
async fn connection_that_waits_for_a_reply_stays_open() {
    let scene = Scene::new(SHORT).await;
    let mut stream = scene.send(&GET.replace("/api/v1/namespaces/default", WATCH)).await;
    tokio::time::sleep(SHORT.idle * 2).await;
    scene.create_map("late", "").await;
    let mut bytes = Vec::new();
    while !String::from_utf8_lossy(&bytes).contains("\"late\"") {
        let read = timeout(TEST_TIMEOUT, stream.read_buf(&mut bytes)).await.unwrap().unwrap();
        assert_ne!(read, 0, "the watch has ended: {}", String::from_utf8_lossy(&bytes));
    }
}

#[tokio::test]
async fn request_without_its_body_fails_after_timeout() {
    let scene = Scene::new(SHORT).await;
    let stream = scene
        .send(
            "POST /api/v1/namespaces/default/configmaps HTTP/1.1\r\nhost: a\r\ncontent-type: \
             application/json\r\n\
             content-length: 100\r\n\r\n{\"metadata\":",
        )
        .await;
    scene.check_others_are_served().await;
    let answer = rest(stream).await;
    assert!(answer.starts_with("HTTP/1.1 504 Gateway Timeout\r\n"), "{answer}");
    let message = "Timeout: request did not complete within the allotted timeout";
    assert!(answer.contains(message), "{answer}");
}

#[tokio::test]
async fn watch_of_a_client_that_never_reads_is_ended() {
    const WRITTEN: usize = 300;
    let scene = Scene::new(Limits { idle: TEST_TIMEOUT, ..SHORT }).await;
    let path = WATCH.to_owned();
    let over_http1 = scene.send(&GET.replace("/api/v1/namespaces/default", &path)).await;
    let (mut sender, _connection) = scene.http2().await;
    let over_http2 = sender.send_request(get(&path)).await.unwrap().into_body();
    // More than the buffers of a connection hold.
    let data = "x".repeat(100_000);
    for index in 0..WRITTEN {
        scene.create_map(&format!("map-{index}"), &data).await;
    }
    scene.check_others_are_served().await;
    tokio::time::sleep(SHORT.unread * 3).await;
    let events = rest(over_http1).await.matches("\"ADDED\"").count();
    assert!(events < WRITTEN, "{events}");
    let collected = timeout(TEST_TIMEOUT, over_http2.collect()).await.expect("it ends");
    assert!(collected.is_err(), "the stream is broken off");
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_their_order() {
    let scene = Scene::new(SHORT).await;
    let names = ["kube-system", "default", "nope", "kube-public"];
    let words = names.map(|name| GET.replace("default", name)).concat();
    let answers = rest(scene.send(&words).await).await;
    let places = ["kube-system", "default", "nope", "kube-public"].map(|name| {
        let said = if name == "nope" {
            "\\\"nope\\\" not found".to_owned()
        } else {
            format!("\"name\":\"{name}\"")
        };
        answers.find(&said).unwrap_or_else(|| panic!("{name}: {answers}"))
    });
    assert!(places.is_sorted(), "{answers}");
}

#[tokio::test]
async fn http2_connection_carries_at_most_100_concurrent_requests() {
    let scene = Scene::new(Limits {
        head: TEST_TIMEOUT,
        idle: TEST_TIMEOUT,
        unread: TEST_TIMEOUT,
        ..SHORT
    })
    .await;
    let (mut sender, _connection) = scene.http2().await;
    let mut watches = Vec::new();
    for _ in 0..100 {
        watches.push(sender.send_request(get(WATCH)).await.unwrap());
    }
    let mut another = std::pin::pin!(sender.send_request(get("/version")));
    let waits = timeout(Duration::from_millis(100), &mut another).await;
    assert!(waits.is_err(), "{waits:?}");
    scene.check_others_are_served().await;
    watches.pop();
    let answer = timeout(TEST_TIMEOUT, another).await.unwrap().unwrap();
    assert_eq!(answer.status(), 200);
}

#[tokio::test]
async fn connections_beyond_the_bound_replace_idle_ones() {
    let scene = Scene::new(Limits { connections: 3, head: TEST_TIMEOUT, ..SHORT }).await;
    let mut busy = scene.send(&GET.replace("/api/v1/namespaces/default", WATCH)).await;
    let mut first = [0; 15];
    busy.read_exact(&mut first).await.unwrap();
    assert_eq!(&first, b"HTTP/1.1 200 OK");
    let idle = scene.send("").await;
    scene.check_others_are_served().await;
    let since = Instant::now();
    assert_eq!(rest(idle).await, "");
    assert!(since.elapsed() < TEST_TIMEOUT / 2);

    // If all are busy, another connection waits for its turn.
    let mut more = Vec::new();
    for _ in 0..2 {
        let mut stream = scene.send(&GET.replace("/api/v1/namespaces/default", WATCH)).await;
        stream.read_exact(&mut first).await.unwrap();
        more.push(stream);
    }
    let mut waiting = scene.send(GET).await;
    let waits = timeout(Duration::from_millis(100), waiting.read_u8()).await;
    assert!(waits.is_err(), "{waits:?}");
    drop(more);
    timeout(TEST_TIMEOUT, waiting.read_exact(&mut first)).await.unwrap().unwrap();
    assert_eq!(&first, b"HTTP/1.1 200 OK");
}

#[tokio::test]
async fn slow_reader_gets_a_long_reply_in_full() {
    let scene = Scene::new(SHORT).await;
    let data = "x".repeat(200_000);
    for index in 0..20 {
        scene.create_map(&format!("map-{index}"), &data).await;
    }
    let words = GET.replace("/api/v1/namespaces/default", "/api/v1/configmaps");
    let words = words.replace("\r\n\r\n", "\r\nconnection: close\r\n\r\n");
    let mut stream = scene.send(&words).await;
    let mut read = 0;
    let mut piece = vec![0; 100_000];
    loop {
        // Longer altogether than the idle timeout.
        tokio::time::sleep(Duration::from_millis(15)).await;
        match timeout(TEST_TIMEOUT, stream.read(&mut piece)).await.unwrap().unwrap() {
            0 => break,
            size => read += size,
        }
    }
    assert!(read > 20 * data.len(), "{read}");
}
