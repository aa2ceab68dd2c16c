//! The program `homeostat-apiserver`: a process of its own, and the time that it takes to start.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::Context as _;
use tokio::time::Instant;

/// A running server. Dropping it kills the process: it stores nothing, so it needs no graceful
/// shutdown.
pub(crate) struct Program {
    child: Child,
    url: String,
}

/// Number of starts that are measured.
const STARTS: usize = 20;

/// Prints the time from the start of the process until it reports that it is ready.
pub(crate) fn report_start(path: &Path) -> anyhow::Result<()> {
    let mut times = Vec::new();
    for _ in 0..STARTS {
        let began = Instant::now();
        Program::start(path)?.check_ready()?;
        times.push(began.elapsed());
    }
    times.sort_unstable();
    let milliseconds = |time: &Duration| time.as_secs_f64() * 1e3;
    let fastest = times.first().map_or(f64::NAN, milliseconds);
    let median = times.get(STARTS / 2).map_or(f64::NAN, milliseconds);
    println!("start to ready: median {median:.1} ms, fastest {fastest:.1} ms (<= 50 ms)");
    Ok(())
}

// === impl Program ===

impl Program {
    /// Starts the program, and waits until it listens.
    pub(crate) fn start(path: &Path) -> anyhow::Result<Self> {
        let kubeconfig =
            std::env::temp_dir().join(format!("apiserver-peers-{}", std::process::id()));
        let mut command = Command::new(path);
        let mut child =
            command.arg("--kubeconfig").arg(kubeconfig).stdout(Stdio::piped()).spawn()?;
        let mut output = BufReader::new(child.stdout.take().context("its output")?);
        let mut said = String::new();
        output.read_line(&mut said)?;
        // The server prints further lines and fails if its output is closed.
        child.stdout = Some(output.into_inner());
        let url = said.trim_end().rsplit(' ').next().context("a URL")?.to_owned();
        Ok(Self { child, url })
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Fails if the server does not report that it is ready.
    fn check_ready(&self) -> anyhow::Result<()> {
        let address = self.url.strip_prefix("http://").context("a URL without TLS")?;
        let mut connection = TcpStream::connect(address.trim_end_matches('/'))?;
        connection.write_all(b"GET /readyz HTTP/1.1\r\nhost: it\r\nconnection: close\r\n\r\n")?;
        let mut reply = String::new();
        connection.read_to_string(&mut reply)?;
        anyhow::ensure!(reply.starts_with("HTTP/1.1 200"), "not ready: {reply}");
        Ok(())
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        drop(self.child.kill().and_then(|()| self.child.wait()));
    }
}
