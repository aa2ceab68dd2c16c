//! Clients that vanish, 1,000 concurrent clients, and clients that use another protocol.

use futures::future::join_all;
use http_body_util::BodyExt as _;

use super::*;

/// Limits so long that only a missing answer can end a test.
const LONG: Limits = Limits {
    head: TEST_TIMEOUT,
    idle: TEST_TIMEOUT,
    unread: TEST_TIMEOUT,
    body: TEST_TIMEOUT,
    ..Limits::DEFAULT
};

/// Long limits, except for the first request: a busy machine must not delay a reply beyond them.
const SHORT_IDLE: Limits =
    Limits { head: Duration::from_secs(1), idle: Duration::from_millis(400), ..LONG };

const CLOSE: &str = "\r\nconnection: close\r\n\r\n";

impl Scene {
    /// Waits until this number of watches is open.
    async fn watches(&self, wanted: usize) {
        let reached = async {
            while self.server.watches() != wanted {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        let open = || self.server.watches();
        timeout(TEST_TIMEOUT, reached).await.unwrap_or_else(|_| panic!("{} watches", open()));
    }

    /// Returns a watching client that has received the head of the reply.
    async fn watcher(&self) -> TcpStream {
        let mut stream = self.send(&GET.replace("/api/v1/namespaces/default", WATCH)).await;
        let mut first = [0; 15];
        stream.read_exact(&mut first).await.unwrap();
        assert_eq!(&first, b"HTTP/1.1 200 OK");
        stream
    }

    /// Returns the server's complete reply to these bytes, until it closes the connection.
    async fn answers(&self, words: &[u8]) -> String {
        let mut stream = TcpStream::connect(self.listener.addr()).await.unwrap();
        // The server may close the connection before it has read everything.
        drop(stream.write_all(words).await);
        rest(stream).await
    }
}

// === vanishing clients ===

#[tokio::test]
async fn watch_of_a_vanished_client_ends() {
    let scene = Scene::new(LONG).await;
    let closed = scene.watcher().await;
    let reset = scene.watcher().await;
    let mut half_closed = scene.watcher().await;
    let (mut sender, connection) = scene.http2().await;
    let dropped = sender.send_request(get(WATCH)).await.unwrap();
    let over_http2 = sender.send_request(get(WATCH)).await.unwrap();
    scene.watches(5).await;
    drop(closed);
    scene.watches(4).await;
    reset.set_zero_linger().unwrap();
    drop(reset);
    scene.watches(3).await;
    // A client that closes its side gets nothing more: kube-apiserver, too, treats that as its end.
    half_closed.shutdown().await.unwrap();
    scene.watches(2).await;
    rest(half_closed).await;
    // A stream of a connection that stays open.
    drop(dropped);
    scene.watches(1).await;
    assert_eq!(sender.send_request(get("/version")).await.unwrap().status(), 200);
    drop((connection, over_http2));
    scene.watches(0).await;
    scene.check_others_are_served().await;
}

#[tokio::test]
async fn in_process_watch_ends_when_it_is_dropped() {
    let server = ApiServer::new();
    let request = Request::get(WATCH).body(Full::<Bytes>::default()).unwrap();
    let answer = tower::Service::call(&mut server.service(), request).await.unwrap();
    assert_eq!(server.watches(), 1);
    drop(answer);
    assert_eq!(server.watches(), 0);
}

#[tokio::test]
async fn client_that_vanishes_inside_a_body_creates_nothing() {
    let scene = Scene::new(LONG).await;
    let head = "POST /api/v1/namespaces/default/configmaps HTTP/1.1\r\nhost: a\r\ncontent-type: \
        application/json\r\n";
    let whole = "{\"metadata\":{\"name\":\"half\"}}";
    for framing in [
        format!("content-length: {}\r\n\r\n{whole}", whole.len() + 1),
        format!("transfer-encoding: chunked\r\n\r\n{:x}\r\n{whole}\r\n", whole.len()),
    ] {
        let mut stream = scene.send(&format!("{head}{framing}")).await;
        stream.shutdown().await.unwrap();
        let answer = rest(stream).await;
        assert!(!answer.starts_with("HTTP/1.1 2"), "{answer}");
    }
    scene.check_others_are_served().await;
    let request = Request::get("/api/v1/namespaces/default/configmaps/half");
    let request = request.body(Full::<Bytes>::default()).unwrap();
    let found = tower::Service::call(&mut scene.server.service(), request).await.unwrap();
    assert_eq!(found.status(), 404);
}

// === unusual clients ===

#[tokio::test]
async fn slow_but_complete_request_is_answered() {
    let scene = Scene::new(LONG).await;
    let body = "{\"metadata\":{\"name\":\"slow\"}}";
    let words = format!(
        "POST /api/v1/namespaces/default/configmaps HTTP/1.1\r\nhost: a\r\ncontent-length: \
         {}{CLOSE}{body}",
        body.len()
    );
    let mut stream = scene.send("").await;
    stream.set_nodelay(true).unwrap();
    for byte in words.as_bytes() {
        stream.write_all(&[*byte]).await.unwrap();
        tokio::task::yield_now().await;
    }
    let answer = rest(stream).await;
    assert!(answer.starts_with("HTTP/1.1 201 Created\r\n"), "{answer}");
}

#[tokio::test]
async fn thousand_pipelined_requests_are_all_answered() {
    let scene = Scene::new(LONG).await;
    let last = GET.replace("\r\n\r\n", CLOSE);
    let words = GET.repeat(999) + &last;
    let answers = scene.answers(words.as_bytes()).await;
    assert_eq!(answers.matches("HTTP/1.1 200 OK\r\n").count(), 1000);
    assert_eq!(answers.matches("\"kind\":\"Namespace\"").count(), 1000);
}

#[tokio::test]
async fn invalid_http_ends_only_its_connection() {
    let scene = Scene::new(SHORT_IDLE).await;
    let long = "x".repeat(1 << 20);
    let many = "a: b\r\n".repeat(5000);
    let cases: Vec<(Vec<u8>, &str)> = vec![
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".to_vec(), "HTTP/1.1 400"),
        (vec![0; 5000], "HTTP/1.1 400"),
        (vec![0xff; 100_000], "HTTP/1.1 400"),
        (b"\r\n\r\n\r\n".to_vec(), ""),
        (b"GET\r\n\r\n".to_vec(), "HTTP/1.1 400"),
        (b"GET /api HTTP/9.9\r\n\r\n".to_vec(), "HTTP/1.1 400"),
        (b"GET api HTTP/1.1\r\nhost: a\r\n\r\n".to_vec(), "HTTP/1.1 4"),
        (b"GET /\xff HTTP/1.1\r\nhost: a\r\n\r\n".to_vec(), "HTTP/1.1 "),
        (format!("GET /{long} HTTP/1.1\r\nhost: a\r\n\r\n").into(), "HTTP/1.1 4"),
        (format!("GET /api HTTP/1.1\r\na: {long}\r\n\r\n").into(), "HTTP/1.1 431"),
        (format!("GET /api HTTP/1.1\r\n{many}\r\n").into(), "HTTP/1.1 431"),
        (b"POST /api HTTP/1.1\r\ncontent-length: -1\r\n\r\n".to_vec(), "HTTP/1.1 400"),
        (
            b"POST /api HTTP/1.1\r\ncontent-length: 99999999999999999999\r\n\r\n".to_vec(),
            "HTTP/1.1 400",
        ),
        (
            b"POST /api HTTP/1.1\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab".to_vec(),
            "HTTP/1.1 400",
        ),
    ];
    let mut wrong = Vec::new();
    for (words, expected) in cases {
        let answer = scene.answers(&words).await;
        let shown = String::from_utf8_lossy(&words[..words.len().min(60)]).into_owned();
        if !answer.starts_with(expected) {
            wrong.push(format!("{shown:?}: {answer}"));
        }
        scene.check_others_are_served().await;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // A chunk with an invalid size, in the body of a request that would create an object.
    let chunk = "POST /api/v1/namespaces/default/configmaps HTTP/1.1\r\ntransfer-encoding: \
        chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n";
    let answer = scene.answers(chunk.as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
    scene.check_others_are_served().await;
}

#[tokio::test]
async fn invalid_http2_ends_only_its_connection() {
    const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    const SETTINGS: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0];
    let scene = Scene::new(SHORT_IDLE).await;
    let frame = |kind: u8, flags: u8, stream: u8, payload: &[u8]| {
        let size = u32::try_from(payload.len()).unwrap().to_be_bytes();
        [&size[1..], &[kind, flags, 0, 0, 0, stream], payload].concat()
    };
    // A head that never ends: one frame opens it, and CONTINUATION frames follow forever.
    let mut endless = frame(1, 0, 1, &[0x82]);
    for _ in 0..2000 {
        endless.extend(frame(9, 0, 1, &[0; 1000]));
    }
    for garbage in [
        b"hello".repeat(100),
        vec![0xff; 5000],
        [SETTINGS, &vec![0xff; 5000]].concat(),
        [SETTINGS, &frame(0, 0, 0, b"data of no stream")].concat(),
        [SETTINGS, &frame(1, 4, 2, &[0x82])].concat(),
        [SETTINGS, &frame(1, 4, 1, &[0xff; 100])].concat(),
        [SETTINGS, &endless].concat(),
        [SETTINGS, &frame(4, 0, 0, &[0, 4, 0xff, 0xff, 0xff, 0xff])].concat(),
        [SETTINGS, &frame(6, 0, 0, &[0; 8]).repeat(20_000)].concat(),
    ] {
        scene.answers(&[PREFACE, &garbage].concat()).await;
        scene.check_others_are_served().await;
    }
}

#[tokio::test]
async fn streams_that_are_reset_at_once_leave_nothing_behind() {
    let scene = Scene::new(SHORT_IDLE).await;
    let (sender, connection) = scene.http2().await;
    for _ in 0..2000 {
        let mut sender = sender.clone();
        // The sender is ready for as long as the server tolerates the resets.
        if timeout(TEST_TIMEOUT, sender.ready()).await.unwrap().is_err() {
            break;
        }
        drop(sender.send_request(get(WATCH)));
        tokio::task::yield_now().await;
    }
    scene.check_others_are_served().await;
    scene.watches(0).await;
    drop(connection);
}

// === many clients ===

#[tokio::test]
async fn thousand_concurrent_clients_are_all_served() {
    const CLIENTS: usize = 1000;
    let scene = Scene::new(LONG).await;
    let words = GET.replace("\r\n\r\n", CLOSE);
    let requested = join_all((0..CLIENTS).map(|_| scene.send(&words))).await;
    for answer in join_all(requested.into_iter().map(rest)).await {
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    }

    let mut watchers = join_all((0..CLIENTS).map(|_| scene.watcher())).await;
    scene.watches(CLIENTS).await;
    scene.create_map("seen-by-all", "").await;
    let see = watchers.iter_mut().map(|watcher| async move {
        let mut bytes = Vec::new();
        while !String::from_utf8_lossy(&bytes).contains("\"seen-by-all\"") {
            assert_ne!(watcher.read_buf(&mut bytes).await.unwrap(), 0, "a watch has ended");
        }
    });
    timeout(TEST_TIMEOUT, join_all(see)).await.unwrap();
    scene.check_others_are_served().await;
    drop(watchers);
    scene.watches(0).await;
}

#[tokio::test]
async fn dropped_listener_ends_every_watch() {
    let scene = Scene::new(LONG).await;
    let watchers = join_all((0..20).map(|_| scene.watcher())).await;
    let (mut sender, _connection) = scene.http2().await;
    let over_http2 = sender.send_request(get(WATCH)).await.unwrap().into_body();
    scene.watches(21).await;
    let Scene { server, listener } = scene;
    drop(listener);
    let ends = join_all(watchers.into_iter().map(rest));
    let (_, collected) =
        timeout(TEST_TIMEOUT, async { (ends.await, over_http2.collect().await) }).await.unwrap();
    assert!(collected.is_err(), "the stream is broken off");
    assert_eq!(server.watches(), 0);
}
