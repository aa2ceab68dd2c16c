//! The bodies of the fuzz targets in `informer/fuzz`, run as property tests.

use proptest::prelude::*;

#[expect(unreachable_pub, reason = "the functions are those of a library")]
#[path = "../fuzz/src/lib.rs"]
mod bodies;

/// Generates bytes that look like parts of a watch or a list.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let part = prop_oneof![
        Just(r#"{"type":"ADDED","object":"#),
        Just(r#"{"metadata":{"name":"a"}}"#),
        Just(r#"{"metadata":{"name":"ü","labels":{"a":"\u00e4"}},"spec":{"containers":[]}}"#),
        Just(r#"{"metadata":{"name":"b"},"spec":7}"#),
        Just(r#"{"metadata":{"resourceVersion":"7","continue":"t"},"items":["#),
        Just(r#""items":"#),
        Just("null"),
        Just("12"),
        Just("]}"),
        Just("}\n"),
        Just(","),
        Just("[1e9,"),
        Just(" "),
    ];
    let part = part.prop_map(|part| part.as_bytes().to_vec());
    let any_bytes = prop::collection::vec(any::<u8>(), 0..4);
    let parts = prop::collection::vec(prop_oneof![9 => part, 1 => any_bytes], 0..12);
    (prop::array::uniform4(0..40_u8), parts)
        .prop_map(|(sizes, parts)| [&sizes[..], &parts.concat()].concat())
}

/// Generates a JSON value of a few levels, with few names.
fn json() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![Just("1"), Just("null"), Just(r#""x""#), Just("[]"), Just("{}")];
    leaf.prop_map(str::to_owned).prop_recursive(4, 32, 4, |inner| {
        let array = prop::collection::vec(inner.clone(), 0..4);
        let object = prop::collection::btree_map("[abc]", inner, 0..4);
        prop_oneof![
            array.prop_map(|elements| format!("[{}]", elements.join(","))),
            object.prop_map(|members| {
                let members = members.iter().map(|(name, value)| format!("\"{name}\":{value}"));
                format!("{{{}}}", members.collect::<Vec<_>>().join(","))
            }),
        ]
    })
}

fn path() -> impl Strategy<Value = String> {
    prop::collection::vec(prop_oneof![Just("a"), Just("b"), Just("*")], 1..4)
        .prop_map(|parts| parts.join("."))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn events_of_a_watch_do_not_depend_on_its_chunks(data in bytes()) {
        bodies::framing(&data);
    }

    #[test]
    fn objects_of_a_list_do_not_depend_on_its_chunks(data in bytes()) {
        bodies::decoding(&data);
    }

    #[test]
    fn pruned_object_lacks_the_values_at_the_path(path in path(), spec in json()) {
        bodies::pruning(format!("{path}\n{spec}").as_bytes());
    }

    #[test]
    fn any_bytes_are_survived(data in prop::collection::vec(any::<u8>(), 0..200)) {
        bodies::framing(&data);
        bodies::decoding(&data);
        bodies::pruning(&data);
    }
}
