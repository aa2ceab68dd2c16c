//! The descriptions of columns.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::columns::ANY;

/// The descriptions by the kind with its group, and by the name of the column.
type Descriptions = HashMap<String, HashMap<String, String>>;

/// `tests/columns.rs` writes the file, and compares it with the real server.
static DESCRIPTIONS: LazyLock<Descriptions> = LazyLock::new(|| {
    serde_json::from_str(include_str!("descriptions.json")).expect("the file is JSON")
});

/// Returns the description of a column; empty if it has none.
pub(super) fn of(group: &str, kind: &str, column: &str) -> &'static str {
    let known = DESCRIPTIONS.get(&format!("{group}/{kind}"));
    let shared = || DESCRIPTIONS.get(ANY)?.get(column);
    known.and_then(|known| known.get(column)).or_else(shared).map_or("", String::as_str)
}
