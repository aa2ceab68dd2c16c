//! Properties of every byte stream: chunking changes nothing, and cost is proportional to length.

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use http::{Request, Response};
use http_body_util::StreamBody;
use k8s_openapi::api::core::v1::Pod;
use kube_client::client::Body;
use proptest::prelude::*;
use serde::de::IgnoredAny;
use tokio::time::Instant;

use super::KubeListWatch;
use super::decode::{Decoder, Frame};
use crate::list_watch::{Decoded, ListWatch, WatchEvent, WatchRequest};
use crate::object::ObjectMeta;

const MAX_FRAME: usize = 100_000;

/// Returns the events of a watch as text, and how the watch ended.
async fn events_of(chunks: Vec<Bytes>, decoders: usize) -> (Vec<String>, String) {
    let service = tower::service_fn(move |_: Request<Body>| {
        let chunks = chunks.clone();
        async move {
            let frames =
                chunks.into_iter().map(|it| Ok::<_, Infallible>(http_body::Frame::data(it)));
            Ok::<_, Infallible>(Response::new(StreamBody::new(futures::stream::iter(frames))))
        }
    });
    let client = kube_client::Client::new(service, "default");
    let pods = KubeListWatch::<Pod>::new(client, None).max_frame(MAX_FRAME).decoders(decoders);
    let request = WatchRequest::after("1".into(), Duration::from_secs(300));
    let mut stream = pods.watch(&request).await.unwrap();
    let mut events = Vec::new();
    while let Some(batch) = stream.next().await {
        match batch {
            Ok(batch) => events.extend(batch.iter().map(describe)),
            Err(error) => return (events, error.to_string()),
        }
    }
    (events, "closed".to_owned())
}

fn describe(event: &WatchEvent<Pod>) -> String {
    match event {
        WatchEvent::Applied(object) => format!("applied {object:?} {:?}", object.metadata()),
        WatchEvent::Deleted(object) => format!("deleted {object:?} {:?}", object.metadata()),
        WatchEvent::Bookmark { resource_version, initial_events_end } => {
            format!("bookmark {resource_version} {initial_events_end}")
        }
    }
}

/// Generates a line of a watch; about 1 in 70 ends the watch. `padding` makes some lines as large
/// as real objects.
fn line(padding: usize) -> impl Strategy<Value = Vec<u8>> {
    let object = move |name: u8, spec: &str, size: usize| {
        let filler = "ü".repeat(size * padding / 20);
        format!(
            r#"{{"metadata":{{"name":"n{name}","annotations":{{"a":"{filler}"}}}},"spec":{spec}}}"#
        )
    };
    let event = (any::<u8>(), 0..3_usize, 0..10_usize, 0..2_usize).prop_map(
        move |(name, kind, size, fits)| {
            let kind = ["ADDED", "MODIFIED", "DELETED"][kind];
            let object = object(name, [r#"{"containers":[]}"#, "7"][fits], size);
            format!(r#"{{"type":"{kind}","object":{object}}}"#)
        },
    );
    let bookmark = (1..100_u8).prop_map(|version| {
        format!(
            r#"{{"type":"BOOKMARK","object":{{"metadata":{{"resourceVersion":"{version}"}}}}}}"#
        )
    });
    let over = prop_oneof![
        Just(r#"{"type":"ERROR","object":{"code":410,"reason":"Expired"}}"#.to_owned()),
        Just(r#"{"type":"ADDED"}"#.to_owned()),
        Just("<html>".to_owned()),
        Just(String::new()),
        Just("x".repeat(MAX_FRAME + 1)),
    ];
    prop_oneof![
        60 => event,
        10 => bookmark,
        1 => over,
    ]
    .prop_map(String::into_bytes)
}

fn lines(padding: usize, most: usize) -> impl Strategy<Value = Vec<u8>> {
    (prop::collection::vec(line(padding), 0..most), any::<bool>()).prop_map(|(lines, torn)| {
        let mut bytes: Vec<u8> =
            lines.iter().flat_map(|line| [line, &b"\n"[..]].concat()).collect();
        if torn {
            bytes.pop();
        }
        bytes
    })
}

fn cut(bytes: &[u8], mut at: Vec<prop::sample::Index>) -> Vec<Bytes> {
    let mut places: Vec<_> = at.drain(..).map(|at| at.index(bytes.len() + 1)).collect();
    places.extend([0, bytes.len()]);
    places.sort_unstable();
    places.windows(2).map(|ends| Bytes::copy_from_slice(&bytes[ends[0]..ends[1]])).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_chunking_of_a_stream_gives_the_same_events(
        bytes in lines(1, 12),
        at in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let whole = events_of(vec![Bytes::copy_from_slice(&bytes)], 1).await;
            assert_eq!(events_of(cut(&bytes, at), 1).await, whole);
            let single = bytes.iter().map(|byte| Bytes::copy_from_slice(&[*byte])).collect();
            assert_eq!(events_of(single, 1).await, whole);
        });
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn several_decoders_keep_the_event_order(
        bytes in lines(30_000, 40),
        at in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
        runtime.block_on(async {
            let whole = events_of(vec![Bytes::copy_from_slice(&bytes)], 1).await;
            assert_eq!(events_of(cut(&bytes, at), 3).await, whole);
        });
    }
}

// === hostile objects ===

/// Generates JSON-like text that starts as an object and may contain anything.
fn hostile() -> impl Strategy<Value = String> {
    let scalar = prop_oneof![
        Just("1e999"),
        Just("-0"),
        Just("1e-999"),
        Just("null"),
        Just("true"),
        Just("{}"),
        Just("[]"),
        Just("99999999999999999999"),
        Just("0.1"),
        Just(r#""""#),
        Just(r#""\ud800""#),
        Just(r#""a""#),
        Just("\"\\u0000\""),
        Just("nul"),
        Just("{"),
        Just("]"),
        Just(r#""2026-13-45T99:99:99Z""#),
    ];
    let name = prop_oneof![
        Just("metadata"),
        Just("name"),
        Just("namespace"),
        Just("labels"),
        Just("resourceVersion"),
        Just("spec"),
        Just("managedFields"),
        Just("ownerReferences"),
        Just("creationTimestamp"),
        Just("generation"),
        Just("type"),
        Just("object"),
        Just("containers"),
        Just("finalizers"),
        Just("uid"),
        Just("status"),
        Just(r"meta\u0064ata"),
    ];
    let value = scalar.prop_map(str::to_owned).prop_recursive(6, 40, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(|it| format!("[{}]", it.join(","))),
            prop::collection::vec((name.clone(), inner), 0..6).prop_map(|members| {
                let members = members.iter().map(|(name, value)| format!(r#""{name}":{value}"#));
                format!("{{{}}}", members.collect::<Vec<_>>().join(","))
            }),
        ]
    });
    (value.clone(), value).prop_map(|(metadata, spec)| {
        format!(r#"{{"metadata":{{"name":"a","labels":{metadata}}},"spec":{spec}}}"#)
    })
}

/// Decodes one event as a watch event and as a list item, and returns the watch result. Neither
/// decoder may panic.
fn decode_all(object: &str) -> Option<Decoded<Pod>> {
    fn one<K: serde::de::DeserializeOwned>(object: &str) -> Option<Decoded<K>> {
        let line = format!(r#"{{"type":"ADDED","object":{object}}}"#);
        match Decoder::<K>::new().frame(line.as_bytes()) {
            Ok(Frame::Event(WatchEvent::Applied(object))) => {
                if let Decoded::Opaque { error, .. } = &object {
                    assert!(!error.contains("panicked"), "{line}");
                }
                Some(object)
            }
            Ok(_) => panic!("{line}"),
            Err(error) => {
                assert!(!error.contains("panicked"), "{line}");
                None
            }
        }
    }
    let list = format!(r#"{{"metadata":{{"resourceVersion":"1"}},"items":[{object}]}}"#);
    let page = Decoder::<Pod>::new().page(list.as_bytes());
    let typed = one::<Pod>(object);
    assert_eq!(page.is_ok_and(|page| page.items.len() == 1), typed.is_some(), "{object}");
    typed
}

proptest! {
    #[test]
    fn decoder_never_panics(object in hostile()) {
        decode_all(&object);
    }

    /// A frame whose object comes first is decoded from its complete text.
    ///
    /// Managed fields that are no JSON are an error only then: else nothing reads them.
    #[test]
    fn frame_without_managed_fields_is_decoded_like_the_complete_frame(
        object in hostile(),
        entry in hostile(),
    ) {
        let marked = r#""name":"a","#;
        let object = object.replace(marked, &format!(r#"{marked}"managedFields":[{entry}],"#));
        let usual = decoded(&format!(r#"{{"type":"ADDED","object":{object}}}"#));
        let complete = decoded(&format!(r#"{{"object":{object},"type":"ADDED"}}"#));
        if complete.is_some() || serde_json::from_str::<IgnoredAny>(&entry).is_ok() {
            prop_assert_eq!(usual, complete);
        }
    }
}

/// Returns the object of an event, or the metadata of one that is opaque.
fn decoded(line: &str) -> Option<Result<serde_json::Value, ObjectMeta>> {
    match Decoder::new().frame(line.as_bytes()) {
        Ok(Frame::Event(WatchEvent::Applied(Decoded::Fits(object)))) => {
            Some(Ok(serde_json::Value::clone(&object)))
        }
        Ok(Frame::Event(WatchEvent::Applied(Decoded::Opaque { metadata, .. }))) => {
            Some(Err(ObjectMeta::clone(&metadata)))
        }
        _ => None,
    }
}

#[test]
fn metadata_survives_undecodable_members() {
    for member in [
        r#""generation":1e999"#.to_owned(),
        r#""labels":{"a":1e999}"#.to_owned(),
        format!(r#""labels":{}{}"#, "[".repeat(1000), "]".repeat(1000)),
        format!(
            r#""labels":{{"a":{}{}}}"#,
            r#"{"a":"#.repeat(1000),
            "1".to_owned() + &"}".repeat(1000)
        ),
        r#""labels":{"\ud800":"a"}"#.to_owned(),
    ] {
        let object = format!(r#"{{"metadata":{{"name":"a",{member},"uid":"u"}},"spec":{{}}}}"#);
        let Some(Decoded::Opaque { metadata, .. }) = decode_all(&object) else {
            panic!("{object:.80}")
        };
        assert_eq!((metadata.name.as_deref(), metadata.uid.as_deref()), (Some("a"), Some("u")));
        assert_eq!((metadata.generation, &metadata.labels), (None, &None));
    }
}

/// Decodes 1 MiB of each shape. A quadratic decoder would take minutes.
#[test]
fn decoding_time_is_proportional_to_size() {
    let repeated = |text: &str| text.repeat((1 << 20) / text.len());
    let numbered = |text: &str| {
        let count = (1 << 20) / (text.len() + 6);
        (0..count).map(|n| text.replace('#', &n.to_string())).collect::<String>()
    };
    let depth = |open: &str, close: &str| {
        let count = (1 << 20) / (open.len() + close.len());
        format!("{}1{}", open.repeat(count), close.repeat(count))
    };
    let begun = Instant::now();
    for (metadata, spec) in [
        (String::new(), depth("[", "]")),
        (String::new(), depth(r#"{"a":"#, "}")),
        (format!(r#","labels":{}"#, depth("[", "]")), "{}".to_owned()),
        (format!(r#","unknown":{}"#, depth(r#"{"a":"#, "}")), "7".to_owned()),
        (format!(r#","labels":{{"a":"{}"}}"#, repeated("ü")), "7".to_owned()),
        (format!(r#","labels":{{{}"z":1}}"#, numbered(r#""l#":"v","#)), "7".to_owned()),
        (numbered(r#","u#":[1]"#), "7".to_owned()),
        (repeated(r#","uid":"u""#), "7".to_owned()),
        (repeated(r#","uid":1"#), "7".to_owned()),
        (format!(r#","managedFields":[{}0]"#, repeated(r#"{"a":{}},"#)), "7".to_owned()),
        (format!(r#","generation":{}"#, repeated("9")), "7".to_owned()),
        (String::new(), format!(r#"{{"containers":[{}7]}}"#, repeated(r#"{"name":"a"},"#))),
        (String::new(), format!(r#"{{{}"a":1}}"#, repeated(r#""containers":[],"#))),
    ] {
        let object = format!(r#"{{"metadata":{{"name":"a"{metadata}}},"spec":{spec}}}"#);
        let one = Instant::now();
        let decoded = decode_all(&object).unwrap_or_else(|| panic!("{}", &object[..80]));
        let name = decoded.metadata().name.clone();
        assert_eq!(name.as_deref(), Some("a"));
        assert!(one.elapsed() < Duration::from_secs(10), "{}", &object[..80]);
    }
    assert!(begun.elapsed() < Duration::from_secs(60));
}

/// Decodes 70 MB that arrive as one chunk, as from a server in this process. A quadratic decoder
/// takes half a minute.
#[test]
fn decoding_time_of_one_chunk_is_proportional_to_size() {
    let item = format!(r#"{{"metadata":{{"name":"a","labels":{{"a":"{}"}}}}}}"#, "ü".repeat(500));
    let items = vec![&*item; 64_000].join(",");
    let list = format!(r#"{{"metadata":{{"resourceVersion":"1"}},"items":[{items}]}}"#);
    let begun = Instant::now();
    assert_eq!(Decoder::<Pod>::new().page(list.as_bytes()).unwrap().items.len(), 64_000);
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
}
