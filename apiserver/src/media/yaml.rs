//! Writes YAML in block style, as Go's encoder does. Texts that need quotes have those of JSON.

use std::fmt::Write as _;

use serde_json::Value;

/// Returns a value as a YAML document. The fields of objects are sorted.
pub(super) fn write(value: &Value) -> String {
    let mut text = String::new();
    match value {
        Value::Object(fields) if !fields.is_empty() => write_fields(&mut text, fields, 0),
        Value::Array(items) if !items.is_empty() => write_items(&mut text, items, 0),
        scalar => write_scalar(&mut text, scalar),
    }
    text
}

fn write_fields(text: &mut String, fields: &serde_json::Map<String, Value>, indent: usize) {
    let mut sorted: Vec<(&String, &Value)> = fields.iter().collect();
    sorted.sort_by_key(|(name, _)| *name);
    for (at, (name, value)) in sorted.into_iter().enumerate() {
        if at > 0 {
            write_indent(text, indent);
        }
        write_text(text, name);
        text.push(':');
        match value {
            Value::Object(inner) if !inner.is_empty() => {
                text.push('\n');
                write_indent(text, indent + 2);
                write_fields(text, inner, indent + 2);
            }
            Value::Array(items) if !items.is_empty() => {
                text.push('\n');
                write_indent(text, indent);
                write_items(text, items, indent);
            }
            scalar => {
                text.push(' ');
                write_scalar(text, scalar);
            }
        }
    }
}

fn write_items(text: &mut String, items: &[Value], indent: usize) {
    for (at, item) in items.iter().enumerate() {
        if at > 0 {
            write_indent(text, indent);
        }
        text.push_str("- ");
        match item {
            Value::Object(inner) if !inner.is_empty() => write_fields(text, inner, indent + 2),
            Value::Array(inner) if !inner.is_empty() => write_items(text, inner, indent + 2),
            scalar => write_scalar(text, scalar),
        }
    }
}

fn write_indent(text: &mut String, indent: usize) {
    text.extend(std::iter::repeat_n(' ', indent));
}

/// Writes a value without parts and ends its line.
fn write_scalar(text: &mut String, value: &Value) {
    match value {
        Value::String(inner) => write_text(text, inner),
        other => {
            let _ = write!(text, "{other}");
        }
    }
    text.push('\n');
}

fn write_text(text: &mut String, value: &str) {
    if is_plain(value) {
        text.push_str(value);
    } else {
        let _ = write!(text, "{}", Value::from(value));
    }
}

/// Returns true if a text without quotes is read as the same text.
fn is_plain(value: &str) -> bool {
    const WORDS: [&str; 8] = ["true", "false", "yes", "no", "on", "off", "y", "n"];
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/');
    let starts_as_word = value.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/');
    starts_as_word
        && value.chars().all(is_word)
        && !WORDS.contains(&value.to_ascii_lowercase().as_str())
        && !value.eq_ignore_ascii_case("null")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn objects_and_lists_are_blocks() {
        let value = json!({"kind": "A", "list": [{"b": 1, "a": [2, 3]}, [], ["x"]], "empty": {},
            "metadata": {"name": "n", "labels": {"a.b/c": "true", "1": "x y"}}, "null": null});
        let expected = "empty: {}\nkind: A\nlist:\n- a:\n  - 2\n  - 3\n  b: 1\n- []\n- - x\n\
            metadata:\n  labels:\n    \"1\": \"x y\"\n    a.b/c: \"true\"\n  name: \"n\"\n\
            \"null\": null\n";
        assert_eq!(write(&value), expected);
    }

    #[test]
    fn text_that_looks_like_another_type_is_quoted() {
        for text in ["", "1", "1e3", "NO", "null", "~", "- a", "a: b", "2026-01-01", "a#b", "ü"] {
            let document = write(&json!({"text": text}));
            let read: Value = serde_saphyr::from_str(&document).unwrap();
            assert_eq!(read, json!({"text": text}), "{document}");
            assert!(document.contains('"'), "{document}");
        }
    }
}
