//! Writes a script with its responses in a form for readers and `git diff`.

use std::fmt::Write;

use serde_json::Value;

use crate::headers::{MISSING, USUAL};
use crate::script::{Answer, Content, Exchange, Script};

/// A longer line is split at the members of its object.
const WIDTH: usize = 110;

/// Returns the file of a script with new responses.
pub(crate) fn print(script: &Script, answers: &[Option<Answer>]) -> String {
    let mut text = script.preface.clone();
    for (exchange, answer) in script.exchanges.iter().zip(answers) {
        text.push_str(&print_one(exchange, answer.as_ref()));
    }
    text
}

fn print_one(exchange: &Exchange, answer: Option<&Answer>) -> String {
    let mut text = format!("\n### {}\n{}", exchange.title, exchange.asked);
    if let Some(answer) = answer {
        for line in print_answer(answer).lines() {
            let _ = writeln!(text, "{}", format!("< {line}").trim_end());
        }
    }
    text
}

/// Returns the response in the form of a file, without the `<` of each line.
pub(crate) fn print_answer(answer: &Answer) -> String {
    let mut text = format!("{}\n", answer.status);
    for (name, _) in USUAL {
        if answer.headers.iter().all(|(known, _)| known != name) {
            let _ = writeln!(text, "{name}: {MISSING}");
        }
    }
    for (name, value) in &answer.headers {
        let is_json = name == "Content-Type" && value == "application/json";
        let is_usual = USUAL.contains(&(name.as_str(), value.as_str()));
        if !(is_usual || is_json && matches!(answer.body, Content::Json(_))) {
            let _ = writeln!(text, "{name}: {value}");
        }
    }
    match &answer.body {
        Content::Text(body) => text.push_str(body),
        Content::Json(values) => {
            for value in values {
                lay_out(value, 0, 0, &mut text);
                text.push('\n');
            }
        }
    }
    text
}

/// Writes a value on one line if it fits, otherwise one member per line.
fn lay_out(value: &Value, depth: usize, used: usize, text: &mut String) {
    let line = one_line(value);
    let (open, close, members): (_, _, Vec<(String, &Value)>) = match value {
        Value::Object(members) => {
            let members = members.iter().map(|(key, value)| (format!("{}: ", quoted(key)), value));
            ('{', '}', members.collect())
        }
        Value::Array(items) => ('[', ']', items.iter().map(|item| (String::new(), item)).collect()),
        _ => ('"', '"', Vec::new()),
    };
    if members.is_empty() || used + line.chars().count() <= WIDTH {
        text.push_str(&line);
        return;
    }
    text.push(open);
    let indent = "  ".repeat(depth + 1);
    for (at, (key, value)) in members.iter().enumerate() {
        let comma = if at == 0 { "" } else { "," };
        let _ = write!(text, "{comma}\n{indent}{key}");
        lay_out(value, depth + 1, indent.len() + key.len() + 1, text);
    }
    let _ = write!(text, "\n{}{close}", "  ".repeat(depth));
}

fn one_line(value: &Value) -> String {
    match value {
        Value::Object(members) => {
            let members: Vec<_> = members
                .iter()
                .map(|(key, value)| format!("{}: {}", quoted(key), one_line(value)))
                .collect();
            format!("{{{}}}", members.join(", "))
        }
        Value::Array(items) => {
            format!("[{}]", items.iter().map(one_line).collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    }
}

fn quoted(key: &str) -> String {
    Value::from(key).to_string()
}
