use std::sync::Arc;

use super::*;
use k8s_openapi::api::core::v1::Pod;

// === weights ===

/// Members in any order, escapes in names and text, and an unknown member.
const PODS: [&str; 4] = [
    r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","namespace":"b","uid":"u","labels":{"l":"\u00e4\"\n"},
        "creationTimestamp":"2026-11-21T10:00:00Z","ownerReferences":[{"apiVersion":"v1","kind":"K","name":"n","uid":"o"}]},
        "spec":{"nodeName":"n","containers":[{"name":"c","env":[{"name":"E","value":"\\\"}{"}]}]},"status":{"phase":"Running"}}"#,
    r#"{ "spec" : {"containers":[ ]} , "unknown" : [1, {"a": null}], "meta\u0064ata" : {"name":"a"} }"#,
    r#"{"metadata":{"name":"a"}}"#,
    r#"{"sp\u0065c":{"containers":[],"nodeName":"\ud83d\ude00"},"metadata":{"name":"a"},"od\"d":"\/"}"#,
];

#[test]
fn lazy_object_decodes_to_same_value_as_direct_decode() {
    for text in PODS {
        let lazy: Lazy<Pod> = serde_json::from_str(text).unwrap();
        let whole: Pod = serde_json::from_str(text).unwrap();
        assert_eq!(lazy.metadata(), &whole.metadata, "{text}");
        assert_eq!(*lazy.decode().unwrap(), whole, "{text}");
        let mut others: serde_json::Value = serde_json::from_str(text).unwrap();
        others.as_object_mut().unwrap().remove("metadata");
        assert_eq!(serde_json::from_str::<serde_json::Value>(lazy.json()).unwrap(), others);
        let dynamic: Dynamic = serde_json::from_str(text).unwrap();
        assert_eq!(dynamic.decode::<Pod>().unwrap(), whole, "{text}");
    }
}

#[test]
fn lazy_object_is_decoded_once_for_all_holders() {
    let lazy: Lazy<Pod> = serde_json::from_str(PODS[0]).unwrap();
    let _key = (lazy.key(), lazy.uid(), format!("{lazy:?}"));
    assert_eq!(lazy.decodes(), 0);
    let held = lazy.decode().unwrap();
    assert!(Arc::ptr_eq(&held, &lazy.decode().unwrap()));
    assert_eq!(lazy.decodes(), 1);
    let gone = Arc::downgrade(&held);
    drop(held);
    assert!(gone.upgrade().is_none(), "only its holders keep it");
    lazy.decode().unwrap();
    assert_eq!(lazy.decodes(), 2);
}

#[test]
fn threads_that_decode_at_the_same_time_hold_the_same_object() {
    let lazy: Lazy<Pod> = serde_json::from_str(PODS[0]).unwrap();
    let decoded = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(|| lazy.decode().unwrap())).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
    });
    let last = lazy.decode().unwrap();
    assert!(decoded.iter().all(|object| Arc::ptr_eq(object, &last)));
}

struct Bomb;
impl<'de> serde::Deserialize<'de> for Bomb {
    fn deserialize<D: serde::Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
        panic!("decoder")
    }
}

#[test]
fn decode_error_names_object_but_contains_no_values() {
    let text = r#"{"metadata":{"name":"a","namespace":"b"},"spec":{"nodeName":7,"x":"hunter2"}}"#;
    let lazy: Lazy<Pod> = serde_json::from_str(text).unwrap();
    assert_eq!(lazy.key().to_string(), "b/a");
    let error = lazy.decode().unwrap_err().to_string();
    assert!(error.starts_with("\"b/a\" does not fit") && !error.contains("hunter2"), "{error}");
    assert!(!format!("{lazy:?}").contains("hunter2"));

    let lazy: Lazy<Bomb> = serde_json::from_str(text).unwrap();
    assert_eq!(lazy.decode().err().unwrap().to_string(), "\"b/a\" its decoder panicked");
}

#[test]
fn dynamic_object_is_read_by_path() {
    let text = r#"{"metadata":{"name":"a"},"kind":"Set","spec":{"n\u0061me":"x","replicas":3,"none":null,
        "deep":{"list":[1,2]}},"status":null}"#;
    let set: Dynamic = serde_json::from_str(text).unwrap();
    assert_eq!(set.get::<String>(&["kind"]).unwrap().as_deref(), Some("Set"));
    assert_eq!(set.get::<String>(&["spec", "name"]).unwrap().as_deref(), Some("x"));
    assert_eq!(set.get::<Vec<u8>>(&["spec", "deep", "list"]).unwrap(), Some(vec![1, 2]));
    for missing in [&["spec", "none"][..], &["spec", "other"], &["status", "x"], &["x", "y", "z"]] {
        assert_eq!(set.get::<u8>(missing).unwrap(), None, "{missing:?}");
    }
    for misfit in [&["spec", "name"][..], &["kind", "x"], &["spec", "deep", "list", "x"]] {
        assert!(set.get::<u8>(misfit).is_err(), "{misfit:?}");
    }
    let whole: serde_json::Value = set.get(&[]).unwrap().unwrap();
    assert_eq!(whole, serde_json::from_str::<serde_json::Value>(set.json()).unwrap());
}
