//! An object as the real server's decoder and encoder leave it: what is unknown or empty goes, what is always written
//! comes, quantities and times have one form.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Empty, Member, Shape, Type, Types};
use crate::clock::{rfc3339, rfc3339_micros};
use crate::object::Fields;
use crate::quantity::Quantity;

/// Tidies an object of a kind, whose type and version are not in the table of types.
pub(crate) fn tidy_kind(kind: &Type, object: &mut Fields) {
    let (name, version) = (object.remove("kind"), object.remove("apiVersion"));
    tidy(kind, object);
    for (key, value) in [("kind", name), ("apiVersion", version)] {
        if let Some(value) = value {
            object.insert(key.to_owned(), value);
        }
    }
}

fn tidy(known: &Type, object: &mut Fields) {
    object.retain(|name, value| {
        let tidied = known.member(name).and_then(|member| member.tidy(value.take()));
        tidied.map(|tidied| *value = tidied).is_some()
    });
    for member in known.members.iter().filter(|member| member.is_written_unsaid()) {
        if !object.contains_key(member.name) {
            object.insert(member.name.to_owned(), member.shape.zero());
        }
    }
}

// === impl Member ===

impl Member {
    /// What is written; none if the member is left out.
    fn tidy(&self, mut value: Value) -> Option<Value> {
        if value.is_null() {
            return self.is_written_unsaid().then(|| self.shape.zero());
        }
        self.shape.tidy(&mut value);
        let left_out = self.empty != Empty::Written && self.shape.is_zero(&value);
        (!left_out).then_some(value)
    }

    /// Whether it is written though nothing is said.
    fn is_written_unsaid(&self) -> bool {
        match self.empty {
            Empty::Written => true,
            Empty::LeftOut => matches!(
                self.shape,
                Shape::Object(_) | Shape::Time | Shape::MicroTime | Shape::Quantity
            ),
            Empty::Zero => false,
        }
    }
}

// === impl Shape ===

impl Shape {
    fn zero(&self) -> Value {
        match self {
            Self::Text => json!(""),
            Self::Bool => json!(false),
            Self::Int32 | Self::Int64 | Self::Float | Self::IntOrString => json!(0),
            Self::Quantity => json!("0"),
            Self::Duration => json!("0s"),
            Self::Object(id) => {
                let mut object = Fields::new();
                tidy(Types::all().get(*id), &mut object);
                Value::Object(object)
            }
            Self::Bytes
            | Self::Time
            | Self::MicroTime
            | Self::Raw
            | Self::FieldsV1
            | Self::List(_)
            | Self::Map(_)
            | Self::Pointer(_) => Value::Null,
        }
    }

    /// Whether a value that is there counts as empty.
    fn is_zero(&self, value: &Value) -> bool {
        match (self, value) {
            (Self::Text | Self::Bytes, Value::String(text)) => text.is_empty(),
            (Self::Bool, Value::Bool(is)) => !is,
            (Self::Int32 | Self::Int64 | Self::Float, Value::Number(number)) => {
                number.as_f64() == Some(0.0)
            }
            (Self::IntOrString, value) => *value == json!(0) || *value == json!(""),
            (Self::List(_), Value::Array(list)) => list.is_empty(),
            (Self::Map(_), Value::Object(members)) => members.is_empty(),
            _ => false,
        }
    }

    /// Puts a value in its one form. What is of a wrong type stays as it is: that has been refused before.
    fn tidy(&self, value: &mut Value) {
        match (self, value) {
            (Self::Object(id), Value::Object(object)) => tidy(Types::all().get(*id), object),
            (Self::Pointer(inner), value) => inner.tidy(value),
            (Self::List(inner), Value::Array(list)) => {
                for value in list {
                    inner.tidy_element(value);
                }
            }
            (Self::Map(inner), Value::Object(members)) => {
                for value in members.values_mut() {
                    inner.tidy_element(value);
                }
            }
            (Self::Quantity, value) => {
                if let Some(quantity) = Quantity::read(value) {
                    *value = json!(quantity.to_string());
                }
            }
            (Self::Time, Value::String(text)) => with_time(text, rfc3339),
            (Self::MicroTime, Value::String(text)) => with_time(text, rfc3339_micros),
            _ => {}
        }
    }

    fn tidy_element(&self, value: &mut Value) {
        if value.is_null() {
            *value = self.zero();
        } else {
            self.tidy(value);
        }
    }
}

fn with_time(text: &mut String, show: fn(Timestamp) -> String) {
    if let Ok(time) = text.parse::<Timestamp>() {
        *text = show(time);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tidied(group: &str, kind: &str, object: Value) -> Value {
        let Value::Object(mut object) = object else { unreachable!() };
        tidy_kind(Types::all().of_kind(group, kind).unwrap(), &mut object);
        Value::Object(object)
    }

    #[test]
    fn what_is_unknown_or_empty_goes_and_what_is_always_written_comes() {
        let pod = json!({
            "kind": "Pod", "apiVersion": "v1", "bogus": 1, "metadata": {"name": "a", "labels": {}},
            "spec": {"containers": [{"name": "c", "args": [], "image": ""}], "hostNetwork": false, "nodeName": null},
            "status": {"conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T01:00:00+01:00"}]},
        });
        let expected = json!({
            "kind": "Pod", "apiVersion": "v1", "metadata": {"name": "a"},
            "spec": {"containers": [{"name": "c", "resources": {}}]},
            "status": {"conditions": [{
                "type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z", "lastProbeTime": null,
            }]},
        });
        assert_eq!(tidied("", "Pod", pod), expected);
    }

    #[test]
    fn tidying_twice_is_tidying_once_and_wrong_types_are_no_panic() {
        let quota = json!({"spec": {"hard": {"cpu": "1000m", "pods": 3, "x": []}}, "status": 7, "metadata": "m"});
        let once = tidied("", "ResourceQuota", quota);
        assert_eq!(once["spec"]["hard"], json!({"cpu": "1", "pods": "3", "x": []}));
        assert_eq!(tidied("", "ResourceQuota", once.clone()), once);
    }
}
