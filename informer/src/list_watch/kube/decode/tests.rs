use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::*;
use crate::list_watch::Page;

const FITS: &str = r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a",
    "namespace":"n","uid":"u","resourceVersion":"5",
    "managedFields":[{"manager":"m"}]},"spec":{"containers":[]}}"#;
/// `restartPolicy` is not a string.
const UNDECODABLE: &str = r#"{"metadata":{"name":"b","namespace":"n","resourceVersion":"6",
    "labels":{"l":"1"},"managedFields":[{"manager":"m"}]},
    "spec":{"containers":[],"restartPolicy":{"secret":"hunter2"}}}"#;

fn frame<K: DeserializeOwned>(line: &[u8]) -> Result<Frame<K>, String> {
    Decoder::new().frame(line)
}

fn page<K: DeserializeOwned>(body: &[u8]) -> Result<Page<K>, String> {
    Decoder::new().page(body)
}

fn one_line(text: &str) -> String {
    text.replace('\n', "")
}

fn event(line: &str) -> WatchEvent<Pod> {
    match frame(one_line(line).as_bytes()) {
        Ok(Frame::Event(event)) => event,
        Ok(Frame::Error(error)) => panic!("{error}"),
        Err(error) => panic!("{error}"),
    }
}

fn corrupt(line: &[u8]) -> String {
    match frame::<Pod>(line) {
        Ok(_) => panic!("{} was accepted", String::from_utf8_lossy(line)),
        Err(error) => error,
    }
}

#[test]
fn frame_is_decoded_with_fields_in_any_order() {
    for kind in ["ADDED", "MODIFIED"] {
        for line in [
            format!(r#"{{"type":"{kind}","object":{FITS}}}"#),
            format!(r#"{{"object":{FITS},"type":"{kind}","more":[1]}}"#),
        ] {
            let WatchEvent::Applied(Decoded::Fits(pod)) = event(&line) else { panic!("{line}") };
            assert_eq!(pod.metadata.name.as_deref(), Some("a"));
            assert_eq!(pod.metadata.managed_fields, None);
        }
    }
    let line = format!(r#"{{"type":"DELETED","object":{FITS}}}"#);
    assert!(matches!(event(&line), WatchEvent::Deleted(Decoded::Fits(_))));
}

#[test]
fn raw_text_of_an_object_is_complete_in_frames_and_pages() {
    #[derive(Deserialize)]
    struct Object(Box<RawValue>);
    #[derive(Deserialize)]
    struct Metadata {
        metadata: Box<RawValue>,
    }
    let line = one_line(&format!(r#"{{"type":"ADDED","object":{FITS}}}"#));
    let list = format!(r#"{{"metadata":{{"resourceVersion":"1"}},"items":[{FITS}]}}"#);

    let Ok(Frame::Event(WatchEvent::Applied(Decoded::Fits(object)))) = frame(line.as_bytes())
    else {
        panic!("{line}")
    };
    let Object(text) = &*object;
    assert_eq!(text.get(), one_line(FITS));
    let items = page::<Object>(one_line(&list).as_bytes()).unwrap().items;
    let [Decoded::Fits(item)] = &*items else { panic!("{list}") };
    assert_eq!(item.0.get(), text.get());

    let Ok(Frame::Event(WatchEvent::Applied(Decoded::Fits(object)))) = frame(line.as_bytes())
    else {
        panic!("{line}")
    };
    let Metadata { metadata } = &*object;
    assert!(metadata.get().contains(r#""managedFields":[{"manager":"m"}]"#), "{metadata}");
}

#[test]
fn usual_objects_are_decoded_in_one_pass() {
    let mut decoder = Decoder::<Pod>::new();
    let line = one_line(&format!(r#"{{"type":"ADDED","object":{FITS}}}"#));
    let usual = [false, true].map(|keep| {
        decoder.set_managed_fields(keep);
        let Some(Frame::Event(WatchEvent::Applied(Decoded::Fits(pod)))) =
            decoder.usual_frame(&line)
        else {
            panic!("{line}")
        };
        let item = decoder.usual_object(FITS);
        assert_eq!(item, Some((Arc::clone(&pod), FITS.len())));
        pod.metadata.managed_fields.as_ref().map(Vec::len)
    });
    assert_eq!(usual, [None, Some(1)]);
}

#[test]
fn undecodable_object_keeps_metadata_and_leaks_no_content() {
    let line = format!(r#"{{"type":"ADDED","object":{UNDECODABLE}}}"#);
    let WatchEvent::Applied(Decoded::Opaque { metadata, error }) = event(&line) else { panic!() };
    assert_eq!(metadata.name.as_deref(), Some("b"));
    assert_eq!(metadata.labels.as_ref().unwrap()["l"], "1");
    assert_eq!(metadata.managed_fields, None);
    assert!(error.contains("does not fit") && !error.contains("hunter2"), "{error}");

    let secret = r#"{"type":"ADDED","object":{"metadata":{"name":"b"},"spec":"hunter2"}}"#;
    let WatchEvent::Applied(Decoded::Opaque { error, .. }) = event(secret) else { panic!() };
    assert!(!error.contains("hunter2"), "{error}");
}

#[test]
fn message_of_a_decoder_of_the_author_is_not_kept() {
    #[derive(Deserialize)]
    struct Checked {
        #[serde(rename = "spec", deserialize_with = "checked")]
        _spec: String,
    }
    fn checked<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
        let text = String::deserialize(deserializer)?;
        Err(serde::de::Error::custom(format!("wrong sum, expected {text}")))
    }
    let line = r#"{"type":"ADDED","object":{"metadata":{"name":"b"},"spec":"hunter2"}}"#;
    let Ok(Frame::<Checked>::Event(WatchEvent::Applied(Decoded::Opaque { error, .. }))) =
        frame(line.as_bytes())
    else {
        panic!("{line}")
    };
    assert!(!error.contains("hunter2"), "{error}");
}

#[test]
fn undecodable_metadata_keeps_its_valid_fields() {
    let line = r#"{"type":"ADDED","object":
        {"metadata":{"name":"b","labels":{"l":1},"uid":"u","generation":"x"}}}"#;
    let WatchEvent::Applied(Decoded::Opaque { metadata, .. }) = event(line) else { panic!() };
    assert_eq!((metadata.name.as_deref(), metadata.uid.as_deref()), (Some("b"), Some("u")));
    assert_eq!((&metadata.labels, metadata.generation), (&None, None));
}

#[test]
fn other_api_version_and_deep_nesting_are_opaque() {
    let line =
        r#"{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v9","metadata":{"name":"b"}}}"#;
    assert!(matches!(event(line), WatchEvent::Applied(Decoded::Opaque { .. })));
    let deep = format!("{}{}", "[".repeat(500), "]".repeat(500));
    let line =
        format!(r#"{{"type":"ADDED","object":{{"metadata":{{"name":"b"}},"spec":{deep}}}}}"#);
    assert!(matches!(event(&line), WatchEvent::Applied(Decoded::Opaque { .. })));
}

#[test]
fn bookmark_has_version_and_initial_events_end() {
    for (annotations, end) in [
        ("", false),
        (r#","annotations":null"#, false),
        (r#","annotations":{"k8s.io/initial-events-end":"true"}"#, true),
    ] {
        let line = format!(
            r#"{{"type":"BOOKMARK","object":
                {{"kind":"Pod","metadata":{{"resourceVersion":"7"{annotations}}}}}}}"#
        );
        let WatchEvent::Bookmark { resource_version, initial_events_end } = event(&line) else {
            panic!("{line}")
        };
        assert_eq!((resource_version.as_str(), initial_events_end), ("7", end));
    }
}

#[test]
fn error_event_is_decoded_as_status() {
    let line = br#"{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired",
        "message":"too \"old\"",
        "details":{"retryAfterSeconds":3,"causes":[{"reason":"ResourceVersionTooLarge"},{}]}}}"#;
    let Ok(Frame::<Pod>::Error(error)) = frame(line) else { panic!() };
    assert!(error.is_expired() && error.is_too_large_resource_version());
    assert_eq!(error.retry_after, Some(Duration::from_secs(3)));
    assert_eq!(error.message, "too \"old\"");
}

#[test]
fn invalid_event_is_corrupt() {
    let whole = one_line(&format!(r#"{{"type":"ADDED","object":{FITS}}}"#));
    for end in 0..whole.len() {
        corrupt(&whole.as_bytes()[..end]);
    }
    for line in [
        &b"\xff\xfe"[..],
        b"<html>",
        b"[]",
        b"{}",
        b"null",
        br#"{"type":"INVENTED","object":{"metadata":{"name":"a"}}}"#,
        br#"{"type":"ADDED"}"#,
        br#"{"type":"ADDED","object":{"metadata":{},"spec":7}}"#,
        br#"{"type":"ADDED","object":7}"#,
        br#"{"type":"BOOKMARK","object":{"metadata":{}}}"#,
        br#"{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":""}}}"#,
        br#"{"object":{"metadata":{"resourceVersion":"0"}},"type":"BOOKMARK"}"#,
    ] {
        corrupt(line);
    }
    corrupt(format!("{whole}{whole}").as_bytes());
    corrupt(format!("{whole}x").as_bytes());
}

#[test]
fn panic_in_decoder_makes_one_object_opaque() {
    struct Bomb;
    impl<'de> Deserialize<'de> for Bomb {
        fn deserialize<D: Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
            panic!("decoder")
        }
    }
    let line = one_line(&format!(r#"{{"type":"ADDED","object":{FITS}}}"#));
    let Ok(Frame::<Bomb>::Event(WatchEvent::Applied(Decoded::Opaque { .. }))) =
        frame(line.as_bytes())
    else {
        panic!()
    };
}

#[test]
fn page_has_items_version_and_continue_token() {
    let body = format!(
        r#"{{"kind":"PodList","metadata":{{"resourceVersion":"9","continue":"next"}},
            "items":[{FITS},{FITS}]}}"#
    );
    let page = page::<Pod>(body.as_bytes()).unwrap();
    assert_eq!(
        (page.resource_version.as_str(), page.continue_token.as_deref()),
        ("9", Some("next"))
    );
    assert_eq!(page.items.len(), 2);
    for item in &page.items {
        let Decoded::Fits(pod) = item else { panic!() };
        assert_eq!(pod.metadata.managed_fields, None);
    }
}

#[test]
fn undecodable_item_does_not_affect_other_items() {
    let body = format!(
        r#"{{"metadata":{{"resourceVersion":"9"}},"items":[{FITS},{UNDECODABLE},{FITS}]}}"#
    );
    let page = page::<Pod>(body.as_bytes()).unwrap();
    let opaque: Vec<_> =
        page.items.iter().map(|item| matches!(item, Decoded::Opaque { .. })).collect();
    assert_eq!(opaque, [false, true, false]);
}

#[test]
fn nameless_item_is_skipped_and_other_items_are_kept() {
    let body = format!(
        r#"{{"metadata":{{"resourceVersion":"9"}},
            "items":[{{"metadata":{{}},"spec":7}},{FITS},7,{UNDECODABLE},null]}}"#
    );
    let page = page::<Pod>(body.as_bytes()).unwrap();
    let names: Vec<_> = page.items.iter().map(|item| item.metadata().name.as_deref()).collect();
    assert_eq!(names, [Some("a"), Some("b")]);
    assert_eq!(page.skipped_nameless, 3);
}

#[test]
fn empty_list_is_valid_and_malformed_list_is_an_error() {
    for items in ["[]", "null"] {
        let body =
            format!(r#"{{"items":{items},"metadata":{{"resourceVersion":"9","continue":""}}}}"#);
        let page = page::<Pod>(body.as_bytes()).unwrap();
        assert!(page.items.is_empty() && page.continue_token.is_none());
    }
    for body in [
        "",
        "<html>",
        "{}",
        r#"{"items":[]}"#,
        r#"{"metadata":{"resourceVersion":"9"}}"#,
        r#"{"metadata":{"resourceVersion":"0"},"items":[]}"#,
        r#"{"metadata":{"resourceVersion":"9"},"items":7}"#,
        r#"{"metadata":{"resourceVersion":"9"},"items":[]"#,
    ] {
        assert!(page::<Pod>(body.as_bytes()).is_err(), "{body}");
    }
}

/// Decodes what has arrived after each chunk, and returns the names and the version.
fn page_of_chunks<'a>(chunks: impl Iterator<Item = &'a [u8]>) -> Result<String, String> {
    let mut list = ListDecoder::<Pod>::new(Decoder::new(), usize::MAX);
    for chunk in chunks {
        list.feed(chunk);
        while list.decode()? == Progress::Busy {}
    }
    let page = list.finish()?;
    Ok(format!(
        "{:?} {}",
        page.items.iter().map(Decoded::metadata).collect::<Vec<_>>(),
        page.resource_version
    ))
}

#[test]
fn any_chunking_of_a_list_gives_the_same_page() {
    let other = r#"{"metadata":{"name":"ö","generation":12,"labels":{"ü€😀":"\ud83d\ude00\\\""}},"spec":{"containers":[],"x":[-1,-2.5E-3]}}"#;
    let body = format!(
        r#" {{"n":12.5e+3,"ä":"ö","metadata":{{"resourceVersion":"9"}},"items":[ {FITS} , {other} ,{UNDECODABLE}], "x":null}} "#
    );
    let body = body.as_bytes();
    let whole = page_of_chunks([body].into_iter()).unwrap();
    assert!(whole.contains("😀"), "{whole}");
    for at in 0..body.len() {
        let (first, rest) = body.split_at(at);
        assert_eq!(page_of_chunks([first, rest].into_iter()).as_ref(), Ok(&whole), "{at}");
    }
    for size in [1, 2, 3, 5] {
        assert_eq!(page_of_chunks(body.chunks(size)).as_ref(), Ok(&whole), "{size}");
    }
    for (at, byte) in [(1, 0xff), (40, 0xc3), (body.len() - 1, 0xe2)] {
        let mut invalid = body.to_vec();
        invalid[at] = byte;
        for size in [1, 7, body.len()] {
            assert!(page_of_chunks(invalid.chunks(size)).is_err(), "{at} {size}");
        }
    }
}
