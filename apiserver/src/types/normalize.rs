//! Normalizes an object as the real server's decoder and encoder do: removes unknown and empty
//! members, adds members that are always encoded, and normalizes quantities and times.

use homeostat_quantity::Scale;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Empty, Member, Shape, Type, Types};
use crate::clock::{rfc3339, rfc3339_micros};
use crate::fields::{Beside, Fields};
use crate::go_json::is_minus_zero;
use crate::quantity;

/// The zero value of Go's time.
const ZERO: Timestamp = Timestamp::constant(-62_135_596_800, 0);

/// Normalizes an object of a kind; `kind` and `apiVersion` are not in the table of types.
pub(crate) fn normalize_kind(kind: &Type, object: &mut Fields) {
    normalize_changed(kind, object, &Fields::new());
}

/// Normalizes an object of a kind, apart from what `old`, a normalized state of it, has as well.
pub(crate) fn normalize_changed(kind: &Type, object: &mut Fields, old: &Fields) {
    normalize_members(kind, object, old, &["kind", "apiVersion"]);
}

/// Normalizes an object of a type.
pub(crate) fn normalize(known: &Type, object: &mut Fields) {
    normalize_members(known, object, &Fields::new(), &[]);
}

/// Normalizes the members of an object, except those that are `kept`.
fn normalize_members(known: &Type, object: &mut Fields, old: &Fields, kept: &[&str]) {
    let mut old = Beside::new(old);
    object.retain(|name, value| {
        let old = old.get(name);
        if is_normalized(value, old) || kept.contains(&name.as_str()) {
            return true;
        }
        let normalized = known.member(name).and_then(|member| member.normalize(value.take(), old));
        normalized.map(|normalized| *value = normalized).is_some()
    });
    for (name, empty) in known.empty() {
        if !object.contains_key(name) {
            object.insert(name.clone(), empty.clone());
        }
    }
}

/// Returns true if a value is the normalized one at its place.
fn is_normalized(value: &Value, old: Option<&Value>) -> bool {
    !value.is_null() && old == Some(value)
}

// === impl Type ===

impl Type {
    /// Returns an object of this type that sets no member: it has those that are always encoded.
    pub(crate) fn empty(&self) -> &Fields {
        self.empty.get_or_init(|| {
            let always = self.members.iter().filter(|member| member.is_always_encoded());
            always.map(|member| (member.name.to_owned(), member.shape.zero())).collect()
        })
    }
}

// === impl Member ===

impl Member {
    /// Returns the encoded value; `None` if the member is omitted.
    fn normalize(&self, mut value: Value, old: Option<&Value>) -> Option<Value> {
        if self.dropped {
            return None;
        }
        if value.is_null() {
            return self.is_always_encoded().then(|| self.shape.zero());
        }
        self.shape.normalize(&mut value, old);
        if value.is_null() && self.empty == Empty::Zero {
            return None;
        }
        if self.forgets_empty && is_empty_list(&self.shape, &value) {
            return Some(self.shape.zero());
        }
        let omitted = self.empty != Empty::Written && self.shape.is_zero(&value);
        (!omitted).then_some(value)
    }

    /// Returns true if a missing member is encoded.
    fn is_always_encoded(&self) -> bool {
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
            Self::Object(id) => Value::Object(Types::all().get(*id).empty().clone()),
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

    /// Returns true if a value counts as empty.
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

    /// Normalizes a value. A value of a wrong type, which validation rejects, stays as it is.
    fn normalize(&self, value: &mut Value, old: Option<&Value>) {
        match (self, value) {
            (Self::Object(id), Value::Object(object)) => {
                let known = Types::all().get(*id);
                match old {
                    Some(Value::Object(old)) => normalize_members(known, object, old, &[]),
                    _ => normalize(known, object),
                }
            }
            (Self::Pointer(inner), value) => inner.normalize(value, old),
            (Self::List(inner), Value::Array(list)) => {
                // Most lists grow at their end, or change in one item.
                let old = old.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
                for (at, value) in list.iter_mut().enumerate() {
                    inner.normalize_element(value, old.get(at));
                }
            }
            (Self::Map(inner), Value::Object(members)) => {
                for value in members.values_mut() {
                    inner.normalize_element(value, None);
                }
                if let Self::Quantity = **inner {
                    members.values_mut().for_each(round_to_thousandths);
                }
            }
            (Self::Quantity, value) => {
                if let Some(quantity) = quantity::read(value) {
                    *value = json!(quantity.to_string());
                }
            }
            (Self::Int32 | Self::Int64 | Self::IntOrString, value @ Value::Number(_))
                if value.as_number().is_some_and(is_minus_zero) =>
            {
                *value = json!(0);
            }
            (Self::Time, value) if value.as_str().is_some_and(is_plain_time) => {}
            (Self::Time, value) => with_time(value, rfc3339),
            (Self::MicroTime, value) => with_time(value, rfc3339_micros),
            _ => {}
        }
    }

    fn normalize_element(&self, value: &mut Value, old: Option<&Value>) {
        if value.is_null() {
            *value = self.zero();
        } else if !is_normalized(value, old) {
            self.normalize(value, old);
        }
    }
}

fn is_empty_list(shape: &Shape, value: &Value) -> bool {
    matches!(shape, Shape::List(_)) && value.as_array().is_some_and(Vec::is_empty)
}

/// Returns true if a text has the form in which the server writes times, and is not Go's zero time.
fn is_plain_time(text: &str) -> bool {
    const FORM: &[u8] = b"0000-00-00T00:00:00Z";
    let fits =
        |(byte, form): (u8, &u8)| if *form == b'0' { byte.is_ascii_digit() } else { byte == *form };
    text.len() == FORM.len() && text.bytes().zip(FORM).all(fits) && !text.starts_with("0001-01-01T")
}

/// Writes a time as the server does. Go's zero time is null.
fn with_time(value: &mut Value, show: fn(Timestamp) -> String) {
    let time = value.as_str().and_then(|text| {
        // Go reads an hour of one digit.
        let padded = || text.replacen('T', "T0", 1).parse::<Timestamp>().ok();
        text.parse().ok().or_else(padded)
    });
    if let Some(time) = time {
        *value = if time == ZERO { Value::Null } else { json!(show(time)) };
    }
}

/// Rounds an amount of a resource up (`SetDefaults_ResourceList`).
fn round_to_thousandths(value: &mut Value) {
    if let Some(mut quantity) = quantity::read(value)
        && !quantity.round_up(Scale::Milli)
    {
        *value = json!(quantity.to_string());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normalized(group: &str, kind: &str, object: Value) -> Value {
        let Value::Object(mut object) = object else { unreachable!() };
        normalize_kind(Types::all().of_kind(group, "v1", kind).unwrap(), &mut object);
        Value::Object(object)
    }

    #[test]
    fn unknown_and_empty_members_go_and_constant_members_come() {
        let pod = json!({
            "kind": "Pod", "apiVersion": "v1", "bogus": 1, "metadata": {"name": "a", "labels": {}},
            "spec": {"containers": [{"name": "c", "args": [], "image": ""}], "hostNetwork": false,
            "nodeName": null},
            "status": {"conditions": [{"type": "Ready", "status": "True",
            "lastTransitionTime": "2026-01-01T01:00:00+01:00"}]},
        });
        let expected = json!({
            "kind": "Pod", "apiVersion": "v1", "metadata": {"name": "a"},
            "spec": {"containers": [{"name": "c", "resources": {}}]},
            "status": {"conditions": [{
                "type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z",
                "lastProbeTime": null,
            }]},
        });
        assert_eq!(normalized("", "Pod", pod), expected);
    }

    #[test]
    fn empty_list_and_zero_time_are_null_where_they_are_written() {
        let slice = json!({"addressType": "IPv4", "endpoints": [], "ports": [],
            "metadata": {"creationTimestamp": "0001-01-01T00:00:00Z"}});
        let expected = json!({"addressType": "IPv4", "endpoints": null, "ports": null,
            "metadata": {}});
        assert_eq!(normalized("discovery.k8s.io", "EndpointSlice", slice), expected);
        let job = json!({"status": {"lastScheduleTime": "0001-01-01T00:00:00Z",
            "lastSuccessfulTime": "2026-01-01T1:00:00Z"}});
        let status = normalized("batch", "CronJob", job)["status"].clone();
        assert_eq!(status["lastScheduleTime"], Value::Null);
        assert_eq!(status["lastSuccessfulTime"], "2026-01-01T01:00:00Z");
        for (sent, stored) in [
            ("2026-01-01T01:00:00Z", json!("2026-01-01T01:00:00Z")),
            ("2026-01-01T01:00:00.5Z", json!("2026-01-01T01:00:00Z")),
            ("0001-01-01T01:00:00Z", json!("0001-01-01T01:00:00Z")),
            ("0001-01-01T01:00:00+01:00", json!(null)),
        ] {
            let job = json!({"status": {"lastScheduleTime": sent}});
            let status = normalized("batch", "CronJob", job)["status"].clone();
            assert_eq!(status["lastScheduleTime"], stored, "{sent}");
        }
    }

    #[test]
    fn member_of_a_disabled_feature_is_removed() {
        let pod = json!({"spec": {"containers": [{"name": "c"}], "evictionResponders": [
            {"name": "a"}]}});
        assert_eq!(normalized("", "Pod", pod)["spec"].get("evictionResponders"), None);
    }

    #[test]
    fn changed_parts_of_an_object_are_normalized() {
        let types = Types::all();
        let pod = types.of_kind("", "v1", "Pod").unwrap();
        let Value::Object(old) = normalized(
            "",
            "Pod",
            json!({
                "metadata": {"name": "a", "creationTimestamp": "2026-01-01T00:00:00Z"},
                "spec": {"containers": [{"name": "c", "resources": {"limits": {"cpu": "1"}}}]},
            }),
        ) else {
            unreachable!()
        };
        let changed = json!({
            "metadata": {
                "name": "a", "creationTimestamp": "2026-01-01T00:00:00Z", "labels": {}, "x": 1,
                "deletionTimestamp": "2026-01-01T01:00:00+01:00",
            },
            "spec": {"containers": [
                {"name": "c", "resources": {"limits": {"cpu": "2000m"}}, "args": []},
                {"name": "d", "image": null},
            ]},
        });
        let Value::Object(mut changed) = changed else { unreachable!() };
        let mut whole = changed.clone();
        normalize_kind(pod, &mut whole);
        normalize_changed(pod, &mut changed, &old);
        assert_eq!(changed, whole);
        assert_eq!(changed["spec"]["containers"][0]["resources"]["limits"]["cpu"], "2");
    }

    #[test]
    fn normalizing_is_idempotent_and_accepts_wrong_types() {
        let quota = json!({"spec": {"hard": {"cpu": "1000m", "pods": 3, "x": []}}, "status": 7,
            "metadata": "m"});
        let once = normalized("", "ResourceQuota", quota);
        assert_eq!(once["spec"]["hard"], json!({"cpu": "1", "pods": "3", "x": []}));
        assert_eq!(normalized("", "ResourceQuota", once.clone()), once);
    }
}
