//! Server-side tables, which `kubectl get` shows.
//!
//! The columns of a kind are data ([`mod@columns`]). A cell is a path, or a function in
//! [`mod@cells`] where a path is not enough.

mod administration;
mod cells;
mod columns;
mod descriptions;
mod duration;
mod extensions;
mod pod;
mod several;
mod stored;
mod text;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::fields::{self, Fields, read_path};
use crate::go_json::go_text;
use crate::kinds::{Kind, PrinterColumn};
use columns::Row;

/// A column of a kind's table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Column {
    name: &'static str,
    kind: &'static str,
    format: &'static str,
    /// `kubectl` shows a column above 0 only with `-o wide`.
    priority: u8,
    cell: Cell,
}

/// The source of a cell's value.
#[derive(Debug, Clone, Copy)]
enum Cell {
    /// The text at a path, or a default.
    Text(&'static str, &'static str),
    /// The number at a path, or 0.
    Number(&'static str),
    /// The time since the instant at a path.
    Age(&'static str),
    /// The same; null if the instant is missing.
    Date(&'static str),
    /// The result of a function.
    Of(fn(&Subject<'_>) -> Value),
}

/// The object of a row.
#[derive(Debug)]
struct Subject<'a> {
    object: &'a Fields,
    now: Timestamp,
}

/// The columns of a kind.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Columns<'a> {
    listed: Row,
    /// The columns of a definition, after the listed ones.
    printed: &'a [PrinterColumn],
}

/// Returns the columns of a kind.
pub(crate) fn columns(kind: &Kind) -> Columns<'_> {
    if let Some(definition) = &kind.definition {
        return Columns { listed: columns::DEFINED, printed: &definition.columns };
    }
    let home = kind.stored_as.map_or(&*kind.group, |home| home.group);
    let listed = if kind.custom { columns::CUSTOM } else { row_of(home, &kind.kind) };
    Columns { listed, printed: &[] }
}

/// Returns the row of a kind; that with the default columns for a kind that is not listed.
fn row_of(group: &str, kind: &str) -> Row {
    let tables = [columns::TABLE, stored::TABLE, administration::TABLE, extensions::TABLE];
    let mut rows = tables.into_iter().flatten();
    *rows.find(|(known, name, _)| *known == group && *name == kind).unwrap_or(&columns::PLAIN)
}

/// Returns the columns of the scale of a kind.
pub(crate) fn scale_columns(kind: &Kind) -> Columns<'static> {
    let listed = if kind.custom { columns::CUSTOM_SCALE } else { columns::SCALE };
    Columns { listed, printed: &[] }
}

/// Returns the column definitions of a table.
pub(crate) fn definitions(columns: Columns<'_>) -> Value {
    let (group, kind, listed) = columns.listed;
    let listed = listed.iter().map(|column| {
        json!({
            "name": column.name, "type": column.kind, "format": column.format,
            "description": descriptions::of(group, kind, column.name), "priority": column.priority,
        })
    });
    let printed = columns.printed.iter().map(|column| {
        json!({
            "name": column.name, "type": column.kind, "format": column.format,
            "description": column.description, "priority": column.priority,
        })
    });
    listed.chain(printed).collect()
}

/// Returns the cells of an object in its stored form.
pub(crate) fn cells(columns: Columns<'_>, object: &Fields, now: Timestamp) -> Value {
    let subject = Subject { object, now };
    let listed = columns.listed.2.iter().map(|column| column.cell.make(&subject));
    let printed = columns.printed.iter().map(|column| subject.print(column));
    listed.chain(printed).collect()
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

    /// Returns a text; empty if it is missing.
    fn text(&self, path: &str) -> &str {
        self.get(path).and_then(Value::as_str).unwrap_or("")
    }

    fn number(&self, path: &str) -> i64 {
        self.get(path).and_then(Value::as_i64).unwrap_or(0)
    }

    fn list(&self, path: &str) -> &[Value] {
        self.get(path).and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    /// Joins the texts of a list with commas.
    fn joined(&self, path: &str) -> String {
        self.list(path).iter().filter_map(Value::as_str).collect::<Vec<_>>().join(",")
    }

    /// Returns the condition of a type in the list at a path.
    fn condition(&self, path: &str, kind: &str) -> Option<&Value> {
        self.list(path).iter().find(|condition| fields::text(condition, "type") == kind)
    }

    fn time(&self, path: &str) -> Option<Timestamp> {
        self.text(path).parse().ok()
    }

    fn age(&self, path: &str) -> String {
        text::age(self.time(path), self.now)
    }

    /// Returns the cell of a definition's column: null if the value is missing or of another type.
    fn print(&self, column: &PrinterColumn) -> Value {
        let Some(value) = column.path.first(self.object) else {
            return Value::Null;
        };
        match (column.kind.as_str(), &*value) {
            ("string", Value::Null) => json!("<no value>"),
            ("string", Value::String(text)) => json!(text),
            ("string", parts @ (Value::Array(_) | Value::Object(_))) => {
                json!(escape_html(&parts.to_string()))
            }
            ("string", other) => json!(go_text(other)),
            ("integer", Value::Number(number)) => {
                let whole = || format!("{:.0}", number.as_f64()?.trunc()).parse().ok();
                json!(number.as_i64().or_else(whole))
            }
            ("number", Value::Number(number)) => json!(number),
            ("boolean", Value::Bool(is)) => json!(is),
            ("date", Value::String(time)) => match time.parse() {
                Ok(time) => json!(text::age(Some(time), self.now)),
                Err(_) => json!("<invalid>"),
            },
            _ => Value::Null,
        }
    }

    fn is_terminating(&self) -> bool {
        self.get("metadata.deletionTimestamp").is_some()
    }
}

/// Escapes a JSON text as Go's encoder does.
fn escape_html(json: &str) -> String {
    json.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

#[cfg(test)]
mod tests;
