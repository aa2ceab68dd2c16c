//! Arithmetic, concatenation and order.

use std::cmp::Ordering;

use jiff::{SignedDuration, Timestamp};

use super::Result;
use crate::cel::error::EvalError;
use crate::cel::time;
use crate::cel::value::Value;

pub(super) fn call<'a>(name: &str, arguments: &[Value<'a>]) -> Option<Result<'a>> {
    let ordered = |wanted: &[Ordering]| match arguments {
        [Value::Double(number), _] | [_, Value::Double(number)] if number.is_nan() => {
            Err(EvalError::new("NaN values cannot be ordered"))
        }
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
    let overflow = || EvalError::new("integer overflow");
    match (a, b) {
        (Value::String(a), Value::String(b)) => Ok(Value::text([&**a, &**b].concat())),
        (Value::Bytes(a), Value::Bytes(b)) => Ok(Value::Bytes([&**a, &**b].concat().into())),
        (Value::Duration(a), Value::Duration(b)) => {
            a.checked_add(*b).map(Value::Duration).ok_or_else(overflow)
        }
        (Value::Timestamp(time), Value::Duration(nanos))
        | (Value::Duration(nanos), Value::Timestamp(time)) => {
            in_range(time.checked_add(SignedDuration::from_nanos(*nanos)))
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

fn in_range<'a>(time: std::result::Result<Timestamp, jiff::Error>) -> Result<'a> {
    let time = time.ok().filter(|time| time::is_in_range(*time));
    time.map(Value::Timestamp).ok_or_else(|| EvalError::new("timestamp overflow"))
}

fn subtract<'a>(a: &Value<'a>, b: &Value<'a>) -> Result<'a> {
    match (a, b) {
        (Value::Duration(a), Value::Duration(b)) => {
            let difference = a.checked_sub(*b).map(Value::Duration);
            difference.ok_or_else(|| EvalError::new("integer overflow"))
        }
        (Value::Timestamp(time), Value::Duration(nanos)) => {
            in_range(time.checked_sub(SignedDuration::from_nanos(*nanos)))
        }
        (Value::Timestamp(a), Value::Timestamp(b)) => {
            let nanos = i64::try_from(a.as_nanosecond() - b.as_nanosecond());
            nanos.map(Value::Duration).map_err(|_| EvalError::new("integer overflow"))
        }
        _ => Err(EvalError::no_such_overload()),
    }
}

/// Reads a number by the rules of Go: infinities by their names, and hexadecimal digits with a
/// binary exponent, but no number that is too large.
pub(super) fn read_float(text: &str) -> Option<f64> {
    if text.contains('_') {
        // As in Go's own literals, an underscore may be between two digits.
        let digits = text.split('_');
        let is_apart = digits.clone().all(|part| {
            part.starts_with(|c: char| c.is_ascii_hexdigit() || "+-".contains(c))
                && part.ends_with(|c: char| c.is_ascii_hexdigit())
        });
        return if is_apart { read_float(&digits.collect::<String>()) } else { None };
    }
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if let Some(digits) = unsigned.strip_prefix("0x").or_else(|| unsigned.strip_prefix("0X")) {
        let number = read_hexadecimal(digits)?;
        return Some(if text.starts_with('-') { -number } else { number });
    }
    let number: f64 = text.parse().ok()?;
    let is_named = unsigned.starts_with(['i', 'I', 'n', 'N']);
    (is_named || number.is_finite()).then_some(number)
}

/// Reads digits such as `1.8p3`.
fn read_hexadecimal(text: &str) -> Option<f64> {
    let (digits, exponent) = text.split_once(['p', 'P'])?;
    let exponent: i32 = exponent.parse().ok()?;
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let mut number = 0.0;
    for digit in whole.chars().chain(fraction.chars()) {
        number = number * 16.0 + f64::from(digit.to_digit(16)?);
    }
    let after = i32::try_from(fraction.len()).ok()?;
    let number = number * f64::from(exponent.saturating_sub(after.saturating_mul(4))).exp2();
    number.is_finite().then_some(number)
}
