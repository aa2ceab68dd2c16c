//! The schema of `vectors/schema.yaml`, for the tests of recorded answers.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::node::{Field, List, ListType, Map, Node, Object, Scalar, Shape};
use crate::schema::Schema;
use crate::types::Types;

/// Returns the recorded lines that were `done`.
pub(crate) fn recorded(done: &str) -> Vec<Value> {
    let lines = include_str!("../vectors/vectors.txt").lines();
    let parsed = lines.map(|line| serde_json::from_str(line).expect("a line is JSON"));
    let lines: Vec<Value> = parsed.filter(|line: &Value| line["do"] == done).collect();
    assert!(lines.len() > 50, "only {} lines of {done}", lines.len());
    lines
}

/// Fails unless both are the same errors.
///
/// Upstream reports the fields of a map in random order, and stops at one that it does not know.
pub(crate) fn assert_same_errors(ours: &str, recorded: &str, context: &dyn Fn() -> String) {
    let lines = |text: &str| {
        let lines = text.lines().map(str::trim).filter(|line| *line != "errors:");
        let mut lines: Vec<String> = lines.map(str::to_owned).collect();
        lines.sort_unstable();
        lines
    };
    let (mut ours, recorded) = (lines(ours), lines(recorded));
    if ours.iter().any(|line| line.ends_with("field not declared in schema")) {
        ours.retain(|line| recorded.contains(line));
    }
    assert_eq!(ours, recorded, "{}", context());
}

/// Returns the type `thing`.
pub(crate) fn thing() -> Schema {
    let words = || Map::new(Scalar::String);
    let set = |of: Scalar| List::new(of, ListType::Set);
    let pair =
        || Object::new([Field::new("left", Scalar::String), Field::new("right", Scalar::String)]);
    let part = Object::new([
        Field::new("name", Scalar::String),
        Field::new("value", Scalar::Int64),
        Field::new("tags", set(Scalar::String)),
        Field::new("options", words()),
    ]);
    let socket = Object::new([
        Field::new("port", Scalar::Int32),
        Field::new("protocol", Node::from(Scalar::String).with_default(json!("TCP"))),
        Field::new("note", Scalar::String),
    ]);
    let spec = Object::new([
        Field::new("count", Scalar::Int64),
        Field::new("text", Scalar::String),
        Field::new("flag", Scalar::Boolean),
        Field::new("percent", Scalar::IntOrString),
        Field::new("labels", words()),
        Field::new("sealed", words().atomic()),
        Field::new("colors", set(Scalar::String)),
        Field::new("numbers", set(Scalar::Int64)),
        Field::new("lines", List::new(Scalar::String, ListType::Atomic)),
        Field::new("parts", List::new(part, ListType::map(["name"]))),
        Field::new("ports", List::new(socket, ListType::map(["port", "protocol"]))),
        Field::new("pair", pair()),
        Field::new("frozen", pair().atomic()),
        Field::new("groups", Map::new(pair())),
        Field::new("free", Shape::Any),
    ]);
    let metadata = Object::new([
        Field::new("name", Scalar::String),
        Field::new("uid", Scalar::String),
        Field::new("labels", words()),
        Field::new("annotations", words()),
        Field::new("finalizers", set(Scalar::String)),
    ]);
    let root = Object::new([Field::new("metadata", metadata), Field::new("spec", spec)]);
    Schema::new(Arc::new(Types::new()), root)
}
