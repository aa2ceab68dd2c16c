//! Conversions between types.

use homeostat_core::parse_go_bool;

use super::{Result, numbers};
use crate::cel::error::EvalError;
use crate::cel::time;
use crate::cel::value::Value;

pub(super) fn call<'a>(name: &str, is_member: bool, arguments: &[Value<'a>]) -> Option<Result<'a>> {
    let [value] = arguments else { return None };
    if is_member {
        return None;
    }
    let converted = match name {
        "bool" => to_bool(value),
        "bytes" => match value {
            Value::Bytes(_) => Some(value.clone()),
            Value::String(text) => Some(Value::Bytes(text.as_bytes().into())),
            _ => None,
        },
        "double" => to_double(value),
        "int" => return Some(to_int(value)),
        "uint" => return Some(to_uint(value)),
        "string" => match value {
            Value::Bytes(bytes) if std::str::from_utf8(bytes).is_err() => {
                let text = "invalid UTF-8 in bytes, cannot convert to string";
                return Some(Err(EvalError::new(text)));
            }
            value => to_text(value),
        },
        "duration" => return Some(to_duration(value)),
        "timestamp" => return Some(to_timestamp(value)),
        _ => return None,
    };
    Some(converted.ok_or_else(|| failed(value, name)))
}

fn failed(value: &Value<'_>, name: &str) -> EvalError {
    let wanted = match name {
        "timestamp" => "google.protobuf.Timestamp",
        "duration" => "google.protobuf.Duration",
        name => name,
    };
    let found = value.type_name();
    EvalError::new(format!("type conversion error from '{found}' to '{wanted}'"))
}

fn to_bool<'a>(value: &Value<'a>) -> Option<Value<'a>> {
    match value {
        Value::Bool(_) => Some(value.clone()),
        Value::String(text) => parse_go_bool(text).map(Value::Bool),
        _ => None,
    }
}

#[expect(clippy::cast_precision_loss, reason = "CEL rounds, too")]
fn to_double<'a>(value: &Value<'a>) -> Option<Value<'a>> {
    let number = match value {
        Value::Double(number) => *number,
        Value::Int(number) => *number as f64,
        Value::Uint(number) => *number as f64,
        Value::String(text) => numbers::read_float(text)?,
        _ => return None,
    };
    Some(Value::Double(number))
}

#[expect(clippy::cast_possible_truncation, reason = "the bounds are checked")]
fn to_int<'a>(value: &Value<'a>) -> Result<'a> {
    let overflow = || EvalError::new("integer overflow");
    let number = match value {
        Value::Int(number) => *number,
        Value::Uint(number) => i64::try_from(*number).map_err(|_| overflow())?,
        Value::Double(number) if number.abs() < 9.223_372_036_854_775e18 => *number as i64,
        Value::Double(_) => return Err(overflow()),
        Value::Timestamp(time) => time.as_second(),
        Value::Duration(nanos) => *nanos,
        Value::String(text) => text.parse().map_err(|_| failed(value, "int"))?,
        _ => return Err(failed(value, "int")),
    };
    Ok(Value::Int(number))
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the bounds are checked"
)]
fn to_uint<'a>(value: &Value<'a>) -> Result<'a> {
    let overflow = || EvalError::new("unsigned integer overflow");
    let number = match value {
        Value::Uint(number) => *number,
        Value::Int(number) => u64::try_from(*number).map_err(|_| overflow())?,
        Value::Double(number) if (0.0..1.844_674_407_370_955e19).contains(number) => *number as u64,
        Value::Double(_) => return Err(overflow()),
        Value::String(text) => {
            let is_signed = text.starts_with('+');
            text.parse().ok().filter(|_| !is_signed).ok_or_else(|| failed(value, "uint"))?
        }
        _ => return Err(failed(value, "uint")),
    };
    Ok(Value::Uint(number))
}

// === impl Value ===

impl Value<'_> {
    /// Returns the text that the function `string` makes of the value.
    pub(crate) fn written(&self) -> Option<String> {
        match to_text(self) {
            Some(Self::String(text)) => Some(text.to_string()),
            _ => None,
        }
    }
}

fn to_text<'a>(value: &Value<'a>) -> Option<Value<'a>> {
    Some(match value {
        Value::String(_) => value.clone(),
        Value::Bool(value) => Value::text(value.to_string()),
        Value::Int(number) => Value::text(number.to_string()),
        Value::Uint(number) => Value::text(number.to_string()),
        Value::Double(number) => Value::text(show_double(*number)),
        Value::Bytes(bytes) => Value::text(std::str::from_utf8(bytes).ok()?),
        Value::Timestamp(time) => Value::text(time.to_string()),
        Value::Duration(nanos) => Value::text(time::show_duration(*nanos)),
        Value::Ip(ip) => Value::text(ip.to_string()),
        Value::Cidr(cidr) => Value::text(cidr.to_string()),
        _ => return None,
    })
}

/// Writes a number as Go's format `g` does: with an exponent from 1e+06 on.
pub(super) fn show_double(number: f64) -> String {
    if !number.is_finite() {
        let text = if number.is_nan() { "NaN" } else { "Inf" };
        let sign = if number.is_nan() { "" } else { ["+", "-"][usize::from(number < 0.0)] };
        return format!("{sign}{text}");
    }
    let written = format!("{number:e}");
    let (base, exponent) = written.split_once('e').unwrap_or((&written, "0"));
    match exponent.parse::<i32>() {
        Ok(exponent @ -4..6) => {
            let digits = base.chars().filter(char::is_ascii_digit).count();
            let digits = i32::try_from(digits).unwrap_or(i32::MAX);
            let after = usize::try_from(digits - 1 - exponent).unwrap_or(0);
            format!("{number:.after$}")
        }
        Ok(exponent) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{base}e{sign}{:02}", exponent.abs())
        }
        Err(_) => written,
    }
}

fn to_duration<'a>(value: &Value<'a>) -> Result<'a> {
    let overflow = || EvalError::new("duration overflow");
    match value {
        Value::Duration(_) => Ok(value.clone()),
        Value::Int(nanos) => Ok(Value::Duration(*nanos)),
        Value::String(text) => {
            time::duration(text).map(Value::Duration).ok_or_else(|| failed(value, "duration"))
        }
        _ => Err(overflow()),
    }
}

fn to_timestamp<'a>(value: &Value<'a>) -> Result<'a> {
    match value {
        Value::Timestamp(_) => Ok(value.clone()),
        Value::Int(seconds) => time::of_seconds(*seconds)
            .map(Value::Timestamp)
            .ok_or_else(|| EvalError::new("timestamp overflow")),
        Value::String(text) => {
            time::timestamp(text).map(Value::Timestamp).ok_or_else(|| failed(value, "timestamp"))
        }
        _ => Err(failed(value, "timestamp")),
    }
}
