//! Servers that write frames by hand: they close streams and connections at chosen moments.

use std::future::Future;

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const GOAWAY: u8 = 7;

const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

/// `:status: 200`, and the same with `content-length: 9`.
const OK: &[u8] = &[0x88];
const OK_OF_9_BYTES: &[u8] = &[0x88, 0x0f, 0x0d, 0x01, b'9'];

const NO_ERROR: &[u8] = &[0, 0, 0, 0];
const REFUSED_STREAM: &[u8] = &[0, 0, 0, 7];
/// The last stream that was processed, none, and [`NO_ERROR`].
const NOTHING_PROCESSED: &[u8] = &[0; 8];

/// The server's end of a connection.
struct Peer(DuplexStream);

// === impl Peer ===

impl Peer {
    /// Reads until a request has arrived with its body, and returns its stream.
    async fn request(&mut self) -> u8 {
        loop {
            let mut head = [0; 9];
            self.0.read_exact(&mut head).await.unwrap();
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
            let mut payload = vec![0; length as usize];
            self.0.read_exact(&mut payload).await.unwrap();
            if matches!(head[3], DATA | HEADERS) && head[4] & END_STREAM != 0 {
                return head[8];
            }
        }
    }

    /// Reads the preface of the client and writes the server's.
    async fn greet(&mut self) {
        self.0.read_exact(&mut [0; 24]).await.unwrap();
        self.write(SETTINGS, 0, 0, &[]).await;
    }

    async fn write(&mut self, kind: u8, flags: u8, stream: u8, payload: &[u8]) {
        let length = u8::try_from(payload.len()).unwrap();
        let head = [0, 0, length, kind, flags, 0, 0, 0, stream];
        self.0.write_all(&[&head, payload].concat()).await.unwrap();
    }

    /// Answers requests to their end.
    async fn answer_all(&mut self) {
        loop {
            let stream = self.request().await;
            self.write(HEADERS, END_HEADERS, stream, OK).await;
            self.write(DATA, END_STREAM, stream, b"done").await;
        }
    }
}

/// Returns a pool whose n-th connection, from 0, is served by `serve(n, …)`.
fn pool<Fut>(serve: impl Fn(usize, Peer) -> Fut + Send + Sync + 'static) -> Pool<impl Connector>
where
    Fut: Future<Output = ()> + Send + 'static,
{
    let (serve, connects) = (Arc::new(serve), Arc::new(AtomicUsize::new(0)));
    let connector = tower::service_fn(move |_: Uri| {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let number = connects.fetch_add(1, Ordering::Relaxed);
        tokio::runtime::Handle::current().spawn(serve(number, Peer(theirs)));
        let pipe = Pipe { io: TokioIo::new(ours), writes: Arc::default() };
        std::future::ready(Ok::<_, Infallible>(pipe))
    });
    Pool::new(ConnectTimeout::new(connector, None), WhenFull::Waits)
}

/// Sends a request and returns the body of its answer.
async fn send(pool: &Pool<impl Connector>) -> Result<Bytes, String> {
    let request = Request::post("https://server/").body(Body::from(vec![b'x'; 3])).unwrap();
    let answer = pool.clone().request(request).await;
    let answer = answer.map_err(|failure| format!("{failure:?}"))?;
    let body = answer.into_body().collect().await;
    Ok(body.map_err(|error| format!("body: {error}"))?.to_bytes())
}

#[tokio::test(start_paused = true)]
async fn body_of_a_connection_that_closes_in_its_middle_is_an_error() {
    let pool = pool(|_, mut peer| async move {
        peer.greet().await;
        let stream = peer.request().await;
        peer.write(HEADERS, END_HEADERS, stream, OK).await;
        peer.write(DATA, 0, stream, b"half").await;
        peer.write(GOAWAY, 0, 0, NOTHING_PROCESSED).await;
        pending::<()>().await;
    });
    assert!(send(&pool).await.is_err_and(|error| error.starts_with("body: ")));
}

#[tokio::test(start_paused = true)]
async fn body_that_is_reset_before_its_length_is_an_error() {
    let pool = pool(|_, mut peer| async move {
        peer.greet().await;
        let stream = peer.request().await;
        peer.write(HEADERS, END_HEADERS, stream, OK_OF_9_BYTES).await;
        peer.write(DATA, 0, stream, b"half").await;
        peer.write(RST_STREAM, 0, stream, NO_ERROR).await;
        pending::<()>().await;
    });
    assert!(send(&pool).await.is_err_and(|error| error.starts_with("body: ")));
}

#[tokio::test(start_paused = true)]
async fn answer_to_an_unread_request_ends_with_its_reset() {
    let pool = pool(|_, mut peer| async move {
        peer.greet().await;
        let stream = peer.request().await;
        peer.write(HEADERS, END_HEADERS, stream, OK_OF_9_BYTES).await;
        peer.write(DATA, 0, stream, b"all of it").await;
        peer.write(RST_STREAM, 0, stream, NO_ERROR).await;
        pending::<()>().await;
    });
    assert_eq!(send(&pool).await, Ok("all of it".into()));
}

/// Leaves the first request without an answer, and answers those that follow.
async fn refuse_one(mut peer: Peer, kind: u8, payload: &[u8]) {
    peer.greet().await;
    let stream = peer.request().await;
    // A frame about the connection has the stream 0.
    let stream = if kind == GOAWAY { 0 } else { stream };
    peer.write(kind, 0, stream, payload).await;
    peer.answer_all().await;
}

async fn answer(mut peer: Peer) {
    peer.greet().await;
    peer.answer_all().await;
}

#[tokio::test(start_paused = true)]
async fn request_that_the_server_has_not_processed_is_reported_as_such() {
    for (kind, payload) in [(GOAWAY, NOTHING_PROCESSED), (RST_STREAM, REFUSED_STREAM)] {
        let pool = pool(move |number, peer| async move {
            match number {
                0 => refuse_one(peer, kind, payload).await,
                _ => answer(peer).await,
            }
        });
        assert!(send(&pool).await.is_err_and(|error| error.starts_with("NotProcessed")));
        assert_eq!(send(&pool).await, Ok("done".into()));
    }
}
