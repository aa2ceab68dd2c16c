//! A program that is being built. The test has its own file, because the recorder of metrics is
//! global.
#![cfg(feature = "cli")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use clap::Parser;
use homeostat::cli::{Flags, Program};

#[derive(Debug, Parser)]
struct Arguments {
    #[command(flatten)]
    flags: Flags,
}

/// Returns the address in the log line of the listener.
fn listener(log: &Path) -> String {
    let log = std::fs::read_to_string(log).unwrap();
    let line = log.lines().find(|line| line.contains("serving health")).unwrap();
    let line: serde_json::Value = serde_json::from_str(line).unwrap();
    line["fields"]["address"].as_str().unwrap().to_owned()
}

fn get(address: &str, path: &str) -> String {
    let mut connection = TcpStream::connect(address).unwrap();
    write!(connection, "GET {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    connection.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn listener_is_live_and_not_ready_until_its_manager_is_built() {
    let arguments = ["program", "--bind-address=127.0.0.1:0", "--master=http://127.0.0.1:1"];
    let Arguments { flags } = Arguments::parse_from(arguments);
    let log = tempfile::NamedTempFile::new().unwrap();
    let writer = Arc::new(log.reopen().unwrap());
    let subscriber = tracing_subscriber::fmt().json().with_writer(writer).finish();
    let mut answers = Vec::new();
    tracing::subscriber::with_default(subscriber, || {
        let program = Program::new("shop-controller", "1.0.0");
        program.run(&flags, async |_| {
            let address = listener(log.path());
            answers = ["/healthz", "/readyz"].map(|path| get(&address, path)).into();
            Err("the shop is closed".into())
        })
    });
    let [live, ready] = &answers[..] else { panic!("not built: {answers:?}") };
    assert!(live.starts_with("HTTP/1.1 200") && live.ends_with("\r\n\r\nok"), "{live}");
    assert!(ready.starts_with("HTTP/1.1 500"), "{ready}");
    assert!(ready.contains("[-]shop-controller: starting"), "{ready}");
    let log = std::fs::read_to_string(log.path()).unwrap();
    assert!(log.contains("the shop is closed"), "{log}");
}

#[test]
fn program_ends_although_a_task_blocks_its_thread() {
    let Arguments { flags } = Arguments::parse_from(["program", "--master=http://127.0.0.1:1"]);
    let (ended, end) = mpsc::channel();
    let (release, released) = mpsc::channel::<()>();
    let program = thread::spawn(move || {
        let program = Program::new("shop-controller", "1.0.0");
        program.run(&flags, async move |_| {
            let (started, start) = mpsc::channel();
            let blocking = move || {
                started.send(()).unwrap();
                let _ = released.recv();
            };
            drop(tokio::task::spawn_blocking(blocking));
            start.recv()?;
            Err("the shop is closed".into())
        });
        ended.send(()).unwrap();
    });
    let has_ended = end.recv_timeout(Duration::from_secs(60));
    drop(release);
    program.join().unwrap();
    has_ended.expect("the program waits for the thread");
}
