//! Compares the reader with `serde_json`.

use std::collections::BTreeMap;
use std::fmt::Debug;

use k8s_openapi::api::core::v1::Pod;
use proptest::prelude::*;
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny, SeqAccess};
use serde_json::Value;
use serde_json::value::RawValue;

use super::*;
use crate::scanner::tests::json_like;

/// A pod of kubelet and kube-controller-manager, with managed fields.
const POD: &str = include_str!("../../../informer/tests/fixtures/pod.json");

fn read<T: DeserializeOwned>(text: &str) -> Result<T> {
    T::deserialize(&mut Reader::new(text))
}

/// Checks that the reader fails, or reads what `serde_json` reads.
fn check<T: DeserializeOwned + Debug + PartialEq>(text: &str) -> std::result::Result<bool, String> {
    let Ok(read) = read::<T>(text) else { return Ok(false) };
    let expected = serde_json::Deserializer::from_str(text).into_iter::<T>().next();
    match expected {
        Some(Ok(expected)) if expected == read => Ok(true),
        other => Err(format!("{text}: {read:?} instead of {other:?}")),
    }
}

/// A type of each form that serde knows.
#[derive(Debug, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase")]
struct Forms {
    text: Option<String>,
    letter: Option<char>,
    number: Option<i32>,
    small: Option<u8>,
    float: Option<f64>,
    flag: Option<bool>,
    nothing: Option<()>,
    newtype: Option<Name>,
    pair: Option<(i64, String)>,
    variant: Option<Variant>,
    tagged: Option<Tagged>,
    untagged: Option<Untagged>,
    map: Option<BTreeMap<Name, Vec<Self>>>,
    #[serde(default)]
    any: Value,
    #[serde(flatten)]
    rest: BTreeMap<String, Value>,
}

#[derive(Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
struct Name(String);

#[derive(Debug, Deserialize, PartialEq)]
enum Variant {
    Unit,
    Newtype(u8),
    Tuple(u8, u8),
    Struct { a: u8 },
}

#[derive(Debug, Deserialize, PartialEq)]
#[serde(tag = "type")]
enum Tagged {
    A { a: u8 },
    B,
}

#[derive(Debug, Deserialize, PartialEq)]
#[serde(untagged)]
enum Untagged {
    Number(i64),
    Text(String),
}

/// Generates members of [`Forms`], some of which do not fit.
fn member() -> impl Strategy<Value = String> {
    let names = vec![
        "text",
        "letter",
        "number",
        "small",
        "float",
        "flag",
        "nothing",
        "newtype",
        "pair",
        "variant",
        "tagged",
        "untagged",
        "any",
        "other",
        "t\\u0065xt",
    ];
    let values = vec![
        "\"a\"",
        "\"\\u00e4\\n\"",
        "\"\\ud800\"",
        "\"\"",
        "1",
        "-1",
        "-0",
        "300",
        "1e2",
        "1.5",
        "1e999",
        "18446744073709551616",
        "true",
        "false",
        "null",
        "[1,\"b\"]",
        "[1]",
        "[1,\"b\",2]",
        "[]",
        "{}",
        "\"Unit\"",
        "{\"Newtype\":1}",
        "{\"Tuple\":[1,2]}",
        "{\"Struct\":{\"a\":1}}",
        "{\"Unit\":null}",
        "{\"Newtype\":1,\"Unit\":null}",
        "{\"type\":\"A\",\"a\":1}",
        "{\"type\":\"B\"}",
        "{\"a\":1,\"type\":\"A\"}",
        "{\"Other\":[[{\"a\":\"\\\\\"}]]}",
    ];
    (prop::sample::select(names), prop::sample::select(values))
        .prop_map(|(name, value)| format!("\"{name}\" : {value}"))
}

proptest! {
    #[test]
    fn value_is_that_of_serde_json(text in json_like()) {
        check::<Value>(&text).map_err(TestCaseError::fail)?;
        check::<BTreeMap<String, Value>>(&text).map_err(TestCaseError::fail)?;
        check::<Vec<Value>>(&text).map_err(TestCaseError::fail)?;
    }

    #[test]
    fn forms_are_those_of_serde_json(members in prop::collection::vec(member(), 0..3)) {
        let forms = format!("{{{}}}", members.join(", "));
        check::<Forms>(&forms).map_err(TestCaseError::fail)?;
        let nested = format!(r#"{{"map":{{"k":[{forms},{forms}],"\n":[]}}}}"#);
        check::<Forms>(&nested).map_err(TestCaseError::fail)?;
    }

    #[test]
    fn changed_pod_is_that_of_serde_json(at in 0..POD.len(), byte in "[\"\\\\{}\\[\\],:0a -]?") {
        if POD.is_char_boundary(at) && POD.is_char_boundary(at + 1) {
            let text = format!("{}{byte}{}", &POD[..at], &POD[at + 1..]);
            check::<Pod>(&text).map_err(TestCaseError::fail)?;
        }
    }
}

#[test]
fn usual_values_are_not_left_to_serde_json() {
    let text = r#"{"text":"\u00e4\"]\\","letter":"a","number":-5,"small":255,"float":1.5,
        "flag":true,"nothing":null,"newtype":"n","pair":[1,"b"],"variant":{"Struct":{"a":1}},
        "tagged":{"a":1,"type":"A"},"untagged":"u","map":{"k":[{"variant":"Unit"}]},
        "any":{"a":[1,"2",null]},"other":[{}]}"#;
    assert_eq!(check::<Forms>(text), Ok(true));
    for variant in [r#""Unit""#, r#"{"Unit":null}"#, r#"{"Newtype":1}"#, r#"{"Tuple":[1,2]}"#] {
        assert_eq!(check::<Variant>(variant), Ok(true), "{variant}");
    }
    assert_eq!(check::<Pod>(POD), Ok(true));
}

#[test]
fn vectors_have_no_spare_capacity() {
    let pod = read::<Pod>(POD).unwrap();
    let spec = pod.spec.unwrap();
    let (containers, volumes) = (spec.containers, spec.volumes.unwrap());
    assert_eq!(containers.capacity(), containers.len());
    assert_eq!(volumes.capacity(), volumes.len());
    for length in [1, 2, 3, 5, 9] {
        let texts = read::<Vec<String>>(&format!("[{}]", vec!["\"\""; length].join(","))).unwrap();
        assert_eq!(texts.capacity(), length);
    }
}

#[test]
fn items_of_a_long_list_are_not_counted() {
    /// The expected number of elements.
    #[derive(Debug, PartialEq)]
    struct Hint(Option<usize>);

    impl<'de> Deserialize<'de> for Hint {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            deserializer.deserialize_seq(HintVisitor)
        }
    }

    struct HintVisitor;

    impl<'de> Visitor<'de> for HintVisitor {
        type Value = Hint;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an array")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Hint, A::Error> {
            let hint = Hint(elements.size_hint());
            while elements.next_element::<IgnoredAny>()?.is_some() {}
            Ok(hint)
        }
    }

    let long = " ".repeat(16 << 10);
    let hint = |rest: &str| {
        let text = format!(r#"{{"items":[1,2]{rest}}}"#);
        read::<BTreeMap<String, Hint>>(&text).unwrap().remove("items").unwrap()
    };
    assert_eq!(hint(""), Hint(Some(2)));
    assert_eq!(hint(&long), Hint(None));
    let inner = format!(r#"{{"a":{{"items":[1,2]}},"b":{{"items":["{long}"]}}}}"#);
    let inner = read::<BTreeMap<String, BTreeMap<String, Hint>>>(&inner).unwrap();
    assert_eq!(inner["a"]["items"], Hint(Some(2)));
}

#[test]
fn raw_text_is_borrowed_and_complete() {
    #[derive(Deserialize)]
    struct Borrowed<'a> {
        #[serde(borrow)]
        spec: &'a RawValue,
        fields: Box<RawValue>,
    }
    let text = r#"{"spec": {"a": [1, "\n"]} ,"fields":[{"f:x":{}}]}"#;
    let read = Borrowed::deserialize(&mut Reader::new(text)).unwrap();
    assert_eq!(read.spec.get(), r#"{"a": [1, "\n"]}"#);
    assert_eq!(read.fields.get(), r#"[{"f:x":{}}]"#);
}

#[test]
fn value_of_too_many_levels_is_left_to_serde_json() {
    let nested = |depth| format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
    let most = usize::try_from(MOST_OPEN).unwrap();
    assert_eq!(check::<Value>(&nested(most)), Ok(true));
    assert_eq!(read::<Value>(&nested(most + 1)), Err(Unfit));
    // No level costs stack when it is skipped.
    assert!(read::<IgnoredAny>(&nested(100_000)).is_ok());
}

#[test]
fn number_of_unknown_form_is_left_to_serde_json() {
    for number in ["-0", "1.5", "1e2", "18446744073709551616", "-9223372036854775809"] {
        assert_eq!(read::<Value>(number), Err(Unfit), "{number}");
    }
    assert_eq!(read::<f64>("1e2"), Ok(100.0));
    assert_eq!(read::<f64>("-0"), Err(Unfit));
    assert_eq!(read::<Value>("-9223372036854775808"), Ok(Value::from(i64::MIN)));
}

#[test]
fn part_that_is_left_unread_is_an_error() {
    assert_eq!(read::<(u8, u8)>("[1,2,3]"), Err(Unfit));
    assert_eq!(read::<Variant>(r#"{"Newtype":1,"Unit":null}"#), Err(Unfit));
    assert_eq!(read::<(u8, u8)>("[1,2]"), Ok((1, 2)));
}
