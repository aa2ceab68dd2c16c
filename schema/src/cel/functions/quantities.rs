//! Kubernetes quantities.

use std::cmp::Ordering;
use std::rc::Rc;

use homeostat_quantity::Quantity;

use super::Result;
use crate::cel::error::EvalError;
use crate::cel::value::{Value, quantity};

const INVALID: &str = "quantities must match the regular expression \
                       '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

pub(super) fn call<'a>(name: &str, arguments: &[Value<'a>]) -> Option<Result<'a>> {
    let made = |quantity: Quantity| Ok(Value::Quantity(Rc::new(quantity)));
    Some(match (name, arguments) {
        ("quantity", [Value::String(text)]) => match quantity(text) {
            Some(quantity) => made(quantity),
            None => Err(EvalError::new(INVALID)),
        },
        ("isQuantity", [Value::String(text)]) => Ok(Value::Bool(quantity(text).is_some())),
        ("sign", [Value::Quantity(quantity)]) => {
            let sign = i64::from(quantity.is_positive()) - i64::from(quantity.is_negative());
            Ok(Value::Int(sign))
        }
        ("isInteger", [Value::Quantity(quantity)]) => Ok(Value::Bool(quantity.to_i64().is_some())),
        ("asInteger", [Value::Quantity(quantity)]) => {
            let number = quantity.to_i64().map(Value::Int);
            number.ok_or_else(|| EvalError::new("cannot convert value to integer"))
        }
        ("asApproximateFloat", [Value::Quantity(quantity)]) => Ok(Value::Double(quantity.to_f64())),
        ("add", [Value::Quantity(a), Value::Quantity(b)]) => made(a.as_ref() + b.as_ref()),
        ("add", [Value::Quantity(a), Value::Int(b)]) => made(a.as_ref() + &Quantity::from(*b)),
        ("sub", [Value::Quantity(a), Value::Quantity(b)]) => made(a.as_ref() - b.as_ref()),
        ("sub", [Value::Quantity(a), Value::Int(b)]) => made(a.as_ref() - &Quantity::from(*b)),
        ("isLessThan", [Value::Quantity(a), Value::Quantity(b)]) => Ok(Value::Bool(a < b)),
        ("isGreaterThan", [Value::Quantity(a), Value::Quantity(b)]) => Ok(Value::Bool(a > b)),
        ("compareTo", [Value::Quantity(a), Value::Quantity(b)]) => Ok(Value::Int(match a.cmp(b) {
            Ordering::Less => -1,
            Ordering::Equal => 0,
            Ordering::Greater => 1,
        })),
        _ => return None,
    })
}
