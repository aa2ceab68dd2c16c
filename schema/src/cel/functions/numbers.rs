//! Arithmetic, concatenation and order.

use std::cmp::Ordering;

use jiff::SignedDuration;

use super::Result;
use crate::cel::error::EvalError;
use crate::cel::value::Value;

pub(super) fn call<'a>(name: &str, arguments: &[Value<'a>]) -> Option<Result<'a>> {
    let ordered = |wanted: &[Ordering]| match arguments {
        [a, b] => match a.compare(b) {
            Some(found) => Ok(Value::Bool(wanted.contains(&found))),
            None => Err(EvalError::no_such_overload()),
        },
        _ => Err(EvalError::no_such_overload()),
    };
    match (name, arguments) {
        ("_<_", _) => Some(ordered(&[Ordering::Less])),
        ("_<=_", _) => Some(ordered(&[Ordering::Less, Ordering::Equal])),
        ("_>_", _) => Some(ordered(&[Ordering::Greater])),
        ("_>=_", _) => Some(ordered(&[Ordering::Greater, Ordering::Equal])),
        ("-_", [Value::Int(number)]) => Some(int(number.checked_neg())),
        ("-_", [Value::Double(number)]) => Some(Ok(Value::Double(-number))),
        (_, [Value::Int(a), Value::Int(b)]) => ints(name, *a, *b),
        (_, [Value::Uint(a), Value::Uint(b)]) => uints(name, *a, *b),
        (_, [Value::Double(a), Value::Double(b)]) => doubles(name, *a, *b),
        ("_+_", [a, b]) => Some(add(a, b)),
        ("_-_", [a, b]) => Some(subtract(a, b)),
        _ => None,
    }
}

fn int<'a>(result: Option<i64>) -> Result<'a> {
    result.map(Value::Int).ok_or_else(|| EvalError::new("integer overflow"))
}

fn ints<'a>(name: &str, a: i64, b: i64) -> Option<Result<'a>> {
    Some(match name {
        "_+_" => int(a.checked_add(b)),
        "_-_" => int(a.checked_sub(b)),
        "_*_" => int(a.checked_mul(b)),
        "_/_" if b == 0 => Err(EvalError::new("division by zero")),
        "_%_" if b == 0 => Err(EvalError::new("modulus by zero")),
        "_/_" => int(a.checked_div(b)),
        "_%_" => int(a.checked_rem(b)),
        _ => return None,
    })
}

fn uints<'a>(name: &str, a: u64, b: u64) -> Option<Result<'a>> {
    let uint = |result: Option<u64>| {
        result.map(Value::Uint).ok_or_else(|| EvalError::new("unsigned integer overflow"))
    };
    Some(match name {
        "_+_" => uint(a.checked_add(b)),
        "_-_" => uint(a.checked_sub(b)),
        "_*_" => uint(a.checked_mul(b)),
        "_/_" if b == 0 => Err(EvalError::new("division by zero")),
        "_%_" if b == 0 => Err(EvalError::new("modulus by zero")),
        "_/_" => uint(a.checked_div(b)),
        "_%_" => uint(a.checked_rem(b)),
        _ => return None,
    })
}

fn doubles<'a>(name: &str, a: f64, b: f64) -> Option<Result<'a>> {
    let result = match name {
        "_+_" => a + b,
        "_-_" => a - b,
        "_*_" => a * b,
        "_/_" => a / b,
        _ => return None,
    };
    Some(Ok(Value::Double(result)))
}

fn add<'a>(a: &Value<'a>, b: &Value<'a>) -> Result<'a> {
    let overflow = || EvalError::new("duration overflow");
    match (a, b) {
        (Value::String(a), Value::String(b)) => Ok(Value::text([&**a, &**b].concat())),
        (Value::Bytes(a), Value::Bytes(b)) => Ok(Value::Bytes([&**a, &**b].concat().into())),
        (Value::Duration(a), Value::Duration(b)) => {
            a.checked_add(*b).map(Value::Duration).ok_or_else(overflow)
        }
        (Value::Timestamp(time), Value::Duration(nanos))
        | (Value::Duration(nanos), Value::Timestamp(time)) => {
            let sum = time.checked_add(SignedDuration::from_nanos(*nanos));
            sum.map(Value::Timestamp).map_err(|_| EvalError::new("timestamp overflow"))
        }
        _ => match (a.items(), b.items()) {
            (Some(mut a), Some(b)) => {
                a.extend(b);
                Ok(Value::list(a))
            }
            _ => Err(EvalError::no_such_overload()),
        },
    }
}

fn subtract<'a>(a: &Value<'a>, b: &Value<'a>) -> Result<'a> {
    match (a, b) {
        (Value::Duration(a), Value::Duration(b)) => {
            let difference = a.checked_sub(*b).map(Value::Duration);
            difference.ok_or_else(|| EvalError::new("duration overflow"))
        }
        (Value::Timestamp(time), Value::Duration(nanos)) => {
            let difference = time.checked_sub(SignedDuration::from_nanos(*nanos));
            difference.map(Value::Timestamp).map_err(|_| EvalError::new("timestamp overflow"))
        }
        (Value::Timestamp(a), Value::Timestamp(b)) => {
            let nanos = i64::try_from(a.as_nanosecond() - b.as_nanosecond());
            nanos.map(Value::Duration).map_err(|_| EvalError::new("timestamp overflow"))
        }
        _ => Err(EvalError::no_such_overload()),
    }
}
