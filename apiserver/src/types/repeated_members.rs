//! Members that occur twice in an object of JSON.

use std::borrow::Cow;
use std::fmt;

use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// Returns true if a text may have an object with two members of one name: only JSON is known.
pub(crate) fn may_repeat_members(bytes: &[u8]) -> bool {
    let read = str::from_utf8(bytes).ok().and_then(|text| homeostat_json::from_str(text).ok());
    read.is_none_or(|Repeats(repeats)| repeats)
}

/// True if an object within a value has two members of one name.
struct Repeats(bool);

// === impl Repeats ===

impl<'de> Deserialize<'de> for Repeats {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RepeatsVisitor)
    }
}

/// The name of a member.
#[derive(PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(transparent)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

struct RepeatsVisitor;

impl<'de> Visitor<'de> for RepeatsVisitor {
    type Value = Repeats;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_bool<E>(self, _: bool) -> Result<Repeats, E> {
        Ok(Repeats(false))
    }

    fn visit_i64<E>(self, _: i64) -> Result<Repeats, E> {
        Ok(Repeats(false))
    }

    fn visit_u64<E>(self, _: u64) -> Result<Repeats, E> {
        Ok(Repeats(false))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Repeats, E> {
        Ok(Repeats(false))
    }

    fn visit_str<E>(self, _: &str) -> Result<Repeats, E> {
        Ok(Repeats(false))
    }

    fn visit_unit<E>(self) -> Result<Repeats, E> {
        Ok(Repeats(false))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Repeats, A::Error> {
        let mut found = false;
        while let Some(Repeats(repeats)) = items.next_element()? {
            found |= repeats;
        }
        Ok(Repeats(found))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Repeats, A::Error> {
        let mut names: Vec<Name<'de>> = Vec::new();
        let mut found = false;
        while let Some((name, Repeats(repeats))) = members.next_entry()? {
            found |= repeats;
            names.push(name);
        }
        names.sort_unstable();
        Ok(Repeats(found || names.windows(2).any(|pair| pair[0] == pair[1])))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_members_are_found_at_any_depth() {
        for (text, repeats) in [
            (r#"{"a": 1, "b": {"a": 1}, "c": [{"a": 1}, {"a": 2}]}"#, false),
            (r#"{"b": 1, "a": 2, "b": 3}"#, true),
            (r#"{"c": [{"x": {"a": null, "\u0061": true}}]}"#, true),
            (r#"[1.5, "text", {"a": {}, "a": {}}]"#, true),
        ] {
            assert_eq!(may_repeat_members(text.as_bytes()), repeats, "{text}");
        }
        assert!(may_repeat_members(b"{\"\xff\": 1}"), "the replacement may be there twice");
        assert!(may_repeat_members(b"a: 1"), "YAML may have it twice");
    }
}
