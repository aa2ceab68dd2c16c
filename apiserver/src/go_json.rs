//! The errors of Go's JSON decoder, which are part of the real server's messages.

mod surrogates;

use std::fmt::Write as _;

use homeostat_core::go_quote;
use serde_json::{Number, Value};

pub(crate) use surrogates::{parse, replace_halves};

/// A position in a text.
struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// The maximum nesting depth, as in Go.
const MAX_DEPTH: usize = 10_000;

/// The result of a step; the error is Go's text.
type Step = Result<(), String>;

/// Returns Go's error, or `None` if the text is exactly one JSON value.
pub(crate) fn syntax_error(bytes: &[u8]) -> Option<String> {
    let mut reader = Reader { bytes, at: 0 };
    let read = reader.value().and_then(|()| reader.end());
    read.err()
}

/// Formats a value as Go prints it in messages: `map[a:1 b:[x y]]`.
pub(crate) fn go_text(value: &Value) -> String {
    let mut text = String::new();
    write_go_text(&mut text, value);
    text
}

fn write_go_text(text: &mut String, value: &Value) {
    match value {
        Value::Null => text.push_str("<nil>"),
        Value::String(string) => text.push_str(string),
        Value::Bool(_) | Value::Number(_) => {
            write!(text, "{value}").expect("writing to a String does not fail");
        }
        Value::Array(elements) => {
            text.push('[');
            for (at, element) in elements.iter().enumerate() {
                text.push_str(if at == 0 { "" } else { " " });
                write_go_text(text, element);
            }
            text.push(']');
        }
        Value::Object(members) => {
            text.push_str("map[");
            for (at, (name, member)) in members.iter().enumerate() {
                text.push_str(if at == 0 { "" } else { " " });
                text.push_str(name);
                text.push(':');
                write_go_text(text, member);
            }
            text.push(']');
        }
    }
}

/// Returns Go's name for the type of a value that does not fit.
pub(crate) fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// The Go type of a whole number.
#[derive(Debug, Clone, Copy)]
pub(crate) enum GoInteger {
    Int,
    Uint,
}

/// Parses a whole number.
///
/// # Errors
///
/// Fails with Go's text.
pub(crate) fn parse_integer<T: std::str::FromStr>(
    text: &str,
    kind: GoInteger,
) -> Result<T, String> {
    let digits = match kind {
        GoInteger::Int => text.strip_prefix(['+', '-']).unwrap_or(text),
        GoInteger::Uint => text,
    };
    let (function, text) = match kind {
        GoInteger::Int => ("ParseInt", text),
        GoInteger::Uint => ("ParseUint", text),
    };
    let detail = if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        "invalid syntax"
    } else {
        match text.parse() {
            Ok(number) => return Ok(number),
            Err(_) => "value out of range",
        }
    };
    Err(format!("strconv.{function}: parsing {}: {detail}", go_quote(text)))
}

// === impl Reader ===

impl Reader<'_> {
    fn peek(&mut self) -> Option<u8> {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.bytes.get(self.at) {
            self.at += 1;
        }
        self.bytes.get(self.at).copied()
    }

    /// Returns the error about the byte at the current position.
    fn wrong(&self, context: &str) -> Step {
        let Some(&byte) = self.bytes.get(self.at) else {
            return Err("unexpected end of JSON input".to_owned());
        };
        let shown = match byte {
            b'\'' => "\\'".to_owned(),
            b'"' => "\"".to_owned(),
            b'\\' => "\\\\".to_owned(),
            b'\n' => "\\n".to_owned(),
            b'\r' => "\\r".to_owned(),
            b'\t' => "\\t".to_owned(),
            0x20..=0x7e => char::from(byte).to_string(),
            0x00..=0x7f => format!("\\x{byte:02x}"),
            0x80..=0xa0 | 0xad => format!("\\u{byte:04x}"),
            _ => char::from(byte).to_string(),
        };
        Err(format!("invalid character '{shown}' {context}"))
    }

    fn end(&mut self) -> Step {
        if self.peek().is_none() { Ok(()) } else { self.wrong("after top-level value") }
    }

    /// Reads one value. Open objects and lists are on an explicit stack, so that depth cannot
    /// overflow the call stack.
    fn value(&mut self) -> Step {
        let mut open = Vec::new();
        loop {
            let mut ends = true;
            match self.peek() {
                Some(start @ (b'{' | b'[')) => ends = self.opened(start, &mut open)?,
                Some(b'"') => self.string()?,
                Some(b't') => self.literal("true")?,
                Some(b'f') => self.literal("false")?,
                Some(b'n') => self.literal("null")?,
                Some(b'-' | b'0'..=b'9') => self.number()?,
                _ => return self.wrong("looking for beginning of value"),
            }
            if ends && self.closed(&mut open)? {
                return Ok(());
            }
        }
    }

    /// Reads the start of an object or a list. Returns true if it is empty.
    fn opened(&mut self, start: u8, open: &mut Vec<u8>) -> Result<bool, String> {
        if open.len() == MAX_DEPTH {
            return self.wrong("exceeded max depth").map(|()| false);
        }
        self.at += 1;
        let end = if start == b'{' { b'}' } else { b']' };
        if self.peek() == Some(end) {
            self.at += 1;
            return Ok(true);
        }
        open.push(start);
        if start == b'{' {
            self.key()?;
        }
        Ok(false)
    }

    /// Reads what follows a value. Returns true if it was the last value.
    fn closed(&mut self, open: &mut Vec<u8>) -> Result<bool, String> {
        while let Some(start) = open.last() {
            match (self.peek(), start) {
                (Some(b','), b'{') => {
                    self.at += 1;
                    return self.key().map(|()| false);
                }
                (Some(b','), _) => {
                    self.at += 1;
                    return Ok(false);
                }
                (Some(b'}'), b'{') | (Some(b']'), b'[') => {
                    self.at += 1;
                    open.pop();
                }
                (_, b'{') => return self.wrong("after object key:value pair").map(|()| false),
                _ => return self.wrong("after array element").map(|()| false),
            }
        }
        Ok(true)
    }

    fn key(&mut self) -> Step {
        if self.peek() != Some(b'"') {
            return self.wrong("looking for beginning of object key string");
        }
        self.string()?;
        if self.peek() != Some(b':') {
            return self.wrong("after object key");
        }
        self.at += 1;
        Ok(())
    }

    fn string(&mut self) -> Step {
        self.at += 1;
        loop {
            match self.bytes.get(self.at) {
                Some(b'"') => break,
                Some(b'\\') => self.escape()?,
                Some(0x00..=0x1f) | None => return self.wrong("in string literal"),
                Some(_) => self.at += 1,
            }
        }
        self.at += 1;
        Ok(())
    }

    fn escape(&mut self) -> Step {
        self.at += 1;
        let digits = match self.bytes.get(self.at) {
            Some(b'b' | b'f' | b'n' | b'r' | b't' | b'\\' | b'/' | b'"') => 0,
            Some(b'u') => 4,
            _ => return self.wrong("in string escape code"),
        };
        self.at += 1;
        for _ in 0..digits {
            if !self.bytes.get(self.at).is_some_and(u8::is_ascii_hexdigit) {
                return self.wrong("in \\u hexadecimal character escape");
            }
            self.at += 1;
        }
        Ok(())
    }

    fn literal(&mut self, word: &str) -> Step {
        for expected in word.bytes() {
            if self.bytes.get(self.at) != Some(&expected) {
                let expected = char::from(expected);
                return self.wrong(&format!("in literal {word} (expecting '{expected}')"));
            }
            self.at += 1;
        }
        Ok(())
    }

    fn number(&mut self) -> Step {
        if self.bytes.get(self.at) == Some(&b'-') {
            self.at += 1;
        }
        if self.bytes.get(self.at) == Some(&b'0') {
            self.at += 1;
        } else {
            self.digits("in numeric literal")?;
        }
        if self.bytes.get(self.at) == Some(&b'.') {
            self.at += 1;
            self.digits("after decimal point in numeric literal")?;
        }
        if let Some(b'e' | b'E') = self.bytes.get(self.at) {
            self.at += 1;
            if let Some(b'+' | b'-') = self.bytes.get(self.at) {
                self.at += 1;
            }
            self.digits("in exponent of numeric literal")?;
        }
        Ok(())
    }

    fn digits(&mut self, context: &str) -> Step {
        if !self.bytes.get(self.at).is_some_and(u8::is_ascii_digit) {
            return self.wrong(context);
        }
        while self.bytes.get(self.at).is_some_and(u8::is_ascii_digit) {
            self.at += 1;
        }
        Ok(())
    }
}

/// Returns true if a number is `-0`, which is an integer in Go. `-0.0` is the same here.
pub(crate) fn is_minus_zero(number: &Number) -> bool {
    number.is_f64() && number.as_f64().is_some_and(|it| it == 0.0 && it.is_sign_negative())
}

/// Writes numbers without a fraction as integers, as Go does when it encodes an object without a
/// type: `1.0` is 1. Integers that are too long become floats.
pub(crate) fn whole_numbers(value: &mut Value) {
    match value {
        Value::Number(number) if number.is_f64() => {
            let whole = number.as_f64().filter(|number| number.fract() == 0.0);
            if let Some(Ok(whole)) = whole.map(|whole| format!("{whole:.0}").parse::<i64>()) {
                *value = whole.into();
            }
        }
        // What does not fit into 64 bits with a sign is a float.
        Value::Number(number) if !number.is_i64() => {
            if let Some(number) = number.as_f64().and_then(Number::from_f64) {
                *value = number.into();
            }
        }
        Value::Array(items) => items.iter_mut().for_each(whole_numbers),
        Value::Object(members) => members.values_mut().for_each(whole_numbers),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{GoInteger, parse_integer, syntax_error, whole_numbers};

    #[test]
    fn numbers_without_a_fraction_are_integers() {
        let mut value = json!({"a": [1.0, -2e2, {"b": -0.0}], "c": 1.5, "d": 1e300, "e": "1.0",
            "f": u64::MAX});
        whole_numbers(&mut value);
        let expected = json!({"a": [1, -200, {"b": 0}], "c": 1.5, "d": 1e300, "e": "1.0",
            "f": 18_446_744_073_709_551_615.0});
        assert_eq!(value, expected);
    }

    #[test]
    fn valid_json_has_no_error() {
        for text in
            ["{}", " [1, -0.5e+3, \"a\\u00e9\\n\", true, false, null] ", "{\"a\":{\"b\":[]}}"]
        {
            assert_eq!(syntax_error(text.as_bytes()), None, "{text}");
            assert!(serde_json::from_str::<serde_json::Value>(text).is_ok(), "{text}");
        }
    }

    #[test]
    fn invalid_json_is_rejected_with_gos_text() {
        for (text, words) in [
            ("", "unexpected end of JSON input"),
            ("{\"a\":", "unexpected end of JSON input"),
            ("{bad", "invalid character 'b' looking for beginning of object key string"),
            ("{\"a\" 1}", "invalid character '1' after object key"),
            ("{\"a\":1 2}", "invalid character '2' after object key:value pair"),
            ("[1 2]", "invalid character '2' after array element"),
            ("{} x", "invalid character 'x' after top-level value"),
            ("nope", "invalid character 'o' in literal null (expecting 'u')"),
            ("\"\n\"", "invalid character '\\n' in string literal"),
            ("\"\\x\"", "invalid character 'x' in string escape code"),
            ("-x", "invalid character 'x' in numeric literal"),
            ("\u{1}", "invalid character '\\x01' looking for beginning of value"),
        ] {
            assert_eq!(syntax_error(text.as_bytes()).as_deref(), Some(words), "{text}");
        }
        let words = "invalid character '\\u0081' looking for beginning of value";
        assert_eq!(syntax_error(&[0x81]).as_deref(), Some(words));
    }

    #[test]
    fn deep_nesting_is_rejected_without_stack_overflow() {
        let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
        assert_eq!(syntax_error(deep.as_bytes()), None);
        let words = "invalid character '{' exceeded max depth";
        let deeper = format!("{}{}", "[".repeat(10_000), "{\"a\":".repeat(1_000_000));
        assert_eq!(syntax_error(deeper.as_bytes()).as_deref(), Some(words));
    }

    #[test]
    fn whole_numbers_are_parsed_as_in_go() {
        assert_eq!(parse_integer("+1", GoInteger::Int), Ok(1));
        let words = |text: &str, kind| parse_integer::<i64>(text, kind).unwrap_err();
        assert_eq!(words("", GoInteger::Int), "strconv.ParseInt: parsing \"\": invalid syntax");
        assert_eq!(
            words("+1", GoInteger::Uint),
            "strconv.ParseUint: parsing \"+1\": invalid syntax"
        );
        let large = "99999999999999999999";
        let expected = format!("strconv.ParseInt: parsing \"{large}\": value out of range");
        assert_eq!(words(large, GoInteger::Int), expected);
    }
}
