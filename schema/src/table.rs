//! The table of built-in types: what the decoder and the encoder of Kubernetes 1.37.1 know.
//!
//! `apiserver/control-plane/gen` writes the table. A line is a type, or, indented, a field of it:
//!
//! ```text
//! [io.k8s.api.core.v1]     a package
//! LabelSelector @atomic    a type, which may be one value for server-side apply
//!  name? TYPE …            a field; `?`: omitted if empty; `?~`: also if it is an object
//! ```
//!
//! TYPE is a scalar, or the full name of a type; `*`: a pointer, `[]`: a list, `{}`: a map. Then:
//!
//! ```text
//! :v1.PullPolicy   the name of the type in messages, if it does not follow from TYPE
//! 14, 2.5          the number in protobuf; 2.5: number 5 in the embedded message 2, also for the
//!                  items of a list that is a message
//! !                required
//! @name,port       a list of items identified by these fields; @set: a set; @atomic: one value
//! @granular        the parts of a value whose type is atomic have owners of their own
//! ^name, ^^        strategic merge patch: merge by this field, or (^) as a set; ^^: retain keys
//! ^=               strategic merge patch: the object is replaced
//! -                decoded, and removed before the object is stored
//! |A|B~C           the allowed texts, with `~` for a space
//! =JSON            the default, up to the end of the line
//! ```

use std::collections::HashMap;

use serde_json::Value;

use crate::constraints::Constraints;
use crate::node::{Empty, Field, List, ListType, Map, Node, Object, Scalar, Shape};
use crate::types::Types;

/// Parses the table.
///
/// # Panics
///
/// Panics when the text is no table.
pub(crate) fn parse(text: &str) -> Types {
    let mut types = Types::new();
    let mut package = "";
    let mut open: Option<OpenType> = None;
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(field) = line.strip_prefix(' ') {
            let field = parse_field(&mut types, field);
            open.as_mut().expect("a type before its fields").fields.push(field);
            continue;
        }
        close(&mut types, open.take());
        match line.strip_prefix('[') {
            Some(name) => package = name.trim_end_matches(']'),
            None => open = Some(OpenType::new(package, line)),
        }
    }
    close(&mut types, open);
    types
}

/// Returns the names of the fields of each type, in the order of the table.
pub(crate) fn field_names(text: &str) -> HashMap<String, Vec<&str>> {
    let mut names: HashMap<String, Vec<&str>> = HashMap::new();
    let (mut package, mut last) = ("", String::new());
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(field) = line.strip_prefix(' ') {
            let name = field.split([' ', '?']).next().unwrap_or_default();
            names.entry(last.clone()).or_default().push(name);
        } else if let Some(name) = line.strip_prefix('[') {
            package = name.trim_end_matches(']');
        } else {
            let name = line.split(' ').next().unwrap_or_default();
            last = format!("{package}.{name}");
        }
    }
    names
}

/// A type whose fields follow.
struct OpenType {
    name: String,
    atomic: bool,
    fields: Vec<Field>,
}

fn close(types: &mut Types, open: Option<OpenType>) {
    let Some(open) = open else { return };
    let id = types.declare(&open.name);
    let object = Object::new(open.fields);
    types.define(id, if open.atomic { object.atomic() } else { object });
}

fn parse_field(types: &mut Types, line: &str) -> Field {
    let (line, default) = match line.split_once(" =") {
        Some((line, json)) => (line, Some(json)),
        None => (line, None),
    };
    let mut words = line.split(' ');
    let name = words.next().expect("a field has a name");
    let text = words.next().expect("a field has a type");
    let (name, empty) = match (name.strip_suffix("?~"), name.strip_suffix('?')) {
        (Some(name), _) => (name, Empty::OmittedObject),
        (None, Some(name)) => (name, Empty::Omitted),
        (None, None) => (name, Empty::Encoded),
    };
    let (text, pointer) = match text.strip_prefix('*') {
        Some(text) => (text, true),
        None => (text, false),
    };
    let mut field = Field::new(name, parse_type(types, text));
    (field.empty, field.pointer) = (empty, pointer);
    field.go_type = go_type(text).into();
    for word in words {
        parse_word(&mut field, word);
    }
    field.node.default = default.map(read_default);
    field
}

fn read_default(json: &str) -> Value {
    serde_json::from_str(json).expect("a default is JSON")
}

fn parse_word(field: &mut Field, word: &str) {
    let (sign, rest) = word.split_at(1);
    match sign {
        ":" => field.go_type = rest.into(),
        "!" => field.required = true,
        "-" => field.dropped = true,
        "^" if rest == "^" => field.patch.retain_keys = true,
        "^" if rest == "=" => field.patch.replace = true,
        "^" => {
            field.patch.merge = true;
            field.patch.key = (!rest.is_empty()).then(|| rest.into());
        }
        "@" => set_relation(&mut field.node, rest),
        "|" => set_allowed(&mut field.node, rest),
        _ => {
            let numbers = word.split('.').map(|number| number.parse().expect("a number"));
            field.protobuf = numbers.collect();
        }
    }
}

fn set_relation(node: &mut Node, relation: &str) {
    match (&mut node.shape, relation) {
        (Shape::Map(map), _) => map.atomic = true,
        (Shape::List(list), "set") => list.list_type = ListType::Set,
        (Shape::List(_), "atomic") => {}
        (Shape::List(list), keys) => list.list_type = ListType::map(keys.split(',')),
        (Shape::Named(_), "granular") => node.granular = true,
        (Shape::Named(_), _) => node.atomic = true,
        (shape, _) => panic!("the table declares {shape:?} as {relation}"),
    }
}

fn set_allowed(node: &mut Node, texts: &str) {
    let node = match &mut node.shape {
        Shape::List(list) => &mut list.items,
        _ => node,
    };
    let allowed = texts.split('|').map(|text| Value::from(text.replace('~', " "))).collect();
    node.constraints = Some(Box::new(Constraints { allowed, ..Constraints::default() }));
}

fn parse_type(types: &mut Types, text: &str) -> Node {
    if let Some(item) = text.strip_prefix("[]") {
        return List::new(parse_type(types, item), ListType::Atomic).into();
    }
    if let Some(value) = text.strip_prefix("{}") {
        return Map::new(parse_type(types, value)).into();
    }
    let scalar = match text.trim_start_matches('*') {
        "any" => {
            // Any JSON has one owner.
            let mut node: Node = Shape::Any.into();
            node.atomic = true;
            return node;
        }
        "string" => Scalar::String,
        "bool" => Scalar::Boolean,
        "int32" => Scalar::Int32,
        "int64" => Scalar::Int64,
        "float64" => Scalar::Float,
        "bytes" => Scalar::Bytes,
        "Quantity" => Scalar::Quantity,
        "IntOrString" => Scalar::IntOrString,
        "Time" => Scalar::Time,
        "MicroTime" => Scalar::MicroTime,
        "Duration" => Scalar::Duration,
        name => return types.declare(name).into(),
    };
    scalar.into()
}

/// Returns the name of a type in messages of Go's decoder.
fn go_type(text: &str) -> String {
    if let Some(item) = text.strip_prefix("[]") {
        return format!("[]{}", go_type(item));
    }
    if let Some(value) = text.strip_prefix("{}") {
        return format!("map[string]{}", go_type(value));
    }
    match text {
        "any" | "string" | "bool" | "int32" | "int64" | "float64" => text.to_owned(),
        "bytes" => "[]uint8".to_owned(),
        "Quantity" => "resource.Quantity".to_owned(),
        "IntOrString" => "intstr.IntOrString".to_owned(),
        "Time" | "MicroTime" | "Duration" => format!("v1.{text}"),
        name => {
            let pointer = if name.starts_with('*') { "*" } else { "" };
            let mut parts = name.rsplit('.');
            let (name, package) = (parts.next().unwrap_or(name), parts.next().unwrap_or_default());
            format!("{pointer}{package}.{name}")
        }
    }
}

// === impl OpenType ===

impl OpenType {
    fn new(package: &str, line: &str) -> Self {
        let (name, flag) = line.split_once(' ').unwrap_or((line, ""));
        Self { name: format!("{package}.{name}"), atomic: flag == "@atomic", fields: Vec::new() }
    }
}
