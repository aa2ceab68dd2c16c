//! Signals to a process: the test runs itself as a child process.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::future::pending;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdout, Command, Stdio};

use homeostat::shutdown_signal;

const TEST: &str = "first_signal_drains_and_the_second_ends_the_process";
const CHILD: &str = "HOMEOSTAT_TEST_CHILD";

#[test]
fn first_signal_drains_and_the_second_ends_the_process() {
    if std::env::var_os(CHILD).is_some() {
        return be_the_child();
    }
    for (first, second, code) in [("TERM", "TERM", 143), ("INT", "INT", 130), ("TERM", "INT", 130)]
    {
        let (mut child, mut output) = spawn();
        wait_for(&mut output, "ready");
        signal(&child, first);
        wait_for(&mut output, "draining");
        signal(&child, second);
        assert_eq!(child.wait().unwrap().code(), Some(code), "{first}, {second}");
    }
}

fn be_the_child() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let shutdown = shutdown_signal();
        say("ready");
        shutdown.await;
        say("draining");
        pending::<()>().await;
    });
}

fn say(line: &str) {
    let mut stdout = std::io::stdout();
    writeln!(stdout, "{line}").unwrap();
    stdout.flush().unwrap();
}

fn spawn() -> (Child, BufReader<ChildStdout>) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", TEST, "--nocapture"])
        .env(CHILD, "1")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    (child, output)
}

fn wait_for(output: &mut BufReader<ChildStdout>, word: &str) {
    let mut line = String::new();
    while !line.contains(word) {
        line.clear();
        assert!(
            output.read_line(&mut line).unwrap() > 0,
            "the child ended before it printed {word}"
        );
    }
}

fn signal(child: &Child, name: &str) {
    let status = Command::new("kill").args([format!("-{name}"), child.id().to_string()]).status();
    assert!(status.unwrap().success());
}
