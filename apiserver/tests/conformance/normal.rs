//! Takes out of an answer what differs from run to run, and nothing else.
//!
//! The closed list: uids, times, ages in tables, resourceVersions, continue tokens, generated suffixes, addresses that the server allots,
//! `managedFields`, which the embedded server does not write, and the descriptions of a table's columns. A `message`, a `reason` and the `causes` keep every
//! letter; where they quote one of the values above, its name stands there instead.

use std::ops::Range;

use base64::{
    Engine, engine::general_purpose::STANDARD_NO_PAD, engine::general_purpose::URL_SAFE_NO_PAD,
};
use serde_json::{Deserializer, Map, Value};

use crate::{
    names::Names,
    script::{Answer, Content},
};

/// Members whose value is a time that the server read from its clock.
const TIMES: &[&str] = &[
    "creationTimestamp",
    "deletionTimestamp",
    "firstTimestamp",
    "lastHeartbeatTime",
    "lastProbeTime",
    "lastTimestamp",
    "lastTransitionTime",
    "lastUpdateTime",
    "startTime",
    "timeAdded",
];

/// Columns of a table that are computed from the clock.
const AGES: &[&str] =
    &["Age", "Created At", "Duration", "First Seen", "Last Schedule", "Last Seen"];

/// What stands in a message before a version that the server knows.
const BEFORE_VERSIONS: &[&str] =
    &["current: ", "resource version: ", "ResourceVersion in object meta: ", "in record ("];

/// The normaliser of one script: what it has seen decides what a value is called.
#[derive(Debug, Default)]
pub(crate) struct Normaliser {
    names: Names,
    /// Everything that the client has sent: a value in there was not chosen by the server.
    sent: String,
}

// === impl Normaliser ===

impl Normaliser {
    /// Takes note of what the client sends.
    pub(crate) fn sends(&mut self, text: &str) {
        self.sent.push_str(text);
        self.sent.push('\n');
    }

    /// The answer as it is compared and recorded. What was recorded before tells the names.
    pub(crate) fn normal(&mut self, raw: &Answer, recorded: Option<&Answer>) -> Answer {
        let Content::Json(values) = &raw.body else { return raw.clone() };
        let none = Vec::new();
        let recorded = match recorded.map(|answer| &answer.body) {
            Some(Content::Json(values)) => values,
            _ => &none,
        };
        let learn = |names: &mut Names, force| {
            for (recorded, raw) in recorded.iter().zip(values) {
                names.learn(recorded, raw, force);
            }
        };
        learn(&mut self.names, false);
        for value in values {
            self.names.collect(value);
        }
        let mut body: Vec<_> = values.iter().map(|value| self.value("", value)).collect();
        mask_ages(&mut body);
        learn(&mut self.names, true);
        Answer { status: raw.status, headers: raw.headers.clone(), body: Content::Json(body) }
    }

    fn value(&self, key: &str, value: &Value) -> Value {
        match value {
            Value::Object(members) => Value::Object(self.members(members)),
            Value::Array(items) => items.iter().map(|item| self.value(key, item)).collect(),
            Value::String(text) => self.text(key, text).into(),
            other => other.clone(),
        }
    }

    fn members(&self, members: &Map<String, Value>) -> Map<String, Value> {
        let named = members.contains_key("name");
        let mut normal = Map::new();
        // A member that is left out: each has its reason at the top of `differences.txt`.
        let column = members.contains_key("priority") && members.contains_key("format");
        let left_out = |key: &str| key == "managedFields" || (column && key == "description");
        for (key, member) in members.iter().filter(|(key, _)| !left_out(key)) {
            let value = match (key.as_str(), member) {
                ("resourceVersion", Value::String(raw)) => self.version(named, raw).into(),
                ("nodePort" | "healthCheckNodePort", Value::Number(port))
                    if !self.sent.contains(&port.to_string()) =>
                {
                    "<port>".into()
                }
                _ => self.value(key, member),
            };
            normal.insert(key.clone(), value);
        }
        normal
    }

    /// The version of an object has a name. That of a list or a bookmark has none: it moves with every write to the server.
    fn version(&self, of_an_object: bool, raw: &str) -> String {
        match self.names.version(raw) {
            Some(name) if of_an_object => name.to_owned(),
            _ if of_an_object || matches!(raw, "" | "0") => raw.to_owned(),
            _ => "<version>".to_owned(),
        }
    }

    fn text(&self, key: &str, text: &str) -> String {
        let chosen = || !self.sent.contains(text);
        match key {
            "message" => versions_in(&self.quoted(&self.names.translate(text)), &self.sent),
            "continue" if !text.is_empty() => self.token(text),
            "serverAddress" => "<address>".to_owned(),
            "clusterIP" | "clusterIPs" if text.starts_with("10.0.0.") && chosen() => {
                "<address>".to_owned()
            }
            _ if TIMES.contains(&key) && chosen() => "<time>".to_owned(),
            _ => self.names.translate(text),
        }
    }

    /// The message with each JSON value that it quotes as that value stands in a body, and with its members in the order of
    /// their names: Go writes them as its struct has them.
    fn quoted(&self, message: &str) -> String {
        let mut text = String::new();
        let mut rest = message;
        while let Some(start) = rest.find(['{', '[', '"']) {
            let (before, from) = rest.split_at(start);
            text.push_str(before);
            let mut values = Deserializer::from_str(from).into_iter::<Value>();
            let value = match values.next() {
                Some(Ok(Value::String(inner))) => serde_json::from_str(&inner)
                    .ok()
                    .filter(Value::is_object)
                    .map(|value: Value| {
                        Value::String(self.value("", &value).to_string()).to_string()
                    }),
                Some(Ok(value)) => Some(self.value("", &value).to_string()),
                _ => None,
            };
            let end = if value.is_some() { values.byte_offset() } else { 1 };
            text.push_str(value.as_deref().unwrap_or(&from[..1]));
            rest = &from[end..];
        }
        text + rest
    }

    /// What a continue token says, but for its version.
    fn token(&self, token: &str) -> String {
        let bytes = URL_SAFE_NO_PAD.decode(token).or_else(|_| STANDARD_NO_PAD.decode(token));
        let decoded = bytes.ok().and_then(|bytes| serde_json::from_slice::<Value>(&bytes).ok());
        let Some(Value::Object(mut members)) = decoded else { return token.to_owned() };
        if members.get("rv").and_then(Value::as_i64).is_some_and(|version| version > 0) {
            members.insert("rv".to_owned(), "<version>".into());
        }
        // Storage writes the key with a slash in front of it, the watch cache without.
        if let Some(Value::String(start)) = members.get_mut("start") {
            *start = start.trim_start_matches('/').to_owned();
        }
        format!("<token {}>", self.names.translate(&Value::Object(members).to_string()))
    }
}

/// Masks the ages in tables. Of the tables of a watch only the first names its columns.
fn mask_ages(values: &mut [Value]) {
    let mut ages = Vec::new();
    for value in values {
        let table = if value["object"].is_object() { &mut value["object"] } else { value };
        if let Some(columns) = table["columnDefinitions"].as_array() {
            let is_age =
                |column: &Value| column["name"].as_str().is_some_and(|name| AGES.contains(&name));
            ages = columns.iter().map(is_age).collect();
        }
        for row in table.get_mut("rows").and_then(Value::as_array_mut).into_iter().flatten() {
            let cells = row.get_mut("cells").and_then(Value::as_array_mut).into_iter().flatten();
            let ages =
                ages.iter().zip(cells).filter(|(is_age, cell)| **is_age && is_a_duration(cell));
            ages.for_each(|(_, cell)| *cell = "<age>".into());
        }
    }
}

fn is_a_duration(cell: &Value) -> bool {
    cell.as_str().is_some_and(|text| text.starts_with(|c: char| c.is_ascii_digit()))
}

/// The message with the versions in it that the client has not named called `<version>`.
fn versions_in(message: &str, sent: &str) -> String {
    let mut text = message.to_owned();
    // The version that is still known stands behind the one that is not.
    let oldest = message.starts_with("too old resource version: ").then_some(&" (");
    for before in BEFORE_VERSIONS.iter().chain(oldest) {
        let mut from = 0;
        while let Some(Range { start, end }) = digits_after(&text, before, from) {
            let digits = &text[start..end];
            from = end;
            if start < end && !has_number(sent, digits) {
                text.replace_range(start..end, "<version>");
                from = start;
            }
        }
    }
    text
}

/// Whether the number stands somewhere, and not as a part of a longer word.
fn has_number(text: &str, digits: &str) -> bool {
    text.match_indices(digits).any(|(at, _)| {
        let goes_on = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
        let after = text[at + digits.len()..].chars().next();
        !goes_on(text[..at].chars().next_back()) && !goes_on(after)
    })
}

fn digits_after(text: &str, before: &str, from: usize) -> Option<Range<usize>> {
    let start = from + text.get(from..)?.find(before)? + before.len();
    let digits = text[start..].chars().take_while(char::is_ascii_digit).count();
    Some(start..start + digits)
}
