//! Defaults, by rules that are data.

use serde_json::Value;

use super::columns::{DefaultValue, Defaults};
use crate::fields::{Fields, split_first};

impl Defaults {
    /// Applies the rules, in their order, to the object under `self.under`, if it exists.
    pub(crate) fn apply(&self, object: &mut Fields) {
        let mut target = object;
        for part in self.under.split('.').filter(|part| !part.is_empty()) {
            let Some(Value::Object(inner)) = target.get_mut(part) else { return };
            target = inner;
        }
        fill(target, self.rules, 0);
    }
}

/// A path, and the default value of the member at that path.
type Rule = (&'static str, DefaultValue);

/// Sets the members at the paths of rules if they are missing. In a path, `a|b` means each of these
/// members, and `name[]` each item of a list. Parents are not created.
///
/// The paths count from their byte `at` on: their texts before it lead to `object`. Rules that
/// follow each other and have the same next part enter it together.
fn fill(object: &mut Fields, mut rules: &[Rule], at: usize) {
    while let Some((path, value)) = rules.first() {
        let (first, rest) = split_first(&path[at..], b'.');
        let within = at + first.len() + 1;
        let is_alike = |(other, _): &&Rule| other.get(at..within) == path.get(at..within);
        let alike = rest.map_or(1, |_| rules.iter().take_while(is_alike).count());
        let (group, others) = rules.split_at(alike);
        rules = others;
        let (mut names, is_list) = match first.strip_suffix("[]") {
            Some(names) => (Some(names), true),
            None => (Some(first), false),
        };
        while let Some((name, others)) = names.map(|names| split_first(names, b'|')) {
            names = others;
            match (rest, is_list) {
                (None, false) => value.put(object, name),
                (None, true) => objects(object, name, true).for_each(|item| value.merge(item)),
                (Some(_), is_list) => {
                    objects(object, name, is_list).for_each(|inner| fill(inner, group, within));
                }
            }
        }
    }
}

/// Returns the objects in the list `name` of an object, or its member `name` if that is no list.
fn objects<'a>(
    object: &'a mut Fields,
    name: &str,
    is_list: bool,
) -> impl Iterator<Item = &'a mut Fields> {
    let (list, member) = match object.get_mut(name) {
        Some(Value::Array(list)) if is_list => (Some(list), None),
        Some(Value::Object(member)) if !is_list => (None, Some(member)),
        _ => (None, None),
    };
    list.into_iter().flatten().filter_map(Value::as_object_mut).chain(member)
}

/// Copies the missing members, also within members that exist.
fn merge_absent(into: &mut Fields, from: Fields) {
    for (name, value) in from {
        match (into.get_mut(&name), value) {
            (Some(Value::Object(into)), Value::Object(from)) => merge_absent(into, from),
            (None | Some(Value::Null), value) => {
                into.insert(name, value);
            }
            (Some(_), _) => {}
        }
    }
}

impl DefaultValue {
    fn put(&self, object: &mut Fields, name: &str) {
        // An empty text counts as missing, unless the member is a pointer.
        let is_empty = |value: &Value| *value == "" && !matches!(self, Self::Unset(_));
        let there = object.get_mut(name).filter(|value| !value.is_null() && !is_empty(value));
        match (self, there) {
            (Self::Merge(_), Some(Value::Object(member))) => self.merge(member),
            (Self::Merge(_), _) | (Self::Json(_) | Self::Unset(_) | Self::From(_), Some(_)) => {}
            (Self::Json(text) | Self::Unset(text), None) => {
                let value = serde_json::from_str(text).expect("the table holds JSON");
                object.insert(name.to_owned(), value);
            }
            (Self::From(compute), None) => {
                let value = compute(object);
                if !value.is_null() {
                    object.insert(name.to_owned(), value);
                }
            }
        }
    }

    fn merge(&self, object: &mut Fields) {
        if let Self::Merge(compute) = self
            && let Value::Object(members) = compute(object)
        {
            merge_absent(object, members);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn rule_reaches_into_each_item_and_never_overwrites() {
        let Value::Object(mut object) =
            json!({"spec": {"list": [{"a": 1}, {}], "lis": {"b": {}}, "list2": [{}]}})
        else {
            unreachable!()
        };
        let rules = &[
            ("list[].a", DefaultValue::Json("7")),
            ("list[].b", DefaultValue::Json("8")),
            ("lis.b.c", DefaultValue::Json("9")),
            ("lis.b.d", DefaultValue::Json("10")),
            ("list2[].a", DefaultValue::Json("11")),
            ("list", DefaultValue::Json("12")),
            ("e", DefaultValue::Json("13")),
        ];
        Defaults { under: "spec", rules }.apply(&mut object);
        let spec = json!({"list": [{"a": 1, "b": 8}, {"a": 7, "b": 8}],
            "lis": {"b": {"c": 9, "d": 10}}, "list2": [{"a": 11}], "e": 13});
        assert_eq!(Value::Object(object), json!({ "spec": spec }));
    }

    #[test]
    fn merged_default_fills_the_gaps_of_an_object() {
        const GAPS: DefaultValue = DefaultValue::Merge(|_| json!({"x": {"p": 2, "q": 2}}));
        let Value::Object(mut object) = json!({"a": [{"x": {"p": 1}}, {}], "b": {"x": 3}}) else {
            unreachable!()
        };
        let rules = &[("a[]", GAPS), ("b|c", GAPS)];
        Defaults { under: "", rules }.apply(&mut object);
        let full = json!({"p": 2, "q": 2});
        let expected = json!({"a": [{"x": {"p": 1, "q": 2}}, {"x": full}], "b": {"x": 3}});
        assert_eq!(Value::Object(object), expected);
    }
}
