//! A TCP proxy between a client and a server whose connections can be cut.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// Forwards bytes in both directions. Dropping it resets every connection.
#[derive(Debug)]
pub(super) struct Proxy {
    address: SocketAddr,
    wire: Arc<Mutex<Wire>>,
    /// Kept for its `Drop`.
    _accepting: JoinSet<()>,
}

/// The shared state of all connections.
#[derive(Debug, Default)]
struct Wire {
    /// Cancelled to cut the open connections.
    cut: CancellationToken,
    /// The number of bytes that clients receive before all connections are cut.
    left: Option<usize>,
    /// `true` if new connections are reset at once.
    closed: bool,
}

// === impl Proxy ===

impl Proxy {
    pub(super) async fn start(server: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let wire = Arc::new(Mutex::new(Wire::default()));
        let mut accepting = JoinSet::new();
        accepting.spawn(accept(listener, server, Arc::clone(&wire)));
        Ok(Self { address, wire, _accepting: accepting })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Resets every connection.
    pub(super) fn cut(&self) {
        self.wire.lock().cut();
    }

    /// Resets every connection after clients have received `bytes` more bytes.
    pub(super) fn cut_after(&self, bytes: usize) {
        self.wire.lock().left = Some(bytes);
    }

    /// Resets every connection, and each new one until `open` is called.
    pub(super) fn close(&self) {
        let mut wire = self.wire.lock();
        wire.closed = true;
        wire.cut();
    }

    /// Accepts connections again.
    pub(super) fn open(&self) {
        self.wire.lock().closed = false;
    }
}

// === impl Wire ===

impl Wire {
    fn cut(&mut self) {
        self.left = None;
        std::mem::take(&mut self.cut).cancel();
    }

    /// Returns how many of `bytes` a client receives.
    fn pass(&mut self, bytes: usize) -> usize {
        let Some(left) = &mut self.left else { return bytes };
        let passed = bytes.min(*left);
        *left -= passed;
        passed
    }
}

async fn accept(listener: TcpListener, server: SocketAddr, wire: Arc<Mutex<Wire>>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            Some(_) = connections.join_next() => {}
            accepted = listener.accept() => {
                let Ok((client, _)) = accepted else { return };
                let cut = {
                    let wire = wire.lock();
                    (!wire.closed).then(|| wire.cut.clone())
                };
                // Dropping a connection resets it.
                if client.set_zero_linger().is_ok() && let Some(cut) = cut {
                    connections.spawn(connect(client, server, cut, Arc::clone(&wire)));
                }
            }
        }
    }
}

/// Forwards bytes until one side has ended or all connections are cut; then resets both sides.
async fn connect(
    client: TcpStream,
    server: SocketAddr,
    cut: CancellationToken,
    wire: Arc<Mutex<Wire>>,
) {
    let relay = async {
        let server = TcpStream::connect(server).await?;
        server.set_zero_linger()?;
        let limited = |bytes| {
            let mut wire = wire.lock();
            let passed = wire.pass(bytes);
            if passed < bytes {
                wire.cut();
            }
            passed
        };
        tokio::select! {
            biased;
            ended = copy(&client, &server, |bytes| bytes) => ended,
            ended = copy(&server, &client, limited) => ended,
        }
    };
    tokio::select! {
        biased;
        () = cut.cancelled() => {}
        ended = relay => {
            ended.unwrap_or_else(|error: io::Error| tracing::debug!(%error, "a connection ended"));
        }
    }
}

/// Forwards as many bytes as `pass` allows.
async fn copy(from: &TcpStream, to: &TcpStream, pass: impl Fn(usize) -> usize) -> io::Result<()> {
    let mut buffer = vec![0; 16 << 10];
    loop {
        from.readable().await?;
        let read = match from.try_read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
            Err(error) => return Err(error),
        };
        let mut rest = &buffer[..pass(read)];
        while !rest.is_empty() {
            to.writable().await?;
            match to.try_write(rest) {
                Ok(written) => rest = &rest[written..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
    }
}
