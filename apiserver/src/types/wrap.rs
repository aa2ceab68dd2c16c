//! Integers that are too long: Go's conversion of an object keeps their lower 32 bits.

use serde_json::Value;

use super::{Shape, Type, Types};
use crate::fields::Fields;

/// Returns true if a text in JSON can have an integer of more than 32 bits.
pub(crate) fn may_have_long_integers(text: &[u8]) -> bool {
    /// The digits of the smallest such number, 2,147,483,648.
    const DIGITS: usize = 10;
    text.split(|byte| !byte.is_ascii_digit()).any(|digits| digits.len() >= DIGITS)
}

/// Shortens the integers of an object of a type to the size of their members.
pub(crate) fn wrap_integers(known: &Type, object: &mut Fields) {
    for (name, value) in object.iter_mut() {
        if let Some(member) = known.member(name) {
            member.shape.wrap(value);
        }
    }
}

// === impl Shape ===

impl Shape {
    fn wrap(&self, value: &mut Value) {
        match (self, &mut *value) {
            (Self::Object(id), Value::Object(object)) => {
                wrap_integers(Types::all().get(*id), object);
            }
            (Self::List(inner), Value::Array(list)) => {
                for item in list {
                    inner.wrap(item);
                }
            }
            (Self::Map(inner), Value::Object(members)) => {
                for member in members.values_mut() {
                    inner.wrap(member);
                }
            }
            (Self::Pointer(inner), value) => inner.wrap(value),
            (Self::Int32, Value::Number(number)) => {
                if let Some(lower) = number.as_i64().and_then(lower_half) {
                    *value = lower.into();
                }
            }
            _ => {}
        }
    }
}

/// Returns the lower 32 bits of a number that has more.
fn lower_half(number: i64) -> Option<i32> {
    let [a, b, c, d, ..] = number.to_le_bytes();
    i32::try_from(number).is_err().then(|| i32::from_le_bytes([a, b, c, d]))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn long_integer_is_noticed() {
        for (text, may) in [
            (&b"{\"a\":2147483648}"[..], true),
            (b"{\"a\":-2147483649}", true),
            (b"2147483648", true),
            (b"{\"a\":[214748364,7],\"b\":\"2026-11-29T00:00:00Z\"}", false),
        ] {
            assert_eq!(may_have_long_integers(text), may, "{}", String::from_utf8_lossy(text));
        }
    }

    #[test]
    fn long_integer_keeps_its_lower_half() {
        let known = Types::all().of_kind("apps", "v1", "Deployment").unwrap();
        let deployment = json!({"spec": {"replicas": 4_294_967_297_i64, "paused": true,
            "template": {"spec": {"activeDeadlineSeconds": 4_294_967_297_i64,
                "containers": [{"ports": [{"containerPort": -2_147_483_649_i64}]}]}}}});
        let Value::Object(mut deployment) = deployment else { unreachable!() };
        wrap_integers(known, &mut deployment);
        let expected = json!({"spec": {"replicas": 1, "paused": true,
            "template": {"spec": {"activeDeadlineSeconds": 4_294_967_297_i64,
                "containers": [{"ports": [{"containerPort": i32::MAX}]}]}}}});
        assert_eq!(Value::Object(deployment), expected);
    }
}
