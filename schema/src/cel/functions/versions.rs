//! The functions of semantic versions.

use std::cmp::Ordering;
use std::rc::Rc;

use super::Result;
use crate::cel::error::EvalError;
use crate::cel::semver::Semver;
use crate::cel::value::Value;

pub(super) fn call<'a>(name: &str, arguments: &[Value<'a>]) -> Option<Result<'a>> {
    Some(match (name, arguments) {
        ("semver" | "isSemver", [Value::String(text), rest @ ..]) => {
            let lenient = match rest {
                [] => false,
                [Value::Bool(lenient)] => *lenient,
                _ => return None,
            };
            let version = Semver::read(text, lenient);
            if name == "isSemver" {
                return Some(Ok(Value::Bool(version.is_ok())));
            }
            version.map(|version| Value::Semver(Rc::new(version))).map_err(EvalError::new)
        }
        ("major", [Value::Semver(version)]) => Ok(number(version.numbers[0])),
        ("minor", [Value::Semver(version)]) => Ok(number(version.numbers[1])),
        ("patch", [Value::Semver(version)]) => Ok(number(version.numbers[2])),
        ("isLessThan", [Value::Semver(a), Value::Semver(b)]) => Ok(Value::Bool(a < b)),
        ("isGreaterThan", [Value::Semver(a), Value::Semver(b)]) => Ok(Value::Bool(a > b)),
        ("compareTo", [Value::Semver(a), Value::Semver(b)]) => Ok(Value::Int(match a.cmp(b) {
            Ordering::Less => -1,
            Ordering::Equal => 0,
            Ordering::Greater => 1,
        })),
        _ => return None,
    })
}

/// Returns the number as Go converts it.
fn number<'a>(number: u64) -> Value<'a> {
    Value::Int(number.cast_signed())
}
