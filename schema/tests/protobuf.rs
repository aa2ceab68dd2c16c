//! Protobuf bodies: those that apimachinery encoded, and hostile ones.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use homeostat_schema::{Envelope, NodeRef, ProtobufError, Scalar, Schema, Shape, built_in};
use proptest::prelude::*;
use serde_json::{Value, json};

/// Bodies as apimachinery encodes them, each with its JSON.
fn vectors() -> Vec<(Vec<u8>, Value)> {
    let lines = include_str!("../table/protobuf.txt").lines();
    let pairs = lines.filter_map(|line| line.split_once('\t'));
    let read = |(body, json)| {
        (STANDARD.decode(body).expect("base64"), serde_json::from_str(json).expect("JSON"))
    };
    pairs.map(read).collect()
}

fn schema_of(envelope: &Envelope) -> Schema {
    let (group, version) =
        envelope.api_version.split_once('/').unwrap_or(("", &envelope.api_version));
    let schema = built_in::schema_of(group, version, &envelope.kind);
    schema.or_else(|| built_in::meta_schema_of(&envelope.kind)).expect("the kind is built in")
}

fn decode(body: &[u8]) -> Value {
    let envelope = Envelope::read(body).expect("an envelope");
    let mut object = schema_of(&envelope).decode_protobuf(&envelope.raw).expect("an object");
    object["kind"] = Value::from(envelope.kind);
    object["apiVersion"] = Value::from(envelope.api_version);
    object
}

#[test]
fn body_of_apimachinery_is_decoded_to_its_json() {
    let vectors = vectors();
    assert!(vectors.len() >= 12);
    for (body, json) in vectors {
        assert_eq!(decode(&body), json);
    }
}

#[test]
fn encoded_object_is_decoded_to_itself() {
    for (body, json) in vectors() {
        let envelope = Envelope::read(&body).unwrap();
        let raw = schema_of(&envelope).encode_protobuf(&json).unwrap();
        let again = Envelope::new(&envelope.api_version, &envelope.kind, raw).to_bytes();
        let mut decoded = decode(&again);
        // A list or a map without entries has no bytes.
        let mut expected = json;
        remove_empty(&mut decoded);
        remove_empty(&mut expected);
        assert_eq!(decoded, expected);
    }
}

/// Removes null and empty objects: Go writes a message for an empty struct, the encoder does not.
fn remove_empty(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.values_mut().for_each(remove_empty);
            fields.retain(|_, value| {
                !value.is_null() && value.as_object().is_none_or(|fields| !fields.is_empty())
            });
        }
        Value::Array(items) => items.iter_mut().for_each(remove_empty),
        _ => {}
    }
}

#[test]
fn body_without_prefix_is_refused() {
    assert_eq!(Envelope::read(b"{}"), Err(ProtobufError::NoPrefix));
    assert_eq!(Envelope::read(b"k8s\0\x0a\x05v"), Err(ProtobufError::Truncated));
}

#[test]
fn truncated_object_is_an_error_or_a_part_of_it() {
    for (body, _) in vectors() {
        let envelope = Envelope::read(&body).unwrap();
        let schema = schema_of(&envelope);
        for end in 0..envelope.raw.len() {
            drop(schema.decode_protobuf(&envelope.raw[..end]));
        }
        let mut longer = envelope.raw.clone();
        longer.push(0x0a);
        assert!(schema.decode_protobuf(&longer).is_err());
    }
}

#[test]
fn unknown_field_is_skipped() {
    let schema = built_in::schema_of("", "v1", "ConfigMap").unwrap();
    let raw = schema.encode_protobuf(&json!({"metadata": {"name": "a"}})).unwrap();
    // Field 100 as bytes, 6 as a number, 7 and 8 as fixed numbers.
    let unknown = b"\xa2\x06\x01z\x30\x01\x39\0\0\0\0\0\0\0\0\x45\0\0\0\0";
    let longer = [&unknown[..], &raw, unknown].concat();
    assert_eq!(schema.decode_protobuf(&longer).unwrap(), json!({"metadata": {"name": "a"}}));
}

#[test]
fn wrong_wire_type_names_the_field_as_go_does() {
    let schema = built_in::schema_of("", "v1", "ConfigMap").unwrap();
    let error = schema.decode_protobuf(b"\x08\x01").unwrap_err();
    assert_eq!(error.to_string(), "proto: wrong wireType = 0 for field ObjectMeta");
}

#[test]
fn schema_of_a_definition_has_each_of_its_forms() {
    let name = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps";
    let id = built_in::types().find(name).unwrap();
    let schema = Schema::of_type(std::sync::Arc::clone(built_in::types()), id);
    let text = json!({"type": "string"});
    for form in [
        json!({"items": text}),
        json!({"items": [text, {"type": "integer", "maximum": 9, "default": {"a": [1]}}]}),
        json!({"additionalProperties": true, "additionalItems": false}),
        json!({"additionalProperties": {"items": text}, "enum": ["a", 1, null]}),
        json!({"dependencies": {"a": ["b", "c"], "d": text}, "multipleOf": 0.5}),
    ] {
        let raw = schema.encode_protobuf(&form).unwrap();
        assert_eq!(schema.decode_protobuf(&raw).unwrap(), form);
    }
}

#[test]
fn zero_time_is_an_empty_message() {
    let schema = built_in::schema_of("", "v1", "Pod").unwrap();
    let condition = json!({"type": "Ready", "status": "True", "lastProbeTime": null});
    let pod = json!({"status": {"conditions": [condition]}});
    let raw = schema.encode_protobuf(&pod).unwrap();
    assert_eq!(schema.decode_protobuf(&raw).unwrap(), pod);
}

#[test]
fn deeply_nested_message_is_refused() {
    let name = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps";
    let id = built_in::types().find(name).unwrap();
    let schema = Schema::of_type(std::sync::Arc::clone(built_in::types()), id);
    // `not` is the field 28.
    let mut message: Vec<u8> = Vec::new();
    for _ in 0..5_000 {
        let mut around = vec![0xe2, 0x01];
        let mut length = message.len();
        while length >= 0x80 {
            around.push(u8::try_from(length & 0x7f).unwrap() | 0x80);
            length >>= 7;
        }
        around.push(u8::try_from(length).unwrap());
        around.extend(message);
        message = around;
    }
    assert_eq!(schema.decode_protobuf(&message), Err(ProtobufError::TooDeep));
}

#[test]
fn length_beyond_the_body_reserves_no_memory() {
    let schema = built_in::schema_of("", "v1", "ConfigMap").unwrap();
    let huge = [&[0x0a][..], &[0xff; 8], &[0x7f]].concat();
    assert_eq!(schema.decode_protobuf(&huge), Err(ProtobufError::Truncated));
}

#[test]
fn body_of_many_empty_items_is_decoded_in_linear_time() {
    const COUNT: usize = 200_000;
    let schema = built_in::schema_of("", "v1", "Pod").unwrap();
    // `spec` is the field 2, its `containers` are the field 2, and each item is empty.
    let items = [0x12, 0x00].repeat(COUNT);
    let mut length = items.len();
    let mut body = vec![0x12];
    while length >= 0x80 {
        body.push(u8::try_from(length & 0x7f).unwrap() | 0x80);
        length >>= 7;
    }
    body.push(u8::try_from(length).unwrap());
    body.extend(items);
    let pod = schema.decode_protobuf(&body).unwrap();
    assert_eq!(pod["spec"]["containers"].as_array().map(Vec::len), Some(COUNT));
}

/// Returns an object of a type, in which no value is empty. `choice` decides on its fields.
fn generate(node: NodeRef<'_>, depth: usize, choice: &mut u64) -> Option<Value> {
    *choice =
        choice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    let random = *choice >> 33;
    Some(match node.shape() {
        Shape::Scalar(scalar) => generate_scalar(*scalar, random),
        Shape::Any => json!({"a": [random, null]}),
        Shape::List(_) => json!([generate(node.items()?, depth, choice)?]),
        Shape::Map(_) => json!({"k": generate(node.values()?, depth, choice)?}),
        Shape::Object(_) => {
            let mut fields = serde_json::Map::new();
            for (field, inner) in node.fields().filter(|(field, _)| !field.protobuf.is_empty()) {
                *choice = choice.rotate_left(7) ^ 0x9e37_79b9;
                // The forms of a definition's schema have a test of their own.
                let is_union = field.go_type.starts_with("v1.JSONSchema");
                if is_union || depth == 0 || choice.is_multiple_of(3) {
                    continue;
                }
                let value = generate(inner, depth - 1, choice);
                fields.extend(value.map(|value| (field.name.to_string(), value)));
            }
            (!fields.is_empty()).then_some(Value::Object(fields))?
        }
        Shape::Named(_) => return None,
    })
}

fn generate_scalar(scalar: Scalar, random: u64) -> Value {
    match scalar {
        Scalar::Boolean => json!(true),
        Scalar::Int32 => json!(-1 - (random % 1_000_000).cast_signed()),
        Scalar::Int64 => json!(i64::MAX - random.cast_signed()),
        Scalar::Float => json!(f64::from_bits(1.5_f64.to_bits() | random)),
        Scalar::String => json!(format!("ä{random}")),
        Scalar::Bytes => json!(STANDARD.encode(random.to_be_bytes())),
        Scalar::Quantity => json!(format!("{}m", random + 1)),
        Scalar::IntOrString if random.is_multiple_of(2) => json!(random),
        Scalar::IntOrString => json!("25%"),
        Scalar::Time => json!("2026-01-02T03:04:05Z"),
        Scalar::MicroTime => json!("2026-01-02T03:04:05.000006Z"),
        Scalar::Duration => json!("1h0m0.5s"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn object_of_any_kind_is_decoded_to_itself(kind in any::<prop::sample::Index>(), choice: u64) {
        let kinds: Vec<_> = built_in::types().ids().collect();
        let id = *kind.get(&kinds);
        let schema = Schema::of_type(std::sync::Arc::clone(built_in::types()), id);
        let mut choice = choice;
        if let Some(object) = generate(schema.root(), 5, &mut choice) {
            let raw = schema.encode_protobuf(&object).unwrap();
            prop_assert_eq!(schema.decode_protobuf(&raw).unwrap(), object);
        }
    }

    #[test]
    fn random_bytes_cause_no_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let pod = built_in::schema_of("", "v1", "Pod").unwrap();
        drop(pod.decode_protobuf(&bytes));
        drop(Envelope::read(&bytes));
    }
}

#[test]
fn set_of_fields_that_is_no_json_becomes_text() {
    let schema = built_in::schema_of("", "v1", "ConfigMap").unwrap();
    let object = json!({"metadata": {"managedFields": [{"fieldsV1": {"f:a": {}}}]}});
    let mut raw = schema.encode_protobuf(&object).unwrap();
    let at = raw.windows(10).position(|window| window == br#"{"f:a":{}}"#).unwrap();
    raw[at + 9] = b'{';
    let decoded = schema.decode_protobuf(&raw).unwrap();
    let fields = decoded.pointer("/metadata/managedFields/0/fieldsV1");
    assert_eq!(fields, Some(&json!(r#"{"f:a":{}{"#)));
}
