//! What the program says to wrong input: in words, on stderr, with a failure or while it keeps trying.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread::JoinHandle;

fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_homeostat-replicaset"));
    for name in ["KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT", "RUST_LOG"] {
        command.env_remove(name);
    }
    command.env("HOME", "/nonexistent").env("NO_COLOR", "1").stdin(Stdio::null());
    command
}

fn run(arguments: &[&str]) -> Output {
    program().args(arguments).output().unwrap()
}

#[track_caller]
fn fails_with(output: &Output, words: &[&str]) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{said}");
    for word in words {
        assert!(said.contains(word), "{word:?} is not in: {said}");
    }
    assert!(!said.contains("panicked"), "{said}");
}

/// A file that goes with its test.
struct Kubeconfig(PathBuf);

impl Kubeconfig {
    fn of_server(name: &str, url: &str) -> Self {
        let path = std::env::temp_dir().join(format!("homeostat-{name}-{}", std::process::id()));
        let text = format!(
            r#"{{"apiVersion": "v1", "kind": "Config", "current-context": "c",
                "clusters": [{{"name": "c", "cluster": {{"server": "{url}"}}}}],
                "users": [{{"name": "u", "user": {{}}}}],
                "contexts": [{{"name": "c", "context": {{"cluster": "c", "user": "u"}}}}]}}"#
        );
        std::fs::write(&path, text).unwrap();
        Self(path)
    }

    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Kubeconfig {
    fn drop(&mut self) {
        drop(std::fs::remove_file(&self.0));
    }
}

/// Reads what the program says until a line has all of `words`; then asks it to end, as Kubernetes does.
#[track_caller]
fn says_and_ends(mut child: Child, words: &[&str]) {
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut said = Vec::new();
    let found = lines.by_ref().map_while(Result::ok).any(|line| {
        let found = words.iter().all(|word| line.contains(word));
        said.push(line);
        found
    });
    let asked = Command::new("kill").arg(child.id().to_string()).status().unwrap();
    let rest: Vec<String> = lines.map_while(Result::ok).collect();
    let ended = child.wait().unwrap();
    assert!(found, "{words:?} was not said: {said:#?}");
    assert!(asked.success() && ended.success(), "{ended}: {rest:#?}");
}

#[test]
fn flags_that_cannot_be_read_are_answered_in_words() {
    fails_with(&run(&["--workers", "many"]), &["'many'", "--workers"]);
    fails_with(&run(&["--workers", "0"]), &["at least 1 is needed"]);
    fails_with(&run(&["--burst-replicas=-1"]), &["'-1'", "--burst-replicas"]);
    fails_with(&run(&["--kube-api-qps", "fast"]), &["'fast'", "--kube-api-qps"]);
    fails_with(&run(&["--no-such-flag"]), &["--no-such-flag"]);
    fails_with(
        &run(&["--feature-gates", "PodDeletionCost=perhaps"]),
        &["PodDeletionCost", "\"perhaps\"", "neither true nor false"],
    );
}

#[test]
fn a_missing_kubeconfig_is_answered_in_words() {
    fails_with(&run(&[]), &["no kubeconfig", "--kubeconfig"]);
    fails_with(&run(&["--kubeconfig", "/nonexistent/k"]), &["/nonexistent/k"]);
    fails_with(
        &run(&["--feature-gates", "", "--kubeconfig", "/nonexistent/k"]),
        &["/nonexistent/k"],
    );
}

#[test]
fn what_upstreams_flags_take_is_taken_and_what_is_wrong_is_said_once_without_colours() {
    let lists = ["--feature-gates=PodDeletionCost=false", "--feature-gates", "Unknown=true"];
    let others = ["--kube-api-qps", "-1", "--kubeconfig", "/"];
    let output = program().args(lists).args(others).env_remove("NO_COLOR").output().unwrap();
    fails_with(&output, &["failed to use kubeconfig /", "directory"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(said.matches("directory").count(), 1, "{said}");
    assert!(!said.contains('\x1b'), "{said:?}");
}

#[test]
fn a_server_that_is_not_there_is_named_and_tried_again() {
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let url = format!("http://{nobody}");
    let kubeconfig = Kubeconfig::of_server("unreachable", &url);
    let child = program().arg("--kubeconfig").arg(kubeconfig.path()).stderr(Stdio::piped()).spawn();
    says_and_ends(child.unwrap(), &["cannot begin", &url, "trying for"]);
}

/// A server that forbids everything, until the test ends.
fn forbidding_server() -> (String, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let message = r#"replicasets.apps is forbidden: User \"eve\" cannot list resource \"replicasets\" in API group \"apps\" at the cluster scope"#;
    let body = format!(
        r#"{{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"{message}"}}"#
    );
    let server = std::thread::spawn(move || {
        for connection in listener.incoming() {
            let Ok(mut connection) = connection else { return };
            let mut request = [0; 8192];
            let length = connection.read(&mut request).unwrap_or(0);
            if request[..length].starts_with(b"QUIT") {
                return;
            }
            let head =
                "HTTP/1.1 403 Forbidden\r\nContent-Type: application/json\r\nConnection: close";
            // A client that went away meanwhile is none of this test's business.
            drop(write!(connection, "{head}\r\nContent-Length: {}\r\n\r\n{body}", body.len()));
        }
    });
    (url, server)
}

#[test]
fn a_server_that_forbids_is_quoted_with_verb_and_resource() {
    let (url, server) = forbidding_server();
    let kubeconfig = Kubeconfig::of_server("forbidden", &url);
    let child = program().arg("--kubeconfig").arg(kubeconfig.path()).stderr(Stdio::piped()).spawn();
    says_and_ends(child.unwrap(), &["cannot begin", "cannot list resource", "\"replicasets\""]);
    let address = url.trim_start_matches("http://");
    std::net::TcpStream::connect(address).unwrap().write_all(b"QUIT").unwrap();
    server.join().unwrap();
}
