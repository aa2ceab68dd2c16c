//! Writes JSON as `serde_json` does, in fewer steps: most texts need no escape.

use serde::Serialize;
use serde_json::{Number, Value};

use crate::fields::Fields;

/// JSON that is being written.
#[derive(Debug, Default)]
pub(crate) struct JsonText {
    pub(crate) bytes: Vec<u8>,
    /// True after a number with a fraction: reading it may return another one.
    pub(crate) has_fractions: bool,
}

// === impl JsonText ===

impl JsonText {
    /// Returns the text of a value.
    pub(crate) fn of(value: &Value) -> Vec<u8> {
        let mut text = Self::default();
        text.value(value);
        text.bytes
    }

    /// Writes the members of an object, each after a comma.
    pub(crate) fn members<'a>(
        &mut self,
        members: impl IntoIterator<Item = (&'a String, &'a Value)>,
    ) {
        for (name, value) in members {
            self.bytes.push(b',');
            self.member(name, value);
        }
    }

    /// Writes a member whose value is JSON already, after a comma.
    pub(crate) fn encoded_member(&mut self, name: &str, value: &str) {
        self.bytes.push(b',');
        self.text(name);
        self.bytes.push(b':');
        self.bytes.extend_from_slice(value.as_bytes());
    }

    fn member(&mut self, name: &str, value: &Value) {
        self.text(name);
        self.bytes.push(b':');
        self.value(value);
    }

    fn value(&mut self, value: &Value) {
        match value {
            Value::Null => self.bytes.extend_from_slice(b"null"),
            Value::Bool(true) => self.bytes.extend_from_slice(b"true"),
            Value::Bool(false) => self.bytes.extend_from_slice(b"false"),
            Value::Number(number) => self.number(number),
            Value::String(text) => self.text(text),
            Value::Array(list) => self.list(list),
            Value::Object(members) => self.object(members),
        }
    }

    fn object(&mut self, object: &Fields) {
        self.bytes.push(b'{');
        let mut members = object.iter();
        if let Some((name, value)) = members.next() {
            self.member(name, value);
        }
        self.members(members);
        self.bytes.push(b'}');
    }

    fn list(&mut self, list: &[Value]) {
        self.bytes.push(b'[');
        for (at, value) in list.iter().enumerate() {
            if at > 0 {
                self.bytes.push(b',');
            }
            self.value(value);
        }
        self.bytes.push(b']');
    }

    fn text(&mut self, text: &str) {
        if needs_escape(text.as_bytes()) {
            return self.serialize(text);
        }
        self.bytes.reserve(text.len() + 2);
        self.bytes.push(b'"');
        self.bytes.extend_from_slice(text.as_bytes());
        self.bytes.push(b'"');
    }

    fn number(&mut self, number: &Number) {
        self.has_fractions |= number.is_f64();
        self.serialize(number);
    }

    fn serialize(&mut self, value: &(impl Serialize + ?Sized)) {
        serde_json::to_writer(&mut self.bytes, value).expect("texts and numbers are JSON");
    }
}

/// Returns true if a text has a quote, a backslash or a control character.
fn needs_escape(text: &[u8]) -> bool {
    let mut words = text.chunks_exact(8);
    let mut found = 0;
    for word in &mut words {
        found |= escapes_in(word.try_into().expect("a chunk has 8 bytes"));
    }
    let rest = words.remainder();
    let mut last = [b' '; 8];
    last[..rest.len()].copy_from_slice(rest);
    (found | escapes_in(last)) != 0
}

/// Returns a number that is not 0 if one of the bytes needs an escape.
fn escapes_in(bytes: [u8; 8]) -> u64 {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    let word = u64::from_ne_bytes(bytes);
    // The highest bit of a byte is set after the subtraction if the byte was less, and only then if
    // no lower byte was less.
    let less = |word: u64, than: u8| word.wrapping_sub(ONES * u64::from(than)) & !word;
    let is = |byte: u8| less(word ^ (ONES * u64::from(byte)), 1);
    (less(word, b' ') | is(b'"') | is(b'\\')) & (ONES << 7)
}

/// Returns JSON with line breaks and two spaces for each level, as Go indents it. The JSON has no
/// space outside its texts, or is indented already.
pub(crate) fn indented(json: &[u8]) -> Vec<u8> {
    let mut written = Vec::with_capacity(json.len() * 2);
    let (mut level, mut in_text, mut is_escaped) = (0_usize, false, false);
    for (at, byte) in json.iter().enumerate() {
        if in_text {
            written.push(*byte);
            in_text = is_escaped || *byte != b'"';
            is_escaped = !is_escaped && *byte == b'\\';
            continue;
        }
        let is_empty = |close: u8| json.get(at + 1) == Some(&close);
        let was_empty = |open: u8| at > 0 && json[at - 1] == open;
        match byte {
            b'{' | b'[' => {
                written.push(*byte);
                level += 1;
                if !is_empty(b'}') && !is_empty(b']') {
                    break_line(&mut written, level);
                }
            }
            b'}' | b']' => {
                level = level.saturating_sub(1);
                if !was_empty(b'{') && !was_empty(b'[') {
                    break_line(&mut written, level);
                }
                written.push(*byte);
            }
            b',' => {
                written.push(*byte);
                break_line(&mut written, level);
            }
            b':' => written.extend_from_slice(b": "),
            b' ' | b'\n' => {}
            _ => {
                in_text = *byte == b'"';
                written.push(*byte);
            }
        }
    }
    written
}

fn break_line(written: &mut Vec<u8>, level: usize) {
    written.push(b'\n');
    written.extend(std::iter::repeat_n(b' ', 2 * level));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn written(value: &Value) -> String {
        let mut text = JsonText::default();
        text.value(value);
        String::from_utf8(text.bytes).unwrap()
    }

    fn any_value() -> impl Strategy<Value = Value> {
        let text = proptest::collection::vec(
            prop_oneof![any::<char>(), proptest::char::range('\0', '~'), Just('é')],
            0..20,
        );
        let text = text.prop_map(|chars| chars.into_iter().collect::<String>());
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            text.clone().prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 30, 5, move |inner| {
            let members = proptest::collection::vec((text.clone(), inner.clone()), 0..5);
            prop_oneof![
                proptest::collection::vec(inner, 0..5).prop_map(Value::from),
                members.prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn text_is_that_of_serde_json(value in any_value()) {
            prop_assert_eq!(written(&value), value.to_string());
        }
    }

    #[test]
    fn each_byte_that_needs_an_escape_is_found_at_each_place() {
        for byte in 0..=0x7f_u8 {
            for place in 0..17 {
                let mut text = [b'a'; 17];
                text[place] = byte;
                let is_escaped = byte < b' ' || byte == b'"' || byte == b'\\';
                assert_eq!(needs_escape(&text), is_escaped, "{byte} at {place}");
            }
        }
        assert!(!needs_escape("ÿ".repeat(9).as_bytes()));
        assert_eq!(written(&json!({"a": [1, 2.5, "\n"]})), r#"{"a":[1,2.5,"\n"]}"#);
    }

    #[test]
    fn indented_text_has_a_line_for_each_member() {
        let json = br#"{"a":[1,{"b":{}}],"c":"x,\\\"{:","d":[]}"#;
        let expected = concat!(
            "{\n  \"a\": [\n    1,\n    {\n      \"b\": {}\n    }\n  ],\n",
            "  \"c\": \"x,\\\\\\\"{:\",\n  \"d\": []\n}"
        );
        assert_eq!(String::from_utf8(indented(json)).unwrap(), expected);
        assert_eq!(indented(expected.as_bytes()), expected.as_bytes());
    }
}
