//! What a server sends that nobody should: it costs memory in proportion to its length, the copy keeps what it had, and the
//! informer says what happened and goes on.

#![expect(clippy::unwrap_used, reason = "a test's helpers fail as its test does")]
#![expect(clippy::print_stdout, reason = "it says what the bounds are about")]

use std::{
    alloc::System,
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use futures::{StreamExt, stream};
use homeostat_informer::{Event, KubeListWatch, ObjectKey, SharedIndexInformer, Subscription};
use http::{Request, Response};
use http_body::Frame;
use http_body_util::StreamBody;
use k8s_openapi::api::core::v1::Pod;
use kube_client::{Client, client::Body};
use parking_lot::Mutex;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use tokio::{sync::Notify, time::timeout};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// One test at a time: what another one allocates would be counted, too.
static ALONE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

const MAX_FRAME: usize = 8 << 20;
const PIECE: usize = 16 << 10;
/// Virtual time.
const PATIENCE: Duration = Duration::from_secs(3600);

/// A server of the pod `good`. Its first watch goes on, when it is told to, with the hostile bytes; then, and in every other
/// answer, comes the pod `after`.
struct Scene {
    informer: SharedIndexInformer<Pod>,
    handler: Subscription,
    go: Arc<Notify>,
    /// How many hostile bytes have been taken.
    taken: Arc<AtomicUsize>,
    /// What was asked after the first watch.
    asked: Arc<Mutex<Vec<String>>>,
    errors: Arc<Mutex<Vec<String>>>,
    heard: Arc<Mutex<Vec<String>>>,
}

/// What came of something hostile.
#[derive(Debug)]
struct Outcome {
    bytes: usize,
    allocations: usize,
    errors: Vec<String>,
    heard: Vec<String>,
}

#[derive(Clone)]
enum Hostile {
    /// These bytes, and then the stream goes on.
    Bytes(Bytes),
    /// The same piece for ever.
    Endless(Bytes),
}

fn object(name: &str, version: &str) -> String {
    format!(
        r#"{{"metadata":{{"name":"{name}","namespace":"n","uid":"{name}","resourceVersion":"{version}"}},"spec":{{"containers":[]}}}}"#
    )
}

fn added(object: &str) -> String {
    format!("{{\"type\":\"ADDED\",\"object\":{object}}}\n")
}

fn bookmark(version: &str) -> String {
    format!(
        r#"{{"type":"BOOKMARK","object":{{"metadata":{{"resourceVersion":"{version}","annotations":{{"k8s.io/initial-events-end":"true"}}}}}}}}"#
    ) + "\n"
}

type Pieces = stream::BoxStream<'static, Bytes>;

fn first_watch(hostile: Hostile, go: Arc<Notify>, taken: Arc<AtomicUsize>) -> Pieces {
    let begin = stream::iter([Bytes::from(added(&object("good", "5")) + &bookmark("7"))]);
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
    begin.chain(wait).chain(pieces).chain(after).boxed()
}

/// Whatever else is asked is answered with the state that has `after`; a watch stays open.
fn later_answer(question: &str) -> Pieces {
    let [good, after] = [object("good", "5"), object("after", "9000")];
    let is_watch = question.contains("watch=true");
    let answer = if !is_watch {
        format!(r#"{{"metadata":{{"resourceVersion":"9001"}},"items":[{good},{after}]}}"#)
    } else if question.contains("sendInitialEvents") {
        added(&good) + &added(&after) + &bookmark("9001")
    } else if question.contains("resourceVersion=9001") {
        String::new()
    } else {
        added(&after)
    };
    let begin = stream::iter([Bytes::from(answer)]);
    if is_watch { begin.chain(stream::pending()).boxed() } else { begin.boxed() }
}

// === impl Scene ===

impl Scene {
    /// Has `good`, and waits.
    async fn new(hostile: Hostile) -> Self {
        let (go, taken) = (Arc::new(Notify::new()), Arc::new(AtomicUsize::new(0)));
        let asked: Arc<Mutex<Vec<String>>> = Arc::default();
        let (signal, counter, log) = (Arc::clone(&go), Arc::clone(&taken), Arc::clone(&asked));
        let first = AtomicUsize::new(0);
        let service = tower::service_fn(move |request: Request<Body>| {
            let question = request.uri().to_string();
            let pieces: Pieces = if first.fetch_add(1, Ordering::SeqCst) == 0 {
                first_watch(hostile.clone(), Arc::clone(&signal), Arc::clone(&counter))
            } else {
                log.lock().push(question.clone());
                later_answer(&question)
            };
            let body = StreamBody::new(pieces.map(|piece| Ok::<_, Infallible>(Frame::data(piece))));
            async move { Ok::<_, Infallible>(Response::new(body)) }
        });
        let pods = KubeListWatch::<Pod>::new(Client::new(service, "n"), None).max_frame(MAX_FRAME);
        let (errors, heard) =
            (Arc::<Mutex<Vec<String>>>::default(), Arc::<Mutex<Vec<String>>>::default());
        let (told, listening) = (Arc::clone(&errors), Arc::clone(&heard));
        let informer = SharedIndexInformer::builder(pods)
            .error_handler(move |error| told.lock().push(error.to_string()))
            .build();
        let handler = informer.add_handler("hear", move |event: Event<Pod>| {
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
        assert!(timeout(PATIENCE, informer.synced()).await.unwrap());
        Self { informer, handler, go, taken, asked, errors, heard }
    }

    /// Lets the bytes come, and waits until the informer is past them.
    async fn suffer(&self) -> Outcome {
        let region = Region::new(ALLOCATOR);
        self.go.notify_one();
        let lister = self.informer.lister();
        let past = async {
            while !self.heard.lock().iter().any(|event| event == "added after") {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(PATIENCE, past)
            .await
            .unwrap_or_else(|_| panic!("stuck: {:?}", self.errors.lock().last()));
        let change = region.change();
        assert!(self.handler.has_synced());
        assert!(lister.get(("n", "good")).is_some(), "what was there is kept");
        let heard = self.heard.lock().clone();
        assert!(!heard.iter().any(|event| event.starts_with("deleted good")), "{heard:?}");
        Outcome {
            bytes: change.bytes_allocated,
            allocations: change.allocations + change.reallocations,
            errors: self.errors.lock().clone(),
            heard,
        }
    }
}

async fn suffer(hostile: impl Into<Vec<u8>>) -> Outcome {
    Scene::new(Hostile::Bytes(hostile.into().into())).await.suffer().await
}

/// An object of the name `hostile`, with these members of its metadata and this spec.
fn event(metadata: &str, spec: &str) -> String {
    added(&format!(
        r#"{{"metadata":{{"name":"hostile","namespace":"n","uid":"h","resourceVersion":"8"{metadata}}},"spec":{spec}}}"#
    ))
}

const EMPTY: &str = r#"{"containers":[]}"#;

// === what is large ===

/// Something of a size, and what is told of it.
type Large = (&'static str, fn(usize) -> String, &'static str);

/// What one byte may cost, all that is given back again included.
const FACTOR: usize = 48;
/// A container takes a kilobyte, however little is said of it.
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
        "one annotation",
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
    ("members twice", |n| event(&r#","labels":{"a":"b"}"#.repeat(n), EMPTY), "added"),
    (
        "labels twice",
        |n| event(&format!(r#","labels":{{{}"a":""}}"#, r#""a":"b","#.repeat(n)), EMPTY),
        "added",
    ),
    (
        "a label that is none",
        |n| event(&format!(r#","labels":{{{}"z":1}}"#, numbered(n, r#""l#":"v","#)), EMPTY),
        "opaque",
    ),
    (
        "depth where nobody looks",
        |n| event("", &format!(r#"{{"containers":[],"u":{}{}}}"#, "[".repeat(n), "]".repeat(n))),
        "added",
    ),
    (
        "depth of a label",
        |n| event(&format!(r#","labels":{}{}"#, "[".repeat(n), "]".repeat(n)), EMPTY),
        "opaque",
    ),
    (
        "depth of a text",
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
async fn what_is_large_costs_in_proportion_and_is_there() {
    const COUNT: usize = 100_000;
    let _alone = ALONE.lock().await;
    for (name, make, expected) in LARGE {
        let (half, whole) = (make(COUNT / 2), make(COUNT));
        let length = whole.len();
        let half = suffer(half).await;
        let whole = suffer(whole).await;
        println!(
            "{name}: {length} bytes cost {} in {} allocations",
            whole.bytes, whole.allocations
        );
        assert!(whole.heard.contains(&format!("{expected} hostile")), "{name}: {whole:?}");
        assert_eq!(whole.errors, [""; 0], "{name}: it is no reason to end a watch");
        let factor = if *name == "containers" { FACTOR_OF_CONTAINERS } else { FACTOR };
        assert!(whole.bytes < factor * length + (1 << 20), "{name}: {length} {whole:?}");
        assert!(whole.bytes < half.bytes * 5 / 2 + (1 << 20), "{name}: {half:?} {whole:?}");
        assert!(whole.allocations < half.allocations * 5 / 2 + 1000, "{name}: {half:?} {whole:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_frame_without_an_end_costs_what_the_limit_says_and_ends_the_watch() {
    let _alone = ALONE.lock().await;
    for begin in ["x", "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"", "\"", "["] {
        let piece = Bytes::from(begin.repeat(PIECE));
        let size = piece.len();
        let scene = Scene::new(Hostile::Endless(piece)).await;
        let outcome = scene.suffer().await;
        let taken = scene.taken.load(Ordering::SeqCst);
        assert!(taken <= MAX_FRAME + 2 * size, "{taken}");
        assert!(outcome.bytes < 4 * MAX_FRAME, "{outcome:?}");
        let told = format!("an event takes more than {MAX_FRAME} bytes");
        assert!(outcome.errors[0].contains(&told), "{:?}", outcome.errors);
    }
}

// === what is wrong ===

#[tokio::test(start_paused = true)]
async fn what_is_no_event_ends_the_watch_at_the_last_good_one_and_is_told() {
    let _alone = ALONE.lock().await;
    let utf8 = [event("", EMPTY).into_bytes(), b"\n".to_vec()].concat();
    let broken: Vec<u8> =
        utf8.iter().map(|byte| if *byte == b'h' { 0xff } else { *byte }).collect();
    let cases: Vec<(Vec<u8>, &str)> = vec![
        (broken, "invalid utf-8"),
        (vec![0; 100_000], "more than"),
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
            // Nothing of it is a line; the pod that follows is part of what is none.
            let outcome = suffer([bytes, b"\n".to_vec()].concat()).await;
            assert!(outcome.errors[0].contains("is corrupt"), "{:?}", outcome.errors);
            continue;
        }
        let length = bytes.len();
        let outcome = suffer(bytes).await;
        let told = outcome.errors.first().cloned().unwrap_or_default();
        assert!(told.contains(expected), "{shown}: {told:.300} {:?}", outcome.heard);
        assert!(outcome.bytes < 24 * length + (1 << 20), "{shown}: {}", outcome.bytes);
        assert!(
            !outcome.heard.iter().any(|event| event.contains("hostile")),
            "{shown}: {:?}",
            outcome.heard
        );
    }
}

#[tokio::test(start_paused = true)]
async fn what_does_not_fit_is_opaque_and_what_is_odd_is_not() {
    let _alone = ALONE.lock().await;
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
        let outcome = suffer(bytes.clone()).await;
        assert!(outcome.heard.contains(&format!("{expected} hostile")), "{bytes} {outcome:?}");
        assert_eq!(outcome.errors, [""; 0], "{bytes}");
    }
    // It fits, and nobody could refer to it: it is left out.
    let nameless = suffer(added("{}")).await;
    assert_eq!(nameless.heard, ["added good", "added after"]);
    assert_eq!(nameless.errors, [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn names_are_told_apart_whatever_is_in_them() {
    let _alone = ALONE.lock().await;
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
        let metadata = serde_json::json!({"name": name, "namespace": namespace, "uid": "u", "resourceVersion": "8"});
        added(&serde_json::json!({"metadata": metadata, "spec": {"containers": []}}).to_string())
    });
    let scene = Scene::new(Hostile::Bytes(events.concat().into())).await;
    let outcome = scene.suffer().await;
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
async fn a_version_of_any_length_does_not_keep_the_informer_from_asking() {
    let _alone = ALONE.lock().await;
    for version in [
        "9".repeat(40),
        "9".repeat(100_000),
        "v".repeat(100_000),
        "\u{fc}&resourceVersion=1#".into(),
        "-1".into(),
    ] {
        let escaped = serde_json::Value::from(version.clone()).to_string();
        let object = format!(
            r#"{{"metadata":{{"name":"odd","namespace":"n","uid":"o","resourceVersion":{escaped}}},"spec":{{"containers":[]}}}}"#
        );
        // Then the watch breaks: the next one would go on from there.
        let scene = Scene::new(Hostile::Bytes((added(&object) + "<html>\n").into())).await;
        let outcome = scene.suffer().await;
        assert!(outcome.errors[0].contains("is corrupt"), "{:?}", outcome.errors);
        assert!(outcome.errors.len() < 12, "{}", outcome.errors.len());
        for question in scene.asked.lock().iter() {
            assert!(question.matches("resourceVersion=").count() <= 1, "{question:.200}");
            assert!(!question.contains(['#', '\u{fc}']), "{question:.200}");
        }
    }
}
