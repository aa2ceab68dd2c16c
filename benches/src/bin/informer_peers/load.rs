//! Starts the load server, and reads its state.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use serde::Deserialize;

/// A running server; dropping the value ends it.
#[derive(Debug)]
pub(super) struct LoadServer {
    child: Child,
    /// The address: `http://…`.
    pub(super) url: String,
}

/// State of the load server.
#[derive(Debug, Deserialize)]
pub(super) struct Status {
    asked: u64,
    sent: u64,
    pub(super) pods: Collection,
    pub(super) replicasets: Collection,
}

/// State of one of its collections.
#[derive(Debug, Deserialize)]
pub(super) struct Collection {
    watchers: usize,
    /// Number of watches that have sent the full state.
    pub(super) whole: usize,
}

// === impl LoadServer ===

impl LoadServer {
    /// Starts a server with this number of pods, on the first core.
    pub(super) fn start(go: &Path, pods: u32) -> anyhow::Result<Self> {
        let mut command = Command::new("taskset");
        command.args(["-c", "0"]).arg(go).args(["serve", "--pods", &pods.to_string()]);
        let mut child = command.stdout(Stdio::piped()).spawn().context("starting the server")?;
        let mut url = String::new();
        let output = child.stdout.take().context("its output")?;
        BufReader::new(output).read_line(&mut url)?;
        ensure!(url.starts_with("http://"), "the load server did not start");
        Ok(Self { child, url: url.trim().to_owned() })
    }

    /// Waits until the server has no client and has sent all requested objects.
    #[expect(clippy::disallowed_methods, reason = "there is no runtime here that it could hold up")]
    pub(super) fn settle(&self) -> anyhow::Result<Status> {
        for _ in 0..400 {
            let status = self.status()?;
            if status.pods.watchers == 0 && status.asked == status.sent {
                return Ok(status);
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        bail!("the server is still busy: {:?}", self.status()?)
    }

    pub(super) fn status(&self) -> anyhow::Result<Status> {
        let host = self.url.trim_start_matches("http://");
        let mut stream = TcpStream::connect(host)?;
        write!(stream, "GET /bench/status HTTP/1.0\r\nHost: {host}\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let (_, body) = answer.split_once("\r\n\r\n").context("an answer")?;
        Ok(serde_json::from_str(body)?)
    }
}

impl Drop for LoadServer {
    fn drop(&mut self) {
        // The process may have ended already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
