//! Fills in what nobody said, by rules that are data.

use serde_json::{Map, Value};

use super::{DefaultValue, Defaults};
use crate::object::Fields;

impl Defaults {
    /// Applies the rules, in their order, to the object under `self.under` (if it is there).
    pub(crate) fn apply(&self, object: &mut Fields) {
        let mut target = object;
        for part in self.under.split('.').filter(|part| !part.is_empty()) {
            let Some(Value::Object(inner)) = target.get_mut(part) else { return };
            target = inner;
        }
        for (path, value) in self.rules {
            fill(target, path, value);
        }
    }
}

/// Sets the member at `path` unless it is there; `name[]` goes into each item of a list. Parents are not made.
fn fill(object: &mut Fields, path: &str, value: &DefaultValue) {
    let Some((first, rest)) = path.split_once('.') else {
        let empty = object.get(path).is_none_or(Value::is_null);
        if empty {
            let value = value.make(object);
            if !value.is_null() {
                object.insert(path.to_owned(), value);
            }
        }
        return;
    };
    match first.strip_suffix("[]") {
        None => {
            if let Some(Value::Object(inner)) = object.get_mut(first) {
                fill(inner, rest, value);
            }
        }
        Some(list) => {
            let items = object.get_mut(list).and_then(Value::as_array_mut);
            for item in items.into_iter().flatten().filter_map(Value::as_object_mut) {
                fill(item, rest, value);
            }
        }
    }
}

impl DefaultValue {
    fn make(&self, beside: &Map<String, Value>) -> Value {
        match self {
            Self::Json(text) => serde_json::from_str(text).expect("the table holds JSON"),
            Self::From(compute) => compute(beside),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_rule_reaches_into_each_item_and_never_overwrites() {
        let Value::Object(mut object) = json!({"spec": {"list": [{"a": 1}, {}]}}) else {
            unreachable!()
        };
        let defaults = Defaults { under: "spec", rules: &[("list[].a", DefaultValue::Json("7"))] };
        defaults.apply(&mut object);
        assert_eq!(Value::Object(object), json!({"spec": {"list": [{"a": 1}, {"a": 7}]}}));
    }
}
