//! Hostile data from a server costs memory in proportion to its length.
//!
//! The cache keeps its objects, and the informer reports an error and continues.

#![expect(clippy::unwrap_used, reason = "a test's helpers fail as its test does")]
#![expect(clippy::print_stdout, reason = "prints the measured costs")]

use std::alloc::System;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::{StreamExt, stream};
use homeostat_informer::list_watch::KubeListWatch;
use homeostat_informer::{Event, ObjectKey, SharedIndexInformer, Subscription};
use http::{Request, Response};
use http_body::Frame;
use http_body_util::StreamBody;
use k8s_openapi::api::core::v1::Pod;
use kube_client::Client;
use kube_client::client::Body;
use parking_lot::Mutex;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use tokio::sync::Notify;
use tokio::time::timeout;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Runs one test at a time: allocations of another one would be counted, too.
static ONE_AT_A_TIME: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

const MAX_FRAME: usize = 8 << 20;
const PIECE: usize = 16 << 10;
/// The timeout of a test, in virtual time.
const TEST_TIMEOUT: Duration = Duration::from_secs(3600);

/// A server with the pod `good`, and an informer of it.
///
/// On `go`, its first watch continues with the hostile bytes. After them, and in every later
/// answer, comes the pod `after`.
struct Scene {
    informer: SharedIndexInformer<Pod>,
    handler: Subscription,
    go: Arc<Notify>,
    /// The number of hostile bytes that were read.
    taken: Arc<AtomicUsize>,
    /// The requests after the first watch.
    requests: Arc<Mutex<Vec<String>>>,
    errors: Arc<Mutex<Vec<String>>>,
    received: Arc<Mutex<Vec<String>>>,
}

/// The effect of hostile data.
#[derive(Debug)]
struct Outcome {
    bytes: usize,
    allocations: usize,
    errors: Vec<String>,
    received: Vec<String>,
}

#[derive(Clone)]
enum Hostile {
    /// These bytes, after which the stream continues.
    Bytes(Bytes),
    /// The same piece, repeated with no limit.
    Endless(Bytes),
}

fn object(name: &str, version: &str) -> String {
    let metadata = format!(
        r#"{{"name":"{name}","namespace":"n","uid":"{name}","resourceVersion":"{version}"}}"#
    );
    format!(r#"{{"metadata":{metadata},"spec":{EMPTY}}}"#)
}

fn added(object: &str) -> String {
    format!("{{\"type\":\"ADDED\",\"object\":{object}}}\n")
}

fn bookmark(version: &str) -> String {
    let annotations = r#"{"k8s.io/initial-events-end":"true"}"#;
    let metadata = format!(r#"{{"resourceVersion":"{version}","annotations":{annotations}}}"#);
    format!("{{\"type\":\"BOOKMARK\",\"object\":{{\"metadata\":{metadata}}}}}\n")
}

type Pieces = stream::BoxStream<'static, Bytes>;

fn first_watch(hostile: Hostile, go: Arc<Notify>, taken: Arc<AtomicUsize>) -> Pieces {
    let first = stream::iter([Bytes::from(added(&object("good", "5")) + &bookmark("7"))]);
    let pieces: Pieces = match hostile {
        Hostile::Endless(piece) => stream::repeat(piece).boxed(),
        Hostile::Bytes(bytes) => {
            let starts = (0..bytes.len()).step_by(PIECE);
            let cut = move |at| bytes.slice(at..bytes.len().min(at + PIECE));
            stream::iter(starts.map(cut).collect::<Vec<_>>()).boxed()
        }
    };
    let pieces = pieces.inspect(move |piece| {
        taken.fetch_add(piece.len(), Ordering::SeqCst);
    });
    let wait = stream::once(async move {
        go.notified().await;
        Bytes::new()
    });
    let after = stream::iter([Bytes::from(added(&object("after", "9000")))]);
    first.chain(wait).chain(pieces).chain(after).boxed()
}

/// Returns the answer to any later request: the state that has `after`. A watch stays open.
fn later_answer(uri: &str) -> Pieces {
    let [good, after] = [object("good", "5"), object("after", "9000")];
    let is_watch = uri.contains("watch=true");
    let answer = if !is_watch {
        format!(r#"{{"metadata":{{"resourceVersion":"9001"}},"items":[{good},{after}]}}"#)
    } else if uri.contains("sendInitialEvents") {
        added(&good) + &added(&after) + &bookmark("9001")
    } else if uri.contains("resourceVersion=9001") {
        String::new()
    } else {
        added(&after)
    };
    let first = stream::iter([Bytes::from(answer)]);
    if is_watch { first.chain(stream::pending()).boxed() } else { first.boxed() }
}

// === impl Scene ===

impl Scene {
    /// Starts an informer and waits until it has `good`.
    async fn new(hostile: Hostile) -> Self {
        let (go, taken) = (Arc::new(Notify::new()), Arc::new(AtomicUsize::new(0)));
        let requests: Arc<Mutex<Vec<String>>> = Arc::default();
        let (signal, counter, log) = (Arc::clone(&go), Arc::clone(&taken), Arc::clone(&requests));
        let first = AtomicUsize::new(0);
        let service = tower::service_fn(move |request: Request<Body>| {
            let uri = request.uri().to_string();
            let pieces: Pieces = if first.fetch_add(1, Ordering::SeqCst) == 0 {
                first_watch(hostile.clone(), Arc::clone(&signal), Arc::clone(&counter))
            } else {
                log.lock().push(uri.clone());
                later_answer(&uri)
            };
            let body = StreamBody::new(pieces.map(|piece| Ok::<_, Infallible>(Frame::data(piece))));
            async move { Ok::<_, Infallible>(Response::new(body)) }
        });
        let pods = KubeListWatch::<Pod>::new(Client::new(service, "n"), None).max_frame(MAX_FRAME);
        let (errors, received) =
            (Arc::<Mutex<Vec<String>>>::default(), Arc::<Mutex<Vec<String>>>::default());
        let (reported, listening) = (Arc::clone(&errors), Arc::clone(&received));
        let informer = SharedIndexInformer::builder(pods)
            .error_handler(move |error| reported.lock().push(error.to_string()))
            .build();
        let handler = informer.add_handler("receive", move |event: Event<Pod>| {
            let name = event.metadata().name.clone().unwrap_or_default();
            let kind = match event {
                Event::Added { .. } => "added",
                Event::Updated { .. } => "updated",
                Event::Deleted { .. } => "deleted",
                _ => "opaque",
            };
            listening.lock().push(format!("{kind} {name}"));
        });
        informer.start();
        assert!(timeout(TEST_TIMEOUT, informer.wait_for_sync()).await.unwrap());
        Self { informer, handler, go, taken, requests, errors, received }
    }

    /// Sends the hostile bytes and waits until the informer has `after`.
    async fn attack(&self) -> Outcome {
        let region = Region::new(ALLOCATOR);
        self.go.notify_one();
        let lister = self.informer.lister();
        let past = async {
            while !self.received.lock().iter().any(|event| event == "added after") {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(TEST_TIMEOUT, past)
            .await
            .unwrap_or_else(|_| panic!("stuck: {:?}", self.errors.lock().last()));
        let change = region.change();
        assert!(self.handler.has_synced());
        assert!(lister.get(("n", "good")).is_some(), "objects of the cache are kept");
        let received = self.received.lock().clone();
        assert!(!received.iter().any(|event| event.starts_with("deleted good")), "{received:?}");
        Outcome {
            bytes: change.bytes_allocated,
            allocations: change.allocations + change.reallocations,
            errors: self.errors.lock().clone(),
            received,
        }
    }
}

async fn attack(hostile: impl Into<Vec<u8>>) -> Outcome {
    Scene::new(Hostile::Bytes(hostile.into().into())).await.attack().await
}

/// Returns an event for the object `hostile` with additional metadata members and this spec.
fn event(metadata: &str, spec: &str) -> String {
    let named = r#""name":"hostile","namespace":"n","uid":"h","resourceVersion":"8""#;
    added(&format!(r#"{{"metadata":{{{named}{metadata}}},"spec":{spec}}}"#))
}

const EMPTY: &str = r#"{"containers":[]}"#;

// === large data ===

/// A name, a function that makes an event of a size, and the expected kind of event.
type Large = (&'static str, fn(usize) -> String, &'static str);

/// The maximum of allocated bytes per byte of JSON, including those that are freed again.
const FACTOR: usize = 48;
/// The same for containers: each takes about 1 KiB, even if only its name is set.
const FACTOR_OF_CONTAINERS: usize = 600;

const LARGE: &[Large] = &[
    (
        "labels",
        |n| event(&format!(r#","labels":{{{}"z":""}}"#, numbered(n, r#""l#":"v","#)), EMPTY),
        "added",
    ),
    (
        "annotations",
        |n| event(&format!(r#","annotations":{{{}"z":""}}"#, numbered(n, r#""l#":"v","#)), EMPTY),
        "added",
    ),
    (
        "one long annotation",
        |n| event(&format!(r#","annotations":{{"a":"{}"}}"#, "x".repeat(30 * n)), EMPTY),
        "added",
    ),
    (
        "escapes",
        |n| event(&format!(r#","annotations":{{"a":"{}"}}"#, r"\u00fc\n".repeat(n)), EMPTY),
        "added",
    ),
    (
        "finalizers",
        |n| event(&format!(r#","finalizers":[{}"z"]"#, numbered(n, r#""f#","#)), EMPTY),
        "added",
    ),
    (
        "owners",
        |n| event(&format!(r#","ownerReferences":[{}7]"#, numbered(n, r##"{"uid":"#"},"##)), EMPTY),
        "opaque",
    ),
    ("unknown members", |n| event(&numbered(n, r#","u#":[1]"#), EMPTY), "added"),
    ("repeated members", |n| event(&r#","labels":{"a":"b"}"#.repeat(n), EMPTY), "added"),
    (
        "repeated labels",
        |n| event(&format!(r#","labels":{{{}"a":""}}"#, r#""a":"b","#.repeat(n)), EMPTY),
        "added",
    ),
    (
        "label that is a number",
        |n| event(&format!(r#","labels":{{{}"z":1}}"#, numbered(n, r#""l#":"v","#)), EMPTY),
        "opaque",
    ),
    (
        "depth in an unknown member",
        |n| event("", &format!(r#"{{"containers":[],"u":{}{}}}"#, "[".repeat(n), "]".repeat(n))),
        "added",
    ),
    (
        "depth in labels",
        |n| event(&format!(r#","labels":{}{}"#, "[".repeat(n), "]".repeat(n)), EMPTY),
        "opaque",
    ),
    (
        "depth in a string field",
        |n| {
            let value = r#"{"a":"#.repeat(n) + "1" + &"}".repeat(n);
            event("", &format!(r#"{{"containers":[],"nodeName":{value}}}"#))
        },
        "opaque",
    ),
    ("digits", |n| event(&format!(r#","generation":{}"#, "9".repeat(10 * n)), EMPTY), "opaque"),
    (
        "containers",
        |n| event("", &format!(r#"{{"containers":[{}7]}}"#, r#"{"name":"a"},"#.repeat(n))),
        "opaque",
    ),
    (
        "managed fields",
        |n| {
            event(
                &format!(r#","managedFields":[{}{{}}]"#, r#"{"fieldsV1":{"f:a":{}}},"#.repeat(n)),
                EMPTY,
            )
        },
        "added",
    ),
];

fn numbered(count: usize, text: &str) -> String {
    (0..count).map(|n| text.replace('#', &n.to_string())).collect()
}

#[tokio::test(start_paused = true)]
async fn large_event_costs_memory_in_proportion_and_is_applied() {
    const COUNT: usize = 100_000;
    let _lock = ONE_AT_A_TIME.lock().await;
    for (name, make, expected) in LARGE {
        let (half, whole) = (make(COUNT / 2), make(COUNT));
        let length = whole.len();
        let half = attack(half).await;
        let whole = attack(whole).await;
        println!(
            "{name}: {length} bytes cost {} in {} allocations",
            whole.bytes, whole.allocations
        );
        assert!(whole.received.contains(&format!("{expected} hostile")), "{name}: {whole:?}");
        assert_eq!(whole.errors, [""; 0], "{name}: the watch must not end");
        let factor = if *name == "containers" { FACTOR_OF_CONTAINERS } else { FACTOR };
        assert!(whole.bytes < factor * length + (1 << 20), "{name}: {length} {whole:?}");
        assert!(whole.bytes < half.bytes * 5 / 2 + (1 << 20), "{name}: {half:?} {whole:?}");
        assert!(whole.allocations < half.allocations * 5 / 2 + 1000, "{name}: {half:?} {whole:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn endless_frame_is_cut_at_the_limit_and_ends_the_watch() {
    let _lock = ONE_AT_A_TIME.lock().await;
    for prefix in ["x", "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"", "\"", "["] {
        let piece = Bytes::from(prefix.repeat(PIECE));
        let size = piece.len();
        let scene = Scene::new(Hostile::Endless(piece)).await;
        let outcome = scene.attack().await;
        let taken = scene.taken.load(Ordering::SeqCst);
        assert!(taken <= MAX_FRAME + 2 * size, "{taken}");
        assert!(outcome.bytes < 4 * MAX_FRAME, "{outcome:?}");
        let reported = format!("event exceeds {MAX_FRAME} bytes");
        assert!(outcome.errors[0].contains(&reported), "{:?}", outcome.errors);
    }
}

// === invalid data ===

#[tokio::test(start_paused = true)]
async fn invalid_event_ends_the_watch_after_last_good_event_and_is_reported() {
    let _lock = ONE_AT_A_TIME.lock().await;
    let utf8 = [event("", EMPTY).into_bytes(), b"\n".to_vec()].concat();
    let broken: Vec<u8> =
        utf8.iter().map(|byte| if *byte == b'h' { 0xff } else { *byte }).collect();
    let cases: Vec<(Vec<u8>, &str)> = vec![
        (broken, "invalid utf-8"),
        (vec![0; 100_000], "exceeds"),
        (b"\n".repeat(100_000), "is no JSON"),
        (b"<html>\n".to_vec(), "is no JSON"),
        (b"{\"type\":\"ADDED\"}\n".to_vec(), "object"),
        (b"{\"type\":\"RENAMED\",\"object\":{}}\n".to_vec(), "expected one of"),
        (added("[]").into_bytes(), "is corrupt"),
        (added(r#"{"metadata":{"namespace":"n"},"spec":7}"#).into_bytes(), "is corrupt"),
        (added(&"[".repeat(1_000_000)).into_bytes(), "is corrupt"),
        (
            b"{\"type\":\"ERROR\",\"object\":{\"code\":99999999999,\"message\":7}}\n".to_vec(),
            "corrupt",
        ),
        (
            format!(
                "{{\"type\":\"ERROR\",\"object\":{{\"code\":500,\"message\":\"{}\"}}}}\n",
                "m".repeat(1 << 20)
            )
            .into(),
            "ended by the server",
        ),
    ];
    for (bytes, expected) in cases {
        let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(60)]).into_owned();
        if bytes[0] == 0 {
            // The bytes contain no line break, so the pod that follows is part of the invalid line.
            let outcome = attack([bytes, b"\n".to_vec()].concat()).await;
            assert!(outcome.errors[0].contains("is corrupt"), "{:?}", outcome.errors);
            continue;
        }
        let length = bytes.len();
        let outcome = attack(bytes).await;
        let reported = outcome.errors.first().cloned().unwrap_or_default();
        assert!(reported.contains(expected), "{shown}: {reported:.300} {:?}", outcome.received);
        assert!(outcome.bytes < 24 * length + (1 << 20), "{shown}: {}", outcome.bytes);
        assert!(
            !outcome.received.iter().any(|event| event.contains("hostile")),
            "{shown}: {:?}",
            outcome.received
        );
    }
}

#[tokio::test(start_paused = true)]
async fn undecodable_object_is_opaque_and_unusual_object_is_not() {
    let _lock = ONE_AT_A_TIME.lock().await;
    let priority = |number: &str| event("", &format!(r#"{{"containers":[],"priority":{number}}}"#));
    for (bytes, expected) in [
        (priority("2147483647"), "added"),
        (priority("2147483648"), "opaque"),
        (priority("-99999999999999999999999"), "opaque"),
        (priority("1e999"), "opaque"),
        (priority("1.5"), "opaque"),
        (priority("\"1\""), "opaque"),
        (event(r#","creationTimestamp":"9999-99-99T99:99:99Z""#, EMPTY), "opaque"),
        (event(r#","labels":{"\u0000":"\n","":"","a/b/c":"\ud83d\ude00"}"#, EMPTY), "added"),
        (event(r#","labels":{"a":"\ud800"}"#, EMPTY), "opaque"),
        (event(r#","uid":"other""#, EMPTY), "added"),
    ] {
        let outcome = attack(bytes.clone()).await;
        assert!(outcome.received.contains(&format!("{expected} hostile")), "{bytes} {outcome:?}");
        assert_eq!(outcome.errors, [""; 0], "{bytes}");
    }
    // An object without a name decodes, but no key can refer to it: it is skipped.
    let nameless = attack(added("{}")).await;
    assert_eq!(nameless.received, ["added good", "added after"]);
    assert_eq!(nameless.errors, [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn unusual_names_stay_distinct() {
    let _lock = ONE_AT_A_TIME.lock().await;
    let names = [
        ("a", "b/c"),
        ("a/b", "c"),
        ("", "a/b/c"),
        ("..", "/"),
        ("\u{0}", "\n"),
        ("ü", "\u{1f600}"),
        ("A", "a"),
        ("a", "A"),
    ];
    let events = names.map(|(namespace, name)| {
        let metadata = serde_json::json!({
            "name": name, "namespace": namespace, "uid": "u", "resourceVersion": "8",
        });
        added(&serde_json::json!({"metadata": metadata, "spec": {"containers": []}}).to_string())
    });
    let scene = Scene::new(Hostile::Bytes(events.concat().into())).await;
    let outcome = scene.attack().await;
    assert_eq!(outcome.errors, [""; 0]);
    let lister = scene.informer.lister();
    assert_eq!(lister.len(), names.len() + 2);
    for (namespace, name) in names {
        let found = lister.get((namespace, name)).unwrap();
        assert_eq!(found.metadata.name.as_deref(), Some(name));
        let key = ObjectKey::<Pod>::new(Some(namespace), name);
        assert_eq!(lister.get(&key).unwrap().metadata.namespace.as_deref(), Some(namespace));
    }
}

#[tokio::test(start_paused = true)]
async fn version_of_any_length_does_not_stop_requests() {
    let _lock = ONE_AT_A_TIME.lock().await;
    for version in [
        "9".repeat(40),
        "9".repeat(100_000),
        "v".repeat(100_000),
        "\u{fc}&resourceVersion=1#".into(),
        "-1".into(),
    ] {
        let escaped = serde_json::Value::from(version.clone()).to_string();
        let metadata =
            format!(r#"{{"name":"odd","namespace":"n","uid":"o","resourceVersion":{escaped}}}"#);
        let object = format!(r#"{{"metadata":{metadata},"spec":{EMPTY}}}"#);
        // After the object the watch breaks, and the next request names its version.
        let scene = Scene::new(Hostile::Bytes((added(&object) + "<html>\n").into())).await;
        let outcome = scene.attack().await;
        assert!(outcome.errors[0].contains("is corrupt"), "{:?}", outcome.errors);
        assert!(outcome.errors.len() < 12, "{}", outcome.errors.len());
        for uri in scene.requests.lock().iter() {
            assert!(uri.matches("resourceVersion=").count() <= 1, "{uri:.200}");
            assert!(!uri.contains(['#', '\u{fc}']), "{uri:.200}");
        }
    }
}
