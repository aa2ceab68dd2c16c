use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use homeostat_informer::testing::ScriptedListWatch;
use k8s_openapi::api::core::v1::Pod;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::*;
use crate::last_errors::LastErrors;

async fn get(server: &ObserveServer, path: &str) -> String {
    let mut stream = TcpStream::connect(server.address()).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let status = answer.split(' ').nth(1).unwrap().to_owned();
    let body = answer.split_once("\r\n\r\n").unwrap().1.to_owned();
    format!("{status} {body}")
}

async fn serve_on_any_port(diagnostics: &Diagnostics) -> ObserveServer {
    serve(([127, 0, 0, 1], 0).into(), diagnostics).await.unwrap()
}

fn pods(name: &str) -> SharedIndexInformer<Pod> {
    SharedIndexInformer::builder(ScriptedListWatch::<Pod>::new()).name(name).build()
}

/// Returns diagnostics with an informer that is not started and a queue with three keys.
fn busy() -> (Diagnostics, Queue<String>) {
    let diagnostics = Diagnostics::new();
    diagnostics.informer(&pods("pods <of> \"all\""));
    let queue = Queue::builder().inspect().build();
    queue.add("default/web".to_owned());
    queue.add_after("default/slow".to_owned(), Duration::from_secs(90));
    queue.add_rate_limited("default/failing".to_owned());
    diagnostics.queue("replicaset", &queue);
    diagnostics.elections(|| vec![election()]);
    (diagnostics, queue)
}

fn election() -> LeaderReport {
    LeaderReport {
        lease: "shop/lease".to_owned(),
        identity: "me".to_owned(),
        is_leader: false,
        holder: Some("<other>".to_owned()),
        since: Some("2026-01-01T00:00:00Z".to_owned()),
        renewed: Some(Duration::from_secs(3)),
        transitions: 1,
        left: None,
        failures: 2,
        last_error: Some("failed to update lock: forbidden".to_owned()),
    }
}

#[tokio::test]
async fn readiness_names_what_is_not_ready_and_the_reason() {
    let diagnostics = Diagnostics::new();
    let server = serve_on_any_port(&diagnostics).await;
    assert_eq!(get(&server, "/readyz").await, "200 ok");
    let is_fine = Arc::new(AtomicBool::new(false));
    let fine = Arc::clone(&is_fine);
    diagnostics.readiness("license", move || {
        if fine.load(Ordering::SeqCst) { Ok(()) } else { Err("expired".to_owned()) }
    });
    diagnostics.informer(&pods("pods"));
    // The first request does not know for how long.
    let answer = get(&server, "/readyz").await;
    assert!(answer.starts_with("500 [-]informer pods: not started\n"), "{answer}");
    let answer = get(&server, "/readyz").await;
    assert!(answer.starts_with("500 [-]informer pods: not started, for "), "{answer}");
    assert!(answer.contains("\n[-]license: expired, for "), "{answer}");
    is_fine.store(true, Ordering::SeqCst);
    assert!(!get(&server, "/readyz").await.contains("license"));
    assert_eq!(get(&server, "/livez").await, "200 ok", "a restart would not help");
}

#[tokio::test(start_paused = true)]
async fn election_whose_lease_cannot_be_written_is_not_ready() {
    let (diagnostics, failures) = (Diagnostics::new(), Arc::new(AtomicU64::new(0)));
    let seen = Arc::clone(&failures);
    diagnostics.elections(move || {
        let failures = seen.load(Ordering::SeqCst);
        let last_error = (failures > 0).then(|| "leases is forbidden".to_owned());
        vec![LeaderReport { failures, last_error, ..election() }]
    });
    for (count, reasons) in [
        (0, &[][..]),
        (2, &[]),
        (3, &["no leader election: leases is forbidden (3 consecutive failures)"]),
    ] {
        failures.store(count, Ordering::SeqCst);
        let unready = diagnostics.unready();
        assert_eq!(unready.iter().map(|it| &*it.reason).collect::<Vec<_>>(), reasons);
        assert!(unready.iter().all(|it| it.name == "lease shop/lease"), "{unready:?}");
        assert_eq!(diagnostics.report().unready.len(), reasons.len());
    }
}

#[tokio::test(start_paused = true)]
async fn time_of_an_unready_part_starts_at_zero_after_it_was_ready() {
    let diagnostics = Diagnostics::new();
    let is_fine = Arc::new(AtomicBool::new(false));
    let fine = Arc::clone(&is_fine);
    diagnostics.readiness("a", move || {
        if fine.load(Ordering::SeqCst) { Ok(()) } else { Err("no".to_owned()) }
    });
    let since = || diagnostics.unready()[0].since.as_secs();
    assert_eq!(since(), 0);
    tokio::time::advance(Duration::from_secs(7)).await;
    assert_eq!(since(), 7);
    is_fine.store(true, Ordering::SeqCst);
    assert!(diagnostics.unready().is_empty());
    is_fine.store(false, Ordering::SeqCst);
    assert_eq!(since(), 0);
}

#[tokio::test(start_paused = true)]
async fn check_that_panics_has_failed() {
    let diagnostics = Diagnostics::new();
    let broken = || -> Result<(), String> { panic!("no license") };
    diagnostics.readiness("license", broken);
    diagnostics.liveness("license", broken);
    let unready: Vec<_> = diagnostics.unready().into_iter().map(|part| part.reason).collect();
    assert_eq!(unready, ["panicked: no license"]);
    let failed = [("license".to_owned(), "panicked: no license".to_owned())];
    assert_eq!(diagnostics.failed_liveness(), failed);
    assert_eq!(diagnostics.report().unready.len(), 1);
}

#[tokio::test]
async fn failed_liveness_check_is_named() {
    let diagnostics = Diagnostics::new();
    diagnostics.liveness("watchdog", || Err("stuck".to_owned()));
    let server = serve_on_any_port(&diagnostics).await;
    for path in ["/healthz", "/livez"] {
        assert_eq!(get(&server, path).await, "500 [-]watchdog: stuck\n");
    }
}

#[tokio::test]
async fn metrics_are_rendered_if_the_process_records_them() {
    let diagnostics = Diagnostics::new();
    let server = serve_on_any_port(&diagnostics).await;
    assert!(get(&server, "/metrics").await.starts_with("404 "));
    diagnostics.metrics(|| "up 1\n".to_owned());
    assert_eq!(get(&server, "/metrics").await, "200 up 1\n");
    assert!(get(&server, "/secret").await.starts_with("404 "));
}

#[tokio::test(start_paused = true)]
async fn page_shows_informers_and_keys_and_escapes_names() {
    let (diagnostics, queue) = busy();
    let held = queue.try_get().unwrap();
    let page = page::render(&diagnostics.report());
    for expected in [
        "<b>informer pods &lt;of&gt; &quot;all&quot;</b>: not started",
        "<code>default/web</code>",
        "<code>default/slow</code>",
        "1 min",
        "Held by workers",
        "name=\"viewport\"",
        "1 failing",
        "<h3>Failing</h3>",
        "Led by &lt;other&gt;",
        "shop/lease",
        "3.0 s ago",
        "failed to update lock: forbidden (2 consecutive failures)",
    ] {
        assert!(page.contains(expected), "{expected} is not in {page}");
    }
    assert!(!page.contains("<script") && !page.contains("<of>"), "{page}");
    held.done();
}

#[tokio::test(start_paused = true)]
async fn page_shows_the_last_reconciles() {
    let diagnostics = Diagnostics::new();
    diagnostics.queues(|| {
        let reconcile = |key: &str, outcome: &str, call_count: usize| ReconcileReport {
            key: key.to_owned(),
            trigger: "pods deleted".to_owned(),
            attempt: 4,
            ended: Duration::from_secs(70),
            took: Duration::from_millis(12),
            outcome: outcome.to_owned(),
            calls: (0..call_count).map(|n| format!("GET /{} 200", n / 2)).collect(),
            call_count,
        };
        let reconciles = vec![
            reconcile("a/b", "no <quota>", 3),
            reconcile("a/c", "done", 13),
            reconcile("a/d", "", 0),
        ];
        vec![QueueReport { name: "web".to_owned(), reconciles, ..QueueReport::default() }]
    });
    let page = page::render(&diagnostics.report());
    let row = |cells: [&str; 7]| {
        let number = " class=\"number\"";
        let columns = [
            ("Key", ""),
            ("Ended", number),
            ("Trigger", ""),
            ("Attempt", number),
            ("Took", number),
            ("Outcome", ""),
            ("Requests", ""),
        ];
        let cells = cells.iter().zip(columns).map(|(cell, (name, class))| {
            let code = format!("<code>{cell}</code>");
            let content = Some(code).filter(|_| !cell.is_empty()).unwrap_or_default();
            format!("<td{class} data-name=\"{name}\">{content}</td>")
        });
        format!("<tr>{}</tr>", cells.collect::<String>())
    };
    let requests = "2\u{a0}× GET /0 200\nGET /1 200";
    let failed = ["a/b", "1 min ago", "pods deleted", "4", "12 ms", "no &lt;quota&gt;", requests];
    let lines: Vec<_> = (0..5).map(|n| format!("2\u{a0}× GET /{n} 200\n")).collect();
    let requests = format!("{}3 more", lines.concat());
    let done = ["a/c", "1 min ago", "pods deleted", "4", "12 ms", "done", &requests];
    let idle = ["a/d", "1 min ago", "pods deleted", "4", "12 ms", "", ""];
    for expected in ["<h3>Last reconciles</h3>", &row(failed), &row(done), &row(idle)] {
        assert!(page.contains(expected), "{expected} is not in {page}");
    }
}

#[tokio::test(start_paused = true)]
async fn json_has_the_same_content_as_the_page() {
    let (diagnostics, _queue) = busy();
    let json = serde_json::to_value(diagnostics.report()).unwrap();
    assert_eq!(json["informers"][0]["phase"], "New");
    assert_eq!(json["queues"][0]["queued"][0]["key"], "default/web");
    assert_eq!(json["queues"][0]["delayed"][1]["time"], 90.0);
    assert_eq!(json["unready"][0]["reason"], "not started");
    assert_eq!(json["queues"][0]["failing"][0]["key"], "default/failing");
    assert_eq!(json["queues"][0]["failing"][0]["error"], serde_json::Value::Null);
    assert_eq!(json["elections"][0]["renewed"], 3.0);
}

#[tokio::test(start_paused = true)]
async fn failing_keys_have_their_errors_and_next_tries() {
    let queue: Queue<&str> = Queue::builder().inspect().build();
    queue.add_rate_limited("a");
    queue.add_rate_limited("b");
    queue.add_rate_limited("b");
    queue.add("fine");
    tokio::time::advance(Duration::from_millis(2)).await;
    let errors = LastErrors::new();
    errors.failed(&"b", "refused", true);
    errors.failed(&"invalid", "no such zone", false);
    errors.failed(&"of another queue", "refused", true);
    let failing = QueueReport::with_errors("q", &queue, errors.all()).failing;
    let shown = |key: &FailingKey| {
        let next_try = key.next_try.map(|time| time.as_millis());
        (key.key.clone(), key.failures, key.error.clone(), next_try)
    };
    let key = |key: &str, failures, error: Option<&str>, next_try| {
        (key.to_owned(), failures, error.map(str::to_owned), next_try)
    };
    let expected = [
        key("b", 2, Some("refused"), Some(3)),
        key("a", 1, None, Some(3)),
        key("invalid", 0, Some("no such zone"), None),
    ];
    assert_eq!(failing.iter().map(shown).collect::<Vec<_>>(), expected);
}

#[tokio::test(start_paused = true)]
async fn next_try_is_known_without_inspection() {
    let queue: Queue<&str> = Queue::new();
    assert!(queue.inspect().is_none());
    for key in ["delayed", "queued", "held"] {
        queue.add_rate_limited(key);
    }
    tokio::time::advance(Duration::from_millis(2)).await;
    queue.add("held");
    let held = queue.try_get().unwrap();
    queue.add("queued");
    let errors = LastErrors::new();
    for key in ["delayed", "queued", "held", "of another queue"] {
        errors.failed(&key, "refused", true);
    }
    errors.failed(&"invalid", "no such zone", false);
    let failing = QueueReport::with_errors("q", &queue, errors.all()).failing;
    let tries: Vec<_> = failing
        .iter()
        .map(|key| (&*key.key, key.failures, key.next_try.map(|time| time.as_millis())))
        .collect();
    let expected = [
        ("delayed", 1, Some(3)),
        ("held", 1, Some(0)),
        ("queued", 1, Some(0)),
        ("invalid", 0, None),
    ];
    assert_eq!(tries, expected);
    held.done();
}

#[test]
fn durations_are_readable() {
    let words = |millis| in_words(Duration::from_millis(millis));
    assert_eq!(
        [words(340), words(3_200), words(1_020_000), words(18_000_000)],
        ["340 ms", "3.2 s", "17 min", "5 h"]
    );
}

/// Renders the page at phone width. Run with `--ignored` where Chromium is installed; `$CHROMIUM`
/// is its name.
#[tokio::test]
#[ignore = "needs headless Chromium"]
async fn page_fits_a_phone_in_chromium() {
    let (diagnostics, _queue) = busy();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("debug.html");
    // A probe in the copy, not in the page: it names what is wider than the screen.
    let probe = "<script>document.title = [document.documentElement, \
                 ...document.querySelectorAll('.scroll')] \
                 .filter(it => it.scrollWidth > it.clientWidth) \
                 .map(it => it.innerText).join() || 'fits';</script></body>";
    let html = page::render(&diagnostics.report()).replace("</body>", probe);
    std::fs::write(&file, html).unwrap();
    let output = Command::new(std::env::var("CHROMIUM").unwrap_or_else(|_| "chromium".to_owned()))
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--window-size=390,800",
            "--dump-dom",
        ])
        .arg(format!("file://{}", file.display()))
        .stderr(Stdio::null())
        .output()
        .unwrap();
    let dom = String::from_utf8(output.stdout).unwrap();
    let title = dom.split_once("<title>").unwrap().1.split_once("</title>").unwrap().0;
    assert_eq!(title, "fits");
    assert!(dom.contains("default/failing"));
}

#[tokio::test(start_paused = true)]
async fn connections_that_are_not_used_keep_no_probe_out() {
    let diagnostics = Diagnostics::new();
    diagnostics.metrics(|| "x".repeat(16 << 20));
    let server = serve_on_any_port(&diagnostics).await;
    // Some ask for nothing, the others do not read their answer.
    for request in ["", "GET /metrics HTTP/1.1\r\nhost: a\r\n\r\n"] {
        let mut unused = Vec::new();
        for _ in 0..64 {
            let mut stream = TcpStream::connect(server.address()).await.unwrap();
            stream.write_all(request.as_bytes()).await.unwrap();
            unused.push(stream);
        }
        let probe = tokio::time::timeout(Duration::from_secs(60), get(&server, "/healthz"));
        assert_eq!(probe.await.as_deref(), Ok("200 ok"), "{request}");
    }
}

#[tokio::test]
async fn page_that_panics_is_answered() {
    let diagnostics = Diagnostics::new();
    diagnostics.metrics(|| panic!("out of order"));
    let server = serve_on_any_port(&diagnostics).await;
    assert_eq!(get(&server, "/metrics").await, "500 panicked: out of order\n");
    assert_eq!(get(&server, "/healthz").await, "200 ok");
}
