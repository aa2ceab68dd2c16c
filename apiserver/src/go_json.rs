//! What Go's decoder says about a text that is no JSON: the words are part of a real server's messages.

use serde_json::Value;

/// Where a reader is in a text.
struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// A complaint.
type Read = Result<(), String>;

/// What is wrong with the text, unless it is JSON and nothing else.
pub(crate) fn syntax_error(bytes: &[u8]) -> Option<String> {
    let mut reader = Reader { bytes, at: 0 };
    let read = reader.value("looking for beginning of value").and_then(|()| reader.end());
    read.err()
}

/// What Go calls a value that it cannot put where it should go.
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

// === impl Reader ===

impl Reader<'_> {
    fn peek(&mut self) -> Option<u8> {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.bytes.get(self.at) {
            self.at += 1;
        }
        self.bytes.get(self.at).copied()
    }

    /// The complaint about the byte that stands here.
    fn wrong(&self, context: &str) -> Read {
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

    fn end(&mut self) -> Read {
        if self.peek().is_none() { Ok(()) } else { self.wrong("after top-level value") }
    }

    fn value(&mut self, context: &str) -> Read {
        match self.peek() {
            Some(b'{') => self.members(),
            Some(b'[') => self.items(),
            Some(b'"') => self.string(),
            Some(b't') => self.literal("true"),
            Some(b'f') => self.literal("false"),
            Some(b'n') => self.literal("null"),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => self.wrong(context),
        }
    }

    fn members(&mut self) -> Read {
        self.at += 1;
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(());
        }
        loop {
            if self.peek() != Some(b'"') {
                return self.wrong("looking for beginning of object key string");
            }
            self.string()?;
            if self.peek() != Some(b':') {
                return self.wrong("after object key");
            }
            self.at += 1;
            self.value("looking for beginning of value")?;
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => break,
                _ => return self.wrong("after object key:value pair"),
            }
        }
        self.at += 1;
        Ok(())
    }

    fn items(&mut self) -> Read {
        self.at += 1;
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(());
        }
        loop {
            self.value("looking for beginning of value")?;
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => break,
                _ => return self.wrong("after array element"),
            }
        }
        self.at += 1;
        Ok(())
    }

    fn string(&mut self) -> Read {
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

    fn escape(&mut self) -> Read {
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

    fn literal(&mut self, word: &str) -> Read {
        for expected in word.bytes() {
            if self.bytes.get(self.at) != Some(&expected) {
                let expected = char::from(expected);
                return self.wrong(&format!("in literal {word} (expecting '{expected}')"));
            }
            self.at += 1;
        }
        Ok(())
    }

    fn number(&mut self) -> Read {
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

    fn digits(&mut self, context: &str) -> Read {
        if !self.bytes.get(self.at).is_some_and(u8::is_ascii_digit) {
            return self.wrong(context);
        }
        while self.bytes.get(self.at).is_some_and(u8::is_ascii_digit) {
            self.at += 1;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::syntax_error;

    #[test]
    fn json_is_json() {
        for text in
            ["{}", " [1, -0.5e+3, \"a\\u00e9\\n\", true, false, null] ", "{\"a\":{\"b\":[]}}"]
        {
            assert_eq!(syntax_error(text.as_bytes()), None, "{text}");
            assert!(serde_json::from_str::<serde_json::Value>(text).is_ok(), "{text}");
        }
    }

    #[test]
    fn what_is_none_is_told_in_gos_words() {
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
}
