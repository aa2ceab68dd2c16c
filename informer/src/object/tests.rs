use super::*;
use k8s_openapi::api::core::v1::Pod;
use std::hash::BuildHasher;

type Key = ObjectKey<Pod>;

#[test]
fn key_has_the_text_that_other_tools_print() {
    let key = Key::namespaced("shop", "web-1");
    assert_eq!((key.namespace(), key.name()), (Some("shop"), "web-1"));
    assert_eq!(key.to_string(), "shop/web-1");
    let node = Key::cluster("node-1");
    assert_eq!((node.namespace(), node.name()), (None, "node-1"));
    assert_eq!(node.to_string(), "node-1");
    assert_eq!(Key::new(Some(""), "x"), Key::cluster("x"));
}

#[test]
fn key_survives_being_printed_and_parsed() {
    for key in [Key::namespaced("a", "b"), Key::cluster("b")] {
        assert_eq!(key.to_string().parse::<Key>(), Ok(key));
    }
    for bad in ["", "/", "a/", "/b", "a/b/c"] {
        assert_eq!(bad.parse::<Key>(), Err(ParseKeyError), "{bad:?}");
    }
}

#[test]
fn keys_sort_by_namespace_then_name() {
    let mut keys = [Key::namespaced("a-b", "a"), Key::namespaced("a", "b"), Key::cluster("z")];
    keys.sort();
    assert_eq!(keys.map(|key| key.to_string()), ["z", "a/b", "a-b/a"]);
}

#[test]
fn borrowed_key_hashes_as_the_owned_one() {
    let hasher = foldhash::fast::RandomState::default();
    let key = Key::namespaced("a", "b");
    let borrowed: KeyRef<'_, Pod> = ("a", "b").into();
    assert_eq!(hasher.hash_one(&key), hasher.hash_one(borrowed));
    assert_eq!(borrowed.to_key(), key);
}

#[test]
fn versions_compare_as_numbers_of_any_length() {
    let big = "340282366920938463463374607431768211456";
    assert_eq!(compare_versions("9", "10"), Some(Ordering::Less));
    assert_eq!(compare_versions(big, "10"), Some(Ordering::Greater));
    assert_eq!(compare_versions("10", "10"), Some(Ordering::Equal));
    for odd in ["", "0", "01", "-1", "1.5", "abc", "１"] {
        assert_eq!(compare_versions(odd, "10"), None, "{odd:?}");
    }
}

// === weights ===

/// Members in any order, escapes in names and text, and something that no type knows.
const PODS: [&str; 4] = [
    r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","namespace":"b","uid":"u","labels":{"l":"\u00e4\"\n"},
        "creationTimestamp":"2026-11-21T10:00:00Z","ownerReferences":[{"apiVersion":"v1","kind":"K","name":"n","uid":"o"}]},
        "spec":{"nodeName":"n","containers":[{"name":"c","env":[{"name":"E","value":"\\\"}{"}]}]},"status":{"phase":"Running"}}"#,
    r#"{ "spec" : {"containers":[ ]} , "unknown" : [1, {"a": null}], "meta\u0064ata" : {"name":"a"} }"#,
    r#"{"metadata":{"name":"a"}}"#,
    r#"{"sp\u0065c":{"containers":[],"nodeName":"\ud83d\ude00"},"metadata":{"name":"a"},"od\"d":"\/"}"#,
];

#[test]
fn lazy_object_is_what_it_would_have_been_at_once() {
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
fn lazy_object_is_decoded_once_for_all_who_hold_it() {
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
fn misfit_tells_which_object_it_is_and_keeps_its_secrets() {
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

#[test]
fn no_memory_is_held_for_owners_that_are_not_there() {
    let metadata: Metadata<Pod> = serde_json::from_str(PODS[0]).unwrap();
    assert_eq!(metadata.metadata().owner_references.as_ref().unwrap().capacity(), 1);
    let lazy: Lazy<Pod> = serde_json::from_str(PODS[0]).unwrap();
    assert_eq!(lazy.metadata().owner_references.as_ref().unwrap().capacity(), 1);
}
