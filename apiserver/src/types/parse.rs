//! Reads the table.

use std::collections::BTreeMap;

use super::{Empty, Member, Merge, Shape, Type, TypeId, Types};

/// What is read before the names are resolved.
struct Reader {
    /// `core.PullPolicy` → `string Always IfNotPresent Never`
    other_names: BTreeMap<String, Line>,
    /// In the order of the table.
    lines: Vec<Line>,
    by_name: BTreeMap<String, TypeId>,
}

/// A package, and what the table says of one name in it.
struct Line {
    package: &'static str,
    name: &'static str,
    words: Vec<&'static str>,
}

pub(super) fn parse(text: &'static str) -> Types {
    let reader = Reader::new(text);
    let list = reader.lines.iter().map(|line| reader.object(line));
    let lines = reader.lines.iter().enumerate();
    let by_name = lines.map(|(at, line)| ((line.package, line.name), TypeId(at)));
    Types { list: list.collect(), by_name: by_name.collect() }
}

// === impl Reader ===

impl Reader {
    fn new(text: &'static str) -> Self {
        let mut reader =
            Self { other_names: BTreeMap::new(), lines: Vec::new(), by_name: BTreeMap::new() };
        let mut package = "";
        let mut lines: Vec<Line> = Vec::new();
        for line in text.lines().filter(|line| !line.is_empty()) {
            let mut words = line.split_ascii_whitespace();
            if let Some(name) = line.strip_prefix('[') {
                package = name.trim_end_matches(']');
            } else if line.starts_with(' ') {
                lines.last_mut().expect("a name before what goes on").words.extend(words);
            } else if let Some(name) = words.next() {
                lines.push(Line { package, name, words: words.collect() });
            }
        }
        for mut line in lines {
            let full = format!("{}.{}", line.package, line.name);
            if line.words.first() == Some(&"=") {
                line.words.remove(0);
                reader.other_names.insert(full, line);
            } else {
                reader.by_name.insert(full, TypeId(reader.lines.len()));
                reader.lines.push(line);
            }
        }
        reader
    }

    fn object(&self, line: &Line) -> Type {
        let members = line.words.iter().map(|word| self.member(line.package, word));
        Type { package: line.package, name: line.name, members: members.collect() }
    }

    fn member(&self, package: &str, word: &'static str) -> Member {
        let (name, shape) = word.split_once(':').expect("the table has `name:type`");
        let (shape, merge) = match shape.split_once('@') {
            None => (shape, Merge::Replace),
            Some((shape, "")) => (shape, Merge::Set),
            Some((shape, key)) => (shape, Merge::ByKey(key)),
        };
        let (name, other_than_encoded) = match name.strip_suffix(['+', '-']) {
            Some(name) => (name, true),
            None => (name, false),
        };
        let (name, empty) = match (name.strip_suffix("?~"), name.strip_suffix('?')) {
            (Some(name), _) => (name, Empty::Zero),
            (None, Some(name)) => (name, Empty::LeftOut),
            (None, None) => (name, Empty::Written),
        };
        let required = (empty == Empty::Written) != other_than_encoded;
        let values = self.values(package, shape);
        Member {
            name,
            shape: self.shape(package, shape),
            go_type: go_type(shape),
            empty,
            merge,
            required,
            values,
        }
    }

    /// The texts that a member of this type may have, or the items of one.
    fn values(&self, package: &str, shape: &str) -> Vec<&'static str> {
        let name = shape.trim_start_matches(['*', '[', ']', '{', '}']);
        let Some(line) = self.other_names.get(&full_name(package, name)) else { return Vec::new() };
        line.words.iter().skip(1).map(|word| word.trim_matches('"')).collect()
    }

    fn shape(&self, package: &str, text: &str) -> Shape {
        let inner = |text: &str| Box::new(self.shape(package, text));
        if let Some(rest) = text.strip_prefix('*') {
            return Shape::Pointer(inner(rest));
        }
        if let Some(rest) = text.strip_prefix("[]") {
            return Shape::List(inner(rest));
        }
        if let Some(rest) = text.strip_prefix("{}") {
            return Shape::Map(inner(rest));
        }
        match text {
            "string" => Shape::Text,
            "bool" => Shape::Bool,
            "int32" => Shape::Int32,
            "int64" => Shape::Int64,
            "float64" => Shape::Float,
            "Bytes" => Shape::Bytes,
            "Quantity" => Shape::Quantity,
            "IntOrString" => Shape::IntOrString,
            "Time" => Shape::Time,
            "MicroTime" => Shape::MicroTime,
            "Duration" => Shape::Duration,
            "Raw" => Shape::Raw,
            "FieldsV1" => Shape::FieldsV1,
            name => self.named(package, name),
        }
    }

    fn named(&self, package: &str, name: &str) -> Shape {
        let full = full_name(package, name);
        if let Some(line) = self.other_names.get(&full) {
            return self.shape(line.package, line.words[0]);
        }
        Shape::Object(*self.by_name.get(&full).expect("the table has every type that it names"))
    }
}

fn full_name(package: &str, name: &str) -> String {
    if name.contains('.') { name.to_owned() } else { format!("{package}.{name}") }
}

/// What Go's messages call a type of the table.
fn go_type(text: &str) -> String {
    let text = text.trim_start_matches('*');
    if let Some(item) = text.strip_prefix("[]") {
        return format!("[]{}", go_type(item));
    }
    if let Some(item) = text.strip_prefix("{}") {
        return format!("map[string]{}", go_type(item));
    }
    match text {
        "string" | "bool" | "int32" | "int64" | "float64" => text.to_owned(),
        "Bytes" => "[]uint8".to_owned(),
        "Quantity" => "resource.Quantity".to_owned(),
        "IntOrString" => "intstr.IntOrString".to_owned(),
        name => format!("v1.{}", name.rsplit('.').next().unwrap_or(name)),
    }
}

#[cfg(test)]
mod tests {
    use crate::types::{Merge, Types};

    #[test]
    fn every_name_in_the_table_is_a_type_in_it() {
        let types = Types::all();
        let pod = types.of_kind("", "Pod").unwrap();
        let spec = pod.member("spec").unwrap().shape.object().unwrap();
        let containers = spec.member("containers").unwrap();
        assert_eq!(containers.merge, Merge::ByKey("name"));
        assert!(containers.shape.object().unwrap().member("image").is_some());
        assert!(types.of_kind("resource.k8s.io", "ResourceClaim").is_some());
        assert!(types.of_kind("example.com", "Pod").is_none());
        let policy = containers.shape.object().unwrap().member("imagePullPolicy").unwrap();
        assert_eq!(policy.values, ["Always", "IfNotPresent", "Never"]);
        assert!(containers.required && !policy.required);
    }
}
