//! The unknown and duplicate fields of a body, as the real server reports them.

use std::fmt::Write as _;

use homeostat_core::go_quote;
use serde_json::{Map, Value};

use super::Type;
use super::expected::Expected;

/// Collects the reported fields, and tracks the reader's path.
#[derive(Debug, Default)]
pub(super) struct Report {
    pub(super) path: String,
    pub(super) problems: Vec<String>,
    /// True if it only matters that there are problems: the path is not tracked.
    pub(super) is_brief: bool,
}

/// The largest number of reported fields.
const MAX_PROBLEMS: usize = 100;

/// Returns the members of an object that its kind does not know, sorted by name. `old` is an object
/// that has none.
pub(crate) fn unknown_members(
    kind: &'static Type,
    object: &Map<String, Value>,
    old: Option<&Map<String, Value>>,
) -> Vec<String> {
    // Most objects have none. Then the path to each member would be made for nothing.
    if Expected::Kind(kind).knows(object, old) {
        return Vec::new();
    }
    unknown_of(Expected::Kind(kind), String::new(), object)
}

/// Returns the unknown members of the metadata of a custom object.
pub(crate) fn unknown_metadata(object: &Map<String, Value>) -> Vec<String> {
    unknown_of(Expected::Custom, String::new(), object)
}

/// Returns the members of a value at a path that its type does not know.
pub(crate) fn unknown_below(
    path: String,
    known: &'static Type,
    value: &Map<String, Value>,
) -> Vec<String> {
    unknown_of(Expected::Members(known), path, value)
}

fn unknown_of(expected: Expected, path: String, value: &Map<String, Value>) -> Vec<String> {
    let mut report = Report { path, ..Report::default() };
    report.look(expected, value);
    report.problems
}

// === impl Report ===

impl Report {
    pub(super) fn add(&mut self, what: &str) {
        let text = format!("{what} field {}", go_quote(&self.path));
        if self.problems.len() < MAX_PROBLEMS && !self.problems.contains(&text) {
            self.problems.push(text);
        }
    }

    /// Enters a member, and returns the previous length of the path.
    pub(super) fn enter(&mut self, name: &str) -> usize {
        let before = self.path.len();
        if self.is_brief {
            return before;
        }
        if before > 0 {
            self.path.push('.');
        }
        self.path.push_str(name);
        before
    }

    pub(super) fn enter_item(&mut self, at: usize) -> usize {
        let before = self.path.len();
        if self.is_brief {
            return before;
        }
        write!(self.path, "[{at}]").expect("writing to a String does not fail");
        before
    }

    fn look(&mut self, expected: Expected, object: &Map<String, Value>) {
        for (name, value) in object {
            let before = self.enter(name);
            match expected.member(name) {
                None => self.add("unknown"),
                Some(expected) => self.look_at(expected, value),
            }
            self.path.truncate(before);
        }
    }

    fn look_at(&mut self, expected: Expected, value: &Value) {
        match (expected, value) {
            (Expected::Opaque | Expected::Any, _) => {}
            (expected, Value::Object(object)) => self.look(expected, object),
            (expected, Value::Array(items)) => {
                for (at, item) in items.iter().enumerate() {
                    let before = self.enter_item(at);
                    self.look_at(expected.item(), item);
                    self.path.truncate(before);
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::Types;
    use super::*;

    #[test]
    fn unknown_member_is_found_beside_those_that_stay() {
        let pod = Types::all().of_kind("", "v1", "Pod").unwrap();
        let fields = |value: Value| value.as_object().unwrap().clone();
        let old = fields(json!({"spec": {"nodeName": "a", "containers": [{"name": "c"}]}}));
        let unknown = |spec: Value| unknown_members(pod, &fields(spec), Some(&old));
        assert_eq!(unknown(json!({"spec": {"nodeName": "b", "containers": []}})), [""; 0]);
        let added = unknown(json!({"spec": {"nodeName": "a", "node": 1}}));
        assert_eq!(added, [r#"unknown field "spec.node""#]);
        let within = unknown(json!({"spec": {"containers": [{"name": "c", "image2": ""}]}}));
        assert_eq!(within, [r#"unknown field "spec.containers[0].image2""#]);
    }
}
