//! Error messages of the program for wrong input. They go to stderr; the program fails or keeps
//! retrying.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::Duration;

use homeostat_testing::{ProgramTest, assert_failed};
use tokio::time::Instant;

fn program() -> Command {
    tested().command()
}

fn tested() -> ProgramTest {
    ProgramTest::new(env!("CARGO_BIN_EXE_homeostat-replicaset"))
}

#[track_caller]
fn fails_with(arguments: &[&str], texts: &[&str]) {
    tested().fails_with(arguments, texts);
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

    /// The credentials come from a plugin that runs `command`.
    fn of_plugin(name: &str, command: &str) -> Self {
        let kubeconfig = Self::of_server(name, "https://127.0.0.1:1");
        let plugin = format!(
            r#"{{"exec": {{"apiVersion": "client.authentication.k8s.io/v1", "command": "sh",
                "interactiveMode": "Never", "args": ["-c", "{command}"]}}}}"#
        );
        let text = std::fs::read_to_string(kubeconfig.path()).unwrap();
        let text = text.replace(r#""user": {}"#, &format!(r#""user": {plugin}"#));
        std::fs::write(kubeconfig.path(), text).unwrap();
        kubeconfig
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

/// Reads what the program says until a line has all of `words`; then asks it to end, as Kubernetes
/// does.
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
fn invalid_flags_are_named_in_the_error() {
    fails_with(&["--workers", "many"], &["'many'", "--workers", "write a whole number"]);
    fails_with(&["--workers", "0"], &["must be at least 1"]);
    fails_with(&["--kube-api-burst", "-1"], &["'-1'", "write a whole number"]);
    fails_with(&["--workers", "-1"], &["'-1'", "write a whole number"]);
    fails_with(&["--burst-replicas=-1"], &["'-1'", "--burst-replicas"]);
    fails_with(&["--kube-api-qps", "fast"], &["'fast'", "--kube-api-qps", "write a number, as 20"]);
    fails_with(&["--kube-api-burst=-1"], &["write a whole number from 0"]);
    fails_with(&["--kube-api-burst=1.5"], &["'1.5'", "write a whole number from 0 to 4294967295"]);
    for address in ["8080", ":8080", "localhost:8080", "127.0.0.1:99999"] {
        fails_with(&["--bind-address", address], &[address, "as 127.0.0.1:8080 or [::]:8080"]);
    }
    fails_with(&["--no-such-flag"], &["--no-such-flag"]);
    fails_with(
        &["--leader-elect", "--leader-elect-lease-duration", "15"],
        &["--leader-elect-lease-duration", "write numbers with units, as 300ms"],
    );
    fails_with(
        &["--feature-gates", "PodDeletionCost=perhaps"],
        &["PodDeletionCost", "\"perhaps\"", "neither true nor false"],
    );
}

#[test]
fn durations_of_an_election_that_do_not_fit_are_wrong_flags() {
    let output = tested().run(&["--leader-elect", "--leader-elect-retry-period=9s"]);
    assert_failed(&output, &["error: the renew deadline (10s) must be greater than"]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn missing_kubeconfig_is_named_in_the_error() {
    fails_with(&[], &["no kubeconfig", "$KUBECONFIG"]);
    fails_with(&["--context", "shop"], &["there is no kubeconfig at", "/.kube/config\n"]);
    fails_with(&["--kubeconfig", "/nonexistent/k"], &["/nonexistent/k"]);
    fails_with(&["--feature-gates", "", "--kubeconfig", "/nonexistent/k"], &["/nonexistent/k"]);
}

#[test]
fn upstream_flags_are_accepted_and_errors_are_printed_once_without_colours() {
    let lists = ["--feature-gates=PodDeletionCost=false", "--feature-gates", "Unknown=true"];
    let others = ["--kube-api-qps", "-1", "--kubeconfig", "/"];
    let output = program().args(lists).args(others).env_remove("NO_COLOR").output().unwrap();
    assert_failed(&output, &["failed to use kubeconfig /", "directory"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(said.matches("directory").count(), 1, "{said}");
    assert!(!said.contains('\x1b'), "{said:?}");
}

#[test]
fn unreachable_server_is_named_and_retried() {
    let unused = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let url = format!("http://{unused}");
    let kubeconfig = Kubeconfig::of_server("unreachable", &url);
    let child = program().arg("--kubeconfig").arg(kubeconfig.path()).stderr(Stdio::piped()).spawn();
    says_and_ends(child.unwrap(), &["still waiting for the cache to sync", &url]);
}

/// The first process of a container ignores a signal without a handler.
#[test]
fn signal_ends_a_program_that_waits_for_its_credentials() {
    let kubeconfig = Kubeconfig::of_plugin("slow-plugin", "sleep 600");
    let start = Instant::now();
    let child = program().arg("--kubeconfig").arg(kubeconfig.path()).stderr(Stdio::piped()).spawn();
    says_and_ends(child.unwrap(), &["starting homeostat-replicaset"]);
    assert!(start.elapsed() < Duration::from_secs(30), "{:?}", start.elapsed());
}

#[test]
fn error_output_of_a_credential_plugin_is_in_the_error() {
    let kubeconfig = Kubeconfig::of_plugin("plugin", "echo no session >&2 && exit 3");
    let path = kubeconfig.path().to_str().unwrap();
    fails_with(
        &["--kubeconfig", path],
        &["exec: executable sh failed with exit code 3: no session"],
    );
}

#[test]
fn invalid_filter_of_the_log_is_reported() {
    let mut command = program();
    let command = command.env("RUST_LOG", "info,homeostat=loud").args(["--kubeconfig", "/"]);
    let texts = ["ignoring RUST_LOG", "starting homeostat-replicaset"];
    assert_failed(&command.output().unwrap(), &texts);
}

/// An empty image has no certificate authorities.
#[test]
fn http_server_needs_no_authorities_of_the_system() {
    let unused = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut command = program();
    command.env("SSL_CERT_FILE", "/nonexistent").env("SSL_CERT_DIR", "/nonexistent");
    let master = format!("http://{unused}");
    let child = command.arg("--master").arg(&master).stderr(Stdio::piped()).spawn();
    says_and_ends(child.unwrap(), &["still waiting for the cache to sync", &master]);
}

/// Returns the answer of `address` to a GET request.
fn get(address: &str, path: &str) -> String {
    let mut connection = TcpStream::connect(address).unwrap();
    write!(connection, "GET {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    connection.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn bind_address_shows_caches_and_metrics() {
    let unused = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let kubeconfig = Kubeconfig::of_server("observed", &format!("http://{unused}"));
    let mut command = program();
    command.arg("--kubeconfig").arg(kubeconfig.path()).stderr(Stdio::piped());
    let mut child =
        command.args(["--bind-address", "127.0.0.1:0", "--log-format=json"]).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    let line = lines.find(|line| line.contains("serving health")).unwrap();
    let line: serde_json::Value = serde_json::from_str(&line).unwrap();
    let address = line["fields"]["address"].as_str().unwrap().to_owned();
    let line = lines.find(|line| line.contains("using the API server")).unwrap();
    assert!(line.contains(&format!("\"server\":\"http://{unused}\"")), "{line}");
    assert!(get(&address, "/healthz").ends_with("\r\n\r\nok"));
    let reasons = ["[-]informer replicasets", "[-]manager: waiting for the caches"];
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let ready = get(&address, "/readyz");
        assert!(ready.starts_with("HTTP/1.1 500"), "no cache is complete: {ready}");
        if reasons.iter().all(|reason| ready.contains(reason)) {
            break;
        }
        assert!(Instant::now() < deadline, "{ready}");
    }
    let metrics = get(&address, "/metrics");
    assert!(metrics.contains("workqueue_depth{name=\"replicaset\",priority="), "{metrics}");
    for family in metrics.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
        let name = family.split(' ').next().unwrap();
        assert!(metrics.contains(&format!("# HELP {name} ")), "{name} has no help text");
    }
    let page = get(&address, "/debug");
    assert!(page.contains("<h2>Informers</h2>") && page.contains("replicaset"), "{page}");
    drop(lines); // A program without a reader of its log goes on, and ends as usual.
    let asked = Command::new("kill").arg(child.id().to_string()).status().unwrap();
    assert!(asked.success() && child.wait().unwrap().success());
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
fn forbidden_list_is_logged_with_verb_and_resource() {
    let (url, server) = forbidding_server();
    let kubeconfig = Kubeconfig::of_server("forbidden", &url);
    let child = program().arg("--kubeconfig").arg(kubeconfig.path()).stderr(Stdio::piped()).spawn();
    says_and_ends(
        child.unwrap(),
        &["still waiting for the cache to sync", "cannot list resource", "\"replicasets\""],
    );
    let address = url.trim_start_matches("http://");
    TcpStream::connect(address).unwrap().write_all(b"QUIT").unwrap();
    server.join().unwrap();
}
