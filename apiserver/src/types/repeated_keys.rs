//! Keys that occur twice in a mapping of YAML, as Go's strict decoder reports them.

use std::fmt::{self, Write as _};
use std::marker::PhantomData;

use homeostat_core::go_quote;
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_saphyr::Spanned;

use super::yaml;

/// A value with the lines of the values in its mappings.
enum Lines {
    Scalar,
    List(Vec<Self>),
    Mapping(Vec<(String, Spanned<Self>)>),
}

/// Returns the error about the repeated keys of a document; `None` if there are none. JSON is YAML.
pub(crate) fn repeated_keys(bytes: &[u8]) -> Option<String> {
    let lines = yaml::decode(bytes, PhantomData::<Lines>);
    let mut found = String::new();
    lines.ok()?.report(&mut found);
    (!found.is_empty()).then(|| format!("yaml: unmarshal errors:{found}"))
}

/// Returns the warnings for an error of a strict decoder: one for each line of YAML.
pub(crate) fn warnings_of(problem: String) -> Vec<String> {
    match problem.split_once("yaml: unmarshal errors:\n") {
        Some((_, lines)) => lines.lines().map(|line| line.trim().to_owned()).collect(),
        None => vec![problem],
    }
}

// === impl Lines ===

impl Lines {
    /// Adds a line for each repeated key, the inner ones first.
    fn report(&self, found: &mut String) {
        match self {
            Self::Scalar => {}
            Self::List(items) => items.iter().for_each(|item| item.report(found)),
            Self::Mapping(members) => Self::report_mapping(members, found),
        }
    }

    fn report_mapping(members: &[(String, Spanned<Self>)], found: &mut String) {
        let mut names = std::collections::BTreeSet::new();
        for (name, value) in members {
            value.value.report(found);
            if !names.insert(name) {
                let (line, name) = (value.referenced.line(), go_quote(name));
                write!(found, "\n  line {line}: key {name} already set in map")
                    .expect("writing to a String does not fail");
            }
        }
    }
}

impl<'de> Deserialize<'de> for Lines {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(LinesVisitor)
    }
}

struct LinesVisitor;

impl<'de> Visitor<'de> for LinesVisitor {
    type Value = Lines;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_bool<E>(self, _: bool) -> Result<Lines, E> {
        Ok(Lines::Scalar)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Lines, E> {
        Ok(Lines::Scalar)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Lines, E> {
        Ok(Lines::Scalar)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Lines, E> {
        Ok(Lines::Scalar)
    }

    fn visit_str<E>(self, _: &str) -> Result<Lines, E> {
        Ok(Lines::Scalar)
    }

    fn visit_unit<E>(self) -> Result<Lines, E> {
        Ok(Lines::Scalar)
    }

    fn visit_none<E>(self) -> Result<Lines, E> {
        Ok(Lines::Scalar)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Lines, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Lines::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Lines, A::Error> {
        let mut list = Vec::new();
        while let Some(member) = members.next_entry()? {
            list.push(member);
        }
        Ok(Lines::Mapping(list))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_key_is_reported_with_the_line_of_its_last_value() {
        let text = "a: 1\nb:\n- c: x\n  c: y\na:\n  d: 2\n  d: 3\n";
        let expected = "yaml: unmarshal errors:\n  line 4: key \"c\" already set in map\n  line 7: \
            key \"d\" already set in map\n  line 6: key \"a\" already set in map";
        assert_eq!(repeated_keys(text.as_bytes()).unwrap(), expected);
        assert_eq!(repeated_keys(b"a: {a: 1}\nb: [1]\n"), None);
    }

    #[test]
    fn repeated_key_of_json_is_reported() {
        let text = "{\n\t\"a\": {\n\t\t\"b\": true,\n\t\t\"b\": null\n\t}\n}";
        let expected = "yaml: unmarshal errors:\n  line 4: key \"b\" already set in map";
        assert_eq!(repeated_keys(text.as_bytes()).unwrap(), expected);
    }

    #[test]
    fn each_line_is_a_warning() {
        let problem = "error: yaml: unmarshal errors:\n  line 1: x\n  line 2: y".to_owned();
        assert_eq!(warnings_of(problem), ["line 1: x", "line 2: y"]);
        assert_eq!(warnings_of("unknown field \"a\"".to_owned()), ["unknown field \"a\""]);
    }
}
