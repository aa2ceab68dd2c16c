//! Tables: what `kubectl get` shows, as the server computes it.
//!
//! The columns of a kind are data ([`columns`]); a cell is a path, or a function in [`cells`] where a path is not enough.

mod cells;
mod columns;
mod duration;
mod pod;
mod text;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::kinds::{Kind, read_path};
use crate::object::Fields;

/// One column of a kind's table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Column {
    name: &'static str,
    kind: &'static str,
    format: &'static str,
    /// Above 0 only `-o wide` shows it.
    priority: u8,
    description: &'static str,
    cell: Cell,
}

/// How a cell is made.
#[derive(Debug, Clone, Copy)]
enum Cell {
    /// The text at a path, or else a text.
    Text(&'static str, &'static str),
    /// The number at a path, or else zero.
    Number(&'static str),
    /// How long ago the time at a path was.
    Age(&'static str),
    /// The same; null without a time.
    Date(&'static str),
    /// Anything else.
    Of(fn(&Subject<'_>) -> Value),
}

/// What a row is about.
#[derive(Debug)]
struct Subject<'a> {
    object: &'a Fields,
    now: Timestamp,
}

/// The columns of a kind.
pub(crate) fn columns(kind: &Kind) -> &'static [Column] {
    if kind.custom {
        return columns::CUSTOM;
    }
    let home = kind.stored_as.map_or(&*kind.group, |home| home.group);
    columns::of(home, &kind.kind)
}

/// The columns, as a table says what they are.
pub(crate) fn definitions(columns: &[Column]) -> Value {
    columns
        .iter()
        .map(|column| {
            json!({
                "name": column.name, "type": column.kind, "format": column.format,
                "description": column.description, "priority": column.priority,
            })
        })
        .collect()
}

/// The cells of one object, which has the form in which it is stored.
pub(crate) fn cells(columns: &[Column], object: &Fields, now: Timestamp) -> Value {
    let subject = Subject { object, now };
    columns.iter().map(|column| column.cell.make(&subject)).collect()
}

// === impl Cell ===

impl Cell {
    fn make(self, subject: &Subject<'_>) -> Value {
        match self {
            Self::Text(path, missing) => {
                let text = subject.text(path);
                json!(if text.is_empty() { missing } else { text })
            }
            Self::Number(path) => json!(subject.number(path)),
            Self::Date(path) if subject.text(path).is_empty() => Value::Null,
            Self::Age(path) | Self::Date(path) => json!(subject.age(path)),
            Self::Of(make) => make(subject),
        }
    }
}

// === impl Subject ===

impl Subject<'_> {
    fn get(&self, path: &str) -> Option<&Value> {
        read_path(self.object, path)
    }

    /// A text; empty when it is not there.
    fn text(&self, path: &str) -> &str {
        self.get(path).and_then(Value::as_str).unwrap_or("")
    }

    fn number(&self, path: &str) -> i64 {
        self.get(path).and_then(Value::as_i64).unwrap_or(0)
    }

    fn list(&self, path: &str) -> &[Value] {
        self.get(path).and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    fn time(&self, path: &str) -> Option<Timestamp> {
        self.text(path).parse().ok()
    }

    fn age(&self, path: &str) -> String {
        text::age(self.time(path), self.now)
    }

    fn is_terminating(&self) -> bool {
        self.get("metadata.deletionTimestamp").is_some()
    }
}

#[cfg(test)]
mod tests;
