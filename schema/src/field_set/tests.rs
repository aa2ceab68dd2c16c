use serde_json::{Value, json};

use super::{FieldSet, PathElement, PathElementError};

fn set(value: &Value) -> FieldSet {
    FieldSet::from_fields_v1(value).expect("a set")
}

#[test]
fn member_with_children_has_a_dot() {
    let mut set = FieldSet::new();
    set.insert(&[PathElement::field("a")]);
    assert_eq!(set.to_fields_v1(), json!({"f:a": {}}));
    set.insert(&[PathElement::field("a"), PathElement::field("b")]);
    assert_eq!(set.to_fields_v1(), json!({"f:a": {".": {}, "f:b": {}}}));
}

#[test]
fn elements_of_all_types_are_read_and_shown() {
    let fields = json!({
        "f:ports": {"k:{\"port\":80,\"protocol\":\"TCP\"}": {".": {}, "f:note": {}}},
        "f:tags": {"v:\"a\"": {}, "v:1.5": {}, "i:3": {}},
    });
    let set = set(&fields);
    assert_eq!(set.to_fields_v1(), fields);
    let shown = ".ports[port=80,protocol=\"TCP\"]\n.ports[port=80,protocol=\"TCP\"].note\n\
                 .tags[=1.5]\n.tags[=\"a\"]\n.tags[3]";
    assert_eq!(set.to_string(), shown);
}

#[test]
fn unknown_element_is_dropped() {
    assert_eq!(set(&json!({"x:later": {}, "f:a": {}})), set(&json!({"f:a": {}})));
    // What is left has no children and so stands for itself, as upstream reads it.
    assert_eq!(set(&json!({"f:a": {"x:later": {}}})), set(&json!({"f:a": {}})));
}

#[test]
fn text_that_is_no_element_is_refused() {
    assert_eq!(PathElement::parse("f"), Err(PathElementError::TooShort));
    assert_eq!(PathElement::parse("äb"), Err(PathElementError::MissingColon("äb".into())));
    assert_eq!(PathElement::parse("z:1"), Err(PathElementError::UnknownType));
    for text in ["v:", "v:1 2", "k:[]", "k:{", "i:", "i:x"] {
        let parsed = PathElement::parse(text);
        assert!(matches!(parsed, Err(PathElementError::Invalid { .. })), "{text}: {parsed:?}");
    }
    assert!(FieldSet::from_fields_v1(&json!({"f:a": 1})).is_err());
}

#[test]
fn integer_key_equals_the_same_number_with_a_fraction() {
    let (whole, fraction) = (PathElement::value(1), PathElement::value(1.0));
    assert_eq!(whole, fraction);
    assert!(PathElement::value(2) > fraction);
    assert!(PathElement::value(u64::MAX) > PathElement::value(i64::MAX));
    assert!(PathElement::value("1") > PathElement::value(2), "texts sort behind numbers");
}

#[test]
fn recursive_difference_removes_what_is_below_a_member() {
    let all = set(&json!({"f:status": {"f:ready": {}, "f:phase": {}}, "f:spec": {"f:a": {}}}));
    let reset = set(&json!({"f:status": {}}));
    assert_eq!(all.recursive_difference(&reset), set(&json!({"f:spec": {"f:a": {}}})));
    assert_eq!(all.difference(&reset), all, "a plain difference keeps what is below");
}

#[test]
fn text_in_an_element_is_escaped_as_in_go() {
    let element = PathElement::value("a<b>&c");
    assert_eq!(element.to_fields_v1(), r#"v:"a\u003cb\u003e\u0026c""#);
    assert_eq!(PathElement::parse(&element.to_fields_v1()), Ok(element));
}

#[test]
fn text_of_set_is_that_of_its_value() {
    for value in [
        json!({}),
        json!({"f:a": {}, "f:a-b": {"f:\"": {}, "f:\n\\": {".": {}, "f:x": {}}}, "f:a.b": {}}),
        json!({"f:list": {".": {}, "i:1": {}, "k:{\"port\":10}": {"f:port": {}},
            "k:{\"name\":\"<\",\"port\":9}": {}, "k:{}": {}, "v:\"a\"": {}, "v:10": {}}}),
        json!({"f:mixed": {"f:a": {}, "v:\"b\"": {}}}),
    ] {
        let set = set(&value);
        assert_eq!(set.to_json(), set.to_fields_v1().to_string(), "{value}");
    }
}
