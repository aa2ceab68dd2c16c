//! The functions and operators of an evaluation.

mod authorization;
mod convert;
mod formats;
pub(super) mod formatting;
mod lists;
mod network;
mod numbers;
mod patterns;
mod quantities;
mod strings;
mod times;
mod urls;
mod versions;

use super::error::EvalError;
use super::steps::Steps;
use super::value::Value;

type Result<'a> = std::result::Result<Value<'a>, EvalError>;

/// Calls a function. The target of a member function is the first argument.
///
/// # Errors
///
/// Returns the reason if the function has no value for these arguments.
pub(super) fn call<'a>(
    steps: &Steps,
    name: &str,
    is_member: bool,
    arguments: &[Value<'a>],
) -> Result<'a> {
    steps.spend(1)?;
    if let Some(result) = core(steps, name, arguments) {
        return result;
    }
    for argument in arguments {
        steps.spend(argument.weight())?;
    }
    let result = convert::call(name, is_member, arguments)
        .or_else(|| numbers::call(name, arguments))
        .or_else(|| strings::call(steps, name, arguments))
        .or_else(|| lists::call(steps, name, arguments))
        .or_else(|| times::call(name, arguments))
        .or_else(|| quantities::call(name, arguments))
        .or_else(|| versions::call(name, arguments))
        .or_else(|| formats::call(name, arguments))
        .or_else(|| formatting::call(steps, name, arguments))
        .or_else(|| network::call(name, is_member, arguments))
        .or_else(|| authorization::call(steps, name, arguments))
        .unwrap_or_else(|| Err(EvalError::no_such_overload()))?;
    steps.spend(result.weight())?;
    Ok(result)
}

/// The functions of every type of value.
fn core<'a>(steps: &Steps, name: &str, arguments: &[Value<'a>]) -> Option<Result<'a>> {
    Some(match (name, arguments) {
        ("_==_", [a, b]) => equal(steps, a, b).map(Value::Bool),
        ("_!=_", [a, b]) => equal(steps, a, b).map(|equal| Value::Bool(!equal)),
        ("@in", [item, range]) => contains(steps, item, range),
        ("optional.none", []) | ("_[_]" | "_[?_]", [Value::Optional(None), _]) => {
            Ok(Value::Optional(None))
        }
        ("_[_]" | "_[?_]", [Value::Optional(Some(inner)), key]) => {
            Ok(Value::optional(inner.at(key).ok()))
        }
        ("_[_]", [range, key]) => steps.spend(range.search()).and_then(|()| range.at(key)),
        ("_[?_]", [range, key]) => {
            steps.spend(range.search()).map(|()| Value::optional(range.at(key).ok()))
        }
        ("size", [value]) => match value.size().and_then(|size| i64::try_from(size).ok()) {
            Some(size) => Ok(Value::Int(size)),
            None => Err(EvalError::new("no such overload: size")),
        },
        ("type", [value]) => Ok(Value::Type(value.type_name())),
        ("dyn", [value]) => Ok(value.clone()),
        ("!_", [Value::Bool(value)]) => Ok(Value::Bool(!value)),
        ("optional.of", [value]) => Ok(Value::optional(Some(value.clone()))),
        ("optional.ofNonZeroValue", [value]) => {
            Ok(Value::optional(Some(value.clone()).filter(|value| !is_zero(value))))
        }
        ("hasValue", [Value::Optional(value)]) => Ok(Value::Bool(value.is_some())),
        ("value", [Value::Optional(value)]) => match value {
            Some(value) => Ok(value.as_ref().clone()),
            None => Err(EvalError::new("optional.none() dereference")),
        },
        ("optional.unwrap" | "unwrapOpt", [list]) => {
            let items = list.items()?;
            let set = items.into_iter().filter_map(|item| match item {
                Value::Optional(inner) => inner.map(|inner| inner.as_ref().clone()),
                other => Some(other),
            });
            steps.spend(list.weight()).map(|()| Value::list(set.collect()))
        }
        ("or", [first @ Value::Optional(value), second]) => {
            Ok(if value.is_some() { first.clone() } else { second.clone() })
        }
        ("orValue", [Value::Optional(value), other]) => {
            Ok(value.as_ref().map_or_else(|| other.clone(), |value| value.as_ref().clone()))
        }
        _ => return None,
    })
}

fn is_zero(value: &Value<'_>) -> bool {
    match value {
        Value::Null | Value::Bool(false) | Value::Int(0) | Value::Uint(0) | Value::Duration(0) => {
            true
        }
        Value::Double(number) => *number == 0.0,
        other => other.size() == Some(0),
    }
}

/// Compares two values. Each pair of values inside costs a step.
pub(super) fn equal<'a>(
    steps: &Steps,
    a: &Value<'a>,
    b: &Value<'a>,
) -> std::result::Result<bool, EvalError> {
    steps.spend(1)?;
    let all = |pairs: &mut dyn Iterator<Item = (Value<'a>, Value<'a>)>| {
        for (a, b) in pairs {
            if !equal(steps, &a, &b)? {
                return Ok(false);
            }
        }
        Ok(true)
    };
    match (a, b) {
        (Value::Optional(None), Value::Optional(None)) => return Ok(true),
        (Value::Optional(Some(a)), Value::Optional(Some(b))) => return equal(steps, a, b),
        (Value::Object(a, kind), Value::Object(b, _)) => {
            let fields = || kind.fields.values().map(|field| (&field.name, &field.value));
            if fields().any(|(name, _)| a.contains_key(name) != b.contains_key(name)) {
                return Ok(false);
            }
            let mut pairs = fields().filter_map(|(name, kind)| {
                Some((Value::read(a.get(name)?, kind), Value::read(b.get(name)?, kind)))
            });
            return all(&mut pairs);
        }
        (Value::Struct(a), Value::Struct(b)) => {
            if a.name() != b.name() || a.fields().len() != b.fields().len() {
                return Ok(false);
            }
            for (name, value) in a.fields() {
                match b.field(name) {
                    Some(other) if equal(steps, value, other)? => {}
                    _ => return Ok(false),
                }
            }
            return Ok(true);
        }
        // As upstream, these compare with values of their own type alone.
        (
            Value::Quantity(_) | Value::Ip(_) | Value::Cidr(_) | Value::Semver(_) | Value::Url(_),
            _,
        ) if a.type_name() != b.type_name() => {
            return Err(EvalError::no_such_overload());
        }
        (Value::String(_), Value::String(_)) => steps.spend(a.weight().min(b.weight()))?,
        _ => {}
    }
    if a.size() != b.size() {
        return Ok(false);
    }
    if let (Some(a), Some(b)) = (a.items(), b.items()) {
        return all(&mut a.into_iter().zip(b));
    }
    let (Some(entries), true) = (a.entries(), b.is_map()) else { return Ok(a.equals(b)) };
    for (key, value) in entries {
        steps.spend(b.search())?;
        match b.at(&key) {
            Ok(other) if equal(steps, &value, &other)? => {}
            _ => return Ok(false),
        }
    }
    Ok(true)
}

fn contains<'a>(steps: &Steps, item: &Value<'a>, range: &Value<'a>) -> Result<'a> {
    steps.spend(range.search())?;
    if let Some(items) = range.items() {
        for other in items {
            if equal(steps, item, &other)? {
                return Ok(Value::Bool(true));
            }
        }
        return Ok(Value::Bool(false));
    }
    if let (Value::Values(fields, _), Value::String(name)) = (range, item) {
        return Ok(Value::Bool(fields.contains_key(&**name)));
    }
    let entries = range.entries().ok_or_else(EvalError::no_such_overload)?;
    Ok(Value::Bool(entries.iter().any(|(key, _)| key.equals(item))))
}
