//! The functions of named formats.

use super::Result;
use crate::cel::named_format::NamedFormat;
use crate::cel::value::Value;

pub(super) fn call<'a>(name: &str, arguments: &[Value<'a>]) -> Option<Result<'a>> {
    Some(match (name.strip_prefix("format."), arguments) {
        (Some("named"), [Value::String(name)]) => {
            Ok(Value::optional(NamedFormat::find(name).map(Value::Format)))
        }
        (Some(name), []) => Ok(Value::Format(NamedFormat::find(name)?)),
        (None, [Value::Format(format), Value::String(text)]) if name == "validate" => {
            let problems = format.check(text);
            let list = || Value::list(problems.iter().map(|text| Value::text(&**text)).collect());
            Ok(Value::optional((!problems.is_empty()).then(list)))
        }
        _ => return None,
    })
}
